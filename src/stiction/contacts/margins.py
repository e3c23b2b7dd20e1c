"""Margins: how far ahead of a body the search for contacts reaches.

A step needs a contact before it closes: a pair of geoms is reported while its distance is below the sum of their
margins. Each geom gets

    margin = LEAST · smallest size + AHEAD · dt (speed + |g| dt)

with the speed of its fastest point, from the velocities as they are now, and none if it cannot move; a limit of a
joint or tendon is reported likewise while it can be reached in twice as many steps. So things at rest look ahead by a
hundredth of their thickness, because a distant plane would otherwise constrain motion that it cannot affect, and fast
ones as far as they will come. Margins are written to the shadow of the model at every step (`geom_margin`,
`body_margin`, `pair_margin`, `jnt_margin`, `tendon_margin`); they do not change the gap, which is the true distance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.bodies.inputs import FIT, GEOM_SIZE, MAXVAL, code, first_unfit
from stiction.bodies.pointers import floats, ints
from stiction.bodies.shadow import follow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.structs import Memory

LEAST = 0.01  # of a geom's smallest size
LEAST_ANGLE = 1e-3  # of a joint's limit, in rad or m
AHEAD = 1.5  # steps


def margins(memory: Memory, scratch: NDArray[np.float64], fixed: float | None = None) -> int:
    """`begin` a step, before `bodies.stages.smooth`; scratch: (6 nbody,); fixed: margin of every pair."""
    return int(begin(memory.where, memory.model, memory.data, -1.0 if fixed is None else fixed, scratch))


@kernel
def begin(where, model, data, fixed, scratch):
    """Set options and margins of this step; return the code of a bad input (`bodies.inputs`), or FIT."""
    follow(where, model)
    unfit = first_unfit(model, data)
    if unfit != FIT:
        return unfit
    # MuJoCo keeps these results until they are flagged as stale.
    d = data[0]
    d.flg_energypos, d.flg_energyvel, d.flg_subtreevel, d.flg_rnepost = False, False, False, False
    # A model without actuators never clears their forces.
    clear(floats(d.qfrc_actuator), model[0].nv)
    return set_margins(model, data, fixed, scratch)


@kernel
def clear(values, count):
    for i in range(count):
        values[i] = 0.0


@kernel
def set_margins(model, data, fixed, scratch):
    """Set the margins of this step; return the code of a geom whose margin is NaN (bad positions), or FIT."""
    m, d = model[0], data[0]
    dt = m.timestep
    gravity = m.gravity
    drop = dt * (gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2) ** 0.5
    body_velocities(model, data, scratch)
    bodies, roots, centre, place = ints(m.geom_bodyid), ints(m.body_rootid), floats(d.subtree_com), floats(d.geom_xpos)
    radius, sizes, trees = floats(m.geom_rbound), floats(m.geom_size), ints(m.body_treeid)
    margin, largest = floats(m.geom_margin), floats(m.body_margin)

    # Each geom: half the fixed margin, or else a part of its thickness plus its travel; none if it cannot move.
    for b in range(m.nbody):
        largest[b] = 0.0
    for i in range(m.ngeom):
        b = bodies[i]
        if fixed >= 0.0:
            margin[i] = 0.5 * fixed
        else:
            margin[i] = 0.0
            if trees[b] >= 0:
                # The thinnest side of the geom, and how far it may travel.
                least = radius[i]
                for a in range(3):
                    if sizes[3 * i + a] > 0.0:
                        least = min(least, sizes[3 * i + a])
                speed = fastest(scratch, b, place, i, centre, roots[b], radius[i])
                margin[i] = LEAST * least + AHEAD * dt * (speed + drop)
        largest[b] = max(largest[b], margin[i])
        if not margin[i] >= 0.0:
            return code(GEOM_SIZE, 3 * i)

    # Explicit pairs add the margins of their geoms, as MuJoCo does for others.
    first, second, pair = ints(m.pair_geom1), ints(m.pair_geom2), floats(m.pair_margin)
    for i in range(m.npair):
        pair[i] = margin[first[i]] + margin[second[i]]

    # Limits of joints: from the largest velocity and its change in this step.
    limit, starts, kinds = floats(m.jnt_margin), ints(m.jnt_dofadr), ints(m.jnt_type)
    velocity, acceleration = floats(d.qvel), floats(d.qacc)
    for i in range(m.njnt):
        count = 3 if kinds[i] == 1 else 1
        speed = 0.0
        for k in range(starts[i], starts[i] + count):
            change = abs(acceleration[k])
            if not change <= MAXVAL:  # a bad value left in `qacc` by an earlier call
                change = 0.0
            speed = max(speed, abs(velocity[k]) + dt * change)
        limit[i] = LEAST_ANGLE + 2.0 * AHEAD * dt * speed

    # Limits of tendons likewise; a rate that is not a number counts as zero.
    limit, rate = floats(m.tendon_margin), floats(d.ten_velocity)
    for i in range(m.ntendon):
        limit[i] = LEAST_ANGLE + 2.0 * AHEAD * dt * abs(rate[i])
        if not limit[i] >= 0.0:
            limit[i] = LEAST_ANGLE
    return FIT


@kernel
def body_velocities(model, data, spatial):
    """Angular and linear velocity of each body at the centre of mass of its tree, from the last step's joint axes."""
    m, d = model[0], data[0]
    parents, starts, counts = ints(m.body_parentid), ints(m.body_dofadr), ints(m.body_dofnum)
    axes, velocity = floats(d.cdof), floats(d.qvel)
    for a in range(6):
        spatial[a] = 0.0

    # A body moves with its parent, plus the velocity of its own joints.
    for b in range(1, m.nbody):
        for a in range(6):
            spatial[6 * b + a] = spatial[6 * parents[b] + a]
        for k in range(starts[b], starts[b] + counts[b]):
            for a in range(6):
                spatial[6 * b + a] += axes[6 * k + a] * velocity[k]


@kernel
def fastest(spatial, b, place, i, centre, root, radius):
    """Upper bound of the speed of a geom's points: speed of its centre plus angular speed times its radius."""
    wx, wy, wz = spatial[6 * b], spatial[6 * b + 1], spatial[6 * b + 2]
    rx = place[3 * i] - centre[3 * root]
    ry = place[3 * i + 1] - centre[3 * root + 1]
    rz = place[3 * i + 2] - centre[3 * root + 2]
    vx = spatial[6 * b + 3] + wy * rz - wz * ry
    vy = spatial[6 * b + 4] + wz * rx - wx * rz
    vz = spatial[6 * b + 5] + wx * ry - wy * rx
    return (vx * vx + vy * vy + vz * vz) ** 0.5 + (wx * wx + wy * wy + wz * wz) ** 0.5 * radius
