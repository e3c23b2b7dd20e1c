"""What a person does to a simulation, without anything to look at."""

from __future__ import annotations

import time

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.problems.laws import SHOWN
from stiction.solutions.contact import Mode
from stiction.solvers.contract import ContactProposal
from stiction.viewer import page
from stiction.viewer.camera import FOV, Box, Follower, axes_of, boxes, first_camera
from stiction.viewer.choices import laws_for, solvers_for
from stiction.viewer.forces import LENGTH, LONGEST, Scale, arrows, cones, outline, rows, torques
from stiction.viewer.push import Grip
from stiction.viewer.session import Session, actuator_ranges

GRAVITY = 9.81
BALL = """<mujoco><option timestep="0.01"/><worldbody>
<geom name="table" type="box" size="1 1 .1" pos="0 0 -.1" friction="0.5 0 0"/>
<body name="&lt;b&gt;ball" pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="2" friction="0.5 0 0"/></body>
</worldbody></mujoco>"""


class Liar:
    """A solver that claims that nothing pushes anything."""

    contract = st.ConeNewton.contract

    def propose(self, problem, start):
        return ContactProposal(st.Status.SOLVED, 1, np.zeros((problem.n, 3)), solver=self)


def session(name="box-on-plane", **options) -> Session:
    return Session(st.Simulation(st.Scene.named(name)), **options)


def test_the_clock_decides_how_many_steps_are_made():
    held = session()
    dt = held.simulation.model.opt.timestep
    assert held.advance(10 * dt + 1e-9, allowed=60.0) == 10
    held.set_speed(0.5)
    assert held.advance(10 * dt, allowed=60.0) == 5
    held.pause()
    assert held.advance(1.0, allowed=60.0) == 0
    assert held.simulation.time == pytest.approx(15 * dt)
    with pytest.raises(st.InvalidScene, match="speed must be a positive number"):
        held.set_speed(0.0)


def test_what_does_not_fit_in_the_allowed_time_is_forgotten():
    held = session()
    assert held.advance(1.0, allowed=0.0) == 1
    assert held.advance(0.0, allowed=0.0) <= 1


def test_reset_goes_back_to_the_first_bit():
    held = session()
    begin = held.simulation.data.qpos.copy()
    for _ in range(3):
        assert held.step()
    after = held.simulation.data.qpos.copy()
    held.reset()
    assert (held.steps, held.simulation.time, held.simulation.report) == (0, 0.0, None)
    assert np.array_equal(held.simulation.data.qpos, begin)
    for _ in range(3):
        held.step()
    assert np.array_equal(held.simulation.data.qpos, after)


def test_a_failed_solve_pauses_tells_and_moves_nothing():
    held = session(solvers={"ours": st.ConeNewton(), "liar": Liar()})
    assert held.step()
    held.set_solver("liar")
    state = held.simulation.data.qpos.copy()
    assert held.advance(1.0, allowed=60.0) == 0
    assert not held.playing
    assert "residual" in held.failure
    assert np.array_equal(held.simulation.data.qpos, state)
    told = page.status(held, held.moment, 0.0, 0.0)
    assert "The step failed" in told
    held.set_solver("ours")
    held.play()
    assert held.advance(0.05, allowed=60.0) > 0
    assert held.failure is None


def test_whatever_a_step_raises_is_told():
    class Broken:
        def step(self, engine, law, solver):
            raise ZeroDivisionError("<script>")

    held = session()
    held.simulation.stepper = Broken()
    assert not held.step()
    assert held.failure == "ZeroDivisionError: <script>"
    assert "<script>" not in page.alarm(held.failure)


def test_laws_and_solvers_switch_while_it_runs():
    held = session("sliding-cube")
    assert (held.law, held.solver) == ("Coulomb", "Auto")
    assert held.step()
    for name in ("no slip", "frictionless", "Coulomb, 4 facets"):
        held.set_law(name)
        assert held.simulation.law == SHOWN[name]
        for solver in solvers_for(SHOWN[name]):
            held.set_solver(solver)
        held.set_solver("Auto")
        assert held.step(), held.failure
        assert held.simulation.report.certificate.residual <= 1e-8
    with pytest.raises(st.InvalidScene, match="there is no law 'oil'; there are Coulomb"):
        held.set_law("oil")
    with pytest.raises(st.InvalidScene, match="there is no solver 'Wish'"):
        held.set_solver("Wish")


def test_a_solver_that_does_not_take_a_law_gives_way():
    held = session()
    held.set_solver("ConeNewton")
    held.set_law("no slip")
    assert "ConeNewton" not in held.solvers
    assert held.solver == "Auto"


