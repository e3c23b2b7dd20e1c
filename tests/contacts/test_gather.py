"""Rows, masses and free velocities against MuJoCo's own; the answer written back; physics by hand."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.bodies.scene import Scene
from stiction.bodies.stages import advance, smooth
from stiction.contacts.gather import CONTACT, DRY, LIMIT, gather
from stiction.contacts.identity import match
from stiction.contacts.margins import margins
from stiction.contacts.write_back import write_back
from stiction.errors import InvalidScene

PLANE = '<geom type="plane" size="1 1 1"/>'


def world(inside: str, more: str = "", option: str = 'timestep="0.005"') -> str:
    return f"<mujoco><option {option}/><worldbody>{inside}</worldbody>{more}</mujoco>"


def cube(x: float, z: float, geom: str = "") -> str:
    return f'<body pos="{x} 0 {z}"><freejoint/><geom type="box" size=".1 .1 .1" mass="8" {geom}/></body>'


STACK = PLANE + "".join(cube(0.0, 0.1 + 0.2 * i) for i in range(3))
ARM = """<geom type="box" pos=".45 0 .5" size=".1 .3 .5"/><body pos="0 0 .8">
<joint type="hinge" axis="0 1 0" limited="true" range="-100 100" damping=".01"/>
<geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/><body pos="0 0 -.3">
<joint type="hinge" axis="0 1 0" limited="true" range="-10 60" damping=".01"/>
<geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/></body></body>"""
SLIDER = '<body><joint type="slide" axis="1 0 0" frictionloss="3"/><geom size=".1" mass="2"/></body>'
CREATURE = """<body pos="0 0 .4"><freejoint/><geom type="box" size=".2 .1 .05"/>
<body pos=".2 .1 0"><joint type="ball" damping=".1" armature=".01"/>
<geom type="capsule" size=".03" fromto="0 0 0 .1 0 -.2"/>
<body pos=".1 0 -.2"><joint type="hinge" axis="0 1 0" limited="true" range="-90 1" frictionloss=".2"/>
<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.19"/></body></body>
<body pos="-.2 .1 0"><joint type="hinge" axis="1 0 0" stiffness="3" damping=".2"/>
<geom type="capsule" size=".03" fromto="0 0 0 0 0 -.4"/></body></body>"""


class Stepper:
    """The plainest step: dense, full stabilization."""

    def __init__(self, xml: str) -> None:
        self.scene = Scene.from_xml(xml)
        self.model, self.data = self.scene.model, self.scene.data()
        self.shadow, self.memory = self.scene.bind(self.data)
        self.scratch = np.zeros(6 * self.model.nbody)

    def gather(self):
        margins(self.memory, self.scratch, self.scene.margin)
        smooth(self.shadow, self.data, self.memory if self.scene.mends else None)
        return gather(self.memory)

    def step(self):
        gathered = self.gather()
        mass, rows, joints = gathered.dense()
        dt = self.model.opt.timestep
        problem = st.ContactProblem(
            mass, gathered.free, rows[:, 0], rows[:, 1:], gathered.friction,
            gap_rate=gathered.gap / dt, joints=joints, joint_rate=gathered.joint_gap / dt,
        )  # fmt: skip
        solution = st.solve(problem, st.Auto(aim=1e-12))
        write_back(self.memory, gathered, solution.velocity, solution.impulse, solution.joint_impulse)
        advance(self.shadow, self.data)
        return gathered, solution


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_rows_are_those_of_mj_jac(jacobian):
    stepper = Stepper(world(PLANE + CREATURE + cube(0.0, 0.55) + cube(0.05, 0.75), option=f'jacobian="{jacobian}"'))
    model, data = stepper.model, stepper.data
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    gathered = stepper.gather()
    _, rows, _ = gathered.dense()
    touching = np.flatnonzero(gathered.kind == CONTACT)
    assert len(touching) >= 9
    assert (gathered.segments[touching, 3] > 0).any()
    for i in touching:
        contact = data.contact[gathered.source[i]]
        jacobians = np.zeros((2, 3, model.nv))
        for side in range(2):
            mujoco.mj_jac(model, data, jacobians[side], None, contact.pos, model.geom_bodyid[contact.geom[side]])
        expected = contact.frame.reshape(3, 3) @ (jacobians[1] - jacobians[0])
        assert np.abs(rows[i, :, : model.nv] - expected).max() <= 1e-14
        assert not rows[i, :, model.nv :].any()
        assert gathered.gap[i] == contact.dist


def test_masses_are_those_of_mujoco_and_damping_is_implicit():
    stepper = Stepper(world(PLANE + CREATURE + cube(1.0, 0.1)))
    model, data = stepper.model, stepper.data
    data.qvel[:] = np.random.default_rng(1).normal(size=model.nv)
    gathered = stepper.gather()
    mass, _, _ = gathered.dense()
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    damped = full + model.opt.timestep * np.diag(model.dof_damping)
    assert np.abs(mass[: model.nv, : model.nv] - damped).max() <= 1e-15
    expected = data.qvel + model.opt.timestep * np.linalg.solve(damped, data.qfrc_smooth)
    assert np.abs(gathered.free[: model.nv] - expected).max() <= 1e-12
    assert gathered.starts.tolist() == [0, 11, 17, 18]


@pytest.mark.parametrize(
    ("joint", "actuator"),
    [
        ('damping="2"', ""),
        ('damping="2 1 .5"', ""),
        ("", '<motor joint="h" damping="2 1 .5" gear="3"/>'),
    ],
)
def test_dampers_are_those_of_mujocos_euler_step(joint, actuator):
    inside = f'<body><joint name="h" {joint}/><geom type="capsule" size=".02" fromto="0 0 0 0 0 .3"/></body>'
    xml = world(inside, f"<actuator>{actuator}</actuator>")
    plain = mujoco.MjModel.from_xml_string(xml)
    theirs = mujoco.MjData(plain)
    stepper = Stepper(xml)
    theirs.qvel[0] = stepper.data.qvel[0] = 3.0
    mujoco.mj_step(plain, theirs)
    assert stepper.gather().free[0] == pytest.approx(theirs.qvel[0], rel=1e-13)


def test_velocity_gains_are_those_of_mujocos_implicit_step():
    inside = '<body><joint name="h"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 .3"/></body>'
    more = '<actuator><position joint="h" kp="3" kv="40" gear="2"/></actuator>'
    plain = mujoco.MjModel.from_xml_string(world(inside, more, option='integrator="implicitfast" timestep="0.005"'))
    theirs = mujoco.MjData(plain)
    stepper = Stepper(world(inside, more))
    for data in (theirs, stepper.data):
        data.qvel[0], data.ctrl[0] = 3.0, 0.2
    mujoco.mj_step(plain, theirs)
    assert stepper.gather().free[0] == pytest.approx(theirs.qvel[0], rel=1e-13)


def test_a_stack_rests_and_mujoco_shows_our_forces():
    stepper = Stepper(world(STACK))
    start = stepper.data.qpos.copy()
    for _ in range(50):
        gathered, solution = stepper.step()
    assert gathered.n >= 12
    assert np.abs(stepper.data.qpos - start).max() <= 1e-12
    assert np.abs(stepper.data.qvel).max() <= 1e-11
    forces = np.zeros((gathered.n, 6))
    for i in range(gathered.n):
        mujoco.mj_contactForce(stepper.model, stepper.data, gathered.source[i], forces[i])
    assert forces[:, :3] == pytest.approx(solution.impulse / stepper.model.opt.timestep)
    weight = 8.0 * 9.81
    ground = gathered.pair[:, 0] == 0
    assert forces[ground, 0].sum() == pytest.approx(3.0 * weight, rel=1e-9)
    assert stepper.data.qfrc_constraint[2::6] == pytest.approx(np.full(3, weight), rel=1e-9)


def test_touch_sensors_show_our_forces():
    body = '<body pos="0 0 .1"><freejoint/><geom size=".1" mass="1"/><site name="s" size=".11"/></body>'
    stepper = Stepper(world(PLANE + body, '<sensor><touch site="s"/></sensor>'))
    stepper.step()
    assert stepper.data.sensordata[0] == pytest.approx(9.81, rel=1e-9)


def test_momentum_is_what_the_forces_give():
    """(M + dt D) (v⁺ - v) = dt (f + Jᵀ force), with everything as MuJoCo now shows it."""
    stepper = Stepper(world(PLANE + CREATURE + cube(0.0, 0.56)))
    model, data = stepper.model, stepper.data
    data.qvel[2] = -1.0
    kinds = []
    for _ in range(40):
        before = data.qvel.copy()
        gathered, solution = stepper.step()
        mass = gathered.dense()[0][: model.nv, : model.nv]
        force = mass @ (data.qvel - before) / model.opt.timestep - data.qfrc_smooth
        scale = np.abs(data.qfrc_constraint).max() + np.abs(data.qfrc_smooth).max()
        assert np.abs(force - data.qfrc_constraint).max() <= 1e-9 * scale
        assert solution.certificate.residual <= 1e-8
        kinds.append(np.bincount(gathered.kind, minlength=3))
    assert np.max(kinds, axis=0).tolist()[CONTACT] >= 4
    assert np.max(kinds, axis=0).tolist()[DRY] == 1


def test_limits_hold_and_energy_is_not_made():
    stepper = Stepper(world(ARM, '<keyframe><key name="start" qpos="1.4 .5"/></keyframe>'))
    stepper.model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    kinds, energies, elbow = set(), [], []
    for _ in range(300):
        gathered, _ = stepper.step()
        kinds |= set(gathered.kind.tolist())
        energies.append(stepper.data.energy.sum())
        elbow.append(stepper.data.qpos[1])
        assert gathered.gap.min(initial=0.0) >= -1e-9
    assert kinds == {CONTACT, LIMIT}
    assert np.degrees(min(elbow)) >= -10.0 - 1e-7
    assert np.degrees(max(elbow)) <= 60.0 + 1e-7
    # Symplectic steps make energy swing by a little; impacts and limits only take it.
    assert np.diff(energies).max() <= 1e-3 * abs(energies[0])
    assert energies[-1] < energies[0]


def test_dry_friction_stops_holds_and_slips():
    stepper = Stepper(world(SLIDER, option='timestep="0.005" gravity="0 0 0"'))
    data, dt = stepper.data, stepper.model.opt.timestep
    data.qvel[0] = 1.0
    for k in range(1, 100):
        stepper.step()
        assert data.qvel[0] == pytest.approx(1.0 - k * dt * 1.5, abs=1e-12)
    for _ in range(60):
        stepper.step()
    assert abs(data.qvel[0]) <= 1e-15
    data.qfrc_applied[0] = 2.9
    _, solution = stepper.step()
    assert abs(data.qvel[0]) <= 1e-15
    assert data.efc_force[0] == pytest.approx(-2.9)
    assert solution.impulse[0, 0] == pytest.approx(3.0 * dt)
    data.qfrc_applied[0] = 3.1
    stepper.step()
    assert data.qvel[0] == pytest.approx(0.1 / 2.0 * dt)


def test_equalities_are_hard():
    bodies = "".join(
        f'<body name="b{i}" pos="{0.2 + 0.4 * i} 0 1"><freejoint/>'
        '<geom type="box" size=".2 .02 .02" contype="0" conaffinity="0"/></body>'
        for i in range(3)
    )
    more = """<equality><connect body1="b0" body2="world" anchor="-.2 0 0"/>
    <connect body1="b0" body2="b1" anchor=".2 0 0"/><weld body1="b2" body2="world"/></equality>"""
    stepper = Stepper(world(bodies, more, option='timestep="0.002"'))
    stepper.model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    first, errors = None, []
    for _ in range(150):
        gathered, _ = stepper.step()
        errors.append(np.abs(gathered.joint_gap).max())
        first = stepper.data.energy.sum() if first is None else first
    assert gathered.joints.shape == (12, 12)
    # An error of position is what one step of a straight line makes of a circle: (v dt)² / 2r.
    assert max(errors) <= 1e-3
    assert stepper.data.energy.sum() == pytest.approx(first, rel=5e-3)
    assert stepper.data.qpos[14:17] == pytest.approx([1.0, 0.0, 1.0], abs=1e-12)
    assert stepper.data.qfrc_constraint[14] == pytest.approx(stepper.model.body_mass[3] * 9.81)


def test_equality_rows_are_the_rate_of_their_error():
    bodies = cube(0.0, 1.0).replace("<body", '<body name="a"') + cube(0.5, 1.0).replace("<body", '<body name="b"')
    more = """<equality><connect body1="a" body2="b" anchor=".2 .1 0"/>
    <weld body1="b" relpose="1 .1 0 1 .1 0 0"/></equality>"""
    stepper = Stepper(world(bodies, more))
    model, data = stepper.model, stepper.data
    rng = np.random.default_rng(2)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.1)
    motion, place, h = rng.normal(size=model.nv), data.qpos.copy(), 1e-6
    _, _, joints = stepper.gather().dense()
    errors = []
    for step in (h, -h):
        data.qpos[:] = place
        mujoco.mj_integratePos(model, data.qpos, motion, step)
        errors.append(stepper.gather().joint_gap.copy())
    assert joints @ motion == pytest.approx((errors[0] - errors[1]) / (2.0 * h), abs=1e-8)


@pytest.mark.parametrize(("mu", "condim", "expected"), [("0", 3, 0.0), (".3", 3, 0.3), (".3", 1, 0.0)])
def test_friction_is_mixed_as_mujoco_does_and_nothing_is_nothing(mu, condim, expected):
    plane = f'<geom type="plane" size="1 1 1" friction="{mu}" condim="{condim}"/>'
    gathered = Stepper(world(plane + cube(0.0, 0.1, f'friction="0" condim="{condim}"'))).gather()
    assert gathered.friction.tolist() == [expected] * 4
    assert (condim == 1) == (not gathered.rows[:, 1:].any())


def test_friction_differs_along_its_axes():
    """A block pushed along x and y with coefficients of 0.2 and 0.6: it slides where the push exceeds mu m g."""
    names = cube(0.0, 0.1).replace("<geom", '<geom name="b"')
    pair = '<contact><pair geom1="p" geom2="b" friction=".2 .6 0 0 0"/></contact>'
    stepper = Stepper(world(PLANE.replace("<geom", '<geom name="p"') + names, pair))
    frame = stepper.gather() and stepper.data.contact[0].frame.reshape(3, 3)
    along = int(np.argmax(np.abs(frame[1, :2])))
    weight = 8.0 * 9.81
    stepper.data.qfrc_applied[along] = 0.25 * weight
    gathered, _ = stepper.step()
    dt = stepper.model.opt.timestep
    assert gathered.friction.tolist() == [0.6] * 4
    assert np.abs(stepper.data.qvel[along]) == pytest.approx(0.05 * 9.81 * dt, rel=1e-6)
    forces = stepper.data.efc_force.reshape(4, 3)
    assert np.abs(forces[:, 1].sum()) == pytest.approx(0.2 * weight, rel=1e-6)
    stepper.data.qvel[:] = 0.0
    stepper.data.qfrc_applied[:2] = 0.0
    stepper.data.qfrc_applied[1 - along] = 0.55 * weight
    stepper.step()
    assert np.abs(stepper.data.qvel[:2]).max() <= 1e-10


def test_contacts_are_recognized():
    """Three boxes that meet at corners far apart, whatever MuJoCo's order."""
    pile = PLANE + "".join(cube(0.03 * i, 0.1 + 0.2 * i) for i in range(3))
    stepper = Stepper(world(pile))
    old = stepper.gather()
    assert old.n == 12
    stepper.data.qpos[0::7] += 1e-4
    new = stepper.gather()
    assert match(stepper.memory, old, new).tolist() == list(range(12))
    # The box on top is gone: its contacts are not found again, those of the others are.
    stepper.data.qpos[16] = 2.0
    fewer = stepper.gather()
    assert fewer.n == 8
    found = match(stepper.memory, new, fewer)
    assert found.tolist() == list(range(8))
    assert (match(stepper.memory, fewer, new) >= 0).sum() == 8


