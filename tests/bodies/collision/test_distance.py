"""True distances, against ones known by hand."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.bodies.collision.distance import nearest
from stiction.optional import mujoco

SCENE = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <geom name="one" size="0.1" pos="0 0 1"/><geom name="two" size="0.2" pos="0 {y} 1"/>
</worldbody></mujoco>"""


def between(y: float, one: int = 1, two: int = 2, reach: float = 1.0):
    scene = st.Scene.from_xml(SCENE.format(y=y))
    data = scene.data()
    mujoco().mj_kinematics(scene.model, data)
    return nearest(scene.model, data, one, two, reach)


def test_spheres():
    distance, direction = between(0.5)
    assert distance == pytest.approx(0.2)
    np.testing.assert_allclose(direction, [0.0, 1.0, 0.0], atol=1e-9)


def test_overlapping_spheres_keep_their_direction():
    distance, direction = between(0.25)
    assert distance == pytest.approx(-0.05)
    np.testing.assert_allclose(direction, [0.0, 1.0, 0.0], atol=1e-6)


def test_what_touches_has_no_direction_and_what_is_far_no_distance():
    distance, direction = between(0.3)
    assert distance == pytest.approx(0.0, abs=1e-9)
    assert direction is None
    assert between(3.0, reach=0.5)[1] is None


def test_planes_are_not_asked():
    assert between(0.5, one=0) is None
