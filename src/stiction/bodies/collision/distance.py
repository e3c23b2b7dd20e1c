"""How far two geoms truly are from each other, to judge the contacts that a collision search reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.structs import HFIELD, PLANE
from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

mj = mujoco()

SURE = 1e-7  # m: distance below which its direction is not


def nearest(model: Any, data: Any, one: int, two: int, reach: float) -> tuple[float, NDArray[np.float64] | None] | None:
    """Distance and direction of the nearest points of two convex geoms; None where there is no such function.

    direction: from geom one to geom two, None if they are too close to tell
    reach: farther than this is not looked for
    """
    if model.geom_type[one] in (PLANE, HFIELD) or model.geom_type[two] in (PLANE, HFIELD):
        return None
    ends = np.zeros(6)
    distance = float(mj.mj_geomDistance(model, data, one, two, reach, ends))
    if abs(distance) < SURE or distance >= reach:
        return distance, None
    return distance, (ends[3:] - ends[:3]) / distance
