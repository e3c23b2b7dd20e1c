"""The mass of a contact problem as its whitening: M = Lᵀ L block by block, blocks of one size at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

    Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Whitening:
    """blocks: for each size, (b, k) which velocities, (b, k, k) M and (b, k, k) L⁻¹, L lower triangular."""

    m: int
    blocks: tuple[tuple[NDArray[np.int64], Array, Array], ...]

    def force(self, h: Array) -> Array:
        """L⁻ᵀ h: momentum (m, columns) in the normal form."""
        return self.by_block(h, lambda _, inverse: inverse.transpose(0, 2, 1))

    def velocity(self, x: Array) -> Array:
        """L⁻¹ x: velocities (m, columns) from the normal form."""
        return self.by_block(x, lambda _, inverse: inverse)

    def momentum(self, v: Array) -> Array:
        """M v."""
        return self.by_block(v, lambda mass, _: mass)

    def by_block(self, values: Array, chosen: object) -> Array:
        if not self.blocks:
            return values
        if len(self.blocks) == 1 and len(self.blocks[0][0]) == 1:
            _, mass, inverse = self.blocks[0]
            return np.asarray(chosen(mass, inverse)[0] @ values)  # type: ignore[operator]
        result = np.empty_like(values)
        for place, mass, inverse in self.blocks:
            result[place] = chosen(mass, inverse) @ values[place]  # type: ignore[operator]
        return result


def whitening_of(problem: ContactProblem) -> Whitening:
    """Of a problem whose mass is known; the factor is that of its normal form."""
    record = problem.whitened.record
    if record is None or problem.mass is None:
        return Whitening(len(problem.whitened.free), ())
    mass, factor = problem.mass.reshape(-1), record.factor
    if problem.mass.ndim == 3:  # free bodies: one size, one after the other
        count = len(problem.mass)
        place = np.arange(6 * count).reshape(count, 6)
        return Whitening(problem.m, ((place, problem.mass, inverted(factor.reshape(count, 6, 6))),) if count else ())
    sizes = np.diff(problem.trees)
    begin = np.concatenate([[0], np.cumsum(sizes**2)])
    blocks = []
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        place = problem.trees[which][:, None] + np.arange(size)
        entries = begin[which][:, None] + np.arange(size * size)
        blocks.append((place, mass[entries].reshape(-1, size, size), inverted(factor[entries].reshape(-1, size, size))))
    return Whitening(problem.m, tuple(blocks))


def inverted(factor: Array) -> Array:
    """(b, k, k) L⁻¹ of lower triangles that keep their diagonal inverted."""
    L = np.tril(factor)
    diagonal = np.arange(L.shape[1])
    L[:, diagonal, diagonal] = 1.0 / L[:, diagonal, diagonal]
    return np.asarray(np.linalg.inv(L))
