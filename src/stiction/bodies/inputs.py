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
def first_outside(values, count, least, most):
    """Return the first index whose value is NaN or not from `least` to `most`, -1 if there is none."""
    for i in range(count):
        if not least <= values[i] <= most:
            return i
    return -1


@kernel
def unfit_in(unfit, field, values, count, least, most):
    """Return `unfit` if it is a code already, else the code of the first value outside these bounds, or FIT."""
    i = first_outside(values, count, least, most) if unfit == FIT else -1
    return code(field, i) if i >= 0 else unfit


@kernel
def first_unfit(model, data):
    """Return the code of the first bad number among the inputs of a step, FIT if there is none."""
    m, d = model[0], data[0]
    # The state and the controls must lie within MuJoCo's own bounds.
    unfit = unfit_in(FIT, QPOS, floats(d.qpos), m.nq, -MAXVAL, MAXVAL)
    unfit = unfit_in(unfit, QVEL, floats(d.qvel), m.nv, -MAXVAL, MAXVAL)
    unfit = unfit_in(unfit, ACT, floats(d.act), m.na, -MAXVAL, MAXVAL)
    unfit = unfit_in(unfit, CTRL, floats(d.ctrl), m.nu, -MAXVAL, MAXVAL)
    if unfit == FIT and not abs(d.time) <= FINITE:
        return code(TIME, 0)

    # External forces and mocap poses need only be finite.
    unfit = unfit_in(unfit, QFRC_APPLIED, floats(d.qfrc_applied), m.nv, -FINITE, FINITE)
    unfit = unfit_in(unfit, XFRC_APPLIED, floats(d.xfrc_applied), 6 * m.nbody, -FINITE, FINITE)
    unfit = unfit_in(unfit, MOCAP_POS, floats(d.mocap_pos), 3 * m.nmocap, -FINITE, FINITE)
    unfit = unfit_in(unfit, MOCAP_QUAT, floats(d.mocap_quat), 4 * m.nmocap, -FINITE, FINITE)

    # The user may have edited these in the model since the last step: masses and inertias must not be negative.
    if unfit == FIT and not 0.0 < m.timestep <= FINITE:
        return code(TIMESTEP, 0)
    unfit = unfit_in(unfit, GRAVITY, m.gravity, 3, -FINITE, FINITE)
    unfit = unfit_in(unfit, BODY_MASS, floats(m.body_mass), m.nbody, 0.0, FINITE)
    return unfit_in(unfit, BODY_INERTIA, floats(m.body_inertia), 3 * m.nbody, 0.0, FINITE)
