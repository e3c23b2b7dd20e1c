"""Closed loops: rows that MuJoCo computes for them are redundant, or are rounding, and must throw nothing away."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st

BARS = """
<body pos='-.2 0 .05'><joint type='hinge' axis='0 1 0'/>{bar}<geom {ghost} fromto='0 0 0 0 0 .2'/>
  <body name='coupler' pos='0 0 .2'><joint type='hinge' axis='0 1 0'/><geom {ghost} fromto='0 0 0 .4 0 0'/></body>
</body>
<body name='rocker' pos='.2 0 .05'><joint type='hinge' axis='0 1 0'/><geom {ghost} fromto='0 0 0 0 0 .2'/></body>
"""
GHOST = "type='capsule' size='.01' mass='.1' contype='0' conaffinity='0'"
LOOP = "<equality><connect body1='rocker' body2='coupler' anchor='0 0 .2'/>{more}</equality>"


def four_bar(tilt: str, more: str = "") -> mujoco.MjModel:
    """A plane four-bar linkage in a free frame: one of the three rows of its connection is rounding, or redundant."""
    return mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody><geom type='plane' size='5 5 .1'/>
        <body name='frame' pos='0 0 .3' euler='{tilt}'><freejoint/><geom type='box' size='.3 .05 .02' mass='2'/>
        {BARS.format(bar="", ghost=GHOST)}</body></worldbody>{LOOP.format(more=more)}</mujoco>""")


def energy(model, data) -> float:
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    return float(data.energy.sum())


@pytest.mark.parametrize("tilt", ["0 0 0", "20 30 10", "90 0 45"])
def test_a_four_bar_linkage_falls_and_lands(tilt):
    model = four_bar(tilt)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    start = energy(model, data)
    for _ in range(250):
        report = st.step(model, data)
        assert report.certificate.residual <= 1e-8
        assert np.abs(data.efc_pos[: data.ne]).max() <= 1e-6
    mujoco.mj_forward(model, data)
    assert energy(model, data) <= start
    assert np.abs(data.qvel).max() <= 20.0


def test_dry_friction_holds_a_loop_whose_error_is_rounding():
    """It would catch joints that slide to take back the last digit of a loop's error, in every step."""
    bars = BARS.format(bar="", ghost=GHOST).replace("axis='0 1 0'", "axis='0 1 0' frictionloss='1'")
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody><body name='frame' pos='.1 .2 .3' euler='20 30 10'>
        {bars}</body></worldbody>{LOOP.format(more="")}</mujoco>""")
    data = mujoco.MjData(model)
    for _ in range(20):
        st.step(model, data)
    for _ in range(50):
        report = st.step(model, data)
        assert np.abs(data.qvel).max() <= 1e-14
        assert report.solution.iterations == 0


def test_the_same_connection_twice_is_one():
    once, twice = (
        four_bar("20 30 10", more) for more in ("", "<connect body1='rocker' body2='coupler' anchor='0 0 .2'/>")
    )
    ends = []
    for model in (once, twice):
        data = mujoco.MjData(model)
        for _ in range(100):
            assert st.step(model, data).certificate.residual <= 1e-8
        ends.append(np.array(data.qpos))
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-6)


@pytest.mark.parametrize("law", [st.Frictionless(), st.Coulomb(facets=4), st.NoSlip()])
def test_loops_under_other_laws(law):
    model = four_bar("20 30 10")
    data = mujoco.MjData(model)
    for _ in range(60):
        report = st.step(model, data, law=law)
        assert report.certificate.residual <= 1e-8
        assert np.abs(data.efc_pos[: data.ne]).max() <= 1e-6


def test_connections_that_contradict_each_other_do_not_throw_anything():
    # A slider connected to two points of the world, 2 cm apart along its axis: it stays between or at one of them.
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody>
        <body name='slider'><joint type='slide' axis='1 0 0'/><geom size='.1' mass='1'/></body></worldbody>
        <equality><connect body1='slider' anchor='0 0 0'/><connect body1='slider' anchor='0 0 0'/></equality>
        </mujoco>""")
    model.eq_data[1, 3:6] += [0.02, 0.0, 0.0]
    data = mujoco.MjData(model)
    for _ in range(100):
        report = st.step(model, data)
        assert report.certificate.residual <= 1e-8
        assert abs(data.qvel[0]) <= 0.1 + 1e-12
    assert -1e-9 <= data.qpos[0] <= 0.02 + 1e-9


