"""From where a scene is looked at: what moves fills the picture, and is followed when it walks away."""

from __future__ import annotations

from math import cos, radians, sin, tan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

AZIMUTH, ELEVATION = 112.0, -17.0  # degrees, as MuJoCo counts them: a little from the side, a little from above
FOV = 45.0  # degrees, from the bottom of the picture to its top
FILL = 0.72  # of the picture, at most, across what moves
AROUND = 0.12  # of the size of what moves: the margin around it in which fixed geoms count as part of the picture
LEASH = 0.10  # of the distance: what moves may leave the middle by so much before the camera follows
ZOOM = 1.8  # times the first distance, at most


class Camera(NamedTuple):
    """A point to look at, and from where: distance in m, angles in degrees."""

    centre: NDArray[np.float64]
    distance: float
    azimuth: float
    elevation: float

    @property
    def position(self) -> NDArray[np.float64]:
        return np.asarray(self.centre - self.distance * axes_of(self.azimuth, self.elevation)[2])


class Box(NamedTuple):
    """Corners of a box along the world's axes."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.high - self.low))

    @property
    def corners(self) -> NDArray[np.float64]:
        return np.array([[(self.low, self.high)[(k >> axis) & 1][axis] for axis in range(3)] for k in range(8)])


def axes_of(azimuth: float, elevation: float) -> NDArray[np.float64]:
    """Rows: to the right of the picture, up in it, and into it."""
    turn, tilt = radians(azimuth), radians(elevation)
    ahead = np.array([cos(tilt) * cos(turn), cos(tilt) * sin(turn), sin(tilt)])
    right = np.array([sin(turn), -cos(turn), 0.0])
    return np.array([right, np.cross(right, ahead), ahead])


def boxes(model: Any, data: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Low and high corners of every geom that is seen and has a size, and its body if that moves, else -1."""
    mj = mujoco()
    seen = (
        (np.asarray(model.geom_type) != mj.mjtGeom.mjGEOM_PLANE)
        & (np.asarray(model.geom_type) != mj.mjtGeom.mjGEOM_HFIELD)
        & (np.asarray(model.geom_group) < 3)
        & (np.asarray(model.geom_rgba)[:, 3] > 0.0)
    )
    chosen = np.flatnonzero(seen)
    turns = np.array(data.geom_xmat).reshape(-1, 3, 3)[chosen]
    local = np.array(model.geom_aabb).reshape(-1, 6)[chosen]
    middle = np.array(data.geom_xpos)[chosen] + np.einsum("gij,gj->gi", turns, local[:, :3])
    half = np.einsum("gij,gj->gi", np.abs(turns), local[:, 3:])
    body = np.asarray(model.geom_bodyid)[chosen]
    return middle - half, middle + half, np.where(np.asarray(model.body_weldid)[body] != 0, body, -1)


def subject(model: Any, data: Any) -> list[Box]:
    """The subject of the picture: all that moves, and fixed geoms close by."""
    low, high, body = boxes(model, data)
    moving = body >= 0
    if not moving.any():
        moving = np.ones(len(low), bool)
    if not len(low):
        half = np.full(3, 0.5 * float(model.stat.extent))
        return [Box(np.array(model.stat.center) - half, np.array(model.stat.center) + half)]
    whole = Box(low[moving].min(axis=0), high[moving].max(axis=0))
    reach = AROUND * whole.size
    found = [Box(a, b) for a, b in zip(low[moving], high[moving], strict=True)]
    for a, b in zip(low[~moving], high[~moving], strict=True):
        near = Box(np.maximum(a, whole.low - reach), np.minimum(b, whole.high + reach))
        if (near.low <= near.high).all():
            found.append(near)
    return found


def first_camera(
    model: Any, data: Any = None, aspect: float = 16.0 / 9.0, angles: tuple[float, float] = (AZIMUTH, ELEVATION)
) -> Camera:
    """A view of all that moves, as large as fits into a picture that is so many times as wide as high."""
    if data is None:
        data = mujoco().MjData(model)
        mujoco().mj_kinematics(model, data)
    points = np.concatenate([box.corners for box in subject(model, data)])
    axes = axes_of(*angles)
    up = tan(0.5 * radians(FOV)) * FILL
    across = aspect * up
    # Looking at the middle of what is seen, step back until nothing sticks out; twice, since what is near looks larger.
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    distance = 1.0
    for _ in range(4):
        x, y, z = axes @ (points - centre).T
        distance = float(max((np.abs(x) / across - z).max(), (np.abs(y) / up - z).max(), 1e-6))
        seen_x, seen_y = x / (distance + z), y / (distance + z)
        centre = centre + 0.5 * distance * (
            (seen_x.max() + seen_x.min()) * axes[0] + (seen_y.max() + seen_y.min()) * axes[1]
        )
    return Camera(centre, distance, *angles)


class Follower:
    """A camera on a leash: it moves when the moving bodies have left the middle, and steps back when they spread.

    Bodies that fly too far apart for one picture are no longer followed, the farthest from the middle first: between
    them there would be nothing to see.
    """

    def __init__(
        self, model: Any, data: Any, aspect: float = 16.0 / 9.0, angles: tuple[float, float] = (AZIMUTH, ELEVATION)
    ) -> None:
        self.model, self.camera = model, first_camera(model, data, aspect, angles)
        self.first = self.camera
        self._tree = np.asarray(model.body_rootid)
        self._mass = np.where(np.asarray(model.body_weldid) != 0, np.asarray(model.body_mass), 0.0)
        self._start = np.array(data.xipos)
        everything = np.unique(self._tree[self._mass > 0.0])
        self._trees, self._spread = everything, self.spread(data, everything)

    def middle(self, places: NDArray[np.float64], trees: NDArray[np.int64]) -> NDArray[np.float64]:
        """Where the mass of these is, when bodies are at these places."""
        mass = np.where(np.isin(self._tree, trees), self._mass, 0.0)
        total = float(mass.sum())
        return np.asarray(mass @ places / total) if total > 0.0 else np.zeros(3)

    def spread(self, data: Any, trees: NDArray[np.int64]) -> float:
        """From one end of these to the other, in m."""
        low, high, body = boxes(self.model, data)
        own = (body >= 0) & np.isin(self._tree[np.maximum(body, 0)], trees)
        if not own.any():
            return 1.0
        return max(Box(low[own].min(axis=0), high[own].max(axis=0)).size, 1e-12)

    def together(self, data: Any) -> NDArray[np.int64]:
        """Kinematic trees that fit into one picture."""
        trees, places = self._trees, np.array(data.xipos)
        while len(trees) > 1 and self.spread(data, trees) > ZOOM * self._spread:
            middle = self.middle(places, trees)
            away = [np.linalg.norm(self.middle(places, np.array([tree])) - middle) for tree in trees]
            trees = np.delete(trees, int(np.argmax(away)))
        return trees

    def look(self, data: Any) -> Camera:
        """The camera for this state."""
        trees = self.together(data)
        places = np.array(data.xipos)
        aim = self.first.centre + self.middle(places, trees) - self.middle(self._start, trees)
        away = aim - self.camera.centre
        length, leash = float(np.linalg.norm(away)), LEASH * self.first.distance
        centre = self.camera.centre
        if np.isfinite(length) and length > leash:
            centre = centre + (1.0 - leash / length) * away
        grown = self.spread(data, trees) / self._spread
        back = min(max(grown, self.camera.distance / self.first.distance), ZOOM) if np.isfinite(grown) else 1.0
        self.camera = self.first._replace(centre=centre, distance=self.first.distance * back)
        return self.camera
