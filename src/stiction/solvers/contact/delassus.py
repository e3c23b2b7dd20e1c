"""Corrections for a Delassus matrix that the rows of the normal form do not give: printed with few digits, say.

    u = W p + q = L Lᵀ p + (q + E p),      E = W - L Lᵀ

A solver works on L. So it is asked again with E p added to the free velocities, until that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

    Array = NDArray[np.float64]

Answer = TypeVar("Answer")


def corrected(
    problem: ContactProblem,
    solve: Callable[[Array, Answer | None], Answer],
    impulse: Callable[[Answer], Array | None],
    rounds: int,
    negligible: float,
) -> Answer:
    """The answer of the last round that was worth another.

    solve: from velocities (n, d) to add to the free ones, in units of the normal form, and the answer before
    impulse: (n, d) of an answer, in the same units; None if it is not worth another round
    """
    added: NDArray[np.float64] = np.zeros(problem.rows.shape[:2])
    answer = solve(added, None)
    if problem.delassus is None or problem.n == 0:
        return answer
    white = problem.whitened
    d = problem.rows.shape[1]
    size, rows = np.repeat(white.scale, d), white.rows.reshape(d * problem.n, -1)
    beyond = size[:, None] * problem.delassus * size - rows @ rows.T
    p = impulse(answer)
    for _ in range(rounds):
        if p is None:
            break
        wanted = (beyond @ p.ravel()).reshape(-1, d)
        if np.abs(wanted - added).max() <= negligible * max(1.0, float(np.abs(p).max())):
            break
        added = wanted
        further = solve(added, answer)
        p = impulse(further)
        answer = answer if p is None else further  # a round that fails does not spoil the one before
    return answer
