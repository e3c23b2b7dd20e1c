"""Contacts compared with the true distance of their geoms (`mj_geomDistance`), and corrected.

A heap asks for dozens of distances in a step: one kernel calls MuJoCo's function by its address. Where there is none,
or little memory is left, so that MuJoCo might end the process, the kernel calls its Python bindings, which raise.
"""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.bodies.foreign import addresses_in_mujoco, call_distance
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import DIST, EXCLUDE, FRAME, GEOM, POS, SIZE
from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.structs import Memory

mj = mujoco()

EXACTLY_PARALLEL = 1e-12  # squared sine of an angle that counts as zero
FARTHER = 1e-6  # of the smaller radius: a larger error of the distance is corrected
ALIGNED = 0.999  # cosine: normals at a smaller angle belong to the same patch
TURNED = 5e-7  # one minus cosine: a normal that errs by a larger angle is corrected
APART = 1e-3  # of the smaller radius: separation at which the direction is well defined
TRIES = 4  # iterations to find it
ROOM = 1 << 22  # bytes of the arena that must be free for calls by address
FORM = ctypes.CFUNCTYPE(
    ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_double,
    ctypes.POINTER(ctypes.c_double),
)  # fmt: skip


def check_pairs(model: Any, data: Any, memory: Memory, plan: NDArray[np.int64], found: NDArray[np.float64]) -> None:
    """Compare the contacts of doubtful pairs of the plan (`mend.replacements`) with the truth; found: (9,) scratch."""
    known = addresses_in_mujoco("mj_geomDistance")
    if known is not None and data.narena - data.maxuse_arena > ROOM:
        check_all(known[0], model._address, data._address, memory.model, memory.data, memory.where, plan, found)
        return
    failures: list[Exception] = []

    def ask(_: Any, __: Any, one: int, two: int, most: float, ends: Any) -> float:
        try:
            return float(mj.mj_geomDistance(model, data, one, two, most, np.ctypeslib.as_array(ends, (6,))))
        except Exception as error:
            failures.append(error)
            return most

    call = FORM(ask)
    address = ctypes.cast(call, ctypes.c_void_p).value
    check_all(address, model._address, data._address, memory.model, memory.data, memory.where, plan, found)
    if failures:
        raise failures[0]


@kernel
def check_all(address, own_model, own_data, model, data, where, plan, found):
    """Compare all; address: of the function, own_model, own_data: addresses of its arguments."""
    radius = floats(model[0].geom_rbound)
    for k in range(len(plan)):
        if plan[k, 4] != 0:
            geoms = ints(data[0].contact + plan[k, 0] * where[SIZE] + where[GEOM])
            smaller = min(radius[geoms[0]], radius[geoms[1]])
            check(address, own_model, own_data, data, where, geoms[0], geoms[1], plan[k, 0], plan[k, 1], smaller, found)


@kernel
def check(address, own_model, own_data, data, where, one, two, first, end, radius, found):
    """Compare the contacts of a pair with its true distance and correct them."""
    contact, size = data[0].contact, where[SIZE]

    # The nearest of them, and the truth.
    place, nearest = first, floats(contact + first * size + where[DIST])[0]
    for c in range(first + 1, end):
        gap = floats(contact + c * size + where[DIST])[0]
        if gap < nearest:
            place, nearest = c, gap
    here = contact + place * size
    frame, pos = floats(here + where[FRAME]), floats(here + where[POS])
    true, same = distance(address, own_model, own_data, data, one, two, nearest, frame, radius, found)
    if abs(true - nearest) <= FARTHER * radius and same >= 1.0 - TURNED:
        return

    # Contacts of a patch facing the same way are right; those of another patch are wrong altogether.
    x, y, z = found[6], found[7], found[8]
    for c in range(first, end):
        other, dist = floats(contact + c * size + where[FRAME]), floats(contact + c * size + where[DIST])
        if other[0] * x + other[1] * y + other[2] * z < ALIGNED:
            ints(contact + c * size + where[EXCLUDE])[0] |= 1
        dist[0] = max(dist[0], true)
    floats(here + where[DIST])[0] = true
    ints(here + where[EXCLUDE])[0] = 0
    for a in range(3):
        pos[a] = found[a]
    set_frame(x, y, z, frame)


@kernel
def distance(address, own_model, own_data, data, one, two, gap, normal, radius, found):
    """Distance of two geoms, and the cosine between its direction and the normal, which is taken if the search fails.

    Touching geoms have no well defined direction: the second geom is moved away along the normal, and the direction
    found there is iterated until it agrees with the direction of the move.

    found: receives the midpoint of the nearest points, in its first numbers, and the direction, in its last
    """
    # Begin with the normal that is to be confirmed.
    place = floats(data[0].geom_xpos + 24 * two)
    x, y, z = place[0], place[1], place[2]
    away = APART * radius - min(gap, 0.0)
    nx, ny, nz, true = normal[0], normal[1], normal[2], gap
    mx, my, mz = x, y, z
    for _ in range(TRIES):
        # The direction between the nearest points, with the second geom moved away.
        place[0], place[1], place[2] = x + away * nx, y + away * ny, z + away * nz
        apart = call_distance(address, own_model, own_data, one, two, away + gap + radius, found.ctypes.data)
        if not 0.1 * APART * radius < apart < away + gap + radius:
            break
        dx, dy, dz = (found[3] - found[0]) / apart, (found[4] - found[1]) / apart, (found[5] - found[2]) / apart

        # The distance without the move, and the point halfway.
        along = dx * nx + dy * ny + dz * nz
        true, nx, ny, nz = apart - away * along, dx, dy, dz
        half = 0.5 * true
        mx, my, mz = found[0] + half * dx, found[1] + half * dy, found[2] + half * dz
        if along > 1.0 - EXACTLY_PARALLEL:
            break

    # The geom goes back to its place.
    place[0], place[1], place[2] = x, y, z
    found[0], found[1], found[2] = mx, my, mz
    found[6], found[7], found[8] = nx, ny, nz
    return true, nx * normal[0] + ny * normal[1] + nz * normal[2]


@kernel
def set_frame(x, y, z, frame):
    """Write a normal and two tangents; the first tangent is chosen as in MuJoCo's own frames."""
    b = 1 if abs(y) < 0.5 else 2  # an axis across the normal

    # First tangent: that axis, orthogonal to the normal. The second one completes a right-handed frame.
    frame[0], frame[1], frame[2] = x, y, z
    along = frame[b]
    length = math.sqrt(1.0 - along * along)
    for a in range(3):
        frame[3 + a] = ((1.0 if a == b else 0.0) - along * frame[a]) / length
    frame[6] = frame[1] * frame[5] - frame[2] * frame[4]
    frame[7] = frame[2] * frame[3] - frame[0] * frame[5]
    frame[8] = frame[0] * frame[4] - frame[1] * frame[3]
