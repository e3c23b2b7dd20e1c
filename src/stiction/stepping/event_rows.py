"""Contacts of one moment: a selection of them, their velocities, and the change of their rows along the motion.

    d/dt (N v) = N a + Ṅ v,      Ṅ v = (N(q + εv) v - N(q - εv) v) / 2ε

The velocity of a contact changes with the acceleration, and because the rows change while everything moves on. This
second part depends on the curvature of the surfaces, which MuJoCo does not provide: it is a central difference along
the motion, between matching contacts (`contacts.identity`). A contact found on one side only gets the one-sided
difference, a contact found on neither side gets zero. Bilateral rows are treated likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.runs import row_dot, spread_row
from stiction.bodies.dynamics import block_of, inertia_of_tree
from stiction.bodies.motion import moved
from stiction.contacts.gather import Constraints, gather
from stiction.contacts.identity import PLACES, match_contacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.motion import Probe
    from stiction.bodies.structs import Memory

BY_CONTACT = ("rows", "friction", "gap", "slack", "spot", "frame", "segments", "kind", "address", "source", "pair")


def select(found: Constraints, chosen: NDArray[np.int64]) -> Constraints:
    """The same moment with these contacts only."""
    return found._replace(**{name: getattr(found, name)[chosen] for name in BY_CONTACT})


def extended(found: Constraints, velocity: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) velocities, with zeros for those added for dry friction."""
    added = len(found.free) - velocity.size
    return np.append(velocity, np.zeros(added)) if added else velocity


def speeds(found: Constraints, v: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 3) relative velocities n, t1, t2 of the contacts."""
    u = np.empty(found.rows.shape[:2])
    if found.n:
        set_speeds(found.rows, found.segments, v, u)
    return u[:, :3]


def joint_rows(found: Constraints) -> NDArray[np.float64]:
    """(j, m) bilateral rows over all velocities."""
    whole = np.zeros((len(found.joints), len(found.free)))
    if len(whole):
        spread(found.joints, found.joint_segments, whole)
    return whole


def inertia(memory: Memory, found: Constraints) -> NDArray[np.float64]:
    """(entries,) blocks of the mass without the dampers that `Constraints.mass` holds."""
    mass: NDArray[np.float64] = found.mass.copy()
    set_inertia(memory.model, memory.data, memory.where, mass)
    return mass


def bend(
    probe: Probe, found: Constraints, position: NDArray[np.float64], velocity: NDArray[np.float64], stride: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, 3) change of the contacts' velocities and (j,) of the bilateral rows, from the change of their rows."""
    n, j = found.n, len(found.joints)
    if n + j == 0 or not velocity.any():
        return np.zeros((n, 3)), np.zeros(j)
    v = extended(found, velocity)
    probe.place(moved(probe.model, position, velocity, stride), velocity)
    ahead = gather(probe.memory)
    probe.place(moved(probe.model, position, velocity, -stride), velocity)
    behind = gather(probe.memory)
    bent, joints_bent, reach = np.empty((n, 3)), np.empty(j), np.empty(n)
    taken, places = np.empty(PLACES * n, np.int64), np.empty((2, max(n, ahead.n, behind.n)), np.int64)
    set_bend(probe.memory.model, found, ahead, behind, v, stride, taken, places, bent, reach, joints_bent)
    return bent, joints_bent


@kernel
def set_bend(model, found, ahead, behind, v, stride, taken, places, bent, reach, joints_bent):
    """Fill the change of rows along the motion, times v, from those one stride ahead and behind.

    taken, places: (PLACES n,) and (2, most contacts) scratch; reach: (n,) the time over which each contact is known
    """
    n = len(bent)
    for i in range(n):
        bent[i, 0] = bent[i, 1] = bent[i, 2] = reach[i] = 0.0
    add_side(model, found, ahead, v, 1.0, stride, taken, places, bent, reach)
    add_side(model, found, behind, v, -1.0, stride, taken, places, bent, reach)
    for i in range(n):
        for c in range(3):
            bent[i, c] = bent[i, c] / reach[i] if reach[i] > 0.0 else 0.0

    # Bilateral rows are always there.
    for k in range(len(joints_bent)):
        one = row_dot(ahead.joints[k], ahead.joint_segments[k], v)
        joints_bent[k] = (one - row_dot(behind.joints[k], behind.joint_segments[k], v)) / (2.0 * stride)


@kernel
def add_side(model, found, there, v, sense, stride, taken, places, bent, reach):
    """Add `sense` times the velocities of contacts on one side, or here where they are not found there."""
    n, count, previous, where = len(bent), len(there.gap), places[0], places[1]
    for i in range(n):
        where[i] = -1
    match_contacts(model, found.spot, found.pair, there.spot, there.pair, taken, previous)
    for k in range(count):
        if previous[k] >= 0:
            where[previous[k]] = k

    # Where it is found, the difference spans one more stride.
    for i in range(n):
        k = where[i]
        reach[i] += stride if k >= 0 else 0.0
        for c in range(3):
            if k >= 0:
                bent[i, c] += sense * row_dot(there.rows[k, c], there.segments[k], v)
            else:
                bent[i, c] += sense * row_dot(found.rows[i, c], found.segments[i], v)


@kernel
def set_speeds(rows, segments, v, u):
    """u = rows times v, each row over its two runs of velocities."""
    for i in range(len(rows)):
        for c in range(rows.shape[1]):
            u[i, c] = row_dot(rows[i, c], segments[i], v)


@kernel
def spread(rows, segments, whole):
    """Write each row over all velocities."""
    for i in range(len(rows)):
        spread_row(rows[i], segments[i], whole[i])


@kernel
def set_inertia(model, data, where, mass):
    """Overwrite the mass blocks of the trees with their inertia alone."""
    # The blocks lie one after the other; those of dry friction follow and stay as they are.
    place = 0
    for t in range(model[0].ntree):
        start, size = block_of(model, where, t)
        inertia_of_tree(model, data, start, size, mass[place : place + size * size])
        place += size * size
