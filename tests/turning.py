"""Problems with torsional and rolling friction, made of those without: shared by tests of several layers."""

from __future__ import annotations

import numpy as np

import stiction as st
from stiction.problems.zoo import contact_families as zoo


def with_turning(problem, coefficients):
    """Free bodies in contact, with rows for turning: about a contact's normal and tangents, as its rows move bodies."""
    n = problem.n
    rows = problem.rows.reshape(n, 3, 2, 6)
    present = problem.segments[:, 1::2] > 0
    turning = np.zeros((n, 3, 2, 6))
    turning[..., 3:] = rows[..., :3]
    bodies = np.where(present, problem.segments[:, 0::2] // 6, -1)
    tangent = np.concatenate([rows[:, 1:], turning], axis=1)
    friction = np.column_stack([problem.friction, problem.friction, *np.outer(coefficients, problem.friction)])
    return st.ContactProblem.from_bodies(
        problem.mass, problem.velocity, bodies, rows[:, 0], tangent, friction, gap_rate=problem.gap_rate
    )


FAMILIES = {
    "peg": lambda seed: zoo.peg(16, seed),
    "stack": lambda seed: zoo.stack(5, seed),
    "mass ratio": lambda seed: zoo.mass_ratio(4, seed, 1000.0),
    "grasp": lambda seed: zoo.grasp(seed),
    "duplicated": lambda seed: zoo.duplicated(seed),
    "wall": lambda seed: zoo.wall(3, 3, seed),
    "cannonballs": lambda seed: zoo.cannonballs(3, seed),
    "heap": lambda seed: zoo.heap(10, seed),
}


def disc(turns, load=1.0, push=(0.0, 0.0), mu=0.5, coefficients=(0.5, 0.01, 0.002, 0.002), joint=True):
    """One free body pressed against the ground at its centre: mass 1, inertia 1."""
    rows = np.zeros((1, 6, 2, 6))
    for c in range(3):
        rows[0, c, 1, c] = 1.0  # n, t1, t2 along x, y, z
        rows[0, 3 + c, 1, 3 + c] = 1.0
    velocity = np.array([[-load, *push, *turns]])
    friction = np.array([[mu, *coefficients]])
    return st.ContactProblem.from_bodies(
        np.eye(6)[None], velocity, [[-1, 0]], rows[:, 0], rows[:, 1:], friction, law=st.Coulomb(joint=joint)
    )
