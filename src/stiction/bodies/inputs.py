"""Check that all inputs of a step are finite numbers, within MuJoCo's bounds for a state.

Where a number is bad, MuJoCo resets the state or sets controls to zero. Here the step is refused before anything has
moved, and the message names the field and the index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import floats

MAXVAL = 1e10  # mjMAXVAL: a position, velocity, activation or control beyond it is bad
FINITE = 1.7976931348623157e308  # the largest number that is finite
FIT = -1

COUNT = 14
FIELDS = (
    "data.time", "data.qpos", "data.qvel", "data.act", "data.ctrl", "data.qfrc_applied", "data.xfrc_applied",
    "data.mocap_pos", "data.mocap_quat", "model.opt.timestep", "model.opt.gravity", "model.body_mass",
    "model.body_inertia", "model.geom_size",
)  # fmt: skip
(
    TIME, QPOS, QVEL, ACT, CTRL, QFRC_APPLIED, XFRC_APPLIED, MOCAP_POS, MOCAP_QUAT, TIMESTEP, GRAVITY, BODY_MASS,
    BODY_INERTIA, GEOM_SIZE,
) = range(COUNT)  # fmt: skip
RULES = dict.fromkeys((QPOS, QVEL, ACT, CTRL), f"a number of at most {MAXVAL:g}") | {
    TIMESTEP: "a time above zero, in s",
    BODY_MASS: "a number that is not negative",
    BODY_INERTIA: "a number that is not negative",
}


@kernel
def code(field, index):
    """Encode a field and an index into it as one integer; `message` decodes it."""
    return COUNT * index + field


def message(unfit: int, model: Any, data: Any) -> str:
    """The message for a code from `first_unfit`: the field, its value and the rule that it breaks."""
    index, field = divmod(int(unfit), COUNT)
    owner, _, rest = FIELDS[field].partition(".")
    values: Any = model if owner == "model" else data
    for part in rest.split("."):
        values = getattr(values, part)
    values = np.asarray(values)
    place = tuple(int(i) for i in np.unravel_index(index, values.shape))
    at = f"[{', '.join(str(i) for i in place)}]" if place else ""
    rule = RULES.get(field, "a finite number")
    return f"step: {FIELDS[field]}{at} = {values[place]} must be {rule}; set it before the step (nothing has moved)"


@kernel
def first_beyond(values, count, most):
    """Return the first index whose value is NaN or larger in magnitude than `most`, -1 if there is none."""
    for i in range(count):
        if not abs(values[i]) <= most:
            return i
    return -1


@kernel
def first_negative(values, count):
    """Return the first index whose value is negative or not finite, -1 if there is none."""
    for i in range(count):
        if not 0.0 <= values[i] <= FINITE:
            return i
    return -1


@kernel
def first_unfit(model, data):
    """Return the code of the first bad number among the inputs of a step, FIT if there is none."""
    m, d = model[0], data[0]
    # The state and the controls must lie within MuJoCo's own bounds.
    i = first_beyond(floats(d.qpos), m.nq, MAXVAL)
    if i >= 0:
        return code(QPOS, i)
    i = first_beyond(floats(d.qvel), m.nv, MAXVAL)
    if i >= 0:
        return code(QVEL, i)
    i = first_beyond(floats(d.act), m.na, MAXVAL)
    if i >= 0:
        return code(ACT, i)
    i = first_beyond(floats(d.ctrl), m.nu, MAXVAL)
    if i >= 0:
        return code(CTRL, i)
    if not abs(d.time) <= FINITE:
        return code(TIME, 0)
    # External forces and mocap poses need only be finite.
    i = first_beyond(floats(d.qfrc_applied), m.nv, FINITE)
    if i >= 0:
        return code(QFRC_APPLIED, i)
    i = first_beyond(floats(d.xfrc_applied), 6 * m.nbody, FINITE)
    if i >= 0:
        return code(XFRC_APPLIED, i)
    i = first_beyond(floats(d.mocap_pos), 3 * m.nmocap, FINITE)
    if i >= 0:
        return code(MOCAP_POS, i)
    i = first_beyond(floats(d.mocap_quat), 4 * m.nmocap, FINITE)
    if i >= 0:
        return code(MOCAP_QUAT, i)
    # The user may have edited these in the model since the last step.
    if not 0.0 < m.timestep <= FINITE:
        return code(TIMESTEP, 0)

    # Gravity finite, masses and inertias also nonnegative.
    for i in range(3):
        if not abs(m.gravity[i]) <= FINITE:
            return code(GRAVITY, i)
    i = first_negative(floats(m.body_mass), m.nbody)
    if i >= 0:
        return code(BODY_MASS, i)
    i = first_negative(floats(m.body_inertia), 3 * m.nbody)
    if i >= 0:
        return code(BODY_INERTIA, i)
    return FIT
