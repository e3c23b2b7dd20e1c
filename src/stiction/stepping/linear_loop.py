"""MuJoCo's stages beside the present state, for `linearize`, in one compiled call.

The loop calls MuJoCo's C functions by their addresses, as `stepping.loop` does, and only those that an entry enters:
controls change actuators, velocities the forces that depend on them, positions everything. Beside each position the
constraints are gathered, and what enters the derivatives of the contact problem follows at once, at the velocities v
and impulses p, p_j of the answer:

    momentum     M (v_free - v) + Lᵀ p + Jᵀ p_j
    rates        L v + gap_rate n,      J v + joint_rate

Their differences are what changes of the state do to the problem (`derivatives.ground`): no row and no mass leaves the
loop. A column beside which other contacts appear, or contacts jump, is left to Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from stiction.arrays.compiled import is_compiled, kernel, without_lock
from stiction.arrays.runs import add_row, row_dot, same_runs
from stiction.bodies.foreign import addresses_in_mujoco, call_c
from stiction.bodies.pointers import floats as numbers_at
from stiction.bodies.shadow import callbacks
from stiction.contacts.gather import COUNTS, fill, measure
from stiction.optional import mujoco
from stiction.stepping.one_call import ROOM
from stiction.stepping.pose import set_joints, set_rates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.dynamics import Damping
    from stiction.contacts.gather import Constraints
    from stiction.solutions.contact import ContactSolution
    from stiction.stepping.engine import Engine

    Array = NDArray[np.float64]

mj = mujoco()
FUNCTIONS = ("mj_fwdPosition", "mj_fwdVelocity", "mj_fwdActuation", "mj_fwdAcceleration")
POSITION, VELOCITY, ACTUATION, ACCELERATION = range(4)
SHADOW, DATA, ACTS = range(3)
FREE, BALL = int(mj.mjtJoint.mjJNT_FREE), int(mj.mjtJoint.mjJNT_BALL)
JUMP = 0.1  # difference of both one-sided differences of a contact's rows, over the larger one, that is a jump
SUDDEN = 1e-2  # change of a row, of unit size, within one difference, that is none of a smooth motion
MORE = 64  # contacts beside the present state that there is room for, beyond twice as many
_places: WeakKeyDictionary[Engine, NDArray[np.int64]] = WeakKeyDictionary()


class Differenced(NamedTuple):
    """The results of the loop, a row for each entry of state and control."""

    momentum: Array  # (columns, m)
    velocity: Array  # (columns, n, d) at contacts
    rate: Array  # (columns, j) of joints
    slow: NDArray[np.int64]  # (columns,) 1 where Python has to look


class Side(NamedTuple):
    """Results beside the present state, on one side."""

    momentum: Any  # (m,)
    velocity: Any  # (n, d)
    rate: Any  # (j,)
    rows: Any  # (n, d, width)


class Posing(NamedTuple):
    """How a step is posed, and its answer."""

    dt: float
    recovery: float
    joint_recovery: float
    velocity: Any  # (m,)
    impulse: Any  # (n, d)
    joint_impulse: Any  # (j,)


class Memory(NamedTuple):
    """Room for the constraints beside the present ones."""

    kept: Any
    counts: Any
    now: Any  # counts of the present ones
    scratch: Any
    gap_rate: Any
    joints: Any
    joint_rate: Any
    present: Any  # (2, nv) smooth forces and those of actuators at the present state
    places: Any  # as `places_of` has them
    start: Any  # (nq,) positions at the present state


def can_difference(engine: Engine, anew: bool) -> bool:
    """Whether the stages of this engine can be differenced without Python in between."""
    model = engine.model
    return bool(
        is_compiled() and engine.mended is None and not anew and not model.na and not model.nplugin
        and not callbacks() and engine.scene.control is None and addresses_in_mujoco(*FUNCTIONS) is not None
        and has_room(engine.data)
    )  # fmt: skip


def has_room(data: Any) -> bool:
    """Whether half of MuJoCo's arena is free, so that its functions cannot meet their one error (`stepping.loop`)."""
    used = int(data.maxuse_arena)
    return 2 * used <= int(data.narena) and int(data.narena) - used >= ROOM