def test_contacts_between_others_are_left_out():
    """Boxes that are aligned but for rounding: MuJoCo also reports where their edges cross."""
    stepper = Stepper(world(STACK))
    most = 0
    for turn in np.random.default_rng(0).normal(size=(20, 3)):
        for box, size in enumerate((0.0, 1e-15, -1e-15)):
            stepper.data.qpos[7 * box + 4 : 7 * box + 7] = size * turn
        gathered = stepper.gather()
        most = max(most, stepper.data.ncon)
        assert gathered.n == 12
        assert np.abs(np.abs(gathered.spot) - 0.1).max() <= 1e-9
    assert most > 12


def test_a_pile_of_logs_rests():
    """Cylinders, whose contacts with each other are mended."""
    log = '<body pos="{} 0 {}"><freejoint/><geom type="cylinder" size=".1 .3" euler="90 0 0" friction=".6"/></body>'
    wall = '<geom type="box" pos="{} 0 .2" size=".1 .5 .2"/>'
    places = ((-0.1, 0.1), (0.1, 0.1), (0.0, 0.1 + 0.2 * np.sqrt(0.75) + 1e-3))
    logs = "".join(log.format(*place) for place in places)
    stepper = Stepper(world(PLANE + wall.format(-0.3) + wall.format(0.3) + logs))
    for _ in range(60):
        gathered, solution = stepper.step()
        assert gathered.gap.min() >= -1e-12
    assert gathered.n == 14
    assert np.abs(stepper.data.qvel).max() <= 1e-10
    weight = stepper.model.body_mass[1:] * 9.81
    assert stepper.data.qfrc_constraint[2::6] == pytest.approx(weight, rel=1e-9)
    assert solution.certificate.residual <= 1e-8


