"""What events need in one compiled call, against what takes many."""

import numpy as np
import pytest

import stiction as st
from stiction.contacts.gather import DRY, gather
from stiction.problems.joints import CONTRADICTION
from stiction.stepping import event_course
from stiction.stepping.event_calm import calmed
from stiction.stepping.event_drift import back_at_rest, back_in_place
from stiction.stepping.event_forces import straightened
from stiction.stepping.event_fused import forces_by_baraff, impulses_by_newton
from stiction.stepping.event_rows import inertia, joint_rows, speeds


def posed(name, steps, stepper=None, **parameters):
    """A scene after some steps: its contact problem, constraints and memory."""
    sim = st.Simulation(st.Scene.named(name, **parameters), stepper=stepper or st.EventDriven())
    for _ in range(steps):
        sim.step()
    sim.engine.refresh()
    return sim, gather(sim.engine.memory)


@pytest.mark.parametrize(("name", "steps"), [("block-feeder", 30), ("double-action-jack", 20), ("block-stack", 3)])
def test_forces_in_one_call_are_those_of_many(name, steps):
    sim, _ = posed(name, steps)
    problem = sim.engine.problem
    one, many = forces_by_baraff(problem, st.Baraff(), 1e-8), st.solve(problem, st.Baraff())
    assert one is not None
    for field in ("velocity", "impulse", "joint_impulse", "mode", "contact_velocity", "certificate", "iterations"):
        np.testing.assert_array_equal(getattr(one.solution, field), getattr(many, field), strict=False)
    assert one.solution.trace == many.trace
    assert st.certify(problem, one.solution).residual <= 1e-8


@pytest.mark.parametrize(("name", "steps"), [("block-stack", 3), ("double-action-jack", 20)])
def test_impulses_in_one_call_are_certified_and_move_alike(name, steps):
    sim, found = posed(name, steps)
    problem = sim.engine.problem.replace(velocity=found.free, slip=None, gap_rate=np.zeros(sim.engine.problem.n))
    problem = problem.replace(joint_rate=np.zeros(len(problem.joints)))
    one, many = impulses_by_newton(problem, st.ConeNewton(), 1e-8), st.solve(problem)
    assert one is not None
    assert st.certify(problem, one.solution).residual <= 1e-8
    np.testing.assert_allclose(one.answer.velocity, many.velocity, atol=1e-8 * np.abs(found.free).max())


def test_what_contradicts_itself_is_not_answered_in_one_call():
    joints = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    rows = np.zeros((1, 2, 3))
    rows[0, 0, 1] = rows[0, 1, 2] = 1.0
    problem = st.ContactProblem(
        np.eye(3), np.array([0.0, 0.0, -1.0]), np.array([[0.0, 0.0, 1.0]]), rows, np.array([0.5]), joints=joints,
        joint_rate=np.array([1.0, 2.0 + 10.0 * CONTRADICTION]),
    )  # fmt: skip
    assert problem.contradicting_joints.tolist() == [1]
    assert forces_by_baraff(problem, st.Baraff(), 1e-8) is None
    assert impulses_by_newton(problem, st.ConeNewton(), 1e-8) is None
    agreeing = problem.replace(joint_rate=np.array([1.0, 2.0]))
    assert not agreeing.contradicting_joints.size
    assert forces_by_baraff(agreeing, st.Baraff(), 1e-8) is not None
    assert impulses_by_newton(agreeing, st.ConeNewton(), 1e-8) is not None


def nearest_by_hand(M, rows, target, joints, rate, v):
    """The nearest velocity, joints first, by pseudo-inverses in the metric of the mass."""
    G = np.linalg.inv(np.linalg.cholesky(M))
    rows, joints, x = rows @ G.T, joints @ G.T, np.linalg.solve(G.T, v)
    x = x + np.linalg.pinv(joints, 1e-9) @ (-rate - joints @ x) if len(joints) else x
    left = np.eye(len(x)) - (np.linalg.pinv(joints, 1e-9) @ joints if len(joints) else 0.0)
    return G.T @ (x + np.linalg.pinv(rows @ left, 1e-7) @ (target - rows @ x))


