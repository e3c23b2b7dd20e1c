"""The default solver of every law on every family of contact problems, by certificate."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems import CONTACT_FAMILIES, contact_classics
from stiction.problems.contact_families import incline, stack

# Lengths from 1e-3 to 1e3 in one stack: rounding alone leaves 1e-8 to 1e-6 of the velocity scale.
DOUBLES_END = {"stack-lengths"}
# Not solved without slip so far: no seed of `motor`, about half of `heap-delassus`. Whether they have
# a solution is not known.
UNSOLVED_WITHOUT_SLIP = {"motor", "heap-delassus"}


@pytest.mark.parametrize("law", [st.Coulomb(), st.Coulomb(facets=8), st.Frictionless()], ids=str)
@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - DOUBLES_END))
def test_every_family_is_solved(name, law):
    for seed in (0, 1):
        solution = st.solve(CONTACT_FAMILIES[name](seed).with_law(law))
        assert solution.ok, solution.explain()


@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - DOUBLES_END - UNSOLVED_WITHOUT_SLIP))
def test_viscous_and_without_slip(name):
    problem = CONTACT_FAMILIES[name](0)
    for law in (st.NoSlip(), st.Viscous(), st.Viscous(implicit=True)):
        assert st.solve(problem.with_law(law)).ok


@pytest.mark.parametrize("name", sorted(DOUBLES_END))
def test_where_doubles_end_nothing_is_loosened(name):
    for seed in range(4):
        solution = st.solve(CONTACT_FAMILIES[name](seed), throw=False)
        assert solution.certificate.residual <= 1e-4
        assert solution.status == (st.Status.SOLVED if solution.certificate.residual <= 1e-8 else st.Status.UNCERTIFIED)


def test_what_is_not_solved_without_slip_is_called_so():
    with pytest.raises(st.SolveFailed, match="residual"):
        st.solve(CONTACT_FAMILIES["motor"](0).with_law(st.NoSlip()))


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
    with pytest.raises(st.UnsupportedProblem, match="Auto does not take this problem: .*BoxFriction"):
        st.solve(problem.with_law(st.BoxFriction()))


def test_a_contact_answer_repeats_to_the_bit():
    for law in (st.Coulomb(), st.Coulomb(facets=8), st.NoSlip()):
        first, second = (st.solve(stack(3, 1).with_law(law)).impulse.tobytes() for _ in range(2))
        assert first == second