def test_limits_and_dry_friction_are_recognized_by_joint_and_side():
    inside = '<body><joint limited="true" range="-.01 .01" frictionloss="1"/><geom size=".1" mass="1"/></body>'
    stepper = Stepper(world(inside + inside.replace("<body>", '<body pos="1 0 0">')))
    stepper.data.qvel[:] = 1.0
    old = stepper.gather()
    assert old.kind.tolist() == [LIMIT] * 4 + [DRY] * 2
    assert match(stepper.memory, old, stepper.gather()).tolist() == list(range(6))


def test_margins_follow_the_motion():
    stepper = Stepper(world(PLANE + cube(0.0, 1.0)))
    stepper.gather()
    margin = stepper.shadow.margins["geom_margin"]
    assert margin[0] == 0.0
    slow = margin[1]
    assert slow == pytest.approx(0.01 * 0.1 + 1.5 * 9.81 * 0.005**2)
    stepper.data.qvel[2] = -10.0
    stepper.gather()
    assert margin[1] - slow == pytest.approx(1.5 * 0.005 * 10.0)
    assert stepper.shadow.margins["body_margin"][1] == margin[1]
    assert not stepper.model.geom_margin.any()
    assert not stepper.model.body_margin.any()


def test_a_fast_box_lands_without_penetration():
    stepper = Stepper(world(PLANE + cube(0.0, 0.52)))
    stepper.data.qvel[2] = -20.0
    for _ in range(10):
        stepper.step()
        assert stepper.data.qpos[2] >= 0.1 - 1e-12
    assert stepper.data.qpos[2] == pytest.approx(0.1, abs=1e-12)