def test_every_offered_solver_takes_its_law():
    for law in SHOWN.values():
        offered = solvers_for(law)
        assert len(offered) > 1
        assert all(law.kind in solver.contract.laws for solver in offered.values())


def test_a_viscous_law_is_offered_where_there_is_a_viscosity():
    assert "viscous" not in laws_for(st.TimeStepping())
    assert "viscous" in laws_for(st.TimeStepping(viscosity=1.0))


def test_what_the_caller_chose_is_offered_under_its_own_words():
    held = Session(st.Simulation(st.Scene.named("box-on-plane"), law=st.Coulomb(facets=6)))
    assert held.law == "Coulomb(facets=6, rotation=0.0)"
    assert held.laws[held.law] == st.Coulomb(facets=6)


def test_commands_are_obeyed_in_order_and_by_the_stepping_thread():
    held, done = session(), []
    for k in range(3):
        held.post(lambda k=k: done.append(k))
    assert done == []
    assert held.obey()
    assert done == [0, 1, 2]
    assert not held.obey()
    held.post(lambda: held.set_law("oil"))
    held.post(lambda: done.append(3))
    assert held.obey()
    assert "there is no law 'oil'" in held.failure
    assert done[-1] == 3


def test_the_crank_is_driven_by_hand_and_given_back():
    held = session("block-feeder")
    simulation = held.simulation
    ((name, low, high, now),) = actuator_ranges(simulation)
    assert (name, low, high, now) == ("crank", -60.0, 60.0, 30.0)
    turn = simulation.data.joint("crank-turn")
    for _ in range(40):
        held.step()
    assert turn.qvel[0] > 2.0
    held.hand.held = {0: 0.0}
    for _ in range(40):
        held.step()
    assert abs(turn.qvel[0]) < 0.1
    held.hand.held = {0: -15.0}
    for _ in range(40):
        held.step()
    assert turn.qvel[0] < -0.5
    own = held.hand.scene.control
    held.close()
    assert simulation.scene.control is own
    simulation.step()
    assert simulation.data.ctrl[0] == 30.0


def test_a_pull_is_a_spring_with_a_bounded_force():
    simulation = st.Simulation(st.Scene.from_xml(BALL))
    simulation.step()
    model, data = simulation.model, simulation.data
    data.qvel[:] = 0.0
    grip = Grip(model, data, 1, np.array([0.0, 0.0, 0.2]), strength=3.0)
    assert grip.mass == pytest.approx(2.0)
    assert grip.force(model, data) == pytest.approx(np.zeros(3), abs=1e-12)
    grip.target = np.array([0.001, 0.0, 0.2])
    assert grip.force(model, data) == pytest.approx([2.0 * grip.rate**2 * 0.001, 0.0, 0.0])
    data.qvel[0] = 0.5
    assert grip.force(model, data)[0] == pytest.approx(2.0 * (grip.rate**2 * 0.001 - 2.0 * grip.rate * 0.5))
    grip.target = np.array([1e9, 0.0, 0.0])
    assert np.linalg.norm(grip.force(model, data)) == pytest.approx(3.0 * 2.0 * GRAVITY)
    grip.pull(model, data)
    force, torque = data.xfrc_applied[1][:3], data.xfrc_applied[1][3:]
    assert torque == pytest.approx(np.cross([0.0, 0.0, 0.1], force), abs=1e-6)


def test_a_body_goes_where_it_is_dragged_and_rests_when_it_is_let_go():
    held = session()
    body = 1
    held.step()
    begin = held.simulation.data.xpos[body].copy()
    goal = begin + np.array([0.0, 0.0, 0.2])
    assert held.grab(body, begin)
    held.drag(goal)
    held.drag(np.array([np.nan, 0.0, 0.0]))
    for _ in range(round(3.0 / held.simulation.model.opt.timestep)):
        assert held.step(), held.failure
    # Hanging on the spring, it sinks by g / w².
    lifted = held.simulation.data.xpos[body]
    sunk = GRAVITY / held.hand.grip.rate**2
    assert lifted - goal == pytest.approx([0.0, 0.0, -sunk], abs=2e-3)
    held.release()
    assert not held.simulation.data.xfrc_applied.any()
    for _ in range(round(2.0 / held.simulation.model.opt.timestep)):
        assert held.step(), held.failure
    assert held.simulation.data.xpos[body][2] == pytest.approx(begin[2], abs=2e-3)


