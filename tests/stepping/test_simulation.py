"""Simulations: what they tell, keep, refuse and repeat."""

import gc

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.bodies.state import state
from stiction.contacts.gather import sizes, views
from stiction.stepping.fused import Fused
from stiction.stepping.pose import set_rates

ARM = """
<mujoco><option timestep="0.002"/><worldbody>
  <geom name="floor" type="plane" size="1 1 1" friction="0.8"/>
  <body name="upper" pos="0 0 0.5"><joint name="shoulder" axis="0 1 0" damping="0.1" range="-80 80" limited="true"/>
    <geom name="link" type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/>
    <body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 1 0" frictionloss="0.05"/>
      <geom name="tip" type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.5"/></body></body>
  <body name="box" pos="-0.4 0 0.1"><freejoint/><geom name="cube" type="box" size="0.1 0.1 0.1" mass="1"/></body>
</worldbody></mujoco>
"""
TIED = """
<mujoco><worldbody>
  <body name="a" pos="0 0 1"><freejoint/><geom size="0.1" mass="1"/></body>
  <body name="b" pos="0.3 0 1"><freejoint/><geom size="0.1" mass="1"/></body>
</worldbody><equality>
  <connect body1="a" body2="b" anchor="0.15 0 0"/><connect body1="a" anchor="0 0 0.2"/>
</equality></mujoco>
"""


@pytest.mark.parametrize("xml", [ARM, TIED], ids=["limits and dry friction", "bilateral rows"])
def test_one_call_and_many_calls_say_the_same(xml):
    quick, slow = (
        st.Simulation(st.Scene.from_xml(xml), solver=solver) for solver in (None, st.ConeNewton(tolerance=1e-12))
    )
    for _ in range(300):
        one, many = quick.step(), slow.step()
        assert isinstance(one._answer, Fused)
        assert not isinstance(many._answer, Fused)
        assert one.certificate.residual <= 1e-8
        np.testing.assert_allclose(quick.data.qvel, slow.data.qvel, atol=1e-8)
        np.testing.assert_allclose(quick.data.qfrc_constraint, slow.data.qfrc_constraint, atol=1e-5)
    np.testing.assert_allclose(quick.data.qpos, slow.data.qpos, atol=1e-8)
    assert one.solution.impulse.shape == many.solution.impulse.shape
    recomputed = st.certify(one.solution.problem, one.solution)
    assert recomputed.residual == pytest.approx(one.certificate.residual, rel=1e-6, abs=1e-15)


def test_redundant_bilateral_rows_are_held_in_one_call():
    # Two welds where one would do: rows that depend on others carry nothing, and the sum of all is the weight.
    sim = st.Simulation(
        st.Scene.from_xml("""
        <mujoco><worldbody>
          <geom type="plane" size="1 1 1"/>
          <body name="a" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="2"/></body>
          <body name="b" pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
        </worldbody><equality><weld body1="a"/><weld body1="a"/></equality></mujoco>""")
    )
    for report in sim.run(0.1):
        assert isinstance(report._answer, Fused)
        assert report.certificate.residual <= 1e-8
    dt, held = sim.model.opt.timestep, report.solution.joint_impulse
    assert np.count_nonzero(held) <= 6
    assert held[[2, 8]].sum() / dt == pytest.approx(2 * 9.81, rel=1e-9)
    np.testing.assert_allclose(sim.data.qfrc_constraint[[2, 8]], [2 * 9.81, 9.81], rtol=1e-9)
    assert np.abs(sim.data.qvel).max() <= 1e-12


def test_a_report_stays_true_while_the_simulation_goes_on():
    sim = st.Simulation(st.Scene.from_xml(ARM))
    kept, told = [], []
    for report in sim.run(0.05):
        kept.append(report)
        told.append((report.certificate, report.energy, report._answer.impulse.copy()))
    for _ in sim.run(0.05):
        pass
    for report, (certificate, energy, impulse) in zip(kept, told, strict=True):
        assert report.certificate == certificate
        assert report.energy == energy
        np.testing.assert_array_equal(report.solution.impulse, impulse)


