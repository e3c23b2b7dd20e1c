"""`solve` itself: what it raises, returns and says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import stiction as st
from stiction.problems import LCP

TEXTBOOK = LCP([[2.0, 1.0], [1.0, 2.0]], [-5.0, -6.0])
INFEASIBLE = LCP([[-1.0]], [-1.0])


def test_a_textbook_problem():
    solution = st.solve(TEXTBOOK)
    assert solution.ok
    assert solution.status == st.Status.SOLVED
    assert solution.z == pytest.approx([4 / 3, 7 / 3])
    assert solution.w == pytest.approx([0.0, 0.0], abs=1e-14)
    assert solution.certificate.residual <= 1e-15
    assert isinstance(solution.solver, st.Keller)
    assert solution.trace == ("Keller: solved, residual 0.0e+00",)


def test_failure_raises_or_returns_the_last_iterate():
    with pytest.raises(st.SolveFailed, match="the path ends in a ray") as caught:
        st.solve(INFEASIBLE, st.Lemke())
    failed = st.solve(INFEASIBLE, st.Lemke(), throw=False)
    assert failed.status == caught.value.solution.status == st.Status.RAY
    assert failed.z.shape == (1,)
    assert not failed.ok
    assert "proves that there is no solution" in failed.ray.statement
    assert failed.ray.statement in failed.explain()
    assert pickle.loads(pickle.dumps(caught.value)).solution.status == st.Status.RAY


@pytest.mark.parametrize("status", list(st.Status))
def test_every_status_says_what_to_do(status):
    assert len(status.message) > 20


def test_tolerance_decides_and_is_remembered():
    rough = st.GaussSeidel(max_sweeps=3)
    problem = LCP([[2.0, 1.9], [1.9, 2.0]], [-1.0, -1.0])
    assert not st.solve(problem, rough, throw=False).ok
    loose = st.solve(problem, rough, tolerance=0.5)
    assert loose.ok
    assert loose.tolerance == 0.5


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan, np.inf, "small"])
def test_bad_tolerances(tolerance):
    with pytest.raises(st.InvalidProblem, match="tolerance must be a positive number"):
        st.solve(TEXTBOOK, tolerance=tolerance)


def test_bad_arguments():
    with pytest.raises(st.InvalidProblem, match="not an LCP, BoxLCP or ContactProblem, but list"):
        st.solve([[1.0]])
    with pytest.raises(st.InvalidProblem, match=r"is not a solver; pass an object such as st.Lemke\(\)"):
        st.solve(TEXTBOOK, "lemke")
    with pytest.raises(st.InvalidProblem, match=r"start must have shape \(2,\).*got \(3,\)"):
        st.solve(TEXTBOOK, st.Murty(), start=[1.0, 2.0, 3.0])
    with pytest.raises(st.InvalidProblem, match=r"start must be finite, but start\[1\] = nan"):
        st.solve(TEXTBOOK, st.Murty(), start=[1.0, np.nan])
    with pytest.raises(st.InvalidProblem, match="a class, not an object"):
        st.solve(TEXTBOOK, st.Lemke)


def test_solutions_print_in_one_line():
    assert repr(st.solve(TEXTBOOK, st.Lemke())).startswith(f"<Solution n = {TEXTBOOK.n}: solved by Lemke, ")
