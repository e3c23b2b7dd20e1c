"""The judge: by how much an answer violates complementarity, from the problem and the answer alone.

The natural map of lo <= z <= hi, w = H z + q is z - mid(lo, hi, z - w): zero exactly at solutions. It adds a z to a
w, so both are made dimensionless first, by scales that follow every change of units and every scaling of rows:

    s_i = |q_i| + sum_j |H_ij| |z_j|        the size of the terms that make up w_i (what rounding is relative to)
    w_i / s_i                               how far row i is from zero, in its own terms
    z_i max_j |H_ji| / s_j                  what removing z_i changes, in the terms of the row that feels it most

So a residual r says: each row is zero to r of its terms, or its variable lies at its bound up to what no row feels by
more than r. Two things would defeat this. Rounding noise in a row that is all zeros must not be measured against
itself, and an enormous z must not make any violation look small, as it could for a singular problem without a solution.
So s_i is kept between 1e-5 and 1000 times the largest |q| among the rows connected with row i, compared after
equilibration. Only where that takes effect can a scaling of rows show, by little.
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

    residual: the scaled natural map, the largest over all variables; it bounds the other three
    index: the variable where it is attained, -1 for an empty problem
    lower, upper: how far z lies outside its bounds
    complementarity: the natural map of z projected onto its bounds
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
    """Judge an answer, ours or anybody's: a solution, or for complementarity problems the vector `z` itself."""
    if isinstance(problem, ContactProblem):
        from stiction.solutions.contact import certify_contact

        return certify_contact(problem, solution)
    z = np.array(getattr(solution, "z", solution), dtype=np.float64)
    if z.shape != (problem.n,):
        raise InvalidProblem(f"certify: z must have shape ({problem.n},) to match the problem, got {z.shape}")
    return judge(problem, z)[0]


def judge(problem: BoxLCP, z: NDArray[np.float64]) -> tuple[Certificate, NDArray[np.float64]]:
    """The certificate of `z`, and w = H z + q."""
    w = np.empty(problem.n)
    return Certificate(*_natural_map()(problem.H, problem.vectors, problem.symmetric, z, w)), w


@cache
def _natural_map() -> Callable[..., tuple[float, int, float, float, float]]:
    """The kernel, loaded when it is first needed: importing the package does not import Numba."""
    from stiction.solutions.natural_map import natural_map

    return natural_map
