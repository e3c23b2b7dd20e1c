"""Enumeration: only bounded variables count, and nothing of its own is blamed on the caller."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from exact_judge import Exact
from stiction.problems import LCP, BoxLCP, box_classics, classics
from stiction.solvers.lcp.enumerate import in_scaled_units, whole_answer, without_free_variables


def network(seed: int, free: int = 14, bounded: int = 7) -> BoxLCP:
    """Like a circuit with diodes: mostly free variables, some of them undetermined by their own rows; indefinite.

    It has a solution, which is how it is made.
    """
    rng = np.random.default_rng(seed)
    n = free + bounded
    H = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.4)
    H[:2, :free] = 0.0  # two currents that only the diodes determine
    H[:free, :2] = 0.0
    H[:2, free : free + 2] = H[free : free + 2, :2] = np.eye(2)
    units = 10.0 ** rng.uniform(-3.0, 3.0, n)
    z, w = rng.normal(size=n), np.zeros(n)
    at_zero = np.arange(n) >= free + bounded // 2
    z[free:], w[at_zero] = np.abs(z[free:]), rng.random(n)[at_zero]
    z[at_zero] = 0.0
    lo = np.where(np.arange(n) < free, -np.inf, 0.0)
    return BoxLCP(units[:, None] * H, units * (w - H @ z), lo, np.inf)


@pytest.mark.parametrize("seed", range(8))
def test_networks_are_solved_whatever_their_free_variables(seed):
    problem = network(seed)
    assert problem.n == 21
    assert problem.bounded == 7
    for solver in (st.Enumerate(), st.Auto()):
        assert st.solve(problem, solver).certificate.residual < 1e-9


def test_the_published_problems_are_solved_and_certified():
    for name, classic in {**classics(), **box_classics()}.items():
        solution = st.solve(classic.problem, throw=False)
        if classic.basic_solutions == ():
            assert not solution.ok, name
        else:
            assert solution.certificate.residual < 1e-12, name


def test_the_buck_converter_needs_enumeration():
    problem = box_classics()["BuckFirstStep"].problem
    assert (problem.n, problem.bounded) == (32, 12)
    solution = st.solve(problem)
    assert isinstance(solution.solver, st.Enumerate)
    assert not np.allclose(solution.z, 0.0)


def test_elimination_keeps_the_solutions():
    for seed in range(5):
        problem = network(seed)
        whole, factor = in_scaled_units(problem)
        few = without_free_variables(whole)
        assert problem.bounded <= len(few.H) <= problem.bounded + 2
        found = st.solve(BoxLCP(few.H, *few.vectors), st.Enumerate())
        assert st.certify(problem, whole_answer(whole, few, found.z) * factor).residual < 1e-9


def test_only_bounded_variables_count():
    problem = BoxLCP(np.eye(30), -np.ones(30), np.where(np.arange(30) < 20, -np.inf, 0.0), np.inf)
    assert st.solve(problem, st.Enumerate()).z == pytest.approx(np.ones(30))
    with pytest.raises(st.UnsupportedProblem, match="at most n = 12, got n = 13 without free variables"):
        st.solve(BoxLCP(np.eye(14), np.ones(14), [-np.inf, *[0.0] * 13], np.inf), st.Enumerate())


OVERFLOWS = BoxLCP(np.diag([-1e-238, 1e215, -3e295]), [1e291, -141.0, -5e155], -2e248, 5e-15)


@pytest.mark.parametrize(
    "problem",
    [
        OVERFLOWS,
        BoxLCP([[5.8e-187, -6e-302], [2.4e300, -7.3e300]], [2.6e-38, -7.8e142], -1e273, 4.6e182),
        LCP(
            [[1.8e-101, -1.6e-154, -9.5e284], [-1.3e97, 2e-244, 3e164], [1e-289, -8.6e70, -7e227]],
            [2e198, -9e167, -5e-216],
        ),
    ],
)
@pytest.mark.parametrize("solver", [st.Enumerate(), st.Auto(), st.Lemke()])
def test_overflow_on_the_way_is_not_the_callers_mistake(problem, solver):
    solution = st.solve(problem, solver, throw=False)  # raised InvalidProblem, RecursionError and LinAlgError
    assert solution.ok == (solution.certificate.residual <= 1e-8)


def test_lemke_blocks_where_rounding_hides_the_first_step():
    # An event without a place was written outside of the workspace.
    H = [
        [-4.367670662377424e-08, 5.262943086825565e-12, 0.0],
        [0.0, 0.018527033804385022, -0.8436811024953951],
        [0.0, 0.0, -5.461128553700236e-08],
    ]
    q = [-1.1012535281023288e-05, -21806.554936535118, 0.0006587155551914738]
    assert st.solve(LCP(H, q), st.Lemke(), throw=False).status in (st.Status.SOLVED, st.Status.RAY)
    assert st.solve(LCP(H, q), st.Auto(), throw=False).ok == Exact(H, q, np.zeros(3), np.full(3, np.inf)).exists()


def test_a_miss_by_rounding_is_put_right():
    class Misses:
        contract = st.Lemke.contract

        def propose(self, problem, start):
            return st.Lemke().propose(problem, start)._replace(z=np.array([1.0, 3e-13]))

    problem = LCP([[1.0, 0.0], [0.5, 1.0]], [-1.0, 2.0])
    assert st.certify(problem, [1.0, 3e-13]).residual > 1e-14
    solution = st.solve(problem, Misses())
    assert np.array_equal(solution.z, [1.0, 0.0])
    assert solution.certificate.residual == 0.0
