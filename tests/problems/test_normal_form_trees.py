"""The normal form of kinematic trees: rows keep to the velocities that move a contact, and say the same."""

import numpy as np
import pytest

import stiction as st
from stiction.problems.contact import densified
from stiction.problems.mass_factor import factor_blocks
from stiction.stepping.engine import Engine
from stiction.stepping.pose import pose

# Two legs on a trunk: root, then one leg after the other.
WALKER = """
<mujoco><worldbody>
  <geom type="plane" size="2 2 1"/>
  <body pos="0 0 0.62"><freejoint/><geom type="sphere" size="0.1" mass="3"/>
    <body pos="0 0.2 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="1"/>
      <body pos="0 0 -0.3"><joint axis="0 1 0" damping="0.3"/>
        <geom type="capsule" fromto="0 0 0 0.1 0 -0.3" size="0.02" mass="1"/></body></body>
    <body pos="0 -0.2 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="1"/>
      <body pos="0 0 -0.3"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.1 0 -0.3" size="0.02" mass="1"/></body></body>
  </body>
</worldbody></mujoco>
"""


@pytest.fixture(scope="module")
def problem():
    scene = st.Scene.from_xml(WALKER)
    engine = Engine(scene, scene.data())
    engine.data.qvel[:] = np.linspace(-1.0, 1.0, scene.model.nv)
    engine.look()
    found = pose(engine.gather(), st.Coulomb(), scene.model.opt.timestep, 0.1)
    assert found.n == 2
    return found


def test_rows_touch_the_root_and_their_own_leg(problem):
    white = problem.whitened
    touched = np.abs(densified(white.rows, white.segments, problem.m)).max(axis=1) > 0.0
    assert np.flatnonzero(touched[0]).tolist() == [*range(6), 6, 7]
    assert np.flatnonzero(touched[1]).tolist() == [*range(6), 8, 9]


def test_whitened_rows_give_the_delassus_matrix(problem):
    white, (mass, m) = problem.whitened, (problem.mass.reshape(10, 10), problem.m)
    rows = densified(problem.rows, problem.segments, m).reshape(6, m)
    whitened = densified(white.rows, white.segments, m).reshape(6, m) / np.repeat(white.scale, 3)[:, None]
    np.testing.assert_allclose(whitened @ whitened.T, rows @ np.linalg.solve(mass, rows.T), rtol=1e-10, atol=1e-12)
    # And the free velocity is felt alike.
    np.testing.assert_allclose(whitened @ (white.tau * white.free), rows @ problem.velocity, rtol=1e-10, atol=1e-12)


def test_impulses_move_it_as_the_mass_matrix_says(problem):
    impulse = np.array([[1.0, 0.2, -0.1], [0.5, -0.3, 0.4]])
    rows = densified(problem.rows, problem.segments, problem.m).reshape(6, problem.m)
    wanted = problem.velocity + np.linalg.solve(problem.mass.reshape(10, 10), rows.T @ impulse.ravel())
    np.testing.assert_allclose(problem.respond(impulse)[0], wanted, rtol=1e-10, atol=1e-12)


def test_the_judge_feels_momentum_that_is_lost(problem):
    solution = st.solve(problem)
    assert solution.ok
    wrong = solution._replace(velocity=solution.velocity + 1e-3 * np.eye(problem.m)[7])
    assert st.certify(problem, wrong).momentum > 1e-5


@pytest.mark.parametrize("empty", ["last", "first", "between", "all"])
def test_a_tree_without_velocities_has_no_place(empty):
    """Guard words behind the array stay as they are, compiled or not."""
    sizes = {"last": [6, 0], "first": [0, 6], "between": [2, 0, 0, 4], "all": [0, 0]}[empty]
    trees = np.concatenate([[0], np.cumsum(sizes)])
    m = int(trees[-1])
    guarded = np.full(m + 2, -7)
    mass, factor = np.concatenate([np.eye(size).ravel() for size in sizes]), np.empty(int(np.square(sizes).sum()))
    assert factor_blocks(mass, trees, factor, guarded[:m]) == -1
    assert guarded[m:].tolist() == [-7, -7]
    starts = np.cumsum([0, *np.square(sizes)])[:-1]
    held = np.array(sizes) > 0
    assert guarded[trees[:-1][held]].tolist() == starts[held].tolist()


@pytest.mark.parametrize("masses", [(6, 6, 0), (0, 6, 6), (6, 0, 6)])
def test_touching_a_tree_without_velocities_is_touching_the_world(masses):
    """Also when it is named first, and when the bodies are islands."""
    empty = masses.index(0)
    one, other = (b for b in range(3) if b != empty)
    blocks = [np.eye(size) for size in masses]
    velocity = np.array([0.1, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, -0.2, -2.0, 0.0, 0.0, 0.0])
    normal, tangent = [np.eye(6)[2]] * 2, [np.eye(6)[:2]] * 2

    def solved(*pairs):
        problem = st.ContactProblem.from_trees(blocks, velocity, pairs, normal, tangent, 0.5)
        return st.solve(problem)

    expected = solved((one, -1), (other, -1))
    for pairs in (((empty, one), (other, -1)), ((one, empty), (empty, other)), ((empty, other), (one, -1))):
        found = solved(*pairs)
        assert found.certificate.residual < 1e-12
        assert found.velocity == pytest.approx(expected.velocity, abs=1e-12)
        assert found.velocity == pytest.approx(np.zeros(12), abs=1e-12)
