"""Every solver on every family: it solves what its contract promises, refuses what it says, and never lies."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import stiction as st
from stiction.problems import LCP, BoxLCP
from stiction.problems.zoo.families import FAMILIES, INFEASIBLE
from stiction.solvers import COMPLEMENTARITY, Auto
from stiction.solvers.contract import Contract, Proposal

SIZES = (1, 2, 3, 5, 8, 13, 20, 40, 80, 120, 200)
EVERY = (*COMPLEMENTARITY, Auto)


def draw(name: str, seed: int, largest: int) -> BoxLCP:
    """A problem of a family: sizes up to `largest`, condition up to 1e8 where it can be chosen."""
    make = FAMILIES[name].make
    rng = np.random.default_rng((seed, len(name)))
    n = int(rng.choice([size for size in SIZES if size <= largest]))
    options = {"condition": 10.0 ** rng.uniform(0.0, 8.0)} if "condition" in inspect.signature(make).parameters else {}
    return make(n, seed, **options)


def promised(solver, name: str) -> bool:
    contract, classes = solver.contract, FAMILIES[name].classes
    return bool(contract.solves & classes) and (contract.boxes or "LCP" in classes)


PROMISES = [(solver, name) for solver in EVERY for name in FAMILIES if promised(solver, name)]


def check_promise(solver, name, count):
    largest = solver.contract.largest or 200
    for seed in range(count):
        problem = draw(name, seed, min(largest, 8) if solver is st.Enumerate else largest)
        solution = st.solve(problem, solver(), tolerance=1e-9, throw=False)
        assert solution.ok, f"{name}, seed {seed}, n {problem.n}: {solution.explain()}"


@pytest.mark.parametrize(("solver", "name"), PROMISES)
def test_promises_are_kept(solver, name):
    check_promise(solver, name, 12)


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "name"), PROMISES)
def test_promises_are_kept_a_thousand_times(solver, name):
    check_promise(solver, name, 100 if solver is st.Enumerate else 1000)


@pytest.mark.parametrize("name", [name for name in FAMILIES if "PSD" in FAMILIES[name].classes])
def test_block_pivot_solves_semidefinite_problems_by_a_perturbation(name):
    for seed in range(8):
        assert st.solve(draw(name, seed, 120), st.BlockPivot(perturbation=1e-3), tolerance=1e-9).ok


@pytest.mark.parametrize("solver", EVERY)
@pytest.mark.parametrize("name", INFEASIBLE)
def test_nobody_solves_the_infeasible(solver, name):
    for seed in range(10):
        problem = INFEASIBLE[name].make(6, seed)
        if solver.contract.refusal(problem) is None:
            solution = st.solve(problem, solver(), throw=False)
            assert not solution.ok
            assert solution.status != st.Status.SOLVED


@pytest.mark.parametrize("solver", [st.Lemke, Auto])
@pytest.mark.parametrize("name", INFEASIBLE)
def test_rays_prove_that_there_is_no_solution(solver, name):
    for seed in range(40):
        problem = INFEASIBLE[name].make(int(np.random.default_rng(seed).integers(1, 60)), seed, condition=1e6)
        solution = st.solve(problem, solver(), throw=False)
        assert solution.status == st.Status.RAY
        assert solution.ray.infeasible


@pytest.mark.parametrize("solver", EVERY)
def test_small_and_empty_problems_are_ordinary(solver):
    empty = st.solve(LCP(np.zeros((0, 0)), []), solver())
    assert empty.ok
    assert empty.z.shape == (0,)
    assert empty.certificate.index == -1
    one = st.solve(LCP([[2.0]], [-3.0]), solver())
    assert one.z == pytest.approx([1.5])
    assert one.w == pytest.approx([0.0])
    assert st.solve(LCP([[2.0]], [3.0]), solver()).z == pytest.approx([0.0])


@pytest.mark.parametrize("solver", [s for s in EVERY if s.contract.boxes])
def test_bounds_and_equations_by_hand(solver):
    # w = z - (2, -2, 0.5, 3): above, below, inside and free
    problem = BoxLCP(np.eye(4), [-2.0, 2.0, -0.5, -3.0], [0.0, -1.0, 0.0, -np.inf], [1.0, 1.0, 1.0, np.inf])
    solution = st.solve(problem, solver())
    assert solution.z == pytest.approx([1.0, -1.0, 0.5, 3.0])
    assert solution.w == pytest.approx([-1.0, 1.0, 0.0, 0.0])
    fixed = BoxLCP([[2.0, 1.0], [1.0, 2.0]], [-9.0, 1.0], [1.0, 0.0], [1.0, np.inf])
    assert st.solve(fixed, solver()).z == pytest.approx([1.0, 0.0])
    upper = BoxLCP([[2.0]], [4.0], -np.inf, 0.0)
    assert st.solve(upper, solver()).z == pytest.approx([-2.0])


@pytest.mark.parametrize("solver", EVERY)
def test_inputs_are_untouched_and_answers_repeat_to_the_bit(solver):
    problem = FAMILIES["positive_definite"].make(10, 3)
    H, vectors = problem.H.copy(), problem.vectors.copy()
    first, second = (st.solve(problem, solver(), throw=False) for _ in range(2))
    assert np.array_equal(problem.H, H)
    assert np.array_equal(problem.vectors, vectors)
    assert first.z.tobytes() == second.z.tobytes()
    assert first.iterations == second.iterations
    assert first.z is not second.z
    assert first.z.flags.writeable


@pytest.mark.parametrize("solver", [s for s in COMPLEMENTARITY if s.contract.warm])
def test_a_start_at_the_answer_is_used(solver):
    problem = FAMILIES["positive_definite"].make(60, 1)
    cold = st.solve(problem, solver(), tolerance=1e-6)
    warm = st.solve(problem, solver(), start=cold, tolerance=1e-6)
    assert warm.iterations <= max(1, cold.iterations // 3)


@pytest.mark.parametrize("solver", [s for s in EVERY if not s.contract.warm])
def test_a_start_that_cannot_be_used_is_refused(solver):
    with pytest.raises(st.UnsupportedProblem, match=f"{solver.__name__} cannot use a start; these can: Murty"):
        st.solve(LCP(np.eye(2), [-1.0, -1.0]), solver(), start=[1.0, 1.0])


def test_refusals_name_solvers_that_take_the_problem():
    indefinite = LCP([[-1.0]], [1.0])
    with pytest.raises(st.UnsupportedProblem, match=r"Murty .* P-matrix, but a diagonal entry is -1; these do: Lemke"):
        st.solve(indefinite, st.Murty())
    with pytest.raises(
        st.UnsupportedProblem, match=r"Keller .* P0-matrix, but a diagonal entry is -1; these do: Lemke"
    ):
        st.solve(indefinite, st.Keller())
    box = BoxLCP(np.eye(2), [1.0, 1.0], -1.0, 1.0)
    with pytest.raises(st.UnsupportedProblem, match="PrincipalPivot .* no bounds other than z >= 0"):
        st.solve(box, st.PrincipalPivot())
    with pytest.raises(st.UnsupportedProblem, match="Enumerate .* at most n = 12, got n = 13"):
        st.solve(LCP(np.eye(13), np.ones(13)), st.Enumerate())
    with pytest.raises(st.UnsupportedProblem, match="BlockPivot .* P-matrix"):
        st.solve(LCP(np.zeros((1, 1)), [1.0]), st.BlockPivot())
    assert st.solve(LCP(np.zeros((1, 1)), [1.0]), st.BlockPivot(perturbation=1e-3)).ok


@dataclass(frozen=True)
class Liar:
    """Claims to have solved everything."""

    contract: ClassVar[Contract] = Contract(matrix="any", guarantee="", cost="", choose="")

    def propose(self, problem, start):
        return Proposal(st.Status.SOLVED, 0, np.full(problem.n, -1.0))


def test_a_lying_solver_is_caught():
    solution = st.solve(LCP(np.eye(2), [-1.0, 1.0]), Liar(), throw=False)
    assert solution.status == st.Status.UNCERTIFIED
    assert not solution.ok
    with pytest.raises(st.SolveFailed, match=r"Liar: .* fails its certificate") as caught:
        st.solve(LCP(np.eye(2), [-1.0, 1.0]), Liar())
    assert caught.value.solution.status == st.Status.UNCERTIFIED