def difference(
    engine: Engine, found: Constraints, room: Constraints, counts: NDArray[np.int64], scratch: Damping,
    solution: ContactSolution, eps: float, sides: int, dt: float, recovery: float, joint_recovery: float,
) -> Differenced:  # fmt: skip
    """All columns; the engine is at the present state."""
    model, data = engine.model, engine.data
    engine.refresh()  # a step that was made has left its forces there, and its margins behind
    (n, d), m, j = found.rows.shape[:2], len(found.free), len(found.joint_gap)
    columns = 2 * model.nv + model.nu
    out = Differenced(
        np.zeros((columns, m)), np.zeros((columns, n, d)), np.zeros((columns, j)), np.zeros(columns, np.int64)
    )
    if engine not in _places:
        _places[engine] = places_of(model)
    both = tuple(Side(np.empty(m), np.empty((n, d)), np.empty(j), np.empty(found.rows.shape)) for _ in range(2))
    memory = Memory(
        np.empty(2 * int(data.ncon) + MORE, np.int64), np.zeros(COUNTS, np.int64), counts, scratch, np.empty(n),
        np.empty((j, m)), np.empty(j), np.empty((2, model.nv)), _places[engine], np.array(data.qpos),
    )  # fmt: skip
    posing = Posing(dt, recovery, joint_recovery, solution.velocity, solution.impulse, solution.joint_impulse)
    known = addresses_in_mujoco(*FUNCTIONS)
    assert known is not None
    run(
        np.array(known), np.array([engine.shadow._address, data._address, engine.acts]), eps, sides, engine.memory,
        found, room, memory, posing, both, out,
    )  # fmt: skip
    return out


def places_of(model: Any) -> NDArray[np.int64]:
    """(nv, 2) of each velocity: 0 and its position, or the axis from 1 on that it turns about and its quaternion."""
    table = np.zeros((model.nv, 2), np.int64)
    for kind, dof, at in zip(model.jnt_type.tolist(), model.jnt_dofadr, model.jnt_qposadr, strict=True):
        moves, turns = {FREE: (3, 3), BALL: (0, 3)}.get(kind, (1, 0))
        for k in range(moves):
            table[dof + k] = 0, at + k
        for k in range(turns):
            table[dof + moves + k] = k + 1, at + moves
    return table


@without_lock
def run(addresses, about, eps, sides, scene, found, room, memory, posing, both, out):
    """Difference controls, velocities and positions, in this order: each leaves what the next begins with."""
    model, data, _ = scene
    d, nv, present = data[0], model[0].nv, memory.present
    force, drive = numbers_at(d.qfrc_smooth), numbers_at(d.qfrc_actuator)
    for k in range(nv):
        present[0, k], present[1, k] = force[k], drive[k]
    difference_controls(addresses, about, eps, sides, model, data, present[1], posing.dt, out)
    difference_velocities(addresses, about, eps, sides, scene, found, room, memory, posing, both, out)
    difference_positions(addresses, about, eps, sides, scene, found, room, memory, posing, both, out)


@kernel
def recompute(addresses, about, positions):
    """Forces and accelerations anew, as MuJoCo computes them; with positions, all that follows from these first."""
    if positions:
        call_c(addresses[POSITION], about[SHADOW], about[DATA], 0, 0)
    call_c(addresses[VELOCITY], about[SHADOW], about[DATA], 0, 0)
    if about[ACTS] != 0:
        call_c(addresses[ACTUATION], about[SHADOW], about[DATA], 0, 0)
    call_c(addresses[ACCELERATION], about[SHADOW], about[DATA], 0, 0)


