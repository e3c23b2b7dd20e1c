"""Momenta and velocities of a contact problem, and those of its normal form: M = G Gᵀ, many columns at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot
from stiction.problems.mass_factor import unwhiten_velocity, whiten_dense

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

    Array = NDArray[np.float64]


class Whitening(NamedTuple):
    """The whitening of a problem; one in Delassus form is its normal form already."""

    problem: ContactProblem

    def force(self, h: Array) -> Array:
        """G⁻¹ h: momentum (m, columns) in the normal form."""
        record = self.problem.whitened.record
        if record is None:
            return h
        found = np.array(h.T, order="C")
        whiten_columns(record.factor, self.problem.trees, found)
        return found.T

    def velocity(self, x: Array) -> Array:
        """G⁻ᵀ x: velocities (m, columns) from the normal form."""
        record = self.problem.whitened.record
        if record is None:
            return x
        found = np.empty((x.shape[1], x.shape[0]))
        unwhiten_columns(record.factor, self.problem.trees, np.ascontiguousarray(x.T), found)
        return found.T

    def momentum(self, v: Array) -> Array:
        """M v."""
        if self.problem.mass is None:
            return v
        found = np.empty((v.shape[1], v.shape[0]))
        push_columns(self.problem.mass.reshape(-1), self.problem.trees, np.ascontiguousarray(v.T), found)
        return found.T


@kernel
def whiten_columns(factor, trees, columns):
    """G⁻¹ of each, in place; columns are rows here."""
    for k in range(len(columns)):
        whiten_dense(factor, trees, columns[k])


@kernel
def unwhiten_columns(factor, trees, columns, out):
    """G⁻ᵀ of each."""
    for k in range(len(columns)):
        unwhiten_velocity(factor, trees, columns[k], out[k])


@kernel
def push_columns(mass, trees, columns, out):
    """M times each."""
    for k in range(len(columns)):
        at = 0
        for b in range(len(trees) - 1):
            start, size = trees[b], trees[b + 1] - trees[b]
            for i in range(start, start + size):
                out[k, i] = dot(mass[at:], columns[k, start:], size)
                at += size