@pytest.mark.parametrize("digits", [1e-6, 1e-7, 1e-8, 1e-9, 1e-11, 1e-13])
def test_loops_that_are_plane_but_for_decimals(digits):
    """A rocker that is out of its plane by some last digits: the row across is not held by enormous forces."""
    bars = BARS.replace(
        "<body name='rocker' pos='.2 0 .05'>", f"<body name='rocker' pos='.2 0 .05' euler='{digits} 0 0'>"
    )
    more = f"<connect body1='rocker' body2='coupler' anchor='0 {digits} .2'/>"
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><compiler angle='radian'/><worldbody>
        <body name='frame' pos='0 0 .3' euler='.3 .5 .2'><freejoint/><geom type='box' size='.3 .05 .02' mass='2'/>
        {bars.format(bar="", ghost=GHOST)}</body></worldbody>{LOOP.format(more=more)}</mujoco>""")
    exact = four_bar("17.188733853924695 28.64788975654116 11.459155902616466")
    data, other = mujoco.MjData(model), mujoco.MjData(exact)
    data.qvel[6] = other.qvel[6] = 2.0
    for _ in range(30):
        report = st.step(model, data)
        st.step(exact, other)
        assert not report.contradictions
        assert report.certificate.residual <= 1e-8
    assert np.abs(data.qvel - other.qvel).max() <= 100 * digits + 1e-9


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_a_tendon_holds_three_trees_together(jacobian):
    """Sliders with a + b + d = 0: a push f on one moves it with 2/3 f / m, the others back with a third each."""
    slider = """<body pos="0 {0} 0"><joint name="{1}" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body>"""
    bodies = "".join(slider.format(3 * k, name) for k, name in enumerate("abcd"))
    parts = "".join(f'<joint joint="{name}" coef="1"/>' for name in ("a", "b", "d"))
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option gravity="0 0 0" jacobian="{jacobian}"/><worldbody>{bodies}</worldbody>
        <tendon><fixed name="sum">{parts}</fixed></tendon>
        <equality><tendon tendon1="sum"/></equality></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qfrc_applied[0] = 6.0
    for _ in range(10):
        report = st.step(model, data)
    v = 10 * model.opt.timestep * 6.0 / 2.0
    assert np.abs(data.qvel - [2 * v / 3, -v / 3, 0.0, -v / 3]).max() < 1e-12
    assert abs(data.qpos[[0, 1, 3]].sum()) < 1e-12
    assert report.certificate.residual < 1e-12
    assert np.abs(data.qfrc_constraint - [-2.0, -2.0, 0.0, -2.0]).max() < 1e-9


def sliders(tendon: str, jacobian: str, masses=(1.0, 2.0, 0.5)) -> mujoco.MjModel:
    """Sliders along x, a tree each, with a free ball among them; the tendon's length is the sum of their places."""
    bodies = "".join(
        f"<body pos='0 {k} 0'><joint name='j{k}' type='slide' axis='1 0 0'/><geom size='.1' mass='{mass}'/></body>"
        + ("<body pos='5 0 0'><freejoint/><geom size='.1'/></body>" if k == 0 else "")
        for k, mass in enumerate(masses)
    )
    parts = "".join(f"<joint joint='j{k}' coef='1'/>" for k in range(len(masses)))
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option gravity="0 0 0" timestep=".01" jacobian="{jacobian}"/>
        <worldbody>{bodies}</worldbody><tendon><fixed name="sum" {tendon}>{parts}</fixed></tendon></mujoco>""")


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_the_limit_of_a_tendon_over_three_trees(jacobian):
    """At the limit its force is sum(f / m) / sum(1 / m): the sliders then accelerate by what is left of theirs."""
    model = sliders("limited='true' range='-1 .05'", jacobian)
    data = mujoco.MjData(model)
    moving = [model.joint(f"j{k}").dofadr[0] for k in range(3)]
    mass, force = np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, -0.5])
    pull = (force / mass).sum() / (1.0 / mass).sum()
    for _ in range(60):
        data.qfrc_applied[moving] = force
        before = data.ten_length[0]
        report = st.step(model, data)
        assert report.certificate.residual <= 1e-9
        assert data.ten_length[0] <= 0.05 + 1e-9
    assert before > 0.05 - 1e-9
    np.testing.assert_allclose(data.qacc[moving], (force - pull) / mass, atol=1e-8)
    np.testing.assert_allclose(data.efc_force[0], pull, rtol=1e-8)
    assert not data.qvel[1:7].any()  # the ball among them is not touched


@pytest.mark.parametrize("loss", [0.5, 2.0])
def test_dry_friction_of_a_tendon_over_three_trees(loss):
    """It holds the tendon's length as long as that takes less than its bound, and brakes each slider by it then."""
    model = sliders(f"frictionloss='{loss}'", "dense")
    data = mujoco.MjData(model)
    moving = [model.joint(f"j{k}").dofadr[0] for k in range(3)]
    mass, force = np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, -0.5])
    pull = min(loss, (force / mass).sum() / (1.0 / mass).sum())
    for _ in range(20):
        data.qfrc_applied[moving] = force
        assert st.step(model, data).certificate.residual <= 1e-9
        np.testing.assert_allclose(data.qacc[moving], (force - pull) / mass, atol=1e-8)


