"""The friction pyramid as one LCP: every contact with its d + 2 complementary pairs [Lloyd2004, eq. 8].

    ν = N v                0 <= ν ⊥ θ >= 0     θ: normal impulses
    σ = D v + E λ          0 <= σ ⊥ φ >= 0     φ: impulses along the d directions of each contact
    γ = μ θ - Eᵀ φ         0 <= γ ⊥ λ >= 0     λ: sliding speeds

with v = v_free + Nᵀ θ + Dᵀ φ in the normal form, so that the matrix is made of N Nᵀ, N Dᵀ and D Dᵀ. Its size n (d + 2)
is what the structured methods avoid; here it is assembled, for solvers of LCPs and for comparison with them. All is
dimensionless: rows are whitened and of about unit length, velocities in units of the largest free one. The matrix is
copositive, so Lemke's method ends in a solution (in exact arithmetic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction.errors import UnsupportedProblem
from stiction.problems.laws import Coulomb
from stiction.problems.laws import pyramid_directions as pyramid_directions
from stiction.problems.lcp import LCP, vector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from stiction.problems.contact import ContactProblem


def directions_of(problem: ContactProblem) -> NDArray[np.float64]:
    """(d, 2) edges of the problem's pyramid, in the plane of its tangents."""
    law = problem.law
    if not isinstance(law, Coulomb) or law.facets is None:
        raise UnsupportedProblem(f"pyramid: the law must be Coulomb(facets=d), got {law}")
    return pyramid_directions(law.facets, law.rotation, problem.dim)


def pyramid_lcp(problem: ContactProblem) -> LCP:
    """The LCP in z = (θ, φ, λ), all θ first, then the φ contact by contact."""
    from stiction.problems.contact import densified

    directions, white = directions_of(problem), problem.whitened
    n, d = problem.n, len(directions)
    rows = densified(white.rows, white.segments, white.free.size)
    velocity = rows @ white.free + white.bias
    N, D = rows[:, 0], np.einsum("jc,icm->ijm", directions, rows[:, 1:]).reshape(n * d, white.free.size)
    E = np.repeat(np.eye(n), d, axis=0)
    forces = np.vstack([N, D])
    M = np.zeros((n * (d + 2), n * (d + 2)))
    M[: n * (d + 1), : n * (d + 1)] = forces @ forces.T
    M[n : n * (d + 1), n * (d + 1) :] = E
    M[n * (d + 1) :, :n] = np.diag(white.friction)
    M[n * (d + 1) :, n : n * (d + 1)] = -E.T
    q = np.concatenate([velocity[:, 0], (velocity[:, 1:] @ directions.T).ravel(), np.zeros(n)])
    return LCP(M, q)


def pyramid_impulse(problem: ContactProblem, z: ArrayLike) -> NDArray[np.float64]:
    """(n, 3) impulses n, t1, t2 in N s, of a vector z of `pyramid_lcp`."""
    directions = directions_of(problem)
    n, d = problem.n, len(directions)
    values = vector("pyramid_impulse", "z", z, n * (d + 2), f"{n} contacts of {d} directions")
    scaled = np.empty((n, 3))
    scaled[:, 0] = values[:n]
    scaled[:, 1:] = values[n : n * (d + 1)].reshape(n, d) @ directions
    return problem.whitened.impulse(scaled)
