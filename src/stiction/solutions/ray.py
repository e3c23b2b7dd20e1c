"""A ray as evidence: what the unbounded end of a pivoting path proves, checked from the problem alone.

Along a ray z + t y nothing blocks. If, for all z within the bounds, y · (H z + q) < 0, while every answer needs
y · w >= 0 (y_i >= 0 where w_i >= 0 is required, y_i <= 0 where w_i <= 0 is, y_i = 0 where w_i may have either sign), then
there is no answer: Farkas' alternative. For copositive-plus H every Lemke ray is of this kind [CottlePangStone1992, 4.4.12].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP

# Entries of H'y below this part of their terms count as rounding, and the gap must exceed it.
ROUNDING = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Ray:
    """The direction of an unbounded path, and whether it proves that the problem has no solution."""

    direction: NDArray[np.float64]
    infeasible: bool

    @property
    def statement(self) -> str:
        """What the ray proves, in words."""
        if self.infeasible:
            return (
                "the ray y proves that there is no solution: y·(H z + q) < 0 for every z within its bounds, "
                "where a solution needs y·w >= 0"
            )
        return "the ray proves nothing here (the matrix is not copositive-plus): the problem may have solutions"


def examine(problem: BoxLCP, direction: NDArray[np.float64]) -> Ray:
    """What the direction proves, by Farkas' alternative on the problem's own data."""
    y = np.array(direction)
    open_above, open_below = np.isinf(problem.hi), np.isinf(problem.lo)
    y[~open_above & ~open_below] = 0.0  # w_i is free to have either sign there
    y[open_above & ~open_below] = np.maximum(y[open_above & ~open_below], 0.0)
    y[open_below & ~open_above] = np.minimum(y[open_below & ~open_above], 0.0)
    return Ray(direction, _no_answer(problem, y))


def _no_answer(problem: BoxLCP, y: NDArray[np.float64]) -> bool:
    """Whether sup over lo <= z <= hi of y · (H z + q) is negative beyond rounding."""
    if not np.isfinite(y).all() or not y.any():
        return False
    slope, size = y @ problem.H, np.abs(y) @ np.abs(problem.H)
    slope = np.where(np.abs(slope) <= ROUNDING * size, 0.0, slope)
    upper = np.where(slope > 0.0, problem.hi, problem.lo)  # where the supremum over z_j is attained
    if np.isinf(upper[slope != 0.0]).any():
        return False
    terms = np.where(slope != 0.0, slope * np.where(np.isfinite(upper), upper, 0.0), 0.0)
    supremum = terms.sum() + y @ problem.q
    return bool(supremum < -ROUNDING * (np.abs(terms).sum() + np.abs(y) @ np.abs(problem.q)))
