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
from stiction.contacts.identity import match

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.motion import Probe
    from stiction.bodies.structs import Memory

BY_CONTACT = ("rows", "friction", "gap", "slack", "spot", "segments", "kind", "address", "source", "pair")


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


def joint_speeds(found: Constraints, v: NDArray[np.float64]) -> NDArray[np.float64]:
    """(j,) rates of the bilateral rows, which should be zero."""
    rows, segments = found.joints, found.joint_segments
    u = np.empty((len(rows), 1))
    if len(rows):
        set_speeds(rows[:, None], segments, v, u)
    return u[:, 0]


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


def counterparts(memory: Memory, old: Constraints, new: Constraints) -> NDArray[np.int64]:
    """(n,) for each old contact its number in the new moment, -1 if it is gone."""
    where = np.full(old.n, -1)
    if old.n and new.n:
        previous = match(memory, old, new)
        known = np.flatnonzero(previous >= 0)
        where[previous[known]] = known
    return where


def bend(
    probe: Probe, found: Constraints, position: NDArray[np.float64], velocity: NDArray[np.float64], stride: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, 3) change of the contacts' velocities and (j,) of the bilateral rows, from the change of their rows."""
    n, j = found.n, len(found.joints)
    if n + j == 0 or not velocity.any():
        return np.zeros((n, 3)), np.zeros(j)
    v = extended(found, velocity)
    here = speeds(found, v)
    ends, reach, joints = [here, here], np.zeros((2, n)), np.zeros((2, j))
    for side, sense in enumerate((1.0, -1.0)):
        probe.place(moved(probe.model, position, velocity, sense * stride), velocity)
        there = gather(probe.memory)
        where = counterparts(probe.memory, found, there)
        known = where >= 0
        ends[side] = np.where(known[:, None], speeds(there, v)[where] if there.n else here, here)
        reach[side] = np.where(known, stride, 0.0)
        joints[side] = joint_speeds(there, v)
    span = reach.sum(axis=0)
    turned = (ends[0] - ends[1]) / np.where(span > 0.0, span, 1.0)[:, None]
    return turned, (joints[0] - joints[1]) / (2.0 * stride)


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
