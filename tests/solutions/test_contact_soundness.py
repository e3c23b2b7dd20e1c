"""The judge of contact cannot be fooled: wrong answers that were certified once, and right ones that were not."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import stiction as st
from stiction.problems.islands import islands

G, DT = 9.81, 0.002


def points(count, *, mass=1.0, velocity=(0.1, 0.0, -1.0), friction=0.3):
    """Point masses, each above its own floor: mass matrix, velocities, normals, tangents, friction."""
    masses = np.broadcast_to(np.asarray(mass, float), count)
    normal, tangent = np.zeros((count, 3 * count)), np.zeros((count, 2, 3 * count))
    for i in range(count):
        normal[i, 3 * i + 2] = tangent[i, 0, 3 * i] = tangent[i, 1, 3 * i + 1] = 1.0
    speed = np.array([velocity] * count, float) if np.ndim(velocity) == 1 else np.array(velocity, float)
    return np.diag(np.repeat(masses, 3)), speed.ravel(), normal, tangent, np.full(count, friction)


def in_form(form, mass, velocity, normal, tangent, friction, **more):
    """The same problem with one mass matrix, as trees of three velocities, or with its Delassus matrix only."""
    if form == "dense":
        return st.ContactProblem(mass, velocity, normal, tangent, friction, **more)
    count = len(normal)
    if form == "trees":
        return st.ContactProblem.from_trees(
            [mass[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(count)], velocity,
            np.column_stack([np.arange(count), np.full(count, -1)]),
            [normal[i, 3 * i : 3 * i + 3] for i in range(count)],
            [tangent[i, :, 3 * i : 3 * i + 3] for i in range(count)], friction, **more,
        )  # fmt: skip
    rows = np.concatenate([normal[:, None], tangent], axis=1).reshape(3 * count, -1)
    return st.ContactProblem.from_delassus(rows @ np.linalg.inv(mass) @ rows.T, rows @ velocity, friction)


def answer(problem, impulse):
    velocity, joint_impulse = problem.respond(np.asarray(impulse, float))
    return SimpleNamespace(impulse=np.asarray(impulse, float), velocity=velocity, joint_impulse=joint_impulse)


@pytest.mark.parametrize("form", ["dense", "trees", "delassus"])
def test_a_slow_island_does_not_hide_behind_a_fast_body(form):
    problem = in_form(form, *points(2, velocity=[[1e8, 0.0, -1e8], [0.1, 0.0, -1.0]]))
    assert len(islands(problem)) == 2
    solution = st.solve(problem)
    assert solution.certificate.residual <= 1e-14
    wrong = np.array(solution.impulse)
    wrong[1] = 0.0  # the slow one falls through its floor at 1 m/s, 1e-8 of the fast one's speed
    certificate = st.certify(problem, answer(problem, wrong))
    assert certificate.residual == pytest.approx(1.0)
    assert certificate.contact == 1
    assert certificate.scale == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["dense", "trees"])
def test_the_gap_of_a_far_contact_does_not_hide_creep(form):
    # Two contacts of one body, at rest on a floor, and below a ceiling 1 m away, with a step of 1e-4 s.
    dt = 1e-4
    mass, velocity = np.eye(3), np.array([0.0, 0.0, -G * dt])
    normal = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    tangent = np.tile(np.eye(3)[:2], (2, 1, 1))
    if form == "dense":
        problem = st.ContactProblem(mass, velocity, normal, tangent, 0.5, gap_rate=[0.0, 1.0 / dt])
    else:
        problem = st.ContactProblem.from_trees(
            [mass], velocity, [[0, -1], [0, -1]], normal, tangent, 0.5, gap_rate=[0.0, 1.0 / dt]
        )
    right = np.array([[G * dt, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert st.certify(problem, answer(problem, right)).residual <= 1e-15
    creeping = answer(problem, right * (1.0 - 1e-3))  # 1e-6 m/s through the floor
    certificate = st.certify(problem, creeping)
    assert certificate.residual == pytest.approx(1e-3, rel=1e-6)
    assert certificate.scale == pytest.approx(G * dt)
    assert st.solve(problem).certificate.residual <= 1e-12


def test_a_far_contact_that_can_be_reached_counts():
    # It approaches at 10 m/s, and is 5 m/s of gap away: it closes, and its speed is the scale.
    problem = st.ContactProblem(np.eye(3), [0, 0, -10.0], [[0, 0, 1.0]], [np.eye(3)[:2]], 0.5, gap_rate=[5.0])
    solution = st.solve(problem)
    assert solution.velocity[2] == pytest.approx(-5.0)
    assert solution.certificate.scale == pytest.approx(10.0)


def test_momentum_is_balanced_without_contacts_too():
    problem = st.ContactProblem(np.eye(3), [1.0, 2.0, 3.0], np.zeros((0, 3)), np.zeros((0, 2, 3)), [])
    moved = SimpleNamespace(impulse=np.zeros((0, 3)), velocity=np.array([1.0, 2.0, 3.0]), joint_impulse=np.zeros(0))
    assert st.certify(problem, moved).residual == 0.0
    moved.velocity = np.array([1.0, 2.0, 3.0 + 1e-3])
    assert st.certify(problem, moved).residual == pytest.approx(1e-3 / math.sqrt(14.0), rel=1e-3)
    moved.velocity = np.array([1.0, np.nan, 3.0])
    assert math.isnan(st.certify(problem, moved).residual)


@pytest.mark.parametrize("form", ["dense", "trees"])
def test_momentum_of_a_body_without_contacts_beside_others(form):
    mass, velocity, normal, tangent, friction = points(3)
    if form == "dense":
        problem = st.ContactProblem(mass, velocity, normal[:2], tangent[:2], friction[:2])
    else:
        problem = st.ContactProblem.from_trees(
            [np.eye(3)] * 3, velocity, [[0, -1], [1, -1]], [[0, 0, 1.0]] * 2, [np.eye(3)[:2]] * 2, friction[:2]
        )
    solution = st.solve(problem)
    assert solution.ok
    for value in (solution.velocity[8] + 1e-4, np.nan):
        wrong = SimpleNamespace(**solution._asdict())
        wrong.velocity = np.array(solution.velocity)
        wrong.velocity[8] = value
        assert not st.certify(problem, wrong).passes(1e-6)


@pytest.mark.parametrize("form", ["dense", "trees", "delassus"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_a_number_fails_on_any_island(form, value):
    problem = in_form(form, *points(3))
    for contact in range(3):
        wrong = np.array(st.solve(problem).impulse)
        wrong[contact, 0] = value
        with np.errstate(invalid="ignore"):
            assert not st.certify(problem, answer(problem, wrong)).passes(1e300)


@pytest.mark.parametrize("form", ["dense", "trees", "delassus"])
def test_zero_has_no_sign(form):
    for velocity in ((0.0, 0.0, -0.0), (0.0, 0.0, -1.0), (0.0, 0.0, 1.0)):
        certificate = st.solve(in_form(form, *points(2, velocity=velocity))).certificate
        for name in certificate._fields:
            assert math.copysign(1.0, getattr(certificate, name)) == 1.0 or getattr(certificate, name) == -1
        assert "-0.0" not in str(certificate)


def tower(masses, friction=0.5):
    """Point masses on top of each other, the first on the floor."""
    count = len(masses)
    normal, tangent = np.zeros((count, 3 * count)), np.zeros((count, 2, 3 * count))
    for i in range(count):
        for below, sign in ((i, 1.0), (i - 1, -1.0)):
            if below >= 0:
                normal[i, 3 * below + 2] = tangent[i, 0, 3 * below] = tangent[i, 1, 3 * below + 1] = sign
    velocity = np.tile([0.0, 0.0, -G * DT], count)
    return np.diag(np.repeat(np.asarray(masses, float), 3)), velocity, normal, tangent, np.full(count, friction)


MASSES = [(1.0, 1e9), (1e9, 1.0), (1.0, 1e9, 1.0, 1e9), (1e-3, 1e6, 1e-3), (1.0, 3.0, 1.0, 1e9)]


@pytest.mark.parametrize("masses", MASSES)
def test_right_answers_at_a_mass_ratio_of_1e9(masses):
    mass, velocity, normal, tangent, friction = tower(masses)
    # Each contact carries all above it: exact, then rounded once.
    weights = [sum(Fraction(m) for m in masses[i:]) * Fraction(G * DT) for i in range(len(masses))]
    impulse = np.array([[float(w), 0.0, 0.0] for w in weights])
    exact = SimpleNamespace(impulse=impulse, velocity=np.zeros(len(velocity)), joint_impulse=np.zeros(0))
    count = len(masses)
    problems = [
        st.ContactProblem(mass, velocity, normal, tangent, friction),
        st.ContactProblem.from_trees(
            [m * np.eye(3) for m in masses], velocity, [[i - 1, i] for i in range(count)],
            [[0, 0, 1.0, 0, 0, 0] if i == 0 else [0, 0, -1.0, 0, 0, 1.0] for i in range(count)],
            [np.hstack([np.eye(3)[:2], np.zeros((2, 3))]) if i == 0 else np.hstack([-np.eye(3)[:2], np.eye(3)[:2]])
             for i in range(count)], friction,
        ),
    ]  # fmt: skip
    for problem in problems:
        assert st.certify(problem, exact).residual <= 1e-9
        solution = st.solve(problem)
        assert solution.certificate.residual <= 1e-9
        # A thousandth of the load that nobody carries is seen, although rounding errors of the load are allowed for.
        lie = SimpleNamespace(**vars(exact))
        lie.impulse = impulse * (1.0 - 1e-3)
        lie.velocity = problem.respond(lie.impulse)[0]
        assert st.certify(problem, lie).residual > 1e-7


def test_an_enormous_impulse_hides_nothing():
    # Squeezed between two walls by any impulse: balanced, but for its weight, which nothing carries.
    normal = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    tangent = np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]] * 2)
    problem = st.ContactProblem(np.eye(3), [0.0, 0.0, -G * DT], normal, tangent, 0.5)
    for squeeze in (1.0, 1e4, 1e8, 1e12, 1e16, 1e20):
        impulse = np.array([[squeeze, 0.0, 0.0], [squeeze, 0.0, 0.0]])
        held = SimpleNamespace(impulse=impulse, velocity=np.zeros(3), joint_impulse=np.zeros(0))
        assert st.certify(problem, held).residual > 1e-3


# Bilateral rows


def held(joints, rate, velocity=(1.0, 2.0, -1.0), mass=None):
    """A point above a floor, with bilateral rows."""
    mass = np.eye(3) if mass is None else mass
    return st.ContactProblem(mass, velocity, [[0, 0, 1.0]], [np.eye(3)[:2]], 0.3, joints=joints, joint_rate=rate)


def test_redundant_rows_are_left_out_and_hold():
    problem = held([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [-0.5, -0.5, 0.0]], [0.1, 0.2, -0.05])
    assert problem.redundant_joints.tolist() == [1, 2]
    assert not problem.contradicting_joints.size
    solution = st.solve(problem)
    assert solution.certificate.residual <= 1e-12
    np.testing.assert_allclose(problem.joints @ solution.velocity, -problem.joint_rate, atol=1e-15)


def test_rows_of_rounding_are_no_rows():
    # The third row of a plane loop, as MuJoCo computes it: taken for a constraint, it would throw the body away.
    problem = held([[1.0, 0.5, 0.0], [3e-17, -6e-17, 2e-17]], [0.0, 0.0])
    assert problem.redundant_joints.tolist() == [1]
    solution = st.solve(problem)
    assert solution.certificate.residual <= 1e-12
    assert np.abs(solution.velocity).max() <= 3.0


@pytest.mark.parametrize("solver", [st.Auto(), st.ConeNewton()])
def test_rows_that_contradict_each_other_are_reported(solver):
    problem = held([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [2.0, 2.0, 0.0]], [0.1, 0.0, 0.3])
    assert problem.contradicting_joints.tolist() == [2]
    with pytest.raises(st.SolveFailed, match="bilateral rows contradict each other") as failed:
        st.solve(problem, solver)
    solution = failed.value.solution
    assert solution.status == st.Status.CONTRADICTION
    assert "bilateral rows 2" in solution.trace[0]
    assert not solution.certificate.passes(1e-3)


def test_absurd_velocities_of_nearly_dependent_rows_are_not_certified():
    # Both rows can be held, at 2e5 m/s: nothing in the problem accounts for that energy.
    problem = held([[1.0, 0.0, 0.0], [1.0, 1e-6, 0.0]], [0.1, -0.1])
    assert problem.redundant_joints.size == 0
    with pytest.raises(st.SolveFailed, match="energy") as failed:
        st.solve(problem)
    certificate = failed.value.solution.certificate
    assert certificate.energy > 1.0
    assert certificate.joint <= 1e-9  # m/s: the rows themselves are held


def test_recoveries_may_add_what_they_ask_for():
    # 0.1 m/s out of an overlap, for a body at rest: its energy comes from nowhere, and is what was asked for.
    problem = st.ContactProblem(np.eye(3), [0, 0, 0.0], [[0, 0, 1.0]], [np.eye(3)[:2]], 0.3, gap_rate=[-0.1])
    solution = st.solve(problem)
    assert solution.velocity[2] == pytest.approx(0.1)
    assert solution.certificate.energy == 0.0
    assert solution.certificate.residual <= 1e-14


@pytest.mark.parametrize("form", ["dense", "trees", "delassus"])
def test_contacts_that_all_open_are_measured_by_how_they_open(form):
    problem = in_form(form, *points(2, velocity=(0.1, 0.0, 1.0)))
    rounding = answer(problem, np.full((2, 3), 1e-19))
    rounding.impulse[:, 1:] = 0.0
    assert st.certify(problem, rounding).residual <= 1e-15
    pressed = answer(problem, [[1e-3, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert st.certify(problem, pressed).residual == pytest.approx(1e-3, rel=0.1)