@pytest.mark.parametrize("offset", [(0.0, 0.0, 0.2), (0.3, 0.1, 0.0)], ids=["lifted", "pushed"])
def test_in_a_first_order_world_a_body_goes_all_the_way_and_stays_there(offset):
    """Against weight or friction, whatever they take; let go, it stays, or falls as fast as g τ and lands."""
    simulation = st.Simulation(st.Scene.named("box-on-plane"), stepper=st.FirstOrder())
    held = Session(simulation)
    held.step()
    begin = simulation.data.xpos[1].copy()
    assert held.grab(1, begin)
    held.drag(begin + offset)
    furthest = 0.0
    for _ in range(round(1.5 / simulation.model.opt.timestep)):
        assert held.step(), held.failure
        furthest = max(furthest, float(np.linalg.norm(simulation.data.xpos[1] - begin)))
    assert simulation.data.xpos[1] - begin == pytest.approx(offset, abs=2e-3)
    assert furthest < 1.1 * np.linalg.norm(offset)
    held.release()
    assert not simulation.data.xfrc_applied.any()
    for _ in range(3):
        assert held.step(), held.failure
    dropped, fallen = offset[2] - (simulation.data.qpos[2] - begin[2]), 3 * GRAVITY * simulation.model.opt.timestep
    assert dropped == pytest.approx(min(fallen, offset[2]), rel=0.1, abs=1e-4)


def test_nobody_drags_the_world():
    held = session()
    assert not held.grab(0, [0.0, 0.0, 0.0])
    held.drag([1.0, 0.0, 0.0])
    assert held.hand.grip is None


