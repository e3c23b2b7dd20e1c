"""The default solver of every law on every family of contact problems, by certificate."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems import CONTACT_FAMILIES, contact_classics
from stiction.problems.zoo.contact_families import incline, painleve_forces, stack

# Lengths from 1e-3 to 1e3 in one stack: rounding alone leaves 1e-8 to 1e-6 of the velocity scale.
DOUBLES_END = {"stack-lengths"}


@pytest.mark.parametrize("law", [st.Coulomb(), st.Coulomb(facets=8), st.Frictionless()], ids=str)
@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - DOUBLES_END))
def test_every_family_is_solved(name, law):
    for seed in (0, 1):
        solution = st.solve(CONTACT_FAMILIES[name](seed).with_law(law))
        assert solution.ok, solution.explain()


@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - DOUBLES_END))
def test_viscous_and_without_slip(name):
    problem = CONTACT_FAMILIES[name](0)
    for law in (st.NoSlip(), st.Viscous(), st.Viscous(implicit=True)):
        if problem.viscosity is not None or not isinstance(law, st.Viscous):
            assert st.solve(problem.with_law(law)).ok


@pytest.mark.parametrize("name", sorted(DOUBLES_END))
def test_where_doubles_end_nothing_is_loosened(name):
    for seed in range(4):
        solution = st.solve(CONTACT_FAMILIES[name](seed), throw=False)
        assert solution.certificate.residual <= 1e-4
        assert solution.status == (st.Status.SOLVED if solution.certificate.residual <= 1e-8 else st.Status.UNCERTIFIED)


def test_a_contact_that_opens_and_yet_is_held_is_told():
    """No set of closed contacts satisfies this tripod: one foot is kept from sliding although it opens."""
    solution = st.solve(CONTACT_FAMILIES["single-tripod"](4).with_law(st.NoSlip()))
    assert solution.certificate.beyond_cone > 0.01
    assert any("open and yet do not slide" in line for line in solution.trace)
    plain = st.solve(CONTACT_FAMILIES["stack-3"](0).with_law(st.NoSlip()))
    assert plain.certificate.beyond_cone <= 1e-8


@pytest.mark.parametrize("name", contact_classics())
def test_published_problems_on_the_true_cone(name):
    assert st.solve(contact_classics()[name], tolerance=1e-8).ok


@pytest.mark.parametrize(("angle", "mode"), [(0.28, st.Mode.STICK), (0.30, st.Mode.SLIDE)])
@pytest.mark.parametrize("facets", [None, 8])
def test_a_block_slips_at_the_angle_of_friction(angle, mode, facets):
    # tan 0.2915 = 0.3; the pyramid has a corner along the slope, so that it gives the same angle.
    problem = incline(0, angle=angle, friction=0.3).with_law(st.Coulomb(facets))
    solution = st.solve(problem)
    assert set(solution.mode.tolist()) - {st.Mode.OPEN} == {mode}  # three of four contacts can carry everything
    assert solution.impulse[:, 0].sum() == pytest.approx(9.81 * 0.01 * np.cos(angle))


def test_the_price_of_a_pyramid_is_told():
    problem = stack(3, 2)
    cone = st.solve(problem)
    prices = [st.solve(problem.with_law(st.Coulomb(facets))).certificate.beyond_cone for facets in (4, 8, 32)]
    assert cone.certificate.beyond_cone <= 1e-8
    assert prices[0] > prices[2]


def test_the_wrong_solver_is_refused():
    problem = stack(1, 0)
    with pytest.raises(st.UnsupportedProblem, match=r"PrincipalPivot does not take this problem: .*Coulomb"):
        st.solve(problem, st.PrincipalPivot())
    with pytest.raises(st.UnsupportedProblem, match="CellLemke .* it takes contact problems only; these do: Lemke"):
        st.solve(st.LCP([[1.0]], [1.0]), st.CellLemke())
    with pytest.raises(st.UnsupportedProblem, match="ConeNewton does not take this problem: .*BoxFriction"):
        st.solve(problem.with_law(st.BoxFriction()), st.ConeNewton())


@pytest.mark.parametrize("law", [st.BoxFriction(), st.BoxFriction(scaled=True)], ids=str)
@pytest.mark.parametrize("name", ["stack-3", "grasp", "chain", "plane-stack", "heap-delassus"])
def test_auto_takes_boxes_as_pyramids(name, law):
    solution = st.solve(CONTACT_FAMILIES[name](0).with_law(law))
    assert solution.ok
    assert "CellLemke: solved" in solution.trace[0]


def test_known_sliding_goes_to_baraff():
    """Painlevé's rod: A p_n = m g with A = 1 + 3 cos² - 3 mu sin cos, friction -mu p_n along the sliding."""
    problem = painleve_forces(0.8, 1.0)
    solution = st.solve(problem)
    assert isinstance(solution.solver, st.Baraff)
    np.testing.assert_allclose(solution.impulse[0, 1:], -problem.friction[0] * solution.impulse[0, 0] * problem.slip[0])
    with pytest.raises(st.UnsupportedProblem, match="ConeNewton .*direction of sliding is known.*these do: Baraff"):
        st.solve(problem, st.ConeNewton())


def test_a_contact_answer_repeats_to_the_bit():
    for law in (st.Coulomb(), st.Coulomb(facets=8), st.NoSlip()):
        first, second = (st.solve(stack(3, 1).with_law(law)).impulse.tobytes() for _ in range(2))
        assert first == second