def test_energy_is_that_of_the_beginning_of_the_step():
    sim = st.Simulation(st.Scene.from_xml(ARM))
    for _ in range(5):
        other = mujoco.MjData(sim.model)
        mujoco.mj_copyState(sim.model, sim.data, other, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_fwdPosition(sim.model, other)
        mujoco.mj_fwdVelocity(sim.model, other)
        mujoco.mj_energyPos(sim.model, other)
        mujoco.mj_energyVel(sim.model, other)
        report = sim.step()
        assert [report.potential, report.kinetic] == pytest.approx(other.energy.tolist(), rel=1e-12)


PYRAMID = "".join(
    f'<body pos="{0.21 * (x - 0.5 * (4 - z))} {0.21 * (y - 0.5 * (4 - z))} {0.1 + 0.2 * z}"><freejoint/>'
    '<geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'
    for z in range(4) for x in range(4 - z) for y in range(4 - z)
)  # fmt: skip


@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(lambda: st.Scene.named("mass-ratio", ratio=1000.0), id="1 kg under 1000 kg"),
        pytest.param(
            lambda: st.Scene.from_xml(
                f'<mujoco><worldbody><geom type="plane" size="9 9 9"/>{PYRAMID}</worldbody></mujoco>'
            ),
            id="30 boxes, each on four",
        ),
    ],
)
def test_what_is_at_rest_stays_there_without_effort(scene):
    # Rounding in gaps and velocities must not be chased from step to step: the impulses before are the answer.
    sim = st.Simulation(scene())
    for _ in sim.run(2.0):
        pass
    place, steps = sim.data.qpos.copy(), []
    for report in sim.run(1.0):
        steps.append(report.solution.iterations)
        assert report.certificate.residual <= 1e-9
    assert np.median(steps) <= 2
    assert np.mean(steps) <= 10
    assert np.abs(sim.data.qpos - place).max() <= 1e-12


def test_gaps_of_the_size_of_rounding_count_as_closed():
    lengths = 1, 6, 36, 3, 6, 0, 0, 3, 0  # one body, three contacts
    floats, ints = sizes(*lengths)
    found, rate, nothing = views(*lengths, np.zeros(floats), np.zeros(ints, np.int64)), np.empty(3), np.zeros(0)
    found.rows[:, 0, 2], found.segments[:] = 1.0, (0, 6, 0, 0)
    found.free[2], found.gap[:] = -0.1, (1e-14, -1e-14, 1e-12)
    set_rates(found, 1e-2, 0.1, nothing, nothing, rate)
    assert rate.tolist() == [0.0, 0.0, found.gap[2] / 1e-2]


def test_whole_numbers_are_options_too():
    # The compiled step takes floats: a whole number must neither fix its kind nor be cut to one.
    places = []
    for recovery in (0, 0.05, 1, 1.0):
        sim = st.Simulation(st.Scene.named("box-on-plane"), stepper=st.TimeStepping(recovery=recovery))
        sim.data.qpos[2] -= 2e-3
        for _ in sim.run(0.02):
            pass
        places.append(sim.data.qpos[2])
    assert places[0] < places[1] < places[2] == places[3]


def test_growing_numbers_of_contacts_are_given_room():
    scene = st.Scene.named("block-stack", blocks=6)
    sim = st.Simulation(scene)
    sim.data.qpos[2::7] += 0.02 * np.arange(1, 7)  # apart: they arrive one after the other
    seen = []
    for report in sim.run(0.5):
        seen.append(sim.engine.gathered.n)
        assert report.certificate.residual <= 1e-8
    assert min(seen) < max(seen)
    assert sim.engine.gathered.gap.min() >= -1e-9


