"""PrincipalPivot on contacts: frictionless, viscous, without slip."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls

import stiction as st
from stiction.problems import CONTACT_FAMILIES
from stiction.problems.zoo.contact_families import heap, heap_delassus, motor, peg, single_body, stack

LAWS = [st.Frictionless(), st.Viscous(), st.Viscous(implicit=True), st.NoSlip()]
CORNERS = [(x, y, -0.5) for x, y in product((-0.5, 0.5), repeat=2)]


def solve(problem, law, **options):
    return st.solve(problem.with_law(law), st.PrincipalPivot(), **options)


def on_the_ground(velocity, points=CORNERS, inertia=1.0 / 6.0, **options):
    """A body of 1 kg over points of the ground, its velocity given."""
    rows = np.array([[[*axis, *np.cross(p, axis)] for axis in np.eye(3)] for p in points])
    mass = np.diag([1.0, 1.0, 1.0, inertia, inertia, inertia])
    return st.ContactProblem(mass, velocity, rows[:, 2], rows[:, :2], np.ones(len(rows)), **options)


def over_mass(problem):
    """Rows, joints and free velocity in coordinates in which the mass is one."""
    m = problem.m
    mass, blocks = np.zeros((m, m)), problem.mass if problem.mass.ndim == 3 else problem.mass[None]
    for b, block in enumerate(blocks):
        place = slice(b * len(block), (b + 1) * len(block))
        mass[place, place] = block
    G = np.linalg.cholesky(mass)
    rows = np.linalg.solve(G, problem.dense_rows().reshape(-1, m).T).T.reshape(-1, 3, m)
    return rows, np.linalg.solve(G, problem.joints.T).T, G.T @ problem.velocity


def least_violation(problem):
    """How nearly the law can be fulfilled, every choice of closed contacts tried; in units of the fastest contact."""
    rows, joints, free = over_mass(problem)
    m, bias = problem.m, np.zeros((problem.n, 3))
    bias[:, 0] = problem.gap_rate
    violations = []
    for choice in product((False, True), repeat=problem.n):
        closed = np.array(choice)
        bound = np.vstack([joints, rows[closed].reshape(-1, m)])
        wanted = np.concatenate([-problem.joint_rate, -bias[closed].ravel()])
        x = free + np.linalg.pinv(bound, rcond=1e-10) @ (wanted - bound @ free)
        u = rows @ x + bias
        # What joints and tangents cannot take of x - free is for normals that push and never pull.
        others = np.vstack([joints, rows[closed][:, 1:].reshape(-1, m)])
        rest = np.eye(m) - np.linalg.pinv(others, rcond=1e-10) @ others
        lack = nnls((rows[closed][:, 0] @ rest).T, rest @ (x - free))[1] if closed.any() else 0.0
        violations.append(max(np.abs(u[closed]).max(initial=0.0), -u[:, 0].min(), lack))
    return min(violations) / np.abs(rows @ free + bias).max()


def borne_while_opening(problem, solution):
    """What open contacts bear sideways, in units of the certificate."""
    W = 1.0 / problem.whitened.scale**2
    opening = np.maximum(solution.contact_velocity[:, 0], 0.0)
    return np.minimum(opening, W * np.hypot(*solution.impulse[:, 1:].T)).max() / solution.certificate.scale


@pytest.mark.parametrize("name", ["peg-16", "stack-5", "heap-6", "duplicated", "wall"])
def test_frictionless_velocities_are_those_of_least_energy(name):
    # The dual of least |x - x_free| under N x >= 0 is least |x_free + Nᵀ z| over z >= 0.
    problem = CONTACT_FAMILIES[name](1)
    rows, _, free = over_mass(problem)
    z, _ = nnls(rows[:, 0].T, -free)
    expected = rows[:, 0] @ (free + rows[:, 0].T @ z)
    solution = solve(problem, st.Frictionless())
    assert np.allclose(solution.contact_velocity[:, 0], expected, atol=1e-9 * solution.certificate.scale)
    assert not solution.impulse[:, 1:].any()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_contacts_that_nearly_coincide_keep_their_digits(law):
    # Members' rows of which others leave 1e-7: their Gram matrix is singular to double precision.
    for seed in (4, 12, 16, 23):
        assert solve(CONTACT_FAMILIES["nearly-duplicated"](seed), law).certificate.residual <= 1e-9


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_pivots_follow_the_freedoms_and_not_the_contacts(law):
    few, many = (solve(peg(n, 1), law) for n in (100, 2000))
    assert many.iterations <= few.iterations + 6
    assert np.count_nonzero(many.impulse[:, 0]) <= 6


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_start_saves_the_pivots(law):
    problem = stack(5, 3)
    first = solve(problem, law)
    faster = problem.replace(velocity=1.001 * problem.velocity)
    cold, warm = solve(faster, law), solve(faster, law, start=first)
    assert warm.iterations == 0 < cold.iterations
    assert np.allclose(warm.velocity, cold.velocity, atol=1e-9 * np.abs(problem.velocity).max())


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_bad_start_does_no_harm(law):
    problem = stack(5, 3)
    wild = 100.0 * np.random.default_rng(0).normal(size=(problem.n, 3))
    cold, warm = solve(problem, law), solve(problem, law, start=wild)
    assert warm.certificate.residual <= 1e-10
    assert np.allclose(warm.velocity, cold.velocity, atol=1e-9 * np.abs(problem.velocity).max())


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_no_contacts(law):
    problem = st.ContactProblem(np.eye(2), [1.0, 2.0], np.zeros((0, 2)), np.zeros((0, 2, 2)), [], viscosity=[])
    assert solve(problem, law).velocity.tolist() == [1.0, 2.0]


# Viscous friction


def test_viscous_drag_at_both_levels():
    # A cube slides at 2 m/s under its weight: four contacts of 0.3 N s/m decelerate it by 4 · 0.3 · 2 m/s².
    drag, speed, dt = np.full(4, 0.3), 2.0, 1e-3
    moving = np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0])
    gravity = np.array([0.0, 0.0, -9.81, 0.0, 0.0, 0.0])
    # Acceleration level [Drumwright2013, eq. 13–15, 29–42]: the drag of the velocity is one of the forces, f* there,
    # and contact is frictionless in accelerations; gap_rate is the normals' own change, zero here.
    rows = on_the_ground(moving).tangent.reshape(-1, 6)
    pulled = gravity - np.linalg.solve(on_the_ground(moving).mass, rows.T @ (np.repeat(drag, 2) * (rows @ moving)))
    forces = solve(on_the_ground(pulled), st.Frictionless())
    assert forces.velocity[0] == pytest.approx(-4 * 0.3 * speed)
    assert forces.impulse[:, 0].sum() == pytest.approx(9.81)
    # Velocity level: impulses over dt, of the same coefficients times dt.
    step = solve(on_the_ground(moving + dt * gravity, viscosity=dt * drag), st.Viscous())
    assert step.velocity[0] == pytest.approx(speed + dt * forces.velocity[0])
    implicit = solve(on_the_ground(moving + dt * gravity, viscosity=dt * drag), st.Viscous(implicit=True))
    assert np.allclose(implicit.impulse[:, 1], -dt * 0.3 * implicit.contact_velocity[:, 1])
    assert speed > implicit.velocity[0] > step.velocity[0]


# Without slip


def test_a_ball_rolls_down_with_five_sevenths():
    slope = np.array([np.sin(0.4), 0.0, -np.cos(0.4), 0.0, 0.0, 0.0])
    ball = on_the_ground(slope, points=[(0.0, 0.0, -0.1)], inertia=0.4 * 0.1**2)
    assert solve(ball, st.NoSlip()).velocity[0] == pytest.approx(5.0 / 7.0 * np.sin(0.4))
    assert solve(ball, st.Frictionless()).velocity[0] == pytest.approx(np.sin(0.4))


def test_what_lifts_off_is_not_held():
    # Eq. 45 of the paper would stop the cube's sideways motion while it rises.
    solution = solve(on_the_ground([3.0, 0.0, 1.0, 0.0, 0.0, 0.0]), st.NoSlip())
    assert not solution.impulse.any()
    assert solution.velocity.tolist() == [3.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_driven_wheel_carries_its_slab_along():
    problem = motor(0)
    solution = solve(problem, st.NoSlip())
    u, impulse = solution.contact_velocity, solution.impulse
    assert impulse[4, 0] > 0.0
    assert np.abs(u[4]).max() <= 1e-9 * solution.certificate.scale  # the wheel rolls on the slab
    assert (u[:4, 0] > 0.1 * solution.certificate.scale).any()  # which tilts, because it must not slide
    assert borne_while_opening(problem, solution) <= 1e-9


def test_delassus_form_moves_the_same():
    for seed in (0, 1, 9, 11):
        known, told = solve(heap(4, seed), st.NoSlip()), solve(heap_delassus(4, seed), st.NoSlip())
        scale = known.certificate.scale
        assert np.allclose(told.contact_velocity, known.contact_velocity, atol=1e-8 * scale)


@pytest.mark.parametrize("name", ["single-edge", "single-tripod", "single-table", "motor", "plane-ladder"])
def test_contacts_are_held_while_they_open_only_where_nothing_else_is_possible(name):
    for seed in range(8):
        problem = CONTACT_FAMILIES[name](seed)
        solution = solve(problem, st.NoSlip())
        possible = least_violation(problem) <= 1e-8
        assert (borne_while_opening(problem, solution) <= 1e-8) == possible
        assert any("yet do not slide" in line for line in solution.trace) != possible


def test_a_problem_without_a_solution_that_lets_go():
    # No choice of closed contacts of this tripod comes closer than six per cent of its velocity. With ever more
    # friction, one foot slides on, its normal impulse vanishing and its tangential one not.
    problem = single_body("tripod", 4)
    assert least_violation(problem) > 0.05
    rough = problem.replace(friction=np.full(3, 1e6))
    solution = st.solve(rough.with_law(st.Coulomb()))
    grazing = np.hypot(*solution.impulse[:, 1:].T) > 1e5 * solution.impulse[:, 0]
    assert (grazing & (np.hypot(*solution.contact_velocity[:, 1:].T) > 0.01 * solution.certificate.scale)).any()
    held = solve(problem, st.NoSlip())
    assert held.trace[-1].startswith("1 contacts open and yet do not slide")
    assert borne_while_opening(problem, held) > 0.01
