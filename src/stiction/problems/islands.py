"""Islands: groups of contacts that do not interact, so that each can be solved and judged separately.

Two trees belong together if a contact or a bilateral row touches both; velocities of one mass matrix, if an entry of
it or of a row couples them; contacts of which only the Delassus matrix is known, if they act on each other. Bodies
without a contact need no solve at all: they move freely, or as their joints prescribe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.problems.contact import ContactProblem, from_fields

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
    of_velocity, of_contact = problem.labels
    count = int(of_contact.max(initial=-1)) + 1
    if count <= 1 and (of_velocity == 0).all():
        return [whole(problem)]
    if count == 0:
        return [whole(problem)]
    return [part(problem, of_velocity, of_contact, k) for k in range(count)]


def label(problem: ContactProblem) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of the island that each velocity, -1 without a contact, and each contact belongs to.

    Islands are numbered by their first contact. A contact that touches nothing that moves goes with any of them.
    """
    n, m = problem.n, problem.m
    island = np.empty(n if problem.delassus is not None else m, np.int64)
    if problem.delassus is not None:
        label_contacts(problem.delassus, island)
        first = island
    elif problem.mass is not None and problem.mass.ndim == 2:
        first = np.empty(n, np.int64)
        label_dense(problem.mass, problem.rows, problem.joints, island, first)
        first = np.where(first >= 0, island[first], -1) if m else first
    else:
        label_velocities(problem.trees, problem.segments, problem.joints, island)
        moves = problem.segments[:, 1] > 0
        first = np.where(moves, island[np.where(moves, problem.segments[:, 0], 0)], -1) if m else np.full(n, -1)
    roots, at, inverse = np.unique(first[first >= 0], return_index=True, return_inverse=True)
    rank = np.empty(len(roots), np.int64)
    rank[np.argsort(at)] = np.arange(len(roots))
    of_contact = np.zeros(n, np.int64)
    of_contact[first >= 0] = rank[inverse]
    number = np.full(max(m, n) + 1, -1)
    number[roots] = rank
    return number[island[:m]] if problem.delassus is None else np.zeros(0, np.int64), of_contact


def whole(problem: ContactProblem) -> Island:
    return Island(problem, np.arange(problem.n), np.arange(problem.m), np.arange(len(problem.joints)))


def rest(problem: ContactProblem) -> Island:
    """The part of a problem without contacts."""
    return part(problem, *problem.labels, -1)


def part(problem: ContactProblem, of_velocity: NDArray[np.int64], of_contact: NDArray[np.int64], k: int) -> Island:
    """The k-th island as a problem; nothing is checked again."""
    contacts = np.flatnonzero(of_contact == k)
    inside = of_velocity == k
    velocities = np.flatnonzero(inside)
    joints = np.flatnonzero((problem.joints[:, inside] != 0.0).any(axis=1)) if len(problem.joints) else NO_JOINTS
    fields = {
        "velocity": problem.velocity[velocities],
        "friction": problem.friction[contacts],
        "gap_rate": problem.gap_rate[contacts],
        "tangent_rate": None if problem.tangent_rate is None else problem.tangent_rate[contacts],
        "joints": np.ascontiguousarray(problem.joints[np.ix_(joints, velocities)]),
        "joint_rate": problem.joint_rate[joints],
        "viscosity": None if problem.viscosity is None else problem.viscosity[contacts],
        "slip": None if problem.slip is None else problem.slip[contacts],
        "law": problem.law,
        "delassus": None,
        "offset": None,
        "dim": problem.dim,
        "ratio": None if problem.ratio is None else problem.ratio[contacts],
        "labels": (np.full(len(velocities), min(k, 0)), np.zeros(len(contacts), np.int64)),  # one island, or none
    }
    return Island(from_fields(fields | dynamics(problem, contacts, inside, velocities)), contacts, velocities, joints)


