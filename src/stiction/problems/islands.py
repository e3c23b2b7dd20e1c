"""Contacts that have nothing to do with each other: problems that can be solved apart.

Two trees belong together if a contact or a bilateral row touches both. What touches no contact needs no solve at all:
it moves freely, or as its joints say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.compiled import kernel
from stiction.problems.contact import ContactProblem, restored

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Island(NamedTuple):
    """A problem of its own, and which contacts, velocities and bilateral rows of the whole it is."""

    problem: ContactProblem
    contacts: NDArray[np.int64]
    velocities: NDArray[np.int64]
    joints: NDArray[np.int64]


def islands(problem: ContactProblem) -> list[Island]:
    """The parts of a problem that have contacts; one, the problem itself, if it does not fall apart."""
    n, count = problem.n, len(problem.trees) - 1
    if count <= 1 or n == 0:
        return [whole(problem)]
    tree_of = np.repeat(np.arange(count), np.diff(problem.trees))
    group, label = np.arange(count), np.empty(n, np.int64)
    found = join_trees(problem.segments, problem.joints, tree_of, group, label)
    if found == 1 and (group == group[0]).all():
        return [whole(problem)]
    return [part(problem, group, label, tree_of, k) for k in range(found)]


def whole(problem: ContactProblem) -> Island:
    return Island(problem, np.arange(problem.n), np.arange(problem.m), np.arange(len(problem.joints)))


def part(
    problem: ContactProblem,
    group: NDArray[np.int64],
    label: NDArray[np.int64],
    tree_of: NDArray[np.int64],
    k: int,
) -> Island:
    """The k-th island as a problem; nothing is checked again."""
    assert problem.mass is not None
    contacts = np.flatnonzero(label == k)
    trees = np.flatnonzero(group == k)
    sizes = np.diff(problem.trees)
    inside = group[tree_of] == k
    velocities = np.flatnonzero(inside)
    joints = np.flatnonzero((problem.joints[:, inside] != 0.0).any(axis=1)) if len(problem.joints) else NO_JOINTS
    renumbered = np.cumsum(inside) - 1  # where a velocity of the whole has gone
    segments = np.array(problem.segments[contacts])
    segments[:, 0::2] = np.where(segments[:, 1::2] > 0, renumbered[segments[:, 0::2]], 0)
    if problem.mass.ndim == 3:
        mass = problem.mass[trees]
    else:
        flat = np.repeat(group == k, sizes**2)
        mass = problem.mass.ravel()[flat]
    width = int((segments[:, 1] + segments[:, 3]).max(initial=0)) if problem.mass.ndim == 1 else problem.rows.shape[2]
    fields = {
        "mass": mass,
        "trees": np.concatenate([[0], np.cumsum(sizes[trees])]),
        "velocity": problem.velocity[velocities],
        "rows": np.ascontiguousarray(problem.rows[contacts][:, :, :width]),
        "segments": segments,
        "friction": problem.friction[contacts],
        "gap_rate": problem.gap_rate[contacts],
        "joints": np.ascontiguousarray(problem.joints[np.ix_(joints, velocities)]),
        "joint_rate": problem.joint_rate[joints],
        "viscosity": None if problem.viscosity is None else problem.viscosity[contacts],
        "slip": None if problem.slip is None else problem.slip[contacts],
        "law": problem.law,
        "delassus": None,
        "offset": None,
        "dim": problem.dim,
    }
    return Island(restored(fields), contacts, velocities, joints)


NO_JOINTS = np.zeros(0, np.int64)


@kernel
def join_trees(segments, joints, tree_of, group, label):
    """Number the islands: `group` of each tree, -1 without a contact, `label` of each contact; how many there are."""
    for i in range(len(segments)):
        if segments[i, 1] > 0 and segments[i, 3] > 0:
            unite(group, tree_of[segments[i, 0]], tree_of[segments[i, 2]])
    for k in range(len(joints)):
        first = -1
        for j in range(len(tree_of)):
            if joints[k, j] != 0.0:
                if first < 0:
                    first = tree_of[j]
                unite(group, first, tree_of[j])
    for b in range(len(group)):
        group[b] = root(group, b)
    # Islands are numbered by their first contact; a root's number is kept below -1 until all have one.
    found = 0
    for i in range(len(segments)):
        if segments[i, 1] > 0:
            top = group[tree_of[segments[i, 0]]]
            if top >= 0:
                for b in range(len(group)):
                    if group[b] == top:
                        group[b] = -2 - found
                found += 1
            label[i] = -2 - group[tree_of[segments[i, 0]]]
        else:
            label[i] = 0  # touches nothing that moves: any island will do
    for b in range(len(group)):
        group[b] = -2 - group[b] if group[b] <= -2 else -1
    return max(found, 1)


@kernel
def unite(group, a, b):
    a, b = root(group, a), root(group, b)
    if a != b:
        group[max(a, b)] = min(a, b)


@kernel
def root(group, a):
    while group[a] != a:
        group[a] = group[group[a]]
        a = group[a]
    return a