def test_forces_are_drawn_in_proportion_and_no_longer_than_the_scene_likes():
    scale = Scale(extent=2.0)
    forces = np.array([[0.0, 0.0, 10.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert not scale.drawn(forces).any()
    scale.follow(10.0, 0.0)
    assert scale.drawn(forces) == pytest.approx(forces * 2.0 * LENGTH / 10.0)
    scale.follow(1000.0, 0.001)  # an impact of one step
    assert scale.reference < 10.2
    assert np.linalg.norm(scale.drawn(100.0 * forces), axis=1).max() == pytest.approx(2.0 * LENGTH * LONGEST)
    scale.follow(20.0, 100.0)
    assert scale.reference == pytest.approx(20.0)
    scale.follow(3.0, 0.0)  # time went back: another run
    assert scale.reference == 3.0


def test_arrows_point_up_on_what_lies_whichever_body_comes_first():
    for scene in (st.Scene.from_xml(BALL), st.Scene.named("box-on-plane")):
        simulation = st.Simulation(scene)
        for _ in range(20):
            simulation.step()
        contacts = simulation.contacts
        scale = Scale(1.0)
        drawn = arrows(simulation, contacts, scale)
        assert not len(drawn[Mode.SLIDE])
        ends = drawn[Mode.STICK]
        pointing = ends[:, 1] - ends[:, 0]
        assert (pointing[:, 2] > 0.0).all()
        weight = simulation.model.body_subtreemass[0] * GRAVITY
        assert pointing[:, 2].sum() * scale.reference / scale.size == pytest.approx(weight, rel=1e-6)


def test_torques_are_arrows_along_their_axis():
    """Torsion of a ball that spins on the floor points against its spin, with mu_t m g at full length."""
    ball = BALL.replace('friction="0.5 0 0"', 'friction="0.5 0.01 0" condim="4"')
    simulation = st.Simulation(st.Scene.from_xml(ball))
    for _ in range(3):
        simulation.step()
    simulation.data.qvel[5] = 20.0
    simulation.step()
    scale = Scale(1.0)
    ends = torques(simulation, simulation.contacts, scale)
    assert len(ends) == 1
    axis = (ends[0, 1] - ends[0, 0]) / scale.size
    assert axis == pytest.approx([0.0, 0.0, -1.0], abs=1e-3)
    weight = simulation.model.body_subtreemass[0] * GRAVITY
    assert scale.reference == pytest.approx(0.01 * weight, rel=1e-3)
    still = st.Simulation(st.Scene.from_xml(BALL))
    still.step()
    assert not len(torques(still, still.contacts, Scale(1.0)))


def test_cones_open_upwards_as_wide_as_friction_allows():
    simulation = st.Simulation(st.Scene.from_xml(BALL))
    for _ in range(3):
        simulation.step()
    made = cones(simulation, simulation.contacts)
    assert made.size[0, :2] / made.size[0, 2] == pytest.approx([0.5, 0.5])
    w, x, y, z = made.quaternion[0]
    turned = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    assert turned == pytest.approx([0.0, 0.0, 1.0])
    assert outline(st.Coulomb(facets=5, rotation=0.1)) == pytest.approx((5, 0.1, 1.0))
    corners, angle, out = outline(st.BoxFriction())
    assert (corners, out * np.cos(angle)) == (4, pytest.approx(1.0))  # its sides are at mu p_n
    simulation.law = st.Frictionless()
    assert len(cones(simulation, simulation.contacts).apex) == 0


def test_the_table_tells_modes_in_words_and_trusts_no_name():
    simulation = st.Simulation(st.Scene.from_xml(BALL))
    for _ in range(3):
        simulation.step()
    ((pair, mode, normal, friction, gap),) = rows(simulation.contacts)
    assert pair == "<b>ball – world"
    assert mode == "● stick"
    assert normal == pytest.approx(2.0 * GRAVITY, rel=1e-6)
    assert friction == pytest.approx(0.0, abs=1e-9)
    assert abs(gap) < 1e-6
    shown = page.table(simulation.contacts)
    assert "&lt;b&gt;ball" in shown
    assert "<b>ball" not in shown
    assert "nothing touches" in page.table(None)


@pytest.mark.parametrize("aspect", [0.8, 16.0 / 9.0])
@pytest.mark.parametrize("name", ["box-on-plane", "masonry-arch", "pinched-capsule", "dominoes"])
def test_the_first_camera_has_all_that_moves_in_view_and_fills_the_picture(name, aspect):
    model = st.Scene.named(name).model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    camera = first_camera(model, data, aspect)
    assert camera.position[2] > camera.centre[2], "from above"
    low, high, body = boxes(model, data)
    points = np.concatenate([Box(a, b).corners for a, b in zip(low[body >= 0], high[body >= 0], strict=True)])
    x, y, z = axes_of(camera.azimuth, camera.elevation) @ (points - camera.position).T
    reach = np.tan(np.radians(0.5 * FOV))
    seen = max((np.abs(x) / z).max() / (aspect * reach), (np.abs(y) / z).max() / reach)
    assert 0.55 < seen < 0.9


APART = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="a" pos="-0.2 0 0"><freejoint/><geom size="0.1" mass="1"/></body>
  <body name="b" pos="0.2 0 0"><freejoint/><geom size="0.1" mass="1"/></body>
  <body name="c" pos="0 0 0.4"><freejoint/><geom size="0.1" mass="1.5"/></body></worldbody></mujoco>"""


def test_the_camera_stays_with_something_when_all_flies_apart():
    """It looked at the middle, where there was nothing."""
    simulation = st.Simulation(st.Scene.from_xml(APART))
    for joint, speed in ((0, -3.0), (1, 3.0)):
        simulation.data.joint(joint).qvel[0] = speed
    simulation.data.joint(2).qvel[2] = 3.0
    simulation.step()
    follower = Follower(simulation.model, simulation.data, aspect=1.5)
    for _ in simulation.run(1.0):
        camera = follower.look(simulation.data)
        x, y, z = axes_of(camera.azimuth, camera.elevation) @ (simulation.data.xpos[1:] - camera.position).T
        reach = z * np.tan(np.radians(0.5 * FOV))
        assert ((np.abs(x) < 1.5 * reach) & (np.abs(y) < reach)).any(), f"nothing is seen at {simulation.time:.2f} s"
    assert follower.together(simulation.data).tolist() == [3], "the heaviest is nearest to the middle"


def test_the_camera_follows_what_walks_and_stays_with_what_rests():
    simulation = st.Simulation(st.Scene.named("sliding-cube"))
    simulation.step()
    follower = Follower(simulation.model, simulation.data)
    first = follower.camera
    for _ in simulation.run(0.5):
        follower.look(simulation.data)
    slid = simulation.data.xipos[1][0] - follower.first.centre[0]
    assert slid > 2.0 * 0.1 * first.distance
    moved = follower.camera.centre - first.centre
    assert moved[0] == pytest.approx(slid, abs=0.15 * first.distance)
    still = st.Simulation(st.Scene.named("block-stack"))
    still.step()
    resting = Follower(still.model, still.data)
    for _ in still.run(0.2):
        resting.look(still.data)
    assert np.array_equal(resting.camera.centre, resting.first.centre)


@pytest.mark.parametrize("name", ["block-feeder", "double-action-jack"])
def test_the_machines_run_and_are_drawn_at_more_than_30_hz(name):
    """In the time of this thread alone: a thirtieth of a second of the machine and a picture of it."""
    from stiction.viewer.browser import Viewer

    viewer = Viewer(st.Simulation(st.Scene.named(name)), port=0)
    try:
        held = viewer.session
        steps = round(1.0 / 30.0 / held.simulation.model.opt.timestep)
        taken = []
        for _ in range(30):
            begin = time.thread_time()
            for _ in range(steps):
                assert held.step(), held.failure
            viewer.shown.show(held.moment)
            viewer.stage.draw(held.moment.contacts)
            taken.append(time.thread_time() - begin)
        assert float(np.median(taken[5:])) < 1.0 / 30.0
    finally:
        viewer.close()
