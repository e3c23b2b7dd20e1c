"""Contacts of a face lie in one plane, and their rows are those of where they lie; small gaps count as none."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.contacts.gather import SLACK
from stiction.solvers.contact.cone_newton.tolerances import LARGE
from stiction.stepping.pose import pose

PLANE = '<geom type="plane" size="2 2 1"/>'
TILTED = '<body pos="0 0 .1003" euler=".1 .05 20"><freejoint/><geom type="box" size=".1 .12 .1" mass="2"/></body>'
# A foot on an ankle of two hinges, carried by a leg on a slide: rows over a tree.
LEG = """<body pos="0 0 .42"><joint type="slide" axis="0 0 1"/><geom size=".02" mass="1" contype="0" conaffinity="0"/>
<body pos="0 0 -.2"><joint axis="0 1 0"/><joint axis="1 0 0"/><geom size=".02" mass="1" contype="0" conaffinity="0"/>
<body pos="0 0 -.2"><geom type="box" size=".1 .05 .0198" mass="1"/></body></body></body>"""
ON_EACH_OTHER = (
    '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>'
    '<body pos=".02 .01 .2502" euler=".1 .05 30"><freejoint/><geom type="box" size=".08 .06 .05" mass="1"/></body>'
)


def looked_at(inside: str, jacobian: str) -> st.Simulation:
    """A simulation whose contacts have been gathered, before the step."""
    option = f'<option timestep=".005" jacobian="{jacobian}"/>'
    text = f"<mujoco>{option}<compiler angle='degree'/><worldbody>{PLANE}{inside}</worldbody></mujoco>"
    sim = st.Simulation(st.Scene.of(mujoco.MjModel.from_xml_string(text)))
    if inside is LEG:
        sim.data.qpos[:] = 0.0, 0.001, 0.002
    sim.engine.look()
    sim.engine.gather()
    return sim


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
@pytest.mark.parametrize("inside", [TILTED, LEG, ON_EACH_OTHER], ids=["box", "leg", "boxes"])
def test_contacts_of_a_face_lie_in_one_plane_and_rows_agree_with_where_they_lie(inside, jacobian):
    sim = looked_at(inside, jacobian)
    model, data = sim.model, sim.data
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        J[:] = np.reshape(data.efc_J, (-1, model.nv))
    heights, gaps = {}, {}
    for contact in data.contact:
        one, two = (np.zeros((3, model.nv)) for _ in range(2))
        mujoco.mj_jac(model, data, one, None, contact.pos, model.geom_bodyid[contact.geom[0]])
        mujoco.mj_jac(model, data, two, None, contact.pos, model.geom_bodyid[contact.geom[1]])
        expected = contact.frame.reshape(3, 3) @ (two - one)
        assert np.allclose(J[contact.efc_address : contact.efc_address + 3], expected, rtol=0, atol=1e-14)
        key = tuple(contact.geom), tuple(contact.frame[:3].round(6))
        heights.setdefault(key, []).append(contact.frame[:3] @ contact.pos)
        gaps.setdefault(key, []).append(contact.dist)
    assert max(np.ptp(each) for each in gaps.values()) > 1e-5  # MuJoCo's heights differ by half of that
    assert max(np.ptp(each) for each in heights.values()) < 1e-15


def test_a_face_that_lands_askew_sticks_without_contacts_that_slide():
    # Closing unequal gaps turns the box; points at different heights would then slide by nanometres a second.
    sim = looked_at(TILTED, "dense")
    sim.data.qvel[2] = -0.2
    report = sim.step()
    speed = np.hypot(*report.solution.contact_velocity[:, 1:].T)
    pressed = report.solution.impulse[:, 0] > 0.0
    assert pressed.sum() >= 3
    assert speed[pressed].max() < 1e-13


def test_gaps_of_a_millionth_of_the_smaller_body_count_as_closed_among_many_contacts():
    bricks = "".join(
        f'<body pos="{0.25 * (k % 8)} {0.25 * (k // 8)} {0.1 + 0.2 * layer}"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" mass="1"/></body>'
        for k in range(24)
        for layer in range(3)
    )
    for inside, many in ((ON_EACH_OTHER, False), (bricks, True)):
        sim = looked_at(inside, "dense")
        engine = sim.engine
        sim.data.contact.dist[:] = 0.9 * SLACK * sim.model.geom_rbound[1:].min()
        found = engine.gather()
        assert (found.n > LARGE) == many
        assert (found.slack > found.gap).all()
        problem = pose(found, sim.law, sim.model.opt.timestep, 0.1)
        assert (problem.gap_rate == 0.0).all() == many
