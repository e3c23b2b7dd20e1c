"""The published problems are there, and what is said about their solutions is true."""

import contextlib
import importlib.resources
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from stiction.errors import InvalidProblem
from stiction.problems import LCP, box_classics, classic, classics, fathi, murty_exponential
from stiction.solutions import certify

SOLVED = [name for name, entry in classics().items() if entry.basic_solutions]
WITHOUT = [name for name, entry in classics().items() if entry.basic_solutions == ()]


def test_all_are_there():
    assert len(classics()) == 16
    assert len(box_classics()) == 9
    assert sorted(WITHOUT) == [
        "infeasible_1d",
        "kostreva2_cycling",
        "murty_2_9",
        "siconos_lcp_Pang_isolated_sol_perturbed",
    ]
    for name, entry in {**classics(), **box_classics()}.items():
        assert entry.name == name
        assert entry.source
        assert classic(name) is entry


def test_an_unknown_name_lists_the_known():
    with pytest.raises(
        InvalidProblem, match=r"no classic named 'kostreva'; known are BuckFirstStep, .*, kostreva1_cycling"
    ):
        classic("kostreva")


def test_the_lists_cannot_be_changed():
    with pytest.raises(TypeError):
        classics()["new"] = None
    with pytest.raises(ValueError, match="read-only"):
        classic("murty_2_8").basic_solutions[0][0] = 1.0


@pytest.mark.parametrize("name", SOLVED)
def test_basic_solutions_are_solutions(name):
    entry = classic(name)
    for z in entry.basic_solutions:
        assert certify(entry.problem, z).residual <= 1e-9


@pytest.mark.parametrize("name", WITHOUT)
def test_those_without_solution_have_none_on_any_support(name):
    problem = classic(name).problem
    for support in product([False, True], repeat=problem.n):
        equal, above = problem.H[list(support)], problem.H[~np.array(support)]
        answer = linprog(
            np.zeros(problem.n),
            A_ub=-above if len(above) else None,
            b_ub=problem.q[~np.array(support)] if len(above) else None,
            A_eq=equal if len(equal) else None,
            b_eq=-problem.q[list(support)] if len(equal) else None,
            bounds=[(0.0, None if inside else 0.0) for inside in support],
        )
        assert answer.status == 2  # infeasible


def test_known_solutions_of_the_larger_ones():
    n16 = classic("floudas_10_2_1_n16").problem
    assert np.array_equal(n16.H, murty_exponential(16).H)
    assert certify(n16, np.eye(16)[15]).residual == 0.0
    assert np.array_equal(classic("fathi_n12").problem.H, fathi(12).H)


def pivots_of_murty(problem, choose):
    """Bard-type pivoting from z = 0: exchange the first (or last) index with a negative value."""
    inside = np.zeros(problem.n, dtype=bool)
    for pivots in range(2**problem.n + 1):
        z = np.zeros(problem.n)
        z[inside] = np.linalg.solve(problem.H[np.ix_(inside, inside)], -problem.q[inside])
        negative = np.flatnonzero(np.where(inside, z, problem.H @ z + problem.q) < -1e-9)
        if len(negative) == 0:
            return pivots
        inside[negative[choose]] ^= True
    raise AssertionError("it cycles")


@pytest.mark.parametrize("n", range(1, 8))
def test_exponential_examples_are_exponential(n):
    assert certify(murty_exponential(n), np.eye(n)[n - 1]).residual == 0.0
    assert certify(fathi(n), np.eye(n)[0]).residual == 0.0
    assert fathi(n).symmetric
    assert pivots_of_murty(murty_exponential(n), 0) == 2**n - 1
    assert pivots_of_murty(fathi(n), -1) == 2**n - 1


def test_exponential_examples_without_variables():
    assert murty_exponential(0).n == fathi(0).n == 0


@pytest.mark.parametrize("name", [name for name, entry in box_classics().items() if entry.problem.n <= 8])
def test_box_classics_have_solutions(name):
    """By every state of every variable: at its lower bound, between, at its upper bound."""
    problem = classic(name).problem
    rows = np.abs(problem.H).max(axis=1)
    H, q = problem.H / rows[:, None], problem.q / rows
    states = [[b for b in (lo, None, hi) if b is None or np.isfinite(b)] for lo, hi in problem.vectors[1:].T]
    residuals = []
    for state in product(*states):
        between = np.array([bound is None for bound in state])
        z = np.array([0.0 if bound is None else bound for bound in state])
        with contextlib.suppress(np.linalg.LinAlgError):
            z[between] = np.linalg.solve(H[np.ix_(between, between)], -(H @ z + q)[between])
            residuals.append(certify(problem, z).residual)
    assert np.nanmin(residuals) < 1e-12


def test_data_carry_their_licence_and_origin():
    data = importlib.resources.files("stiction.problems.zoo") / "data"
    assert "Apache License" in (data / "LICENSE-siconos-apache2.txt").read_text()
    assert "Siconos" in (data / "README.md").read_text()
    assert sorted(path.name for path in (data / "box").iterdir()) == sorted(f"{name}.npz" for name in box_classics())
    assert all(isinstance(entry.problem, LCP) for entry in classics().values())
