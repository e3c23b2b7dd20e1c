"""Box friction as box LCPs and as a pyramid, against dense matrices and both certificates."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.errors import InvalidProblem
from stiction.problems import CONTACT_FAMILIES
from stiction.problems.box_friction import as_pyramid, box_form, is_box, turned
from stiction.solutions import certify

BOXES = [st.BoxFriction(), st.BoxFriction(scaled=True)]
DOUBLES_END = {"stack-lengths"}


def random_delassus(n, seed, law):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(3 * n, 3 * n + 2))
    return st.ContactProblem.from_delassus(L @ L.T, rng.normal(size=3 * n), rng.uniform(0.1, 0.8, n), law=law)


def in_form(problem):
    """The scaled W and q in the form's order, from the problem's own."""
    n, white = problem.n, problem.whitened
    size = np.repeat(white.scale, 3)
    order = np.arange(3 * n).reshape(n, 3).T.ravel()
    W = (size[:, None] * problem.delassus * size)[np.ix_(order, order)]
    return W, (size * problem.offset / white.tau)[order]


def test_which_laws_are_boxes():
    assert all(is_box(law) for law in (*BOXES, st.Coulomb(facets=4), st.Coulomb(4, 0.3)))
    assert not any(is_box(law) for law in (st.Coulomb(), st.Coulomb(facets=8), st.NoSlip(), st.Frictionless()))


@pytest.mark.parametrize("law", BOXES, ids=str)
def test_the_three_problems_are_parts_of_one(law):
    problem = random_delassus(3, 0, law)
    W, q = in_form(problem)
    form = box_form(problem)
    p = np.abs(np.random.default_rng(1).normal(size=(3, 3)))
    bound = problem.friction * (np.sqrt(0.5) if law.scaled else 1.0)

    normal, friction = form.normal_problem(p), form.friction_problem(p)
    np.testing.assert_allclose(normal.M, W[:3, :3], rtol=1e-9)
    np.testing.assert_allclose(normal.q, q[:3] + W[:3, 3:] @ p[:, 1:].T.ravel(), rtol=1e-9)
    np.testing.assert_allclose(friction.H, W[3:, 3:], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(friction.q, q[3:] + W[3:, :3] @ p[:, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(friction.hi, np.tile(bound * p[:, 0], 2))
    np.testing.assert_array_equal(friction.lo, -friction.hi)

    joint = form.joint_problem(p[:, 0])
    np.testing.assert_allclose(joint.H, W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(joint.q, q, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(joint.lo, np.concatenate([np.zeros(3), -friction.hi]))
    assert np.isinf(joint.hi[:3]).all()
    for part in (normal, friction, joint):
        assert part.symmetric


def test_impulses_are_put_where_they_belong():
    form = box_form(random_delassus(2, 3, st.BoxFriction()))
    p = np.arange(1.0, 7.0).reshape(2, 3)
    np.testing.assert_array_equal(form.with_normal(p, np.array([8.0, 9.0])), [[8.0, 2.0, 3.0], [9.0, 5.0, 6.0]])
    tangential = np.array([10.0, 11.0, 12.0, 13.0])  # both first tangents, then both second ones
    np.testing.assert_array_equal(form.with_friction(p, tangential), [[1.0, 10.0, 12.0], [4.0, 11.0, 13.0]])
    np.testing.assert_array_equal(form.with_all(np.arange(6.0)), [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])


@pytest.mark.parametrize("rotation", [0.0, 0.3, np.pi / 4])
def test_a_pyramid_of_four_facets_is_a_box_in_turned_tangents(rotation):
    problem = random_delassus(2, 5, st.Coulomb(4, rotation))
    form = box_form(problem)
    mu = problem.friction
    # The vertices of the pyramid are the corners of the box.
    for k in range(4):
        angle = rotation + k * np.pi / 2
        vertex = np.column_stack([np.ones(2), mu * np.cos(angle), mu * np.sin(angle)])
        np.testing.assert_allclose(np.abs(turned(vertex, form.turn)[:, 1:]), (form.bound * np.ones((2, 2))).T)
    p = np.random.default_rng(0).normal(size=(2, 3))
    np.testing.assert_allclose(form.scaled(form.impulse(p)), p)
    # Velocities are those of the problem, in turned tangents.
    u = (problem.delassus @ form.impulse(p).ravel() + problem.offset).reshape(2, 3)
    expected = turned(u * problem.whitened.scale[:, None] / problem.whitened.tau, form.turn)
    np.testing.assert_allclose(form.velocity(p), expected, atol=1e-12)


@pytest.mark.parametrize("law", [*BOXES, st.Coulomb(4, 0.2)], ids=str)
@pytest.mark.parametrize("name", ["stack-3", "grasp", "motor", "plane-stack", "heap-delassus", "chain"])
def test_an_answer_answers_all_three(name, law):
    problem = CONTACT_FAMILIES[name](0).with_law(law)
    pyramid = as_pyramid(problem) if isinstance(law, st.BoxFriction) else problem
    form = box_form(problem)
    p = form.scaled(st.solve(pyramid, st.CellLemke()).impulse)
    assert form.violation(p) <= 1e-9
    responsive, n = form.responsive, problem.n
    assert certify(form.normal_problem(p), p[responsive[:n], 0]).residual <= 1e-8
    assert certify(form.friction_problem(p), p[:, 1:].T.ravel()[responsive[n:]]).residual <= 1e-8
    assert certify(form.joint_problem(p[:, 0]), p.T.ravel()[responsive]).residual <= 1e-8


def test_the_violation_sees_what_is_wrong():
    # One unit mass on the ground, pushed sideways: it slides.
    problem = st.ContactProblem(np.eye(3), [1.0, 0.0, -1.0], [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [0.5], law=BOXES[0])
    form = box_form(problem)
    right = form.scaled(np.array([[1.0, -0.5, 0.0]]))
    assert form.violation(right) <= 1e-15
    for wrong in ([0.0, 0.0, 0.0], [1.0, -0.4, 0.0], [1.0, -0.6, 0.0], [1.1, -0.55, 0.0], [1.0, -0.5, 0.1]):
        assert form.violation(form.scaled(np.array([wrong]))) >= 0.05


def test_what_a_joint_holds_is_left_out_but_opposes_its_velocity():
    # x is driven at 1 m/s by a joint, z falls at 1 m/s onto the ground: friction opposes x, and moves nothing.
    problem = st.ContactProblem(
        np.eye(2),
        [0.0, -1.0],
        [[0.0, 1.0]],
        [[[1.0, 0.0]]],
        [0.5],
        joints=[[1.0, 0.0]],
        joint_rate=[-1.0],
        law=BOXES[0],
    )
    form = box_form(problem)
    np.testing.assert_array_equal(form.responsive, [True, False, False])
    assert form.friction_problem(np.zeros((1, 3))).n == 0
    assert form.joint_problem(np.zeros(1)).n == 1
    p = form.with_all(form.scaled(np.array([[1.0, 0.0, 0.0]]))[0, :1])
    np.testing.assert_allclose(form.impulse(p), [[1.0, -0.5, 0.0]])
    np.testing.assert_allclose(form.with_friction(p, np.zeros(0)), p)


def test_contacts_without_friction_have_no_bounds_to_stick_to():
    problem = st.ContactProblem.from_delassus(np.eye(6), -np.ones(6), [0.0, 0.5], law=BOXES[0])
    bounds = box_form(problem).joint_problem(np.full(2, np.inf)).hi
    np.testing.assert_array_equal(bounds, [np.inf, np.inf, 0.0, np.inf, 0.0, np.inf])


@pytest.mark.parametrize("law", BOXES, ids=str)
@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - DOUBLES_END))
def test_the_pyramid_has_the_same_answers(name, law):
    problem = CONTACT_FAMILIES[name](2).with_law(law)
    pyramid = as_pyramid(problem)
    answer = st.solve(pyramid, st.CellLemke())
    assert st.certify(problem, answer).residual <= 1e-8


def test_the_pyramid_keeps_all_but_law_and_friction():
    problem = CONTACT_FAMILIES["chain"](0).with_law(st.BoxFriction(scaled=True))
    pyramid = as_pyramid(problem)
    np.testing.assert_allclose(pyramid.friction, problem.friction)
    np.testing.assert_allclose(as_pyramid(problem.with_law(BOXES[0])).friction, np.sqrt(2) * problem.friction)
    for field in ("mass", "velocity", "rows", "segments", "gap_rate", "joints", "joint_rate"):
        np.testing.assert_array_equal(getattr(pyramid, field), getattr(problem, field))
    assert pyramid.law == st.Coulomb(facets=4, rotation=np.pi / 4)


def test_in_the_plane_no_impulse_leaves_it():
    problem = CONTACT_FAMILIES["plane-stack"](0).with_law(st.BoxFriction())
    answer = st.solve(as_pyramid(problem), st.CellLemke())
    assert not answer.impulse[:, 2].any()
    assert st.certify(problem, answer).residual <= 1e-8


def test_other_laws_are_refused():
    problem = CONTACT_FAMILIES["stack-1"](0)
    with pytest.raises(InvalidProblem, match=r"as_pyramid: the law must be BoxFriction, got Coulomb\(facets=None"):
        as_pyramid(problem)
    with pytest.raises(
        InvalidProblem, match=r"box_form: the law must be BoxFriction or Coulomb\(facets=4\), got NoSlip"
    ):
        box_form(problem.with_law(st.NoSlip()))