def dynamics(
    problem: ContactProblem,
    contacts: NDArray[np.int64],
    inside: NDArray[np.bool_],
    velocities: NDArray[np.int64],
) -> dict[str, Any]:
    """Mass and rows of an island, or its Delassus matrix, in the form that the whole has."""
    rows, segments = problem.rows[contacts], np.array(problem.segments[contacts])
    if problem.mass is None:
        assert problem.delassus is not None
        assert problem.offset is not None
        d = rows.shape[1]
        places = (d * contacts[:, None] + np.arange(d)).ravel()
        return {
            "mass": None,
            "trees": problem.trees,
            "rows": rows,
            "segments": segments,
            "delassus": problem.delassus[np.ix_(places, places)],
            "offset": problem.offset[places],
        }
    if problem.mass.ndim == 2:
        segments[:] = 0, len(velocities), 0, 0
        mass = problem.mass[np.ix_(velocities, velocities)]
        return {
            "mass": mass,
            "trees": np.array([0, len(velocities)]),
            "rows": np.ascontiguousarray(rows[:, :, velocities]),
            "segments": segments,
        }
    sizes = np.diff(problem.trees)
    chosen = inside[np.minimum(problem.trees[:-1], problem.m - 1)] & (sizes > 0)
    renumbered = np.cumsum(inside) - 1  # where a velocity of the whole has gone
    segments[:, 0::2] = np.where(segments[:, 1::2] > 0, renumbered[segments[:, 0::2]], 0)
    by_body = problem.mass.ndim == 3
    width = rows.shape[2] if by_body else int((segments[:, 1] + segments[:, 3]).max(initial=0))
    return {
        "mass": problem.mass[chosen] if by_body else problem.mass[np.repeat(chosen, sizes**2)],
        "trees": np.concatenate([[0], np.cumsum(sizes[chosen])]),
        "rows": np.ascontiguousarray(rows[:, :, :width]),
        "segments": segments,
    }


NO_JOINTS = np.zeros(0, np.int64)


@kernel
def label_velocities(trees, segments, joints, island):
    """island[j]: the first velocity of j's island. Trees that share a contact or a bilateral row are joined."""
    # At first each tree is an island of its own.
    for b in range(len(trees) - 1):
        for j in range(trees[b], trees[b + 1]):
            island[j] = trees[b]

    # Contacts and bilateral rows join the trees that they touch.
    for i in range(len(segments)):
        if segments[i, 1] > 0 and segments[i, 3] > 0:
            unite(island, segments[i, 0], segments[i, 2])
    for k in range(len(joints)):
        unite_row(joints[k], island, -1)
    flatten(island)


@kernel
def label_dense(mass, rows, joints, island, first):
    """As `label_velocities`, for one dense mass matrix; first[i]: a velocity that contact i moves, or -1."""
    # At first each velocity is an island of its own.
    for j in range(len(island)):
        island[j] = j

    # Entries of the mass, contacts and bilateral rows join velocities.
    for i in range(len(mass)):
        for j in range(i):
            if mass[i, j] != 0.0:
                unite(island, i, j)
    for i in range(len(rows)):
        first[i] = -1
        for c in range(rows.shape[1]):
            first[i] = unite_row(rows[i, c], island, first[i])
    for k in range(len(joints)):
        unite_row(joints[k], island, -1)
    flatten(island)


@kernel
def label_contacts(delassus, island):
    """Island of each contact where only u = W p + q is known, by its first contact; coupled contacts are joined."""
    for i in range(len(island)):
        island[i] = i

    # Contacts are joined if either one acts on the other.
    d = len(delassus) // max(len(island), 1)
    for i in range(len(island)):
        for j in range(i):
            if acts(delassus, d, i, j) or acts(delassus, d, j, i):
                unite(island, i, j)
    flatten(island)


@kernel
def acts(delassus, d, i, j):
    """Whether impulses at contact j move contact i; d: directions of a contact."""
    for a in range(d * i, d * i + d):
        for b in range(d * j, d * j + d):
            if delassus[a, b] != 0.0:
                return True
    return False


@kernel
def joining(segments, most):
    """How many contacts join bodies, of the same two so many at most: what makes an island large.

    Dry friction in joints, which has a velocity of its own, does not, nor do the many contacts of a foot.
    """
    count, alike = 0, 0
    for i in range(len(segments)):
        same = i > 0
        for a in range(4):
            same = same and segments[i, a] == segments[i - 1, a]
        alike = alike + 1 if same else 1
        if alike <= most and segments[i, 1] != 1 and segments[i, 3] != 1:
            count += 1
    return count


@kernel
def unite_row(row, island, first):
    """Join all velocities with a nonzero entry, and `first` if it is not -1; returns one of them."""
    for j in range(len(row)):
        if row[j] != 0.0:
            if first >= 0:
                unite(island, first, j)
            first = j
    return first


@kernel
def flatten(group):
    """Make every member refer to its root directly; a root has the smallest index, so one pass suffices."""
    for a in range(len(group)):
        group[a] = group[group[a]]


@kernel
def unite(group, a, b):
    """Join the groups of a and b; the smaller root stays."""
    a, b = root(group, a), root(group, b)
    if a != b:
        group[max(a, b)] = min(a, b)


@kernel
def root(group, a):
    """The root of a's group; the path to it is halved on the way."""
    while group[a] != a:
        group[a] = group[group[a]]
        a = group[a]
    return a
