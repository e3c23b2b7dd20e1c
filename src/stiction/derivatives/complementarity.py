"""Derivatives of complementarity problems.

    w = H z + q,      lo <= z <= hi,      w_i >= 0 at lo_i,  <= 0 at hi_i,  = 0 between

Strictly between its bounds w_i = 0 stays so; at a bound with w_i ≠ 0 z_i stays there. With F the variables between,

    H_FF dz_F = -(dq + dH z)_F,      dz = 0 elsewhere,      dw = H dz + dq + dH z

A variable at a bound whose w_i is zero too is a kink: it leaves the bound on one side only. Both distances are measured
as the certificate measures them: w_i over its terms S_i = |q_i| + sum_j |H_ij z_j|, and z_i by what moving it to its
bound would change in the rows, over their terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from stiction.derivatives.contact import ByMatrix, numbers
from stiction.derivatives.tolerances import LCP_SINGULAR, LCP_SMALLEST, RESIDUALS
from stiction.errors import InvalidProblem, NotDifferentiable, SolveFailed, first_few
from stiction.problems.lcp import BoxLCP
from stiction.solvers.solve import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.solution import Solution

    Array = NDArray[np.float64]

LOWER, BETWEEN, UPPER, FIXED = range(4)


class LCPKink(NamedTuple):
    """A variable at a bound with w zero; margin: the larger distance of both, dimensionless."""

    index: int  # type: ignore[assignment]
    margin: float


class LCPChange(NamedTuple):
    """A direction in q and H, or a gradient by them; what is None does not change."""

    q: Array | None = None
    H: Array | None = None


class LCPResponse(NamedTuple):
    """How z and w change; residual: what the linear system leaves over, relative to its terms."""

    z: Array
    w: Array
    residual: float


@dataclass(frozen=True, eq=False, repr=False)
class LCPDerivatives:
    """Derivatives of the answer of an `LCP` or `BoxLCP` by q and H.

    kinks: variables where there is no derivative; see `one_sided`
    place: (n,) 0 at the lower bound, 1 between, 2 at the upper bound, 3 where both bounds are equal
    reason: why there is no derivative, empty if there is one
    """

    problem: BoxLCP
    solution: Solution
    kinks: tuple[LCPKink, ...]
    place: NDArray[np.int64]
    reason: str
    strict: bool
    between: NDArray[np.int64]  # F
    lu: tuple[Array, NDArray[np.int32]] | None  # of H_FF; None if it is singular
    inverse: Array  # pseudo-inverse of H_FF where it is singular

    @property
    def smooth(self) -> bool:
        """Whether there is a derivative."""
        return not self.reason

    @cached_property
    def by_q(self) -> Array:
        """(n, n) dz / dq."""
        self.refuse()
        return self.solve(-np.eye(self.problem.n))

    @property
    def by_H(self) -> ByMatrix:
        """dz / dH, as an operator."""
        self.refuse()
        return ByMatrix(self, "H", "z")

    @cached_property
    def residual(self) -> float:
        """Residual of the linear system, relative to its terms, for changes of every entry of q."""
        return self.left_over(self.by_q, -np.eye(self.problem.n))

    def jvp(self, direction: LCPChange | Mapping[str, Any]) -> LCPResponse:
        """How z and w change as q and H change in this direction."""
        self.refuse()
        rate = self.rate("jvp", direction)
        z = self.solve(-rate[:, None])
        return LCPResponse(z[:, 0], self.problem.H @ z[:, 0] + rate, self.left_over(z, -rate[:, None]))

    def vjp(self, cotangent: Any) -> LCPChange:
        """The gradient by q and H of a number whose gradient by z (n,) is given."""
        self.refuse()
        by_z = numbers("vjp", "z", cotangent, (self.problem.n,))
        q = np.zeros(self.problem.n)
        q[self.between] = -self.inner(by_z[self.between, None], True)[:, 0]
        return LCPChange(q, np.outer(q, self.solution.z))

    def one_sided(self, direction: LCPChange | Mapping[str, Any]) -> LCPResponse:
        """The derivative along a direction, one-sided: kinks leave their bound or stay, as a small problem decides."""
        rate = self.rate("one_sided", direction)
        kinks = np.array([kink.index for kink in self.kinks], np.int64)
        lower = self.place[kinks] == LOWER
        free = np.setdiff1d(self.between, kinks)
        active = np.concatenate([free, kinks])
        lo = np.concatenate([np.full(len(free), -np.inf), np.where(lower, 0.0, -np.inf)])
        hi = np.concatenate([np.full(len(free), np.inf), np.where(lower, np.inf, 0.0)])
        z = np.zeros(self.problem.n)
        small = BoxLCP(self.problem.H[np.ix_(active, active)], rate[active], lo, hi)
        try:
            found = solve(small)
        except SolveFailed as error:
            raise NotDifferentiable(
                f"one_sided: the complementarity problem of the kinks is not solved: {error}"
            ) from error
        z[active] = found.z
        return LCPResponse(z, self.problem.H @ z + rate, found.certificate.residual)

    def rate(self, where: str, direction: Any) -> Array:
        """dq + dH z."""
        given = direction._asdict() if isinstance(direction, LCPChange) else direction
        if not isinstance(given, Mapping):
            raise InvalidProblem(
                f"{where}: the direction must be an LCPChange or a mapping, got {type(given).__name__}"
            )
        n = self.problem.n
        shapes: dict[str, tuple[int, ...]] = {"q": (n,), "H": (n, n)}
        for name in given:
            if name not in shapes:
                raise InvalidProblem(f"{where}: {name!r} is no datum of {type(self.problem).__name__}; there are q, H")
        q, H = (None if given.get(k) is None else numbers(where, k, given[k], shapes[k]) for k in ("q", "H"))
        if q is None and H is None:
            raise InvalidProblem(f"{where}: the direction changes nothing; give q or H")
        return (np.zeros(n) if q is None else q) + (0.0 if H is None else H @ self.solution.z)

    def solve(self, rates: Array) -> Array:
        """(n, columns) H_FF⁻¹ of rates, zero elsewhere."""
        z = np.zeros_like(rates)
        z[self.between] = self.inner(rates[self.between], False)
        return z

    def inner(self, b: Array, transposed: bool) -> Array:
        if self.lu is None or not b.size:
            return np.asarray((self.inverse.T if transposed else self.inverse) @ b)
        return np.asarray(lapack.dgetrs(*self.lu, b, trans=int(transposed))[0])

    def left_over(self, z: Array, rates: Array) -> float:
        F = self.between
        if not len(F):
            return 0.0
        H = self.problem.H[np.ix_(F, F)]
        size = np.abs(H) @ np.abs(z[F]) + np.abs(rates[F])
        off = np.abs(H @ z[F] - rates[F])
        return float(np.divide(off, size, out=np.zeros_like(off), where=size > 0.0).max())

    def refuse(self) -> None:
        if self.strict and self.reason:
            raise NotDifferentiable(self.reason)

    def __repr__(self) -> str:
        return f"<LCPDerivatives n = {self.problem.n}: {'smooth' if self.smooth else self.reason}>"


def differentiate_lcp(solution: Solution, within: float, strict: bool) -> LCPDerivatives:
    """Places of the variables, kinks, and the factor of H_FF."""
    if solution.problem is None:
        raise InvalidProblem("differentiate: this solution was made without its problem; solve(problem) keeps it")
    problem = solution.problem
    H, z, w = problem.H, solution.z, solution.w
    near = max(within, RESIDUALS * solution.certificate.residual)

    # Distances as the certificate measures them.
    terms = np.abs(problem.q) + np.abs(H) @ np.abs(z)
    row = np.divide(np.abs(w), terms, out=np.zeros_like(w), where=terms > 0.0)
    reach = np.divide(np.abs(H), terms[:, None], out=np.zeros_like(H), where=terms[:, None] > 0.0).max(0, initial=0.0)
    to_lower, to_upper = (
        np.where(np.isfinite(bound), reach * np.abs(z - np.where(np.isfinite(bound), bound, 0.0)), np.inf)
        for bound in (problem.lo, problem.hi)
    )
    fixed = problem.lo == problem.hi
    place = np.where(fixed, FIXED, BETWEEN)
    place[~fixed & (to_lower <= near) & (to_lower <= to_upper)] = LOWER
    place[~fixed & (to_upper <= near) & (to_upper < to_lower)] = UPPER
    at_bound = (place == LOWER) | (place == UPPER)
    which = np.flatnonzero(at_bound & (row <= near))
    distance = np.maximum(row, np.minimum(to_lower, to_upper))
    kinks = tuple(LCPKink(int(i), float(distance[i])) for i in which)

    # At kinks, derivatives are those of the variable at its bound.
    F = np.flatnonzero(place == BETWEEN)
    block = H[np.ix_(F, F)]
    lu, inverse = None, np.asarray(np.zeros((len(F), len(F))))
    if len(F):
        factor, pivots, _ = lapack.dgetrf(block)
        size = np.abs(block).max(axis=1)
        size = np.where(size > 0.0, size, 1.0)
        width = np.abs(block / size[:, None]).max(axis=0)
        even = block / size[:, None] / np.where(width > 0.0, width, 1.0)
        condition = lapack.dgecon(lapack.dgetrf(even)[0], float(np.abs(even).sum(axis=0).max()))[0]
        if condition > LCP_SINGULAR:
            lu = factor, pivots
        else:
            inverse = np.asarray(np.linalg.pinv(block, rcond=LCP_SMALLEST))
    reason = ""
    if kinks:
        named = first_few([f"z[{k.index}] (margin {k.margin:.1e})" for k in kinks], 4)
        reason = f"at a kink: at a bound with w zero are {named}; one_sided(direction) gives derivatives"
    elif len(F) and lu is None:
        reason = (
            "z is not determined: H is singular for the variables between their bounds; differentiate(solution, "
            "strict=False) for the smallest change"
        )
    return LCPDerivatives(problem, solution, kinks, place, reason, strict, F, lu, inverse)