def test_adhesion_holds_what_it_can():
    """A ball of 1 kg under a ceiling, held by 20 N; MuJoCo shows the net force, which pulls."""
    ceiling = '<geom type="plane" size="1 1 1" pos="0 0 1" euler="180 0 0" adhesion="{}"/>'
    ball = '<body pos="0 0 .9"><freejoint/><geom size=".1" mass="1"/></body>'
    held = Stepper(world(ceiling.format(20) + ball))
    _, solution = held.step()
    assert np.abs(held.data.qvel).max() <= 1e-12
    assert solution.impulse[0, 0] == pytest.approx((20.0 - 9.81) * 0.005)
    force = np.zeros(6)
    mujoco.mj_contactForce(held.model, held.data, 0, force)
    assert force[0] == pytest.approx(-9.81)
    falling = Stepper(world(ceiling.format(9) + ball))
    falling.step()
    assert falling.data.qvel[2] == pytest.approx(-0.81 * 0.005)


def test_limits_of_tendons_hold():
    slider = '<body pos="{} 0 0"><joint name="{}" type="slide" axis="1 0 0"/><geom size=".05" mass="1"/></body>'
    tendon = """<tendon><fixed limited="true" range="-1 .1"><joint joint="a" coef="1"/><joint joint="b" coef="1"/>
    </fixed></tendon>"""
    option = 'timestep="0.005" gravity="1 0 0"'
    stepper = Stepper(world(slider.format(0, "a") + slider.format(1, "b"), tendon, option=option))
    for _ in range(150):
        stepper.step()
    assert stepper.data.qpos.sum() == pytest.approx(0.1, abs=1e-9)
    assert stepper.data.qfrc_constraint == pytest.approx([-1.0, -1.0], rel=1e-6)


