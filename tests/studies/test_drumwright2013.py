"""The study, in its quick setting, comes out as documented; what its numbers rest on is checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from every_study import EveryStudy

import stiction as st
from stiction.problems.zoo.contact_families import grasp, grasp_tripled, heap, stack
from stiction.studies import drumwright2013 as study
from stiction.studies.methods import Answer, By, Method
from stiction.studies.programs import impulses, program


@pytest.fixture(scope="module")
def results() -> study.Results:
    return study.run(quick=True)


class TestStudy(EveryStudy):
    study = study
    figures = ("grasp", "growth")


def test_pivoting_without_friction_certifies_every_problem(results):
    names = results.held.tolist()
    for name in (study.STANDARD, study.PIVOTING, study.DANTZIG):
        assert results.grasp_residual[:, names.index(name)].max() <= 1e-8, name
    assert results.walk_residual.max() <= 1e-8
    assert np.nanmax(results.taken_residual) <= 1e-8


def test_no_slip_holds_the_grasp_where_it_is(results):
    for name, steps, drift in zip(results.held, results.survived, results.drift, strict=True):
        if name.startswith("no slip"):
            assert steps == study.ASKED
            assert drift <= 1e-12


def test_the_robot_makes_all_its_steps(results):
    assert set(results.walk_steps) == {100}
    assert results.walk_contacts[:, 3].max() <= 16


@pytest.mark.parametrize("problem", [grasp(3, 100.0), grasp_tripled(2), stack(3, 1)], ids=["rims", "corners", "stack"])
def test_the_program_without_slip_stops_all_sliding_and_moves_like_principal_pivoting(problem):
    bound = problem.with_law(st.NoSlip())
    impulse = impulses(bound, st.solve(program(bound).lcp(), st.CottleDantzig()).z)
    velocity = bound.respond(impulse)[0]
    assert np.abs(bound.tangent @ velocity).max() <= 1e-11
    assert (impulse[:, 0] >= 0.0).all()
    ours = st.solve(bound, st.PrincipalPivot())
    if (ours.mode != 0).all():  # the paper binds contacts that open, too
        np.testing.assert_allclose(velocity, ours.velocity, atol=1e-10)


def test_the_viscous_program_is_a_block_that_is_slowed_down():
    """1 kg at 2 m/s on one contact of 0.1 N s/m: it loses 0.2 m/s, and the ground carries its weight."""
    problem = st.ContactProblem(
        np.eye(3), [2.0, 0.0, -9.81], [[0.0, 0.0, 1.0]], [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], [0.5],
        viscosity=[0.1], law=st.Viscous(),
    )  # fmt: skip
    impulse = impulses(problem, st.solve(program(problem).lcp(), st.Lemke()).z)
    np.testing.assert_allclose(impulse, [[9.81, -0.2, 0.0]], atol=1e-14)


@pytest.mark.parametrize("law", [st.Frictionless(), st.Viscous()])
def test_the_program_is_the_problem(law):
    problem = heap(4, 2).with_law(law)
    impulse = impulses(problem, st.solve(program(problem).lcp(), st.CottleDantzig()).z)
    assert st.certify(problem, Answer(impulse, *problem.respond(impulse))).residual <= 1e-10


def test_towers_have_as_many_contacts_whatever_their_height():
    for blocks in (1, 5, 32):
        tower = study.tower(blocks, 480, 0)
        assert (tower.n, tower.m) == (480, 6 * blocks)
        assert (st.solve(tower.with_law(st.NoSlip()), st.PrincipalPivot()).contact_velocity[:, 0] <= 1e-9).all()


def test_a_method_that_gives_up_loses_the_grasp_at_once():
    lazy = Method(st.NoSlip(), lambda problem: lambda: None, impulses)
    assert lazy.residual(grasp(0).with_law(st.NoSlip())) == np.inf
    held = study.hold(lazy, 10)
    assert held.steps == 0
    assert held.drift == 0.0


def test_a_method_that_lies_is_caught():
    liar = Method(st.NoSlip(), lambda problem: lambda: np.zeros(problem.n), impulses)
    problem = stack(2, 0).with_law(st.NoSlip())
    assert liar.residual(problem) > 1e-3
    assert not st.solve(problem, By(liar), throw=False).ok


def test_what_is_broken_fails_its_claim(results):
    dropped = results.replaced(survived=np.zeros_like(results.survived))
    failed = {claim.name for claim in study.check(dropped) if not claim.holds}
    assert "no slip holds the grasp for at least 100 steps" in failed
    unsolved = results.replaced(ease_residual=np.where(results.tried[:, None] == study.PIVOTING, np.nan, 0.0))
    assert not study.check(unsolved)[-1].holds
