"""From where a scene is looked at first."""

from __future__ import annotations

from math import cos, radians, sin
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

AZIMUTH, ELEVATION = 110.0, -20.0  # degrees, as MuJoCo counts them: a little from the side, a little from above
DISTANCE = 2.0  # over the extent of the scene


class Camera(NamedTuple):
    """A point to look at, and from where: distance in m, angles in degrees."""

    centre: NDArray[np.float64]
    distance: float
    azimuth: float
    elevation: float

    @property
    def position(self) -> NDArray[np.float64]:
        turn, tilt = radians(self.azimuth), radians(self.elevation)
        along = np.array([cos(tilt) * cos(turn), cos(tilt) * sin(turn), sin(tilt)])
        return np.asarray(self.centre - self.distance * along)


def first_camera(model: Any) -> Camera:
    """The whole scene in view."""
    return Camera(np.array(model.stat.center), DISTANCE * float(model.stat.extent), AZIMUTH, ELEVATION)