def test_the_pyramidal_cone_is_refused():
    """Of a model without a shadow, that is: a shadow poses the elliptic cone whatever the user's model asks for."""
    stepper = Stepper(world(PLANE + cube(0.0, 0.1)))
    stepper.model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    assert stepper.gather().n == 4
    stepper.data.qpos[2] = 0.099
    mujoco.mj_forward(stepper.model, stepper.data)
    with pytest.raises(InvalidScene, match="elliptic cone"):
        gather(stepper.memory)


def test_nothing_touches_nothing():
    stepper = Stepper(world(cube(0.0, 1.0)))
    gathered, solution = stepper.step()
    assert gathered.rows.shape == (0, 3, 0)
    assert gathered.joints.shape == (0, 0)
    assert stepper.data.qvel[2] == pytest.approx(-9.81 * 0.005)
    assert solution.ok


def test_contacts_that_joints_keep_from_moving_are_left_out():
    """A block on slides along a table that it overlaps: nothing can open that contact, and it cannot press."""
    scene = st.Scene.from_xml("""
    <mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 0.099"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
        <geom type="box" size=".1 .1 .1"/></body>
      <body pos="0.21 0 0.1"><freejoint/><geom name="free" type="box" size=".1 .1 .1"/></body>
    </worldbody></mujoco>""")
    sim = st.Simulation(scene)
    sim.data.qvel[0] = 1.0
    for report in sim.run(0.1):
        assert report.certificate.residual <= 1e-8
    assert sim.contacts
    assert all("free" in touch.geoms for touch in sim.contacts)
    assert sim.data.qvel[2] > 0.0  # pushed by the other