@kernel
def difference_controls(addresses, about, eps, sides, model, data, present, dt, out):
    """Controls change actuators alone; present: (nv,) forces of actuators at the present state."""
    nv, ctrl, drive = model[0].nv, numbers_at(data[0].ctrl), numbers_at(data[0].qfrc_actuator)
    length = sides * eps
    for u in range(model[0].nu):
        column, before = 2 * nv + u, ctrl[u]
        for side in range(sides):
            sign = 1.0 if side == 0 else -1.0
            ctrl[u] = before + sign * eps
            call_c(addresses[ACTUATION], about[SHADOW], about[DATA], 0, 0)
            for k in range(nv):
                out.momentum[column, k] += sign * dt * drive[k] / length
        ctrl[u] = before
        if sides == 1:
            for k in range(nv):
                out.momentum[column, k] -= dt * present[k] / length


@kernel
def difference_velocities(addresses, about, eps, sides, scene, found, room, memory, posing, both, out):
    """Velocities change forces; through references of equalities, rates as well."""
    model, data, where = scene
    nv, qvel, force = model[0].nv, numbers_at(data[0].qvel), numbers_at(data[0].qfrc_smooth)
    length, whole = sides * eps, data[0].ne > 0
    if whole:
        measure(model, data, where, memory.counts, memory.kept, True)
    for k in range(nv):
        # Forces on either side.
        column, before = nv + k, qvel[k]
        for side in range(sides):
            sign = 1.0 if side == 0 else -1.0
            qvel[k] = before + sign * eps
            recompute(addresses, about, False)
            if whole:
                look(model, data, where, room, memory, posing, both[side])
            for i in range(nv):
                out.momentum[column, i] += sign * posing.dt * force[i] / length
        qvel[k] = before
        if sides == 1:
            for i in range(nv):
                out.momentum[column, i] -= posing.dt * memory.present[0, i] / length

        # The velocity itself is in v_free; then the rates of equalities.
        add_inertia(found, k, out.momentum[column])
        if whole:
            if sides == 1:
                balance(found, memory, posing, both[1])
            for i in range(out.rate.shape[1]):
                out.rate[column, i] = (both[0].rate[i] - both[1].rate[i]) / length


@kernel
def difference_positions(addresses, about, eps, sides, scene, found, room, memory, posing, both, out):
    """Positions change everything; the present state is one of the sides where there is only one."""
    model, data, where = scene
    qpos = numbers_at(data[0].qpos)
    if sides == 1:
        balance(found, memory, posing, both[1])
    for k in range(model[0].nv):
        # Constraints on either side; other ones than at present are left to Python, and so are those that jump.
        for side in range(sides):
            nudge(qpos, memory.start, memory.places[k], eps if side == 0 else -eps)
            recompute(addresses, about, True)
            if out.slow[k] == 0 and not seen(model, data, where, found, room, memory, posing, both[side]):
                out.slow[k] = 1
        if sides == 2 and out.slow[k] == 0 and jumps(found.rows, both[0].rows, both[1].rows, eps):
            out.slow[k] = 1
        if out.slow[k] == 0:
            subtract(both[0], both[1], sides * eps, k, out)

    # Back to where the bodies were.
    nudge(qpos, memory.start, memory.places[0], 0.0)


@kernel
def nudge(qpos, start, place, step):
    """Reset the positions, then move one of them along its tangent."""
    for i in range(len(start)):
        qpos[i] = start[i]

    # A position that is no part of a rotation.
    at = place[1]
    if place[0] == 0:
        qpos[at] += step
        return

    # q exp(step / 2 · axis).
    w, x, y, z = start[at], start[at + 1], start[at + 2], start[at + 3]
    c, s = np.cos(0.5 * step), np.sin(0.5 * step)
    if place[0] == 1:
        qpos[at], qpos[at + 1], qpos[at + 2], qpos[at + 3] = c * w - s * x, c * x + s * w, c * y + s * z, c * z - s * y
    elif place[0] == 2:
        qpos[at], qpos[at + 1], qpos[at + 2], qpos[at + 3] = c * w - s * y, c * x - s * z, c * y + s * w, c * z + s * x
    else:
        qpos[at], qpos[at + 1], qpos[at + 2], qpos[at + 3] = c * w - s * z, c * x + s * y, c * y - s * x, c * z + s * w


