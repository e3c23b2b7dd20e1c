"""Anderson acceleration of passes.

A pass maps p to g(p). The differences between the last passes are combined such that |p - g(p)| would be least if the
map were affine, an approximation that is fair while no contact changes its mode.
[Anderson1965, WalkerNi2011]
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import cholesky, cholesky_solve, dot
from stiction.arrays.layout import Floats
from stiction.solvers.contact.splitting.tolerances import PASSES_KEPT, RIDGE


class Memory(NamedTuple):
    """The last passes."""

    move: Array[Floats, "d * n"]  # g(p) - p
    last_move: Array[Floats, "d * n"]
    last: Array[Floats, "d * n"]  # g(p) before
    moves: Array[Floats, "memory", "d * n"]  # differences of moves
    images: Array[Floats, "memory", "d * n"]  # differences of g(p)
    gram: Array[Floats, "memory", "memory"]  # of moves
    factor: Array[Floats, "memory", "memory"]
    weights: Array[Floats, "memory"]


@kernel
def remember(t, p, held):
    """Store the differences from the previous pass in place of the oldest ones, and their scalar products."""
    size, k = len(p), held % PASSES_KEPT
    for j in range(size):
        t.moves[k, j], t.images[k, j] = t.move[j] - t.last_move[j], p[j] - t.last[j]
    for a in range(min(held + 1, PASSES_KEPT)):
        t.gram[a, k] = t.gram[k, a] = dot(t.moves[a], t.moves[k], size)


@kernel
def combine(t, held, p):
    """p -= images · weights, weights minimising |move - moves · weights|; False, and p kept, if that is singular."""
    # Normal equations of the least-squares problem, slightly regularised.
    size, trace = len(p), 0.0
    for a in range(held):
        t.weights[a] = dot(t.moves[a], t.move, size)
        trace += t.gram[a, a]
    for a in range(held):
        for b in range(a + 1):
            t.factor[a, b] = t.gram[a, b]
        t.factor[a, a] += RIDGE * trace
    if cholesky(t.factor, held) < held:
        return False

    # Solve them, and combine.
    cholesky_solve(t.factor, held, t.weights)
    for a in range(held):
        for j in range(size):
            p[j] -= t.weights[a] * t.images[a, j]
    return True
