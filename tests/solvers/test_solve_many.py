"""Many problems at once: the same judge, the same answers, whatever the number of threads."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stiction as st
from meanwhile import counts_of_another_thread
from stiction.problems.zoo import contact_families as families
from stiction.solutions.contact import judge_contact
from stiction.solvers import solve_many as module

# One geometry each: a peg, a stack, a grasp, hinged links, a dense mass.
GEOMETRIES = {
    "peg": lambda: families.peg(16, 1),
    "stack": lambda: families.stack(5, 1),
    "chain": lambda: families.chain(3, 1),
    "ladder": lambda: families.ladder(1),
}


def loads(problem, count, seed=0):
    rng = np.random.default_rng(seed)
    velocity = problem.velocity + 0.3 * rng.normal(size=(count, problem.m))
    friction = problem.friction * rng.uniform(0.3, 1.5, (count, problem.n))
    gap_rate = problem.gap_rate + 0.01 * rng.uniform(size=(count, problem.n))
    return {"velocity": velocity, "friction": friction, "gap_rate": gap_rate}


@pytest.mark.parametrize("name", sorted(GEOMETRIES))
def test_answers_of_one_geometry_pass_the_judge(name):
    """Every answer called solved is judged once more, by what `solve` judges with, against its own problem."""
    problem = GEOMETRIES[name]()
    given = loads(problem, 40)
    found = st.solve_many(problem, **given, workers=2)
    assert found.impulse.shape == (40, problem.n, 3)
    assert found.velocity.shape == (40, problem.m)
    assert found.ok, found
    for k in range(40):
        one = problem.replace(**{field: rows[k] for field, rows in given.items()})
        velocity, joint_impulse = one.respond(found.impulse[k])
        assert velocity == pytest.approx(found.velocity[k], abs=1e-9)
        certificate, _, _ = judge_contact(one, found.velocity[k], found.impulse[k], joint_impulse)
        assert certificate.residual <= 1e-8
        assert certificate.residual == pytest.approx(found.residual[k], rel=1e-6, abs=1e-12)
        alone = st.solve(one)
        assert alone.velocity == pytest.approx(found.velocity[k], abs=1e-6)


@pytest.mark.parametrize("workers", [2, 3])
def test_threads_change_no_bit(workers):
    problem = families.stack(5, 1)
    given = loads(problem, 50)
    alone, together = (st.solve_many(problem, **given, workers=count) for count in (1, workers))
    for one, other in zip(alone[:4], together[:4], strict=True):
        assert np.array_equal(one, other)


def test_other_threads_run_meanwhile():
    """A kernel that held the interpreter's lock would let nobody else count."""
    problem = families.stack(5, 1)
    given = loads(problem, module.SHARE)
    st.solve_many(problem, **given, workers=1)
    # Four calls of the kernel.
    assert counts_of_another_thread(lambda: st.solve_many(problem, **given, workers=1)) >= 3


def test_a_list_of_all_kinds_of_problems():
    """Sizes, laws and forms mixed: what the kernel does not take is solved one by one."""
    problems = [
        families.peg(16, 2),
        families.stack(3, 2),
        families.stack(2, 2).replace(law=st.Coulomb(facets=8)),
        families.heap_delassus(4, 1),
        families.incline(3),
        families.stack(2, 1).replace(law=st.NoSlip()),
    ]
    found = st.solve_many(problems, workers=2)
    assert found.ok, found
    assert found.one_by_one >= 3
    assert found.impulse.shape == (6, max(problem.n for problem in problems), 3)
    for k, problem in enumerate(problems):
        alone = st.solve(problem)
        assert found.residual[k] <= 1e-8
        assert found.velocity[k, : problem.m] == pytest.approx(alone.velocity, abs=1e-6)
        assert not found.impulse[k, problem.n :].any()
        assert not found.velocity[k, problem.m :].any()


def test_a_row_for_all_and_the_problem_s_own():
    problem = families.stack(3, 1)
    velocity = loads(problem, 5)["velocity"]
    found = st.solve_many(problem, velocity=velocity, friction=np.full(problem.n, 0.4))
    assert found.impulse.shape == (5, problem.n, 3)
    one = st.solve_many(problem)
    assert one.impulse.shape == (1, problem.n, 3)
    assert one.velocity[0] == pytest.approx(st.solve(problem).velocity, abs=1e-7)


def test_nothing_to_solve():
    found = st.solve_many([])
    assert found.ok
    assert found.impulse.shape == (0, 0, 3)
    assert repr(found) == "<Solutions: 0 of 0 certified, worst residual 0.0e+00>"


def test_what_has_no_solution_says_so_and_the_others_are_solved():
    """Two joint rows that ask for different rates of the same velocity."""
    stuck = st.ContactProblem(
        np.eye(3), [0.0, 0.0, -1.0], [[0.0, 0.0, 1.0]], [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], [0.5],
        joints=[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], joint_rate=[0.0, 1.0],
    )  # fmt: skip
    found = st.solve_many([families.stack(2, 1), stuck, families.peg(16, 1)])
    assert found.status.tolist() == [0, int(st.Status.CONTRADICTION), 0]
    assert not found.ok


def test_what_the_kernel_does_not_certify_goes_through_solve(monkeypatch):
    problem = families.stack(3, 1)
    given = loads(problem, 6)
    asked = []
    monkeypatch.setattr(module, "solve", lambda one, **options: asked.append(one) or st.solve(one, **options))
    monkeypatch.setattr(module.Scratches, "solve", lambda *given: None)
    found = st.solve_many(problem, **given)
    assert len(asked) == found.one_by_one == 6
    assert found.ok


BAD = {
    "on": ({"on": "tpu"}, "solve_many: on must be one of 'cpu', 'cuda', got 'tpu'"),
    "workers": ({"workers": 0}, "solve_many: workers must be a whole number of at least 1, got 0"),
    "tolerance": ({"tolerance": -1.0}, "solve_many: tolerance must be a positive number, got -1.0"),
    "shape": ({"velocity": np.zeros((4, 3))}, "velocity must have shape (c, 6) to match the problem, got (4, 3)"),
    "rows": (
        {"velocity": np.zeros((4, 6)), "friction": np.ones((3, 16))},
        "arrays must have the same number of rows, or one; they have velocity 4, friction 3",
    ),
    "finite": ({"velocity": [[0, 0, 0, np.nan, 0, 0]]}, "velocity must be finite, but velocity[0, 3] = nan"),
    "negative": ({"friction": -np.ones(16)}, "friction must be finite and not negative, but friction[0, 0] = -1.0"),
    "words": ({"friction": "much"}, "friction must be an array of numbers"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_input_is_named(name):
    options, message = BAD[name]
    with pytest.raises(st.InvalidProblem, match=re.escape(message)):
        st.solve_many(families.peg(16, 1), **options)


def test_bad_lists_are_named():
    with pytest.raises(st.InvalidProblem, match="problems must be a ContactProblem or a list of them, got str"):
        st.solve_many("peg")
    with pytest.raises(st.InvalidProblem, match=r"problems\[1\] must be a ContactProblem, got LCP"):
        st.solve_many([families.peg(16, 1), st.LCP([[1.0]], [1.0])])
    with pytest.raises(st.InvalidProblem, match="friction is for one problem; problems of a list have their own"):
        st.solve_many([families.peg(16, 1)], friction=[0.5])
    with pytest.raises(st.InvalidProblem, match="a problem in Delassus form has no velocity; give a list of problems"):
        st.solve_many(families.heap_delassus(2, 1), velocity=[0.5])