def test_the_table_of_contacts():
    sim = st.Simulation(st.Scene.from_xml(ARM))
    with pytest.raises(st.InvalidScene, match="no step has been made"):
        sim.contacts  # noqa: B018
    for _ in sim.run(0.01):
        pass
    touches = [touch for touch in sim.contacts if "box" in touch.bodies]
    assert len(touches) == 4
    assert touches[0].geoms == ("floor", "cube")
    assert touches[0].mode is st.Mode.STICK
    total = sum(touch.world_force for touch in touches)
    np.testing.assert_allclose(total, [0, 0, 9.81], atol=1e-9)
    np.testing.assert_allclose(sim.net_force("box"), total)
    np.testing.assert_allclose(sim.net_force("world", "box"), -total)
    assert "world – box" in str(sim.contacts)
    with pytest.raises(st.InvalidScene, match="there is no body 'bx'; there are world, upper"):
        sim.net_force("bx")


def test_mujoco_shows_our_forces():
    sim = st.Simulation(st.Scene.from_xml(ARM))
    for _ in sim.run(0.01):
        pass
    force = np.zeros(6)
    for i, touch in enumerate(sim.contacts):
        mujoco.mj_contactForce(sim.model, sim.data, i, force)
        np.testing.assert_allclose(force[:3], touch.force, atol=1e-12)


def test_step_takes_the_place_of_mj_step():
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    sim = st.Simulation(st.Scene.from_xml(ARM))
    for _ in range(200):
        report = st.step(model, data)
        sim.step()
    assert report.time == data.time == pytest.approx(0.4)
    np.testing.assert_array_equal(data.qpos, sim.data.qpos)


def test_step_keeps_no_data_alive():
    from stiction.stepping.step import _engines

    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    st.step(model, data)
    gc.collect()  # what other tests have left
    before = len(_engines)
    del data
    gc.collect()
    assert len(_engines) == before - 1


def test_the_same_inputs_give_the_same_bits():
    first, second = (st.Simulation(st.Scene.named("dominoes", count=4)) for _ in range(2))
    for _ in range(200):
        first.step()
        second.step()
    np.testing.assert_array_equal(state(first.model, first.data), state(second.model, second.data))
    first.reset()
    assert first.time == 0.0
    for _ in range(200):
        first.step()
    np.testing.assert_array_equal(state(first.model, first.data), state(second.model, second.data))


@pytest.mark.parametrize(
    ("law", "solver"),
    [(st.Coulomb(), None), (st.Coulomb(facets=6), st.StructuredLemke(reduced=True)), (st.BoxFriction(), None)],
    ids=["cone", "pyramid", "box"],
)
def test_a_restored_simulation_goes_on_bit_by_bit(law, solver, tmp_path):
    sim = st.Simulation(st.Scene.from_xml(ARM), law, solver, st.TimeStepping(recovery=0.2))
    for _ in sim.run(0.1):
        pass
    sim.save(tmp_path / "sim.npz")
    again = st.Simulation.restore(tmp_path / "sim.npz")
    assert (again.law, again.solver, again.stepper) == (sim.law, sim.solver, sim.stepper)
    for _ in range(100):
        sim.step()
        again.step()
        np.testing.assert_array_equal(sim.data.qpos, again.data.qpos)
        np.testing.assert_array_equal(sim.data.qvel, again.data.qvel)


def test_restitution_of_pairs_is_restored(tmp_path):
    stepper = st.TimeStepping(restitution={("cube", "floor"): 0.5, "tip": 0.25})
    sim = st.Simulation(st.Scene.from_xml(ARM), stepper=stepper)
    sim.step()
    sim.save(tmp_path / "sim.npz")
    again = st.Simulation.restore(tmp_path / "sim.npz")
    assert again.stepper == stepper
    assert hash(again.stepper) == hash(stepper)


@pytest.mark.parametrize("content", [b"", b"not a file", None])
def test_what_is_no_simulation_is_not_restored(content, tmp_path):
    path = tmp_path / "sim.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(st.InvalidScene, match=r"sim\.npz"):
        st.Simulation.restore(path)


def test_a_failed_solve_moves_nothing(tmp_path):
    sim = st.Simulation(st.Scene.named("block-stack", blocks=3), solver=st.ConeNewton(max_cycles=1, max_steps=1))
    for _ in range(3):
        before = state(sim.model, sim.data)
        try:
            sim.step()
        except st.SolveFailed as error:
            np.testing.assert_array_equal(state(sim.model, sim.data), before)
            assert error.solution.problem is sim.engine.problem
            sim.dump(tmp_path / "failed.npz")
            assert st.solve(st.load(tmp_path / "failed.npz")).ok
            break
    else:
        pytest.fail("one Newton step should not solve a stack")


