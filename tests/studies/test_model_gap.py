"""The comparison comes out as documented, and its convex relaxation is what it claims to be."""

from __future__ import annotations

import numpy as np
import pytest
from every_study import EveryStudy

import stiction as st
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, grasp, incline
from stiction.studies import model_gap as study
from stiction.studies.relaxation import ConvexRelaxation, violation_of


@pytest.fixture(scope="module")
def results() -> study.Results:
    return study.run(quick=True)


class TestStudy(EveryStudy):
    study = study
    figures = ("all", "cost")
    own = None


def test_the_cone_is_its_own_measure(results):
    assert results.of("distance", "cone").max() <= 1e-8
    assert results.of("velocity", "cone").max() == 0.0
    assert np.array_equal(results.cost("cone"), np.ones(len(results.name)))


def test_distance_is_the_largest_of_its_parts(results):
    assert np.allclose(results.parts.max(axis=2), results.distance, atol=1e-7, rtol=1e-6)


def test_every_kind_is_there_and_both_sorts_of_problems(results):
    assert set(results.kind) == {*study.KINDS, "published"}
    assert 0 < (results.sliding > 0).sum() < len(results.name)


# The convex relaxation


def relaxed(problem):
    found = ConvexRelaxation().propose(problem, None)
    velocity, _ = problem.respond(found.impulse)
    u = (problem.dense_rows() @ velocity) + np.column_stack([problem.gap_rate, np.zeros((problem.n, 2))])
    return found.impulse, u


def test_a_sliding_block_by_hand():
    """A point of 1 kg arrives at 3 m/s along and 1 m/s into the ground, mu = 0.5.

    K* = {u_n >= 0.5 |u_t|} and p on the cone: u = (p_n - 1, 3 - 0.5 p_n), u_n = 0.5 u_t gives p_n = 2, u = (1, 2);
    Coulomb's law stops the fall, p_n = 1, and leaves u = (0, 2.5).
    """
    problem = st.ContactProblem(np.eye(3), [3.0, 0.0, -1.0], [[0, 0, 1.0]], [[[1.0, 0, 0], [0, 1.0, 0]]], [0.5])
    impulse, u = relaxed(problem)
    assert impulse[0] == pytest.approx([2.0, -1.0, 0.0], abs=1e-9)
    assert u[0] == pytest.approx([1.0, 2.0, 0.0], abs=1e-9)
    assert st.solve(problem).contact_velocity[0] == pytest.approx([0.0, 2.5, 0.0], abs=1e-9)


@pytest.mark.parametrize("family", ["peg-16", "stack-5", "heap-3", "incline", "plate-gaps", "stack-frictionless"])
def test_relaxation_minimises_energy_in_the_dual_cone(family):
    """p in K, u in K*, p · u = 0: the conditions themselves, with the problem's own rows."""
    problem = CONTACT_FAMILIES[family](2)
    impulse, u = relaxed(problem)
    mu, scale = problem.friction, np.abs(u).max() + 1.0
    assert (np.hypot(impulse[:, 1], impulse[:, 2]) <= mu * impulse[:, 0] + 1e-8 * np.abs(impulse).max()).all()
    assert (mu * np.hypot(u[:, 1], u[:, 2]) <= u[:, 0] + 1e-7 * scale).all()
    assert abs((impulse * u).sum()) <= 1e-7 * scale * (np.abs(impulse).sum() + 1.0)
    assert violation_of(problem, impulse, u) <= 1e-9


def test_relaxation_is_coulomb_where_nothing_slides():
    problem = grasp(0)
    _, u = relaxed(problem)
    assert np.abs(u - st.solve(problem.with_law(st.Coulomb())).contact_velocity).max() <= 1e-7


def test_relaxation_lifts_what_slides():
    problem = incline(0, angle=0.6, friction=0.3)
    _, u = relaxed(problem)
    assert u[:, 0] == pytest.approx(0.3 * np.hypot(u[:, 1], u[:, 2]), abs=1e-9)
    assert u[:, 0].min() > 1e-3


def test_relaxation_leaves_its_input_alone_and_takes_no_contacts():
    problem = CONTACT_FAMILIES["stack-3"](0)
    before = [array.copy() for array in problem.whitened[:6]]
    ConvexRelaxation().propose(problem, None)
    assert all(np.array_equal(a, b) for a, b in zip(before, problem.whitened[:6], strict=True))
    empty = st.ContactProblem(np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros((0, 2, 3)), np.zeros(0))
    assert ConvexRelaxation().propose(empty, None).impulse.shape == (0, 3)


def test_an_answer_off_the_law_is_seen():
    problem = CONTACT_FAMILIES["stack-3"](0)
    impulse, _ = relaxed(problem)
    velocity, _ = problem.respond(1.01 * impulse)
    assert violation_of(problem, 1.01 * impulse, problem.dense_rows() @ velocity) > 1e-4


def test_tables_show_every_model(results):
    assert {len(sheet.rows) for sheet in study.tables(results)} == {len(study.MODELS)}