def test_a_rope_through_three_bodies_that_also_touch():
    """A spatial tendon over three free bodies that collide: each answer is certified, and the rope never too long."""
    boxes = "".join(
        f"<body name='b{k}' pos='{0.3 * k} 0 .1'><freejoint/><geom type='box' size='.1 .1 .1' mass='1'/>"
        f"<site name='s{k}' pos='0 0 .1'/></body>"
        for k in range(4)
    )
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep=".005"/><worldbody>
        <geom type="plane" size="5 5 .1"/>{boxes}</worldbody><tendon><spatial limited="true" range="0 .95">
        {"".join(f"<site site='s{k}'/>" for k in range(4))}</spatial></tendon></mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[0], data.qvel[6 * 3] = -2.0, 3.0
    longest = 0.0
    for _ in range(150):
        assert st.step(model, data).certificate.residual <= 1e-8
        longest = max(longest, data.ten_length[0])
    assert 0.94 < longest <= 0.95 + 1e-3


# A loop of three links, closed twice at points that differ by less than a picometre.
TWICE = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 .4" size=".02"/>
    <body pos=".3 0 .4"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".02"/>
      <body name="end" pos=".5 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 -.4" size=".02"/>
    </body></body></body></worldbody>
  <equality><connect body1="end" anchor=".2 0 -.4"/><connect body1="end" anchor="{x!r} 0 -.4"/></equality></mujoco>"""


def test_rows_that_repeat_others_but_for_their_last_digits_follow_them():
    """What is left of such a row, times the speed of fast joints, was its violation: a toddlerbot failed by it."""
    model = mujoco.MjModel.from_xml_string(TWICE.format(x=0.2 + 4e-13))
    data = mujoco.MjData(model)
    data.qvel[:] = 20.0, -30.0, 25.0
    assert max(st.step(model, data).certificate.residual for _ in range(30)) <= 2e-11