@kernel
def seen(model, data, where, found, room, memory, posing, side):
    """Gather the constraints of the stages as they are; False if they are not the present ones, moved a little."""
    # As many constraints of each kind as before ...
    if data[0].ncon > len(memory.kept):
        return False
    if measure(model, data, where, memory.counts, memory.kept, True) != 0:
        return False
    for k in range(len(memory.now)):
        if memory.counts[k] != memory.now[k]:
            return False

    # ... between the same bodies.
    look(model, data, where, room, memory, posing, side)
    for i in range(len(found.gap)):
        if found.pair[i, 0] != room.pair[i, 0] or found.pair[i, 1] != room.pair[i, 1]:
            return False
        if not same_runs(found.segments[i], room.segments[i]):
            return False
    return True


@kernel
def look(model, data, where, room, memory, posing, side):
    """Fill the room; record the constraints at the answer."""
    fill(model, data, where, memory.kept, room, memory.scratch)
    balance(room, memory, posing, side)


@kernel
def balance(found, memory, posing, side):
    """Momentum and rates of constraints at the answer's velocities and impulses."""
    nothing = memory.gap_rate[:0]
    set_rates(found, posing.dt, posing.recovery, nothing, nothing, memory.gap_rate)
    set_joints(found, posing.dt, posing.joint_recovery, memory.joints, memory.joint_rate)
    v, p, h = posing.velocity, posing.impulse, side.momentum

    # M (v_free - v), block by block.
    at = 0
    for b in range(len(found.starts) - 1):
        start, end = found.starts[b], found.starts[b + 1]
        for i in range(start, end):
            total = 0.0
            for j in range(start, end):
                total += found.mass[at] * (found.free[j] - v[j])
                at += 1
            h[i] = total

    # Contacts push, and move.
    for i in range(len(found.gap)):
        segment = found.segments[i]
        for c in range(found.rows.shape[1]):
            row = found.rows[i, c]
            for k in range(found.rows.shape[2]):
                side.rows[i, c, k] = row[k]
            side.velocity[i, c] = row_dot(row, segment, v) + (memory.gap_rate[i] if c == 0 else 0.0)
            if len(found.surface) > 0:
                side.velocity[i, c] += found.surface[i, c]
            if p[i, c] != 0.0:
                add_row(row, segment, p[i, c], h)

    # So do joints.
    for i in range(len(side.rate)):
        total = memory.joint_rate[i]
        for k in range(len(v)):
            total += memory.joints[i, k] * v[k]
            h[k] += posing.joint_impulse[i] * memory.joints[i, k]
        side.rate[i] = total


@kernel
def add_inertia(found, k, h):
    """h += column k of the mass."""
    at = 0
    for b in range(len(found.starts) - 1):
        start, size = found.starts[b], found.starts[b + 1] - found.starts[b]
        if start <= k < start + size:
            for i in range(size):
                h[start + i] += found.mass[at + i * size + k - start]
        at += size * size


@kernel
def jumps(rows, ahead, back, eps):
    """Whether a contact's rows change otherwise on one side than on the other."""
    for i in range(rows.shape[0]):
        first, second, apart = 0.0, 0.0, 0.0
        for c in range(rows.shape[1]):
            for k in range(rows.shape[2]):
                one, two = (ahead[i, c, k] - rows[i, c, k]) / eps, (rows[i, c, k] - back[i, c, k]) / eps
                first, second, apart = max(first, abs(one)), max(second, abs(two)), max(apart, abs(one - two))
        if apart > JUMP * (1.0 + max(first, second)) + SUDDEN / eps:
            return True
    return False


@kernel
def subtract(ahead, back, length, column, out):
    """A column of differences."""
    for j in range(len(ahead.momentum)):
        out.momentum[column, j] = (ahead.momentum[j] - back.momentum[j]) / length
    for i in range(ahead.velocity.shape[0]):
        for c in range(ahead.velocity.shape[1]):
            out.velocity[column, i, c] = (ahead.velocity[i, c] - back.velocity[i, c]) / length
    for i in range(len(ahead.rate)):
        out.rate[column, i] = (ahead.rate[i] - back.rate[i]) / length
