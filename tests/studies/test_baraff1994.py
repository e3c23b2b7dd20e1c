"""The study, in its quick setting, comes out as documented; what its numbers rest on is checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from every_study import EveryStudy

import stiction as st
from stiction.problems.zoo.contact_families import heap, painleve_forces, stack
from stiction.studies import baraff1994 as study
from stiction.studies.programs import PACKAGES, by_daqp, by_quadprog, impulses, installed, present, program


@pytest.fixture(scope="module")
def results() -> study.Results:
    return study.run(quick=True)


class TestStudy(EveryStudy):
    study = study
    figures = ("speed", "drives", "machines", "rod")


def test_all_forces_without_friction_are_certified(results):
    names = results.solvers.tolist()
    for name in (study.DANTZIG, study.BARAFF):
        assert results.residual[:, :, names.index(name)].max() <= 1e-10, name
    assert results.sizes[:, -1].tolist() == [148, 148, 148]
    free = [k for k, kind in enumerate(study.DRIVEN) if "no friction" in kind]
    assert results.driven_residual[:, free].max() <= 1e-10


def test_machines_run_and_every_step_is_certified(results):
    assert results.machine_residual.max() <= 1e-8
    assert (results.frames > 0.0).all()
    assert (results.machine_contacts >= 4).all()


def test_plain_elimination_solves_the_same_system():
    problem = heap(5, 0).with_law(st.Frictionless())
    A, b = study.definite(problem)
    assert (A != 0.0).all()  # nothing to skip
    np.testing.assert_allclose(study.by_elimination(problem)(), np.linalg.solve(A, b), rtol=1e-9)


def test_what_the_solver_tells_is_counted():
    assert study.counted("12 drives, 3 contacts given up, 5 turns, 1 tries") == (12, 3, 1)
    problem = stack(4, 0).with_law(st.Frictionless())
    drives, given_up, tries = study.counted(st.solve(problem, st.Baraff()).trace[0])
    assert 1 <= drives <= problem.n
    assert (given_up, tries) == (0, 1)


def pushed_block(side: float) -> st.ContactProblem:
    """1 kg on one contact, mu = 0.5, pushed sideways."""
    return st.ContactProblem(
        np.eye(3), [side, 0.0, -10.0], [[0.0, 0.0, 1.0]], [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], [0.5]
    )


def test_the_papers_conditions_by_hand():
    """It slides at 2 m/s under a friction of 5 N s, which may turn by less than a right angle and no further."""
    problem = pushed_block(7.0)
    found = st.solve(problem, st.Baraff())
    assert study.violation(problem, found) <= 1e-12
    for angle, obeys in ((0.0, True), (0.5, True), (1.3, True), (1.8, False), (3.1, False)):
        friction = 5.0 * np.array([-np.cos(angle), np.sin(angle)])
        impulse = np.array([[10.0, *friction]])
        velocity = problem.respond(impulse)[0]
        turned = found._replace(impulse=impulse, contact_velocity=np.array([[0.0, *velocity[:2]]]))
        sliding = velocity[:2] @ friction
        assert (study.violation(problem, turned) <= 1e-12) == (sliding <= 0.0), angle
        assert obeys == (sliding <= 0.0) or angle == 1.3
    weak = found._replace(impulse=np.array([[10.0, -3.0, 0.0]]), contact_velocity=np.array([[0.0, 4.0, 0.0]]))
    assert study.violation(problem, weak) > 0.1  # it slides although friction is not at its bound
    pulled = found._replace(impulse=np.array([[-1.0, 0.0, 0.0]]))
    assert study.violation(problem, pulled) == pytest.approx(0.1)


@pytest.mark.parametrize("name", list(PACKAGES))
def test_packages_solve_the_same_problem(name):
    if name == "proxsuite":  # quadprog and daqp are there for development
        pytest.importorskip(name, reason="proxsuite is not installed; it comes with the extra peers")
    problem = heap(4, 1).with_law(st.Frictionless())
    assert study.judged(problem, installed()[name](program(problem))()) <= 1e-8
    assert present(PACKAGES[name][0])


def test_active_sets_agree_with_ours_on_the_velocities():
    problem = heap(6, 3).with_law(st.Frictionless())
    ours = st.solve(problem, st.Baraff()).velocity
    for prepare in (by_quadprog, by_daqp):
        velocity = problem.respond(impulses(problem, prepare(program(problem))()))[0]
        np.testing.assert_allclose(velocity, ours, atol=1e-10)


def test_a_rod_that_jams_keeps_what_its_turning_holds():
    """After the impulse and the impact the tip is at rest: the rod turns about it, as momentum about the tip tells."""
    angle, mu = 1.0, 4.0
    stopped, lost = study.struck(painleve_forces(angle, mu), np.array([[1.0, mu, 0.0]]))
    assert stopped <= 1e-14
    # About the tip the impulses have no moment: sin(angle)/2 · 1 m/s = (1/3) omega, and 1/2 · 1/3 · omega² remains.
    omega = 1.5 * np.sin(angle)
    assert 1.0 - lost == pytest.approx(omega**2 / 3.0, rel=1e-9)


def test_what_is_broken_fails_its_claim(results):
    failed = results.replaced(driven_residual=np.full_like(results.driven_residual, np.nan))
    broken = failed.replaced(outcome=np.zeros_like(results.outcome), stopped=np.ones_like(results.stopped))
    names = {claim.name for claim in (*study._reliable(broken), *study._painleve(results)) if not claim.holds}
    assert "static friction in the plane and in space is never seen to fail" in names
    slow = results.replaced(frames=np.full_like(results.frames, 0.1))
    assert not any(claim.holds for claim in study._machines(slow))
