"""Contacts that lift as they slide slowly, where a walk of a large heap has been lost."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import block_diag

import stiction as st
from stiction.arrays.compiled import workspace
from stiction.arrays.vectors import ZEROS
from stiction.problems.zoo.contact_families import heap
from stiction.solvers.contact.cone_newton.cone_newton import Given, cone_newton, sizes, trimmed
from stiction.solvers.contact.cone_newton.lifting import lowered, onto_friction_cone, respond_lifting
from stiction.solvers.contact.cone_newton.slope import place, place_of_normal
from stiction.solvers.contact.cone_newton.system import LIFT, OPEN, STICK
from stiction.solvers.contact.cone_newton.tolerances import FASTEST_LIFT
from stiction.solvers.contract import SOLVED
from stiction.stepping.fused import allow_lifts

STIFFNESS = 50.0


def vector(numbers):
    return type(ZEROS[len(numbers)])(*numbers)


def answers(y, mu):
    """Impulse, slope as a matrix, and mode."""
    d = len(y)
    packed, p = np.full((1, d * (d + 1) // 2 + d - 1), np.nan), np.empty((1, d))
    mode = respond_lifting(vector(y), mu, STIFFNESS, packed, 0, p, ZEROS[d])
    slope = np.zeros((d, d))
    if mode != OPEN:
        slope[:, 0] = packed[0, :d]
        for a in range(1, d):
            slope[0, a] = packed[0, place_of_normal(d, a)]
            slope[a, 1:] = [packed[0, place(d, a, b)] for b in range(1, d)]
    return p[0], slope, mode


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize("mu", [1e-3, 0.5, 1e3])
def test_the_impulse_is_the_nearest_of_the_friction_cone(d, mu):
    """By what makes a point the nearest of a cone: it lies in it, and what is left is normal to it and outside."""
    rng = np.random.default_rng(d)
    for y in rng.normal(size=(200, d)) * [1.0, *[1.0 / mu] * (d - 1)]:
        p = np.array(onto_friction_cone(vector(y), mu))
        size = np.linalg.norm(y)
        assert np.linalg.norm(p[1:]) <= mu * p[0] + 1e-13 * size
        left = y - p
        assert abs(left @ p) <= 1e-13 * size**2
        # The polar cone: its product with every edge (1, mu t) is negative, with that along its own tangents the most.
        assert left[0] + mu * np.linalg.norm(left[1:]) <= 1e-13 * (1.0 + mu) * size


@pytest.mark.parametrize("d", [3, 6])
def test_the_slope_is_the_derivative_of_the_impulse_in_all_modes(d):
    rng, seen = np.random.default_rng(d), set()
    for y in rng.normal(size=(60, d)):
        mu, small = rng.uniform(0.1, 2.0), 1e-6
        _, slope, mode = answers(y, mu)
        both = [[answers(y + sign * small * e, mu)[0] for sign in (1.0, -1.0)] for e in np.eye(d)]
        # dp = -slope du, and dy = -stiffness du.
        derivative = STIFFNESS * np.array([(up - down) / (2.0 * small) for up, down in both]).T
        np.testing.assert_allclose(slope, derivative, atol=1e-7 * STIFFNESS)
        np.testing.assert_allclose(slope, slope.T, atol=1e-13 * STIFFNESS)
        seen.add(mode)
    assert seen == {OPEN, STICK, LIFT}


def test_what_lifts_obeys_coulombs_law_over_its_gap():
    """p = proj(p - u, friction cone) is complementarity with the dual cone: u_n = mu |u_t| where it slides."""
    rng, mu = np.random.default_rng(0), 0.7
    for y in rng.normal(size=(100, 3)):
        p = np.array(onto_friction_cone(vector(y), mu))
        u = p - y
        over = np.array(lowered(vector(u), mu))
        if p[0] > 0.0:
            assert abs(over[0]) <= 1e-14 * (1.0 + np.abs(u).max())
        else:
            assert over[0] >= -1e-14
        slides = np.linalg.norm(u[1:]) > 1e-12 and p[0] > 0.0
        if slides:
            np.testing.assert_allclose(p[1:], -mu * p[0] * u[1:] / np.linalg.norm(u[1:]), atol=1e-12)


class Answer(NamedTuple):
    impulse: np.ndarray
    velocity: np.ndarray
    joint_impulse: np.ndarray


def solved(problem, lift):
    """Impulses by the kernel alone, which sets `lift`, and the velocities that they cause."""
    white = trimmed(problem.whitened)
    n, d, width = white.rows.shape
    impulse = np.empty((n, d))
    given = Given(
        white.rows, white.segments, white.free, white.bias, white.friction, white.scale, white.pace, lift, False, True
    )
    status, _, _ = cone_newton(
        given, white.tau, np.empty((0, 3)), 8, 80, np.inf, 1e-10, *workspace(*sizes(n, d, len(white.free), width)),
        impulse, ZEROS[d],
    )  # fmt: skip
    assert status == SOLVED
    push = problem.dense_rows().reshape(-1, problem.m).T @ impulse.ravel()
    return Answer(impulse, problem.velocity + np.linalg.solve(block_diag(*problem.mass_blocks), push), np.empty(0))


def test_what_the_kernel_lifts_obeys_the_law_over_its_gaps():
    """Random heaps on which walks are lost: certified by the judge with the gaps that open, and only with them."""
    some = 0
    for seed in (7, 9, 1, 5, 0, 2, 3, 4, 6, 8):
        problem = heap(60, seed)
        lift = np.zeros(problem.n)
        lift[::7] = -1.0  # these may not
        answer = solved(problem, lift)
        assert (lift[::7] <= 0.0).all()
        lift = np.maximum(lift, 0.0)
        assert st.certify(problem.replace(gap_rate=problem.gap_rate - lift), answer).residual <= 1e-8
        if lift.any():
            some += 1
            assert st.certify(problem, answer).residual > 1e-6
    assert some >= 1


@pytest.fixture(scope="module")
def lifted():
    """Steps of settling heaps in which contacts lifted: solution, and by how much each gap rate was opened."""
    found = []
    for seed in (17, 18, 9, *range(9), *range(10, 17), *range(19, 40)):
        sim = st.Simulation(st.Scene.named("heap", bodies=50, seed=seed))
        for _ in range(400):
            report = sim.step()
            lift = sim.engine.last.arrays.lift.copy()
            before, solution = report.lift, report.solution
            assert before == report.lift == lift.max(initial=0.0)
            assert lift.shape == (solution.problem.n,)
            if lift.any():
                found.append((solution, lift))
        if len(found) >= 2:
            break
    assert len(found) >= 1
    return found


def test_its_answer_is_certified_with_the_gaps_that_open(lifted):
    """By the judge, from the problem that is handed on; the trace says how fast they do."""
    for solution, lift in lifted:
        assert st.certify(solution.problem, solution).residual <= 1e-8
        told = re.search(r"contacts lift as they slide, at (\S+) m/s at most", "\n".join(solution.trace))
        assert float(told[1]) == pytest.approx(lift.max(), rel=0.05)


def test_only_what_slides_lifts_and_never_fast(lifted):
    for solution, lift in lifted:
        problem, u = solution.problem, solution.contact_velocity
        pace = np.abs(problem.dense_rows() @ problem.velocity).max()
        assert (lift >= 0.0).all()
        assert lift.max() <= 1.01 * FASTEST_LIFT * pace
        slide = problem.friction * np.linalg.norm(u[:, 1:], axis=1)
        np.testing.assert_allclose(lift[lift > 0.0], slide[lift > 0.0], atol=1e-7 * pace)
        assert not lift[solution.impulse[:, 0] == 0.0].any()


def test_without_lifts_steps_obey_coulombs_law_as_it_is():
    """And are solved, too; a step that needs no help is the same to the bit."""
    lifting, exact = (
        st.Simulation(st.Scene.named("heap", bodies=30, seed=1), stepper=st.TimeStepping(lift=lift))
        for lift in (True, False)
    )
    for number in range(250):
        one, other = lifting.step(), exact.step()
        assert other.ok
        assert not exact.engine.last.arrays.lift.any()
        assert not any("lift" in line for line in other.solution.trace)
        assert number >= 100 or np.array_equal(one.solution.impulse, other.solution.impulse)


def test_friction_and_limits_of_joints_never_lift():
    """Their normal is a velocity of their own, or they have no friction."""
    model = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/>
        <body><joint frictionloss="1" range="0 1" limited="true"/><geom pos="0 0 .3" size=".1"/></body></body>
      </worldbody></mujoco>"""
    sim = st.Simulation(st.Scene.from_xml(model))
    sim.step()
    constraints = sim.engine.last.constraints
    bodies, lift = constraints.pair[:, 0] >= 0, np.full(len(constraints.gap), np.nan)
    assert bodies.any()
    assert not bodies.all()
    allow_lifts(constraints, True, lift)
    np.testing.assert_array_equal(lift, np.where(bodies, 0.0, -1.0))
    allow_lifts(constraints, False, lift)
    np.testing.assert_array_equal(lift, -1.0)


@pytest.mark.parametrize("given", [2, None, "no"])
def test_lift_is_true_or_false(given):
    with pytest.raises(st.InvalidProblem, match="lift must be True or False"):
        st.TimeStepping(lift=given)
