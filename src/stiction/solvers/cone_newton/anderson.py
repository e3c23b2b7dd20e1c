"""Anderson acceleration of Gauss–Seidel sweeps.

A sweep maps p to g(p). From the last differences of p - g(p) and of g(p), the combination is taken at which p - g(p)
would vanish in the least-squares sense if the map were affine there, as it is while no contact changes its mode. A
point from which the next sweep goes twice as far as the shortest so far is not trusted: the memory is emptied.
[Anderson1965, WalkerNi2011]
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stiction.compiled import kernel, shared
from stiction.linear import cholesky, cholesky_solve, dot
from stiction.solvers.cone_newton.one_contact import EXACT, into_cone, residual, set_velocity, sweep

MEMORY = 10
TRUST = 4.0  # squared step of a sweep, over that of the shortest, at which an accelerated point is dropped
RIDGE = 1e-12  # added to the Gram matrix, in units of its trace


class Memory(NamedTuple):
    """The last sweeps."""

    move: Any  # (3n,) g(p) - p
    last_move: Any  # (3n,)
    last: Any  # (3n,) g(p) before
    moves: Any  # (MEMORY, 3n) differences of moves
    images: Any  # (MEMORY, 3n) differences of g(p)
    gram: Any  # (MEMORY, MEMORY) of moves
    factor: Any  # (MEMORY, MEMORY)
    weights: Any  # (MEMORY,)


@shared
def memory_size(n: int) -> int:
    """Floats that `carve_memory` needs."""
    return (2 * MEMORY + 3) * 3 * n + 2 * MEMORY * MEMORY + MEMORY


@kernel
def carve_memory(n, floats):
    size, square = 3 * n, MEMORY * MEMORY
    f = 3 * size
    g = f + 2 * MEMORY * size
    return Memory(
        floats[:size],
        floats[size : 2 * size],
        floats[2 * size : f],
        floats[f : f + MEMORY * size].reshape((MEMORY, size)),
        floats[f + MEMORY * size : g].reshape((MEMORY, size)),
        floats[g : g + square].reshape((MEMORY, MEMORY)),
        floats[g + square : g + 2 * square].reshape((MEMORY, MEMORY)),
        floats[g + 2 * square : g + 2 * square + MEMORY],
    )


@kernel
def accelerated_sweeps(contacts, point, best, least, memory, tolerance, max_sweeps):
    """Sweep from `point`; `best`, of residual `least`, keeps the best impulses. Returns (its residual, sweeps)."""
    p, size = point.p.reshape(-1), 3 * len(point.p)
    kept = best.reshape(-1)
    t = memory
    shortest, held, accelerated = 1e300, 0, False
    set_velocity(contacts, point)
    for count in range(1, max_sweeps + 1):
        for j in range(size):
            t.move[j] = -p[j]
        sweep(contacts, point, EXACT)
        for j in range(size):
            t.move[j] += p[j]
        square = dot(t.move, t.move, size)
        largest, _ = residual(contacts, point)
        if largest < least:
            least = largest
            for j in range(size):
                kept[j] = p[j]
        if least <= tolerance:
            return least, count
        dropped = accelerated and square > TRUST * shortest
        if dropped:
            held, shortest = 0, square
        else:
            shortest = min(shortest, square)
            if count > 1:
                remember(t, p, held)
                held += 1
        for j in range(size):
            t.last_move[j], t.last[j] = t.move[j], p[j]
        accelerated = held > 0 and not dropped and combine(t, min(held, MEMORY), p)
        if accelerated:
            into_cone(point.p, contacts.friction)
            set_velocity(contacts, point)
    return least, max_sweeps


@kernel
def remember(t, p, held):
    """Differences from the sweep before take the oldest place."""
    size, k = len(p), held % MEMORY
    for j in range(size):
        t.moves[k, j], t.images[k, j] = t.move[j] - t.last_move[j], p[j] - t.last[j]
    for a in range(min(held + 1, MEMORY)):
        t.gram[a, k] = t.gram[k, a] = dot(t.moves[a], t.moves[k], size)


@kernel
def combine(t, held, p):
    """p -= images · weights, which makes move - moves · weights least; False, and p kept, if that is singular."""
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
    cholesky_solve(t.factor, held, t.weights)
    for a in range(held):
        for j in range(size):
            p[j] -= t.weights[a] * t.images[a, j]
    return True
