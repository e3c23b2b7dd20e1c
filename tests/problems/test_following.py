"""Loops within a tree: over velocities that do not follow from others, the problem is the one that projection gives."""

import numpy as np
import pytest

import stiction as st
from stiction.problems.contact import densified
from stiction.problems.joints import LOOSELY
from stiction.problems.normal_form import white_sizes, white_views, whiten_posed
from stiction.problems.response import respond, scratch_sizes, scratch_views
from stiction.stepping.engine import Engine
from stiction.stepping.pose import pose

# A trunk with two legs of four bars, the second of them doubled; dry friction in the hips; a ball beside it.
LEG = """
<body pos="0 {y} 0"><joint name="hip{n}" axis="0 1 0" frictionloss="0.3"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="1"/>
  <body pos="0 0 -0.3"><joint name="knee{n}" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.02" mass="0.3"/>
    <body pos="0.1 0 0"><joint axis="0 1 0"/><geom type="sphere" size="0.05" mass="0.2"/>
      <body name="end{n}"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.01" mass="0.1" contype="0" conaffinity="0"/></body>
    </body></body>
  <body name="bar{n}" pos="0.1 0 0"><joint axis="0 1 0"/>
    <geom type="sphere" size="0.02" mass="0.1" contype="0" conaffinity="0"/></body></body>
"""
WALKER = f"""
<mujoco><option cone="elliptic"/><worldbody>
  <geom type="plane" size="2 2 1"/>
  <body pos="0 0 0.35"><freejoint/><geom type="box" size="0.1 0.1 0.02" mass="3"/>
    {LEG.format(n=1, y=0.2)}{LEG.format(n=2, y=-0.2)}
  </body>
  <body name="ball" pos="1 0 0.1"><freejoint/><geom type="sphere" size="0.1"/></body>
</worldbody><equality>
  <connect body1="end1" body2="bar1" anchor="0 0 0.29"/><connect body1="end2" body2="bar2" anchor="0 0 0.3"/>
  <joint joint1="knee1" joint2="knee2" polycoef="0 -1 0 0 0"/>
  {{more}}
</equality></mujoco>
"""


def problem_of(more=""):
    scene = st.Scene.from_xml(WALKER.format(more=more))
    engine = Engine(scene, scene.data())
    engine.data.qpos[7:15] += 1e-3 * np.arange(8)
    engine.data.qvel[:] = np.linspace(-1.0, 1.0, scene.model.nv)
    engine.look()
    return pose(engine.gather(), st.Coulomb(), scene.model.opt.timestep, 0.1)


def whitened(problem, short):
    sizes = *problem.rows.shape[:2], problem.m, len(problem.joints), problem.m, problem.mass.size
    floats, ints = white_sizes(*sizes)
    white = white_views(*sizes, np.full(floats, np.nan), np.full(ints, -7))
    tau, rank = whiten_posed(problem.posed, white, LOOSELY, problem.zero, short, False)
    return white, tau, rank


def answer(problem, white, tau, rank, impulse):
    sizes = problem.m, len(problem.joints)
    scratch = scratch_views(*sizes, np.empty(scratch_sizes(*sizes)[0]), np.empty(0, np.int64))
    velocity, joint_impulse = np.empty(problem.m), np.empty(len(problem.joints))
    respond(problem.posed, white, tau, rank, impulse, scratch, velocity, joint_impulse, problem.zero)
    return velocity, joint_impulse


@pytest.mark.parametrize("more", ["", '<connect body1="end2" body2="bar2" anchor="0 0 0.3"/>'])
def test_both_forms_are_one_problem(more):
    """With errors that are taken back, and rows that are redundant."""
    problem = problem_of(more)
    (projected, tau, rank), (short, other, same) = whitened(problem, False), whitened(problem, True)
    assert (projected.following.used[0], short.following.used[0]) == (0, 1)
    assert rank == same > 0
    assert problem.joint_rate.any()
    assert tau == pytest.approx(other, rel=1e-12)
    for field in ("scale", "pace", "heavy"):
        np.testing.assert_allclose(getattr(projected, field), getattr(short, field), rtol=1e-10)

    # Delassus matrix and free velocities of the contacts.
    forms = [densified(white.rows, white.runs, problem.m) for white in (projected, short)]
    products = [np.einsum("iam,jbm->iajb", rows, rows) for rows in forms]
    np.testing.assert_allclose(*products, atol=1e-12)
    free = [rows @ white.free + white.bias for rows, white in zip(forms, (projected, short), strict=True)]
    np.testing.assert_allclose(*free, atol=1e-11)

    # What impulses do: to velocities, and to the joints.
    impulse = np.random.default_rng(0).normal(size=problem.rows.shape[:2])
    one, two = answer(problem, projected, tau, rank, impulse), answer(problem, short, other, rank, impulse)
    np.testing.assert_allclose(one[0], two[0], atol=1e-11 * np.abs(one[0]).max())
    np.testing.assert_allclose(one[1], two[1], atol=1e-10 * np.abs(one[1]).max())


def test_rows_stay_as_short_as_without_loops():
    problem = problem_of()
    rows = densified(whitened(problem, True)[0].rows, problem.segments, problem.m)
    ball = slice(16, 22)
    touching = np.flatnonzero(np.abs(problem.dense_rows()[:, 0, ball]).any(axis=1))
    assert len(touching) == 1
    assert not rows[touching, :, :16].any()
    hips = np.flatnonzero(problem.segments[:, 0] >= 22)
    assert len(hips) == 2
    assert all(np.count_nonzero(rows[i, 1]) < np.count_nonzero(whitened(problem, False)[0].rows[i, 1]) for i in hips)


def test_loops_over_two_trees_are_projected():
    problem = problem_of('<connect body1="end2" body2="ball" anchor="0 0 0.3"/>')
    white, _, _ = whitened(problem, True)
    assert white.following.used[0] == 0


def test_a_step_is_certified_and_holds_its_loops():
    scene = st.Scene.from_xml(WALKER.format(more=""))
    data = scene.data()
    for _ in range(200):
        report = st.step(scene.model, data)
        assert report.ok
        assert report.certificate.residual <= 1e-8
    assert np.abs(data.efc_pos[: data.ne]).max() <= 1e-5