@pytest.mark.parametrize(("name", "steps"), [("block-feeder", 30), ("double-action-jack", 20)])
def test_velocities_at_rest_are_the_nearest(name, steps):
    sim, found = posed(name, steps)
    mass, v = inertia(sim.engine.memory, found), np.random.default_rng(0).normal(size=found.free.size)
    closed, stuck = found.gap <= 1e-9, (found.gap <= 1e-9) & (np.arange(found.n) % 4 == 0)
    near = back_at_rest(found, mass, v, closed, stuck, 0.0)
    M, rows, joints = found._replace(mass=mass).dense()
    chosen = np.concatenate([rows[closed, 0], rows[stuck, 1], rows[stuck, 2]])
    by_hand = nearest_by_hand(M, chosen, np.zeros(len(chosen)), joints, np.zeros(len(joints)), v)
    np.testing.assert_allclose(near, by_hand, atol=1e-9)
    assert np.abs(chosen @ near).max() <= 1e-12
    assert np.abs(joints @ near).max() <= 1e-12
    assert back_at_rest(found, mass, near, closed, stuck, 1e-11) is None


def test_positions_are_put_back_by_the_least_motion():
    sim, found = posed("block-feeder", 30)
    mass, gap = inertia(sim.engine.memory, found), 1e-5 * np.random.default_rng(1).normal(size=found.n)
    closed = found.gap <= 1e-9
    shift, farthest = back_in_place(found._replace(gap=gap), mass, closed, 1.0, 1e-11)
    M, rows, joints = found._replace(mass=mass).dense()
    by_hand = nearest_by_hand(M, rows[closed, 0], -gap[closed], joints, found.joint_gap, np.zeros(len(M)))
    # Redundant rows contradict each other here, and are weighed by the contacts' own sizes, which are nearly equal.
    assert np.abs(shift - by_hand).max() <= 0.5 * np.abs(by_hand).max()
    missing = rows[closed, 0] @ shift + gap[closed]
    assert np.linalg.norm(missing) <= 1.2 * np.linalg.norm(rows[closed, 0] @ by_hand + gap[closed])
    assert farthest == pytest.approx(np.abs(gap[closed]).max())
    assert back_in_place(found._replace(gap=gap), mass, closed, 1.0, 1e-3)[0] is None


def test_tangents_are_straightened():
    _, found = posed("block-feeder", 30)
    bent, slip = np.zeros((found.n, 3)), np.full((found.n, 2), np.nan)
    wanted = np.random.default_rng(2).normal(size=found.free.size)
    bent[:] = speeds(found, wanted)
    d = straightened(found, found.free, slip, bent)
    rubs = found.friction > 0.0
    np.testing.assert_allclose(speeds(found, d)[rubs, 1:], bent[rubs, 1:], atol=1e-10)
    assert np.abs(joint_rows(found) @ d).max() > 1e-3  # joints are not held: their constants see d
    np.testing.assert_array_equal(straightened(found, found.free, slip, 1e-12 * bent), 0.0)


def test_what_is_calmed_presses_nothing_together(monkeypatch):
    """A pawl's tip in the corner of rack and tooth: an impact where calming pressed it let it slide again, 19 times."""
    checked = []

    def watched(moment, forces, touch, slow):
        velocity = calmed(moment, forces, touch, slow)
        if velocity is not None:
            near = (moment.found.gap <= touch) & (moment.found.kind != DRY)
            checked.append(speeds(moment.found, velocity)[near, 0].min() >= -slow)
        return velocity

    monkeypatch.setattr(event_course, "calmed", watched)
    sim = st.Simulation(st.Scene.named("double-action-jack"), stepper=st.EventDriven())
    list(sim.run(0.7))
    assert len(checked) >= 3
    assert all(checked)
