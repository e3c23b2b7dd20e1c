"""Anderson acceleration of Gauss–Seidel sweeps.

A sweep maps p to g(p). The differences between the last sweeps are combined such that |p - g(p)| would be least if the
map were affine, an approximation that is fair while no contact changes its mode. If the sweep from an accelerated point
moves more than twice as far as the shortest so far, the point is not trusted, and the memory is emptied.
[Anderson1965, WalkerNi2011]
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import cholesky, cholesky_solve, dot
from stiction.arrays.layout import Floats, flat, layout
from stiction.solvers.contact.cone_newton.one_contact import into_cone, residual, set_velocity, sweep
from stiction.solvers.contact.cone_newton.tolerances import EXACT, RIDGE, SWEEPS_KEPT, TRUST


class Memory(NamedTuple):
    """The last sweeps."""

    move: Array[Floats, "d * n"]  # g(p) - p
    last_move: Array[Floats, "d * n"]
    last: Array[Floats, "d * n"]  # g(p) before
    moves: Array[Floats, "memory", "d * n"]  # differences of moves
    images: Array[Floats, "memory", "d * n"]  # differences of g(p)
    gram: Array[Floats, "memory", "memory"]  # of moves
    factor: Array[Floats, "memory", "memory"]
    weights: Array[Floats, "memory"]


memory_sizes, carve_memory = layout(Memory, "n", "d", memory=f"{SWEEPS_KEPT}")


@kernel
def accelerated_sweeps(contacts, point, best, least, memory, tolerance, max_sweeps):
    """Accelerated sweeps from `point`; `best`, of residual `least`, keeps the best impulses.

    Returns (residual of `best`, sweeps).
    """
    p, size, kept = flat(point.p), point.p.size, flat(best)
    t = memory
    shortest, held, accelerated = 1e300, 0, False
    set_velocity(contacts, point)
    for count in range(1, max_sweeps + 1):
        # One sweep, and how far it moved: g(p) - p.
        for j in range(size):
            t.move[j] = -p[j]
        sweep(contacts, point, EXACT)
        for j in range(size):
            t.move[j] += p[j]
        square = dot(t.move, t.move, size)

        # Keep the best impulses; stop at the tolerance.
        largest, _ = residual(contacts, point)
        if largest < least:
            least = largest
            for j in range(size):
                kept[j] = p[j]
        if least <= tolerance:
            return least, count

        # Remember this sweep, or empty the memory after a bad accelerated point.
        dropped = accelerated and square > TRUST * shortest
        if dropped:
            held, shortest = 0, square
        else:
            shortest = min(shortest, square)
            if count > 1:
                remember(t, p, held)
                held += 1

        # Go on from the combination of the remembered sweeps, put into the cones.
        for j in range(size):
            t.last_move[j], t.last[j] = t.move[j], p[j]
        accelerated = held > 0 and not dropped and combine(t, min(held, SWEEPS_KEPT), p)
        if accelerated:
            into_cone(point.p, contacts)
            set_velocity(contacts, point)
    return least, max_sweeps


@kernel
def remember(t, p, held):
    """Store the differences from the previous sweep in place of the oldest ones, and their scalar products."""
    size, k = len(p), held % SWEEPS_KEPT
    for j in range(size):
        t.moves[k, j], t.images[k, j] = t.move[j] - t.last_move[j], p[j] - t.last[j]
    for a in range(min(held + 1, SWEEPS_KEPT)):
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
