"""Solvers for box LCPs, at random and from a heap of logs, and the splitting built on them.

C. Lacoursière, "Splitting methods for dry frictional contact problems in rigid multibody systems: preliminary
performance results", SIGRAD 2003, section 7, figures 1 to 8.

Three parts, a file each.

`lacoursiere2003_random`, figures 1 and 2. The paper tells neither the spectrum of its matrices (beyond the condition
number) nor its bounds, and both matter. Uniform eigenvalues give figure 1 as described; eigenvalues uniform in their
logarithm, hence many small ones, give the same for Lemke, Keller and smoothing Newton, but Cottle–Dantzig takes 2.9 n
pivots and Murty 8.9 n: not "slightly worse". In units of n no distribution becomes broader as n grows. Gauss–Seidel
suffers from a large condition number only if many eigenvalues are small and many variables free.

`lacoursiere2003_heap`, figures 3 to 6: forty logs that fall. Gauss–Seidel stagnates as printed. Made definite by 1e-3,
the problems are solved by Keller in up to 2.1 n pivots, by Lemke in as many (most of them) and by Cottle–Dantzig in up
to 14 n, against 1.2 n, 1 n and 4 n in print; as they are, singular, pivoting methods take up to 26 n and fail on some.
Smoothing Newton solves all of the definite ones in at most 40 steps; block pivoting cycles on some.

`lacoursiere2003_passes`, figures 7 and 8: the splitting. On a slope two passes from no friction are right, and a block
that would tip takes five from sticking, as printed; a flat one takes two. On the heap passes converge linearly, in less
than ten at best, and not in all cases. Newton's method after some passes does so faster than linearly, but not on the
heap at rest, where neither finds an answer.
"""

from __future__ import annotations

from stiction.studies import lacoursiere2003_heap as heap
from stiction.studies import lacoursiere2003_passes as passes
from stiction.studies import lacoursiere2003_random as random
from stiction.studies.claims import Claim
from stiction.studies.results import Plate, Sheet


class Results(passes.Splittings, heap.Heap, random.Random):
    """All three parts."""


def run(quick: bool = False, seed: int = 0) -> Results:
    """All experiments: some minutes, or less than one if quick (fewer problems, sizes, steps and passes)."""
    fallen = heap.fall(seed)
    return Results(seed, **random.run(quick, seed), **heap.run(fallen, quick), **passes.run(fallen, quick))


def check(results: Results) -> list[Claim]:
    """The claims of the paper, and what was found."""
    return random.check(results) + heap.check(results) + passes.check(results)


def figures(results: Results) -> list[Plate]:
    """Figures 1 to 8."""
    return random.figures(results) + heap.figures(results) + passes.figures(results)


def tables(results: Results) -> list[Sheet]:
    """Counts on the heap, and convergence of the splitting."""
    return heap.tables(results) + passes.tables(results)
