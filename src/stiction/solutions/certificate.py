"""The judge: by how much an answer violates complementarity, from the problem and the answer alone.

The residual is a componentwise backward error: how much of the terms of its rows an answer leaves over, where

    S_k = |q_k| + sum_j |H_kj z_j|          the size of the terms that make up w_k (what rounding is relative to)

A residual r means of each variable z_i: it lies within its bounds, and its row w_i is zero to r S_i; or it lies at
a bound and w_i has the sign that this bound asks for, to r S_i. It lies at a bound if moving it there changes no row k
by more than r S_k, and itself by no more than r times the width of its box. So the answer, with what is close to a
bound put there, solves exactly a problem whose H and q differ by relative changes of the order of r in each entry.

S_k alone would let an enormous z pass anything, as a singular problem without a solution invites. So terms count only
up to 1000 times what the given numbers, q and the bounds, are worth in that row. `natural_map` derives that from the
rows that determine the variables; entries of the size of rounding take no part in it. It also forgives noise: variables
that miss a bound, or zero, by less than 1e-12 of what the given numbers are worth.

All of this follows every change of units and every scaling of rows: for powers of two, to the last bit. Parts of a
problem that share no variable are judged each by itself, and the whole is as bad as its worst part. NaN fails.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP
    from stiction.solutions.contact import ContactCertificate


class Certificate(NamedTuple):
    """Dimensionless violations of an answer; zero is exact, rounding leaves about 1e-16.

    residual: the largest of the three others over all variables
    index: the variable where it is attained, -1 for an empty problem
    lower, upper: how far z lies outside its bounds, by what moving it there would change
    complementarity: how far each row is from zero, or its variable from a bound that suits the sign of its row
    """

    residual: float
    index: int  # type: ignore[assignment]
    lower: float
    upper: float
    complementarity: float

    def passes(self, tolerance: float) -> bool:
        """Whether the residual is within the tolerance; NaN is not."""
        return self.residual <= tolerance

    def __str__(self) -> str:
        return f"residual {self.residual:.1e} at index {self.index}"


@overload
def certify(problem: BoxLCP, solution: Any) -> Certificate: ...


@overload
def certify(problem: ContactProblem, solution: Any) -> ContactCertificate: ...


def certify(problem: BoxLCP | ContactProblem, solution: Any) -> Certificate | ContactCertificate:
    """Judge an answer from any source: a solution, or for complementarity problems the vector `z` itself."""
    if isinstance(problem, ContactProblem):
        from stiction.solutions.contact import certify_contact

        return certify_contact(problem, solution)
    z = np.array(getattr(solution, "z", solution), dtype=np.float64)
    if z.shape != (problem.n,):
        raise InvalidProblem(f"certify: z must have shape ({problem.n},) to match the problem, got {z.shape}")
    return judge(problem, z)[0]


def judge(problem: BoxLCP, z: NDArray[np.float64]) -> tuple[Certificate, NDArray[np.float64]]:
    """The certificate of `z`, and w = H z + q."""
    return judge_with_noise(problem, z)[:2]


def judge_with_noise(problem: BoxLCP, z: NDArray[np.float64]) -> tuple[Certificate, NDArray[np.float64], float]:
    """The certificate of `z`, w = H z + q, and the residual if no noise were forgiven."""
    w = np.empty(problem.n)
    found = _natural_map()(problem.H, problem.vectors, z, w)
    return Certificate(*found[:5]), w, found[5]


def without_noise(problem: BoxLCP, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """A finite answer whose variables lie at their bounds (free ones at zero) where they miss them by noise."""
    from stiction.solutions.natural_map import denoised

    return denoised(problem.H, problem.vectors, z)


@cache
def _natural_map() -> Callable[..., tuple[float, int, float, float, float, float]]:
    """The kernel, loaded when it is first needed: importing the package does not import Numba."""
    from stiction.solutions.natural_map import natural_map

    return natural_map