def test_a_solved_problem_can_be_dumped(tmp_path):
    sim = st.Simulation(st.Scene.named("box-on-plane"))
    with pytest.raises(st.InvalidScene, match="no step has been tried"):
        sim.dump(tmp_path / "p.npz")
    sim.step()
    sim.dump(tmp_path / "p.npz")
    assert st.solve(st.load(tmp_path / "p.npz")).ok


def test_bodies_tied_together_fall_and_swing_as_one():
    sim = st.Simulation(st.Scene.from_xml(TIED))
    for report in sim.run(0.3):
        assert report.certificate.residual <= 1e-8
    a, b = sim.data.body("a"), sim.data.body("b")
    # The anchors stay together; 1e-4 m is the curvature of a step.
    first = a.xpos + a.xmat.reshape(3, 3) @ [0.15, 0, 0]
    second = b.xpos + b.xmat.reshape(3, 3) @ [-0.15, 0, 0]
    np.testing.assert_allclose(first, second, atol=2e-4)


@pytest.mark.parametrize("law", [st.NoSlip(), st.Frictionless(), st.Viscous()])
def test_dry_friction_of_joints_needs_coulomb(law):
    with pytest.raises(st.InvalidScene, match="frictionloss"):
        st.Simulation(st.Scene.from_xml(ARM), law, stepper=st.TimeStepping(viscosity=1.0)).step()


@pytest.mark.parametrize(
    ("law", "stepper"),
    [
        (st.NoSlip(), None),
        (st.Frictionless(), None),
        (st.Viscous(), st.TimeStepping(viscosity=5.0)),
        (st.Viscous(implicit=True), st.TimeStepping(viscosity=5.0)),
        (st.Coulomb(facets=4), None),
        (st.BoxFriction(scaled=True), None),
    ],
    ids=str,
)
def test_every_law_steps_a_scene(law, stepper):
    sim = st.Simulation(st.Scene.named("inclined-plane", angle=0.3, mu=0.1), law, stepper=stepper)
    for report in sim.run(0.3):
        assert report.certificate.residual <= 1e-8
    speed = np.linalg.norm(sim.data.qvel[:3])
    along = 9.81 * np.sin(0.3) * 0.3
    if isinstance(law, st.NoSlip):
        assert speed <= 1e-10
    elif isinstance(law, st.Frictionless):
        assert speed == pytest.approx(along, rel=1e-9)
    else:
        assert 0.0 < speed < along


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("not a Scene, but str", lambda: st.Simulation("scene.xml")),
        ("law must be a law", lambda: st.Simulation(st.Scene.named("box-on-plane"), "Coulomb")),
        ("needs a viscosity", lambda: st.Simulation(st.Scene.named("box-on-plane"), st.Viscous()).step()),
        ("recovery must be from 0 to inf, got -1", lambda: st.TimeStepping(recovery=-1)),
        ("restitution must be from 0 to 1, got 2", lambda: st.TimeStepping(restitution=2)),
        ("restitution of a and b must be from 0 to 1, got -1", lambda: st.TimeStepping(restitution={("b", "a"): -1})),
        ("is of a geom's name or of two in a tuple, got 3", lambda: st.TimeStepping(restitution={3: 0.5})),
        ("names a and b twice", lambda: st.TimeStepping(restitution={("b", "a"): 0.1, ("a", "b"): 0.1})),
        ("restitution must be from 0 to 1, got 'half'", lambda: st.TimeStepping(restitution="half")),
        (
            "TimeStepping: restitution names the geom 'bx'; there are",
            lambda: st.Simulation(
                st.Scene.named("box-on-plane"), stepper=st.TimeStepping(restitution={"bx": 0.5})
            ).step(),
        ),
        ("impact must be 'newton' or 'poisson', got 'hertz'", lambda: st.TimeStepping(impact="hertz")),
        ("viscosity must not be negative", lambda: st.TimeStepping(viscosity=-1.0)),
        ("seconds must be a positive number", lambda: next(st.Simulation(st.Scene.named("box-on-plane")).run(-1))),
        ("there is no scene 'bx-on-plane'", lambda: st.Scene.named("bx-on-plane")),
    ],
)
def test_mistakes_are_named(text, make):
    with pytest.raises((st.InvalidScene, st.InvalidProblem), match=text):
        make()


