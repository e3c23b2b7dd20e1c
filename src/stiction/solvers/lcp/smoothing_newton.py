"""Smoothing Newton: the natural map made differentiable by μ > 0, and μ driven to zero together with it.

    Φ(μ, z) = z - p(μ, z - w),   w = H z + q + ρ μ (z - z_start),   p → mid(lo, hi, ·) as μ → 0

p replaces |t| by sqrt(t² + 4 μ²), so its slope D lies strictly between 0 and 1, and the Jacobian (I - D) + D (H + ρ μ
I) is regular for every P0-matrix. One linear system a step gives the direction of (μ, z) together; a line search on
μ² + |Φ|² makes it global. How much of μ is kept depends on the last step: little after a full one, all of it after a
short one, so that the iterates stay near the smooth path where the matrix is ill-conditioned. At the end the active
set that the iterate names is solved exactly, if that improves it.

[ZhangGao2003] for the LCP, with their regularization by μ; [LiFukushima2000] for box constraints; the smoothing of
mid is that of Gabriel and Moré.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.compiled import kernel, workspace
from stiction.layout import Floats, layout
from stiction.linear import add_columns, lu, lu_solve
from stiction.solvers.contract import STATUS, Contract, Proposal
from stiction.solvers.lcp.block_pivot import Sides, solve_members
from stiction.solvers.lcp.principal import (
    AT_LOWER,
    AT_UPPER,
    EMPTY,
    MAX_ITERATIONS,
    MEMBER,
    SINGULAR,
    SOLVED,
    STALLED,
    finish,
)
from stiction.solvers.lcp.scaling import equilibrate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP

KEEP_FULL, KEEP_PART, KEEP_SHORT = 0.3, 0.7, 1.0  # part of μ kept after a full step, a shorter one, a short one
KEEP_NEAR = 0.01  # part of μ kept after a full step near a solution
NEAR = 1e-8  # merit that counts as near
REGULARIZATION = 1e-6  # ρ
DECREASE = 1e-4  # part of the predicted decrease that a step must achieve
SHORTEST = 1e-12  # step at which the line search gives up
SECOND_TRY = 1e-3  # part of the first smoothing to begin with again, if the first path led nowhere
ENOUGH = 1e-10  # natural map, in scaled units, at which there is no second try
EXACT = 1e-15  # natural map, in scaled units, that cannot be improved


@dataclass(frozen=True)
class SmoothingNewton:
    """Smoothing Newton method, for LCP and BoxLCP.

    max_iterations: Newton steps, one n × n linear system each
    smoothing: first μ, in scaled units (|q| at most one, diagonal about one)
    """

    max_iterations: int = 200
    smoothing: float = 10.0

    contract: ClassVar[Contract] = Contract(
        matrix="P0",
        guarantee="P-matrices (so positive definite ones), from any start; P0 where the solutions are bounded",
        cost="15 to 40 systems of size n, O(n³) each, hardly depending on n",
        choose="a start near the answer is known and block pivoting cycles",
        solves=frozenset({"P"}),
        warm=True,
    )

    def propose(self, problem: BoxLCP, start: NDArray[np.float64] | None) -> Proposal:
        n = problem.n
        work = workspace(*sizes(n))
        first, best, least, steps = EMPTY if start is None else start, None, np.inf, 0
        for smoothing in (self.smoothing, self.smoothing * SECOND_TRY):
            z = np.empty(n)
            status, count, violation = smoothing_newton(
                problem.H, problem.vectors, problem.symmetric, first, smoothing, self.max_iterations, *work, z
            )
            steps += count
            if best is None or violation < least:
                best, least = Proposal(STATUS[status], steps, z), violation
            if violation <= ENOUGH:
                break
        assert best is not None
        return best._replace(iterations=steps)


class Smoothing(NamedTuple):
    """The state of the method; scaled units."""

    sides: Sides
    jacobian: Array[Floats, "n", "n"]
    phi: Array[Floats, "n"]  # the smoothed map
    by_mu: Array[Floats, "n"]  # its derivative by the smoothing
    slope: Array[Floats, "n"]  # and that by w
    trial: Array[Floats, "n"]
    trial_w: Array[Floats, "n"]
    direction: Array[Floats, "n"]


sizes, carve = layout(Smoothing, "n")


@kernel
def smoothing_newton(H, vectors, symmetric, start, smoothing, max_iterations, floats, ints, z):
    """Returns (status, Newton steps, natural map in scaled units)."""
    n = len(z)
    t, jacobian, phi, by_mu, slope, trial, trial_w, direction = carve(n, floats, ints)
    anchor = t.spare
    tau = equilibrate(H, vectors, symmetric, t.columns, t.q, t.lo, t.hi, t.row_scale, t.column_scale)
    for i in range(n):
        t.members[i] = i
        first = start[i] / (t.column_scale[i] * tau) if len(start) == n else 0.0
        t.z[i] = anchor[i] = min(max(first, t.lo[i]), t.hi[i])
    product(t, t.z, t.w)
    mu = smoothing
    if len(start) == n:  # a start is worth as much smoothing as it is wrong
        mu = min(smoothing, max(natural(t, t.z, t.w), 1e-8))
    status, count, step = MAX_ITERATIONS, 0, 1.0
    while True:
        if natural(t, t.z, t.w) <= EXACT:
            status = SOLVED
            break
        smooth_map(t, t.z, t.w, mu, anchor, phi, slope, by_mu)
        merit = mu * mu + squared(phi)
        if count == max_iterations:
            break
        # (I - D) + D (H + ρ μ I), row by row
        for i in range(n):
            for j in range(n):
                jacobian[i, j] = slope[i] * t.columns[j, i]
            jacobian[i, i] += 1.0 - slope[i] + slope[i] * REGULARIZATION * mu
        if step == 1.0:
            keep = KEEP_FULL if merit > NEAR else KEEP_NEAR
        else:
            keep = KEEP_PART if step > 0.2 else KEEP_SHORT
        mu_step = -mu * (1.0 - keep)
        for i in range(n):
            direction[i] = -phi[i] - by_mu[i] * mu_step
        if not lu(jacobian, t.pivots, n):
            status = SINGULAR
            break
        lu_solve(jacobian, t.pivots, n, direction)
        count += 1

        step = 1.0
        while step > SHORTEST:
            for i in range(n):
                trial[i] = t.z[i] + step * direction[i]
            product(t, trial, trial_w)
            new_mu = mu + step * mu_step
            smooth_map(t, trial, trial_w, new_mu, anchor, phi, slope, by_mu)
            if new_mu * new_mu + squared(phi) <= (1.0 - 2.0 * DECREASE * step) * merit:
                break
            step *= 0.5
        if step <= SHORTEST:
            status = STALLED
            break
        mu += step * mu_step
        for i in range(n):
            t.z[i], t.w[i] = trial[i], trial_w[i]

    for i in range(n):
        trial[i] = min(max(t.z[i], t.lo[i]), t.hi[i])
    name_sides(t)
    product(t, trial, trial_w)
    before = natural(t, trial, trial_w)
    if before > EXACT and solve_members(t, symmetric):
        for i in range(n):
            t.z[i] = min(max(t.z[i], t.lo[i]), t.hi[i])
        product(t, t.z, t.w)
        after = natural(t, t.z, t.w)
        if after < before:
            finish(vectors, tau, t, z)
            return SOLVED, count, after
    for i in range(n):
        z[i] = min(max(trial[i] * t.column_scale[i] * tau, vectors[1, i]), vectors[2, i])
    return status, count, before


@kernel
def product(t, z, w):
    """w = H z + q."""
    n = len(t.q)
    for i in range(n):
        w[i] = t.q[i]
    for i in range(n):
        t.members[i] = i
    add_columns(t.columns, t.members, z, n, n, w)


@kernel
def squared(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


@kernel
def natural(t, z, w):
    """Largest |z - mid(lo, hi, z - w)|, relative to the largest z (at least one)."""
    worst, size = 0.0, 1.0
    for i in range(len(z)):
        x = min(max(z[i] - w[i], t.lo[i]), t.hi[i])
        worst, size = max(worst, abs(z[i] - x)), max(size, abs(z[i]))
    return worst / size


@kernel
def smooth_map(t, z, w, mu, anchor, phi, slope, by_mu):
    """Φ, the slope D of p, and the derivative of Φ by μ."""
    for i in range(len(z)):
        x = z[i] - w[i] - REGULARIZATION * mu * (z[i] - anchor[i])
        lower, upper = x - t.lo[i], x - t.hi[i]
        below, above = np.isfinite(t.lo[i]), np.isfinite(t.hi[i])
        # mid(lo, hi, x) = x + max(lo - x, 0) - max(x - hi, 0), each max(a, 0) smoothed as (a + sqrt(a² + 4 μ²)) / 2
        p, d, m = x, 1.0, 0.0
        if below:
            root = np.sqrt(lower * lower + 4.0 * mu * mu)
            p += 0.5 * (root - lower)
            d += 0.5 * ((lower / root if root > 0.0 else 0.0) - 1.0)
            m += 2.0 * mu / root if root > 0.0 else 1.0
        if above:
            root = np.sqrt(upper * upper + 4.0 * mu * mu)
            p -= 0.5 * (root + upper)
            d -= 0.5 * ((upper / root if root > 0.0 else 0.0) + 1.0)
            m -= 2.0 * mu / root if root > 0.0 else 1.0
        phi[i] = z[i] - p
        slope[i] = d
        by_mu[i] = -m + d * REGULARIZATION * (z[i] - anchor[i])


@kernel
def name_sides(t):
    """The active set that the iterate names: between the bounds if z - w is."""
    for i in range(len(t.z)):
        x = t.z[i] - t.w[i]
        t.state[i] = AT_LOWER if x <= t.lo[i] else (AT_UPPER if x >= t.hi[i] else MEMBER)