def test_a_contact_at_the_centre_of_a_ball_joint_is_none():
    """Two capsules end there: all rows of their contact are rounding, and taking back the overlap would tear."""
    model = mujoco.MjModel.from_xml_string("""<mujoco><default><geom type="capsule" size=".01"/></default><worldbody>
        <geom fromto="0 0 0 0 0 .1"/><body pos="0 0 .1"><geom fromto="0 0 0 0 .1 .1"/><joint type="ball"/>
        </body></worldbody></mujoco>""")
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    for _ in range(60):
        st.step(model, data)
        mujoco.mj_step(model, other)
        assert data.ncon == 1
    np.testing.assert_allclose(data.qvel, other.qvel, atol=1e-2)


@pytest.mark.parametrize(("gap", "closed"), [(1e-8, True), (-1e-8, True), (1e-6, False), (-1e-6, False)])
def test_a_gap_within_the_rounding_of_a_mesh_is_closed(gap, closed):
    """Vertices have single precision: on its flat faces a mesh would rock from one to the other for ever."""
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
    mesh = f'<asset><mesh name="cube" vertex="{corners}"/></asset>'
    body = f'<body pos="0 0 {0.1 + gap:.12f}"><freejoint/><geom type="mesh" mesh="cube"/></body>'
    found = Stepper(world(PLANE + body, mesh)).gather()
    assert found.n == 4
    if closed:
        assert not found.gap.any()
    else:
        np.testing.assert_allclose(found.gap, gap, atol=1e-8)
