"""Frictionless contact of rigid boxes under gravity, from geometry: 0 <= z ⊥ N W Nᵀ z + N v >= 0.

N holds a row a contact, W the inverse masses and inertias, v the velocities that the bodies would have without contact;
z are the normal impulses in N s, w the separating velocities in m/s. N v lies in the range of N W Nᵀ: these are the
optimality conditions of the nearest admissible velocity, which exists. Velocities are unique, impulses rarely.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from stiction.problems.lcp import LCP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

GRAVITY = 9.81  # m/s²
TIME_STEP = 0.01  # s, over which gravity acts
DENSITY = 1000.0  # kg/m³
COLLAPSE = 0.5  # 1/s, the rate at which a heap contracts before contact stops it


def frictionless_contact(n: int, seed: int, bodies: int | None = None) -> LCP:
    """n contacts in a collapsing heap of rigid bodies: symmetric positive semidefinite, solvable.

    Bodies of random size (0.1 to 0.5 m, 1000 kg/m³) touch their nearest neighbours, the lowest also the ground; a
    contact lies between the two centres, off the line that joins them, as on faces of polyhedra. The rank is at most
    6 bodies; by default there are n // 8 of them, so that contacts outnumber motions, as in heaps of boxes.
    """
    rng = np.random.default_rng(seed)
    count = max(1, n // 8) if bodies is None else bodies
    size = rng.uniform(0.1, 0.5, (count, 3))
    centre = rng.uniform(0.0, 0.45 * max(count, 1) ** (1.0 / 3.0), (count, 3))
    ground = np.argsort(centre[:, 2])[: max(1, count // 3)]
    first, second = nearest_pairs(centre, ground, n)
    between = np.where(first[:, None] < 0, centre[second] - [0.0, 0.0, 0.2], 0.5 * (centre[first] + centre[second]))
    normal = np.where(first[:, None] < 0, [0.0, 0.0, 1.0], centre[second] - centre[first])
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    normal = normal + np.where(first[:, None] < 0, 0.0, rng.normal(0.0, 0.2, (n, 3)))
    point = between + rng.uniform(-0.15, 0.15, (n, 3)) * [1.0, 1.0, 0.2]
    velocity = rng.normal(0.0, 0.02, (count, 6)) - [0.0, 0.0, GRAVITY * TIME_STEP, 0.0, 0.0, 0.0]
    velocity[:, :3] += COLLAPSE * (centre.mean(axis=0) - centre)
    return contact_problem(first, second, point, normal, centre, size, velocity)


def wall(n: int, seed: int, width: int = 6) -> LCP:
    """n contacts in a wall of bricks `width` wide, four under every brick, as in `frictionless_contact`.

    Every second row is shifted by half a brick and has half bricks at its ends. A brick adds four contacts but only
    three motions that they resist, so the rank is about 3/4 n; repeated geometry makes ties, stacked weight makes
    impulses of many sizes.
    """
    rng = np.random.default_rng(seed)
    length, height, depth, inset = 0.4, 0.2, 0.2, 0.02  # m
    even, odd = length * np.arange(width + 1), length * np.clip(np.arange(width + 2) - 0.5, 0.0, width)
    centre: list[tuple[float, float, float]] = []
    size: list[tuple[float, float, float]] = []
    point: list[tuple[float, float, float]] = []
    first: list[int] = []
    second: list[int] = []
    row, below = 0, 0  # `below`: the number of the first brick of the row underneath
    while len(point) < n:
        edges, under = (even, odd) if row % 2 == 0 else (odd, even)
        start = len(centre)
        for left, right in pairwise(edges):
            for x in (left + inset, right - inset):
                support = below + int(np.searchsorted(under, x)) - 1 if row else -1
                for y in (-0.5 * depth, 0.5 * depth):
                    first.append(support)
                    second.append(len(centre))
                    point.append((x, y, row * height))
            centre.append((0.5 * (left + right), 0.0, (row + 0.5) * height))
            size.append((right - left, depth, height))
        row, below = row + 1, start
    velocity = rng.normal(0.0, 0.01, (len(centre), 6)) - [0.0, 0.0, GRAVITY * TIME_STEP, 0.0, 0.0, 0.0]
    return contact_problem(
        np.array(first[:n], dtype=np.int64),
        np.array(second[:n], dtype=np.int64),
        np.reshape(point[:n], (n, 3)),
        np.tile([0.0, 0.0, 1.0], (n, 1)),
        np.reshape(centre, (-1, 3)),
        np.reshape(size, (-1, 3)),
        velocity.reshape(-1, 6),
    )


def nearest_pairs(centre: Matrix, ground: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """n contacts as pairs of bodies (-1: the ground), over and over the nearest, two pairs a body."""
    count = len(centre)
    i, j = np.triu_indices(count, 1)
    order = np.argsort(np.linalg.norm(centre[i] - centre[j], axis=1), kind="stable")[: 2 * count]
    first = np.concatenate([np.full(len(ground), -1), i[order]])
    second = np.concatenate([ground, j[order]])
    which = np.resize(np.arange(len(first)), n)
    return first[which], second[which]


def contact_problem(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    point: Matrix,
    normal: Matrix,
    centre: Matrix,
    size: Matrix,
    velocity: Matrix,
) -> LCP:
    """N W Nᵀ and N v: the row of a contact holds (normal, arm x normal) of body 2, minus that of body 1."""
    n, count = len(point), len(centre)
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    mass = DENSITY * size.prod(axis=1)
    inertia = mass[:, None] / 12.0 * ((size**2).sum(axis=1, keepdims=True) - size**2)
    N = np.zeros((n, count, 6))
    contact = np.arange(n)
    for body, sign in ((first, -1.0), (second, 1.0)):
        arm = np.cross(point - centre[body], normal)
        N[contact, body] += np.where(body[:, None] < 0, 0.0, sign * np.hstack([normal, arm]))
    spread = np.hstack([np.repeat(mass[:, None], 3, axis=1), inertia]) ** -0.5
    rows = (N * spread).reshape(n, 6 * count)
    return LCP(rows @ rows.T, (N * velocity).reshape(n, 6 * count).sum(axis=1))
