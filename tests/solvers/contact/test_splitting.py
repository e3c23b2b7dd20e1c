"""Splitting into box LCPs: its passes as published, what helps them, and the answers, by certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

import stiction as st
from stiction.errors import InvalidProblem, UnsupportedProblem
from stiction.problems import CONTACT_FAMILIES, contact_classics
from stiction.problems.box_friction import as_pyramid, box_form
from stiction.problems.zoo.contact_families import GRAVITY, ORIGIN, TIME_STEP, UP, block, incline, peg, with_friction
from stiction.problems.zoo.rigid_bodies import Touch, posed
from stiction.solvers.contact.splitting.passes import Passes
from stiction.solvers.contact.splitting.splitting import Splitting
from stiction.solvers.contract import Proposal

BOXES = [st.BoxFriction(), st.BoxFriction(scaled=True)]
INNER = [
    st.Lemke(),
    st.Keller(),
    st.CottleDantzig(),
    st.Murty(),
    st.BlockPivot(),
    st.SmoothingNewton(),
    st.GaussSeidel(),
]
# Sizes from 1e-1.5 to 1e1.5 m, masses as their cubes: doubles end here, so not every seed is solved.
BEYOND_DOUBLES = {"stack-lengths"}


@pytest.mark.parametrize("law", BOXES, ids=str)
@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - BEYOND_DOUBLES))
def test_every_family_is_solved(name, law):
    problem = CONTACT_FAMILIES[name](0).with_law(law)
    solution = st.solve(problem, Splitting())
    assert solution.ok
    # Also as a pyramid, which another part of the judge judges.
    assert st.certify(as_pyramid(problem), solution).residual <= 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - BEYOND_DOUBLES))
def test_every_family_is_solved_often(name):
    for seed, law in product(range(1, 20), BOXES):
        assert st.solve(CONTACT_FAMILIES[name](seed).with_law(law), Splitting()).ok


@pytest.mark.parametrize("rotation", [0.0, 0.3, np.pi / 4])
@pytest.mark.parametrize("name", ["peg-16", "stack-3", "plane-stack", "heap-delassus", "motor"])
def test_pyramids_of_four_facets(name, rotation):
    problem = CONTACT_FAMILIES[name](1).with_law(st.Coulomb(4, rotation))
    assert st.solve(problem, Splitting()).certificate.residual <= 1e-8


@pytest.mark.parametrize("name", [name for name in contact_classics() if not name.startswith("spheres")])
def test_published_problems(name):
    # Some in the plane, some with a Delassus matrix that is not symmetric, as printed.
    assert st.solve(contact_classics()[name].with_law(BOXES[0]), Splitting()).certificate.residual <= 1e-8


@pytest.mark.parametrize("inner", INNER, ids=lambda inner: type(inner).__name__)
def test_any_inner_solver_serves(inner):
    for problem in (incline(0), peg(8, 3), CONTACT_FAMILIES["plate-gaps"](0)):
        boxed = problem.with_law(BOXES[1])
        assert st.solve(boxed, Splitting(inner)).ok
    # Alone, on a problem with passes that converge.
    solution = st.solve(boxed, Splitting(inner, accelerate=None))
    assert solution.ok
    assert solution.iterations <= 20


def sliding_block(tangent, height, friction):
    """A block of this height on a plane of this slope; it does not turn over while friction holds it within a cone."""
    slope = np.arctan(tangent)
    weight = GRAVITY * TIME_STEP * np.array([np.sin(slope), 0.0, -np.cos(slope), 0.0, 0.0, 0.0])
    touches = [Touch((0.4 * x, 0.3 * y, -0.5 * height), UP, -1, 0) for x, y in product((-0.5, 0.5), repeat=2)]
    return posed([block((0.4, 0.3, height), ORIGIN)], touches, weight, np.full(4, friction))


def ratios(problem, first, joint, count):
    """Tangential over normal force after each pass, the assumption about friction being the first."""
    form = box_form(problem.with_law(st.BoxFriction(scaled=True)))
    passes = Passes(form, st.Keller(), joint, 1e-6, 0.0)
    p, result = passes.sticky() if first == "sticky" else passes.once(np.zeros((4, 3))), []
    for _ in range(count):
        force = form.impulse(p)
        result.append(np.hypot(*force[:, 1:].sum(axis=0)) / force[:, 0].sum())
        p = passes.once(p)
    return np.array(result)


@pytest.mark.parametrize("tangent", [0.2, 0.34, 0.4, 0.9, 1.5, 3.0])
@pytest.mark.parametrize("height", [0.2, 1.0])
def test_two_passes_from_no_friction_give_the_incline_its_law(tangent, height):
    # [Lacoursiere2003, fig. 7] friction balances the slope up to the bound of the scaled box, here along a tangent.
    expected = min(tangent, 0.5 / np.sqrt(2))
    found = ratios(sliding_block(tangent, height, 0.5), "frictionless", True, 4)
    assert found[0] <= 1e-12
    np.testing.assert_allclose(found[1:], expected, rtol=1e-5)


def test_from_sticking_contacts_the_incline_takes_up_to_five_passes():
    # The same figure: two passes are wrong, five are right. This takes a block tall enough to tip when it sticks; a
    # flat one is right after two.
    bound = 0.5 / np.sqrt(2)
    tall = ratios(sliding_block(3.0, 1.0, 0.5), "sticky", True, 5)
    assert tall[1] >= 1.4 * bound
    assert tall[2] >= 1.1 * bound
    assert tall[4] == pytest.approx(bound, rel=1e-5)
    flat = ratios(sliding_block(1.5, 0.2, 0.5), "sticky", True, 2)
    assert flat[0] == pytest.approx(1.5, rel=1e-5)
    assert flat[1] == pytest.approx(bound, rel=1e-5)


def test_alternating_passes_reach_sticking_only_in_the_limit():
    # Of a block that sticks each pass takes a constant part of the error away, 5/8 here, so the law is not met in two.
    found = ratios(sliding_block(0.3, 0.2, 0.5), "frictionless", False, 8)
    errors = 0.3 - found
    np.testing.assert_allclose(errors[1:] / errors[:-1], 0.375, atol=1e-3)


def test_redundant_contacts_need_the_proximal_term():
    # Passes as published jump between the many normal impulses of a peg; drawn to the last pass, they converge.
    published, drawn = 0, 0
    for seed in range(4):
        problem = peg(32, seed).with_law(BOXES[0])
        published += st.solve(problem, Splitting(proximal=0.0, accelerate=None), throw=False).ok
        drawn += st.solve(problem, Splitting(accelerate=None), throw=False).ok
    assert published == 0
    assert drawn == 4


def test_acceleration_takes_fewer_passes():
    problem = CONTACT_FAMILIES["single-edge"](0).with_law(BOXES[0])
    counts = {}
    for accelerate in (None, "anderson", "newton"):
        solution = st.solve(problem, Splitting(joint=False, accelerate=accelerate))
        counts[accelerate] = int(solution.trace[0].split()[0])
    assert counts["newton"] <= counts["anderson"] < counts[None]


def test_plain_passes_that_do_not_converge_are_called_so():
    # Friction of 1000 makes passes swing.
    problem = with_friction(CONTACT_FAMILIES["stack-3"](0), 1000.0).with_law(BOXES[0])
    solution = st.solve(problem, Splitting(joint=False, accelerate=None, max_passes=30), throw=False)
    assert solution.status == st.Status.MAX_ITERATIONS
    assert solution.trace[0] == "30 passes, 0 Newton steps"
    assert len(solution.trace[1].split()) == 3 + 30
    assert st.solve(problem, Splitting()).ok


def test_the_trace_tells_the_violation_after_each_pass():
    problem = CONTACT_FAMILIES["plate-gaps"](0).with_law(BOXES[0])
    solution = st.solve(problem, Splitting(accelerate=None))
    line = solution.trace[1]
    assert line.startswith("violation after passes: ")
    violations = [float(number) for number in line.split(": ")[1].split()]
    assert len(violations) == solution.iterations
    assert violations[-1] <= 1e-10 < violations[-2]


@pytest.mark.parametrize("first", ["frictionless", "sticky"])
@pytest.mark.parametrize("joint", [True, False])
def test_first_and_kind_of_pass_do_not_change_the_velocity_of_one_body(first, joint):
    problem = incline(3).with_law(BOXES[0])
    solution = st.solve(problem, Splitting(first=first, joint=joint))
    np.testing.assert_allclose(solution.velocity, st.solve(problem, Splitting()).velocity, atol=1e-9)


def test_a_start_that_is_an_answer_needs_nothing():
    problem = CONTACT_FAMILIES["stack-5"](0).with_law(BOXES[0])
    cold = st.solve(problem, Splitting())
    warm = st.solve(problem, Splitting(), start=cold)
    assert cold.iterations > 0
    assert warm.iterations == 0
    np.testing.assert_allclose(warm.impulse, cold.impulse)


def test_no_contacts_no_friction_and_the_same_answer_twice():
    empty = st.ContactProblem(np.eye(2), [1.0, 2.0], [], [], [], law=BOXES[0])
    for accelerate in ("newton", "anderson", None):
        assert st.solve(empty, Splitting(accelerate=accelerate)).impulse.shape == (0, 3)
    smooth = with_friction(CONTACT_FAMILIES["stack-3"](1), 0.0).with_law(BOXES[0])
    assert not st.solve(smooth, Splitting()).impulse[:, 1:].any()
    problem = CONTACT_FAMILIES["heap-mixed"](0).with_law(BOXES[0])
    first, second = (st.solve(problem, Splitting()).impulse for _ in range(2))
    np.testing.assert_array_equal(first, second)


@dataclass(frozen=True)
class Recording:
    """An inner solver that tells how it was asked, and answers by another one or with zeros."""

    contract: Any
    answer: Any = None
    asked: list[Any] = field(default_factory=list)

    def propose(self, problem, start):
        self.asked.append((problem, start))
        return Proposal(st.Status.SOLVED, 0, np.zeros(problem.n)) if self.answer is None else self.answer(problem)


def test_inner_solvers_are_started_at_the_last_pass_if_they_can_be():
    problem = CONTACT_FAMILIES["stack-1"](0).with_law(BOXES[0])
    for contract, warm in ((st.Murty.contract, True), (st.Keller.contract, False)):
        inner = Recording(contract, lambda asked: st.Keller().propose(asked, None))
        st.solve(problem, Splitting(inner, accelerate=None))
        assert len(inner.asked) > 2
        for asked, start in inner.asked:
            assert (start is not None) == warm
            if warm:
                assert ((asked.lo <= start) & (start <= asked.hi)).all()
    last = inner.asked[-1][0]
    assert last.symmetric
    assert np.linalg.eigvalsh(last.H)[0] > 0.0


def test_an_inner_solver_that_lies_is_found_out():
    problem = CONTACT_FAMILIES["stack-1"](0).with_law(BOXES[0])
    inner = Recording(st.Keller.contract)
    assert st.solve(problem, Splitting(inner, accelerate=None), throw=False).status == st.Status.MAX_ITERATIONS
    assert st.solve(problem, Splitting(inner)).ok  # Newton's method does without


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inner": st.PrincipalPivot()}, "inner must take bounds on both sides, which PrincipalPivot does not"),
        ({"inner": st.CellLemke()}, "inner must solve box LCPs, but CellLemke takes contact problems only"),
        ({"inner": st.Keller}, r"inner must be a solver object such as st\.Keller\(\), got <class"),
        ({"inner": "keller"}, r"inner must be a solver object such as st\.Keller\(\), got 'keller'"),
        ({"first": "slippery"}, "first must be one of frictionless, sticky, got 'slippery'"),
        ({"accelerate": "aitken"}, "accelerate must be 'newton', 'anderson' or None, got 'aitken'"),
        ({"proximal": -1.0}, "proximal must not be negative, got -1.0"),
        ({"proximal": np.nan}, "proximal must not be negative, got nan"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InvalidProblem, match=message):
        Splitting(**options)


@pytest.mark.parametrize("law", [st.Coulomb(), st.Coulomb(facets=8), st.NoSlip()], ids=str)
def test_other_laws_are_refused(law):
    with pytest.raises(
        UnsupportedProblem, match="Splitting does not take this problem: it does not take contact under"
    ):
        st.solve(CONTACT_FAMILIES["stack-1"](0).with_law(law), Splitting())


def test_an_inner_solver_too_small_for_the_passes_is_refused():
    problem = CONTACT_FAMILIES["stack-3"](0).with_law(BOXES[0])
    with pytest.raises(
        UnsupportedProblem, match="Splitting: Enumerate does not take the problem of a pass: .*at most n"
    ):
        st.solve(problem, Splitting(st.Enumerate()))
