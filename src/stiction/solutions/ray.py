"""A ray as evidence: what the unbounded end of a pivoting path proves, checked from the problem alone.

Along a ray z + t y nothing blocks. If, for all z within the bounds, y · (H z + q) < 0, while every answer needs y · w
>= 0 (y_i >= 0 where w_i >= 0 is required, y_i <= 0 where w_i <= 0 is, y_i = 0 where w_i may have either sign), then
there is no answer: Farkas' alternative. For copositive-plus H every Lemke ray is of this kind [CottlePangStone1992,
4.4.12].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP

# Entries of H'y below this part of their terms count as rounding, and the gap must exceed it.
ROUNDING = 1e-13


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
        return "the ray proves nothing here: the problem may have solutions"


def examine(problem: BoxLCP, direction: NDArray[np.float64]) -> Ray:
    """What the direction proves, by Farkas' alternative on the problem's own data."""
    if not np.isfinite(direction).all():
        return Ray(direction, False)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows proves nothing
        y = _admissible(problem, direction)
        if _no_answer(problem, y):
            return Ray(direction, True)
        polished = _admissible(problem, _polished(problem, y))
        return Ray(polished, True) if _no_answer(problem, polished) else Ray(direction, False)


def _admissible(problem: BoxLCP, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest y with y · w >= 0 for every answer."""
    above, below = np.isinf(problem.hi), np.isinf(problem.lo)  # w_i >= 0 is required if only above, and so on
    return np.clip(direction, np.where(below, -np.inf, 0.0), np.where(above, np.inf, 0.0))


def _polished(problem: BoxLCP, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """On its support a ray of a copositive-plus problem is a null vector of Hᵀ: the nearest one, without its
    rounding."""
    size = np.abs(problem.H).max(axis=0, initial=0.0)
    support = np.flatnonzero(np.abs(y) * size > ROUNDING * (np.abs(y) * size).max(initial=0.0))
    if support.size == 0:
        return y
    block = problem.H[np.ix_(support, support)]
    scale = np.abs(y[support])
    weighted = block.T * scale  # so that the null vector is one of signs
    weighted = weighted / np.maximum(np.abs(weighted).max(axis=1, keepdims=True), np.finfo(float).tiny)
    if not np.isfinite(weighted).all():
        return y
    null = np.linalg.svd(weighted)[2][-1]
    polished = np.zeros_like(y)
    polished[support] = scale * null * np.sign(null @ np.sign(y[support]))
    return polished


def _no_answer(problem: BoxLCP, y: NDArray[np.float64]) -> bool:
    """Whether sup over lo <= z <= hi of y · (H z + q) is negative beyond rounding."""
    if not y.any():
        return False
    slope, size = y @ problem.H, np.abs(y) @ np.abs(problem.H)
    slope = np.where(np.abs(slope) <= ROUNDING * size, 0.0, slope)
    upper = np.where(slope > 0.0, problem.hi, problem.lo)  # where the supremum over z_j is attained
    if np.isinf(upper[slope != 0.0]).any():
        return False
    terms = np.where(slope != 0.0, slope * np.where(np.isfinite(upper), upper, 0.0), 0.0)
    supremum = terms.sum() + y @ problem.q
    return bool(supremum < -ROUNDING * (np.abs(terms).sum() + np.abs(y) @ np.abs(problem.q)))