def test_limits_of_a_robot_in_free_fall_are_judged_by_its_whole_motion():
    """Its joints sit at their limits and do not move: what rounding leaves of their speeds is no scale."""
    legs = "".join(
        f"""<body pos="0 {y} -0.1"><joint axis="0 1 0" range="0 2.5"/><geom type="capsule" fromto="0 0 0 0 0 -0.3"
        size="0.05" mass="3"/><body pos="0 0 -0.33"><joint axis="0 1 0" range="0 2.5"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.04" mass="2"/></body></body>"""
        for y in (-0.1, 0.1)
    )
    scene = st.Scene.from_xml(
        f"""<mujoco><compiler angle="radian"/><worldbody><geom type="plane" size="5 5 1"/>
        <body pos="0 0 3"><freejoint/><geom type="capsule" fromto="0 0 -0.1 0 0 0.2" size="0.1" mass="15"/>
        {legs}</body></worldbody></mujoco>"""
    )
    sim = st.Simulation(scene)
    for report in sim.run(0.2):
        assert report.certificate.residual <= 1e-8
    assert report.solution.mode.size == 4
    assert sim.data.qvel[2] == pytest.approx(-9.81 * 0.2, rel=1e-9)


WEDGED = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <geom name="left" type="box" size="0.1 1 1" pos="-0.199 0 0"/>
  <geom name="right" type="box" size="0.1 1 1" pos="0.199 0 0"/>
  <body>
    <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
    <geom type="box" size="0.1 0.1 0.1" friction="{mu}"/>
  </body>
</worldbody></mujoco>"""  # 1 mm in both walls: no velocity takes both overlaps back


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_a_wedged_block_goes_on_with_nothing_taken_back(mu):
    sim = st.Simulation(st.Scene.from_xml(WEDGED.format(mu=mu)))
    sim.data.qvel[1] = 0.3
    for _ in range(3):
        report = sim.step()
        assert report.ok
        assert len(report.contradictions) == 2
        assert "taken back apart from velocities" in report.solution.trace[-1]
        assert abs(sim.data.qvel[0]) <= 1e-12  # held by both walls
    assert sim.data.qvel[1] == pytest.approx(0.3)  # nothing presses, so nothing rubs


IDLE = st.ConeNewton(max_cycles=0)  # proposes nothing: a solver that fails


def test_a_step_that_is_not_solved_raises_and_has_moved_nothing():
    sim = st.Simulation(st.Scene.named("box-on-plane"), solver=IDLE)
    with pytest.raises(st.SolveFailed):
        sim.step()
    assert not sim.data.qvel.any()
    assert sim.time == 0.0


def test_a_step_that_is_not_solved_goes_on_if_asked_to():
    sim = st.Simulation(st.Scene.named("box-on-plane"), solver=IDLE, stepper=st.TimeStepping(on_failure="best"))
    report = sim.step()
    assert not report.ok
    assert report.solution.status is not st.Status.SOLVED
    assert report.certificate.residual > 1e-8
    assert sim.data.qvel[2] == pytest.approx(-9.81 * sim.model.opt.timestep)  # it falls: the best that there is


def test_a_certified_step_is_the_same_whatever_would_be_done_on_failure():
    states = []
    for on_failure in ("raise", "best"):
        sim = st.Simulation(st.Scene.named("block-stack", blocks=3), stepper=st.TimeStepping(on_failure=on_failure))
        assert all(report.ok for report in sim.run(0.05))
        states.append(sim.data.qpos.tobytes())
    assert states[0] == states[1]
    with pytest.raises(st.InvalidProblem, match="on_failure must be 'raise' or 'best', got 'ignore'"):
        st.TimeStepping(on_failure="ignore")
