"""Friction cones over a picture: projected and laid on it, so that no body hides them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.optional import pillow
from stiction.solutions.contact import Mode
from stiction.viewer.forces import LOOKS
from stiction.viewer.shine import CONE_OPACITY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.viewer.forces import Cones

HEIGHT = 0.8  # of a cone, over the longest arrow
EDGE, RIM = 0.9, 0.7  # weights of the line around its open end, and of the pale one below it
WHITE = (255, 255, 255)
FINER = 2  # times the pixels of a picture, in which edges are drawn


class Projection(NamedTuple):
    """From points of the world to pixels of a picture, x to the right and y down.

    axes: (3, 3) right, up and ahead
    reach: half the width and height of what is seen, at the distance of one
    middle: the centre of the picture, from the axis, at the same distance
    """

    position: NDArray[np.float64]
    axes: NDArray[np.float64]
    reach: NDArray[np.float64]
    middle: NDArray[np.float64]
    width: int
    height: int

    @classmethod
    def of(cls, scene: Any, width: int, height: int) -> Projection:
        """The camera of an updated mjvScene: the mean of its two eyes, as MuJoCo draws it."""
        eyes = scene.camera[:2]
        position, ahead, up = (
            np.mean([np.array(getattr(eye, name)) for eye in eyes], axis=0) for name in ("pos", "forward", "up")
        )
        near, top, bottom, centre, wide = (
            float(np.mean([getattr(eye, f"frustum_{name}") for eye in eyes]))
            for name in ("near", "top", "bottom", "center", "width")
        )
        half = 0.5 * (top - bottom)
        reach = np.array([wide if wide > 0.0 else half * width / height, half]) / near
        middle = np.array([centre, 0.5 * (top + bottom)]) / near
        return cls(position, np.stack([np.cross(ahead, up), up, ahead]), reach, middle, width, height)

    def pixels(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(..., 2) of points (..., 3); NaN for those that are not in front."""
        seen = (points - self.position) @ self.axes.T
        away = np.where(seen[..., 2:] > 0.0, seen[..., 2:], np.nan)
        x, y = np.moveaxis((seen[..., :2] / away - self.middle) / self.reach, -1, 0)
        return np.stack([0.5 * self.width * (1.0 + x), 0.5 * self.height * (1.0 - y)], axis=-1)


def rims(cones: Cones, around: int, turn: float, radius: float) -> NDArray[np.float64]:
    """(n, around, 3) points of the open ends, from the corners of a cone of size one."""
    from scipy.spatial.transform import Rotation

    angle = turn + 2.0 * np.pi * np.arange(around) / around
    corners = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.ones(around)])
    turns = Rotation.from_quat(cones.quaternion, scalar_first=True).as_matrix()
    return np.asarray(cones.apex[:, None] + np.einsum("nij,naj->nai", turns, cones.size[:, None] * corners))


def draw(
    picture: NDArray[np.uint8], projection: Projection, cones: Cones, shape: tuple[int, float, float]
) -> NDArray[np.uint8]:
    """Each mode in its colour: cones that overlap make one patch, and lines around their open ends separate them.

    shape: corners of a cone of size one, as `forces.outline` has them
    """
    if not len(cones.apex):
        return picture
    drawing = pillow().ImageDraw
    size = FINER * projection.width, FINER * projection.height
    apex = FINER * projection.pixels(cones.apex)
    open_end = FINER * projection.pixels(rims(cones, *shape))
    shown = np.isfinite(apex).all(axis=1) & np.isfinite(open_end).all(axis=(1, 2))
    made = picture.astype(float)
    for mode, look in LOOKS.items():
        own = np.flatnonzero(shown & ((cones.mode >= Mode.SLIDE) == (mode == Mode.SLIDE)))
        if not own.size:
            continue
        patch, rim, line = (pillow().Image.new("L", size) for _ in range(3))
        fill = drawing.Draw(patch)
        thin = max(FINER, round(FINER * projection.height / 360))
        for i in own:
            end = [tuple(point) for point in open_end[i]]
            fill.polygon(end, 255)
            for one, two in zip(end, [*end[1:], end[0]], strict=True):
                fill.polygon([tuple(apex[i]), one, two], 255)
            for mask, wide in ((rim, 3 * thin), (line, thin)):
                drawing.Draw(mask).line([*end, end[0]], 255, width=wide)
        for mask, weight, colour in ((patch, CONE_OPACITY, look.colour), (rim, RIM, WHITE), (line, EDGE, look.colour)):
            smooth = np.asarray(mask.reduce(FINER), float)
            made += (weight / 255.0) * smooth[:, :, None] * (np.array(colour, float) - made)
    return np.asarray(np.clip(np.round(made), 0, 255), np.uint8)
