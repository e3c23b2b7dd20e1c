"""Smoothing Newton: the natural map made differentiable by μ > 0, and μ driven to zero together with it.

    Φ(μ, z) = z - p(μ, z - w),   w = H z + q + ρ μ (z - z_start),   p → mid(lo, hi, ·) as μ → 0

p replaces |t| by sqrt(t² + 4 μ²), so its slope D lies strictly between 0 and 1, and the Jacobian (I - D) + D (H + ρ μ
I) is regular for every P0-matrix. One linear system a step gives the direction of (μ, z) together; a line search on
μ² + |Φ|² makes it global. How much of μ is kept depends on the last step: little after a full one, all of it after a
short one, so that the iterates stay near the smooth path where the matrix is ill-conditioned. At the end the active
set of the iterate is solved exactly, if that improves it.

[ZhangGao2003] for the LCP, with their regularization by μ; [LiFukushima2000] for box constraints; the smoothing of
mid is that of Gabriel and Moré.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import in_callers, kernel, workspace
from stiction.arrays.dense import add_columns, lu, lu_solve
from stiction.arrays.layout import Floats
from stiction.solvers.contract import MAX_ITERATIONS, SINGULAR, SOLVED, STALLED, STATUS, Contract, Proposal
from stiction.solvers.lcp.block_pivot import solve_members
from stiction.solvers.lcp.tableau import AT_LOWER, AT_UPPER, EMPTY, MEMBER, finish, scale, tableau_with
from stiction.solvers.lcp.tolerances import DECREASE, KEPT, REGULARIZATION, SECOND_SMOOTHING
from stiction.solvers.tolerances import ENOUGH, HALF_OF_THE_DIGITS, PRODUCT_ERROR, ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP


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
        for smoothing in (self.smoothing, self.smoothing * SECOND_SMOOTHING):
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
    """Arrays for the smoothed map, in addition to the tableau."""

    jacobian: Array[Floats, "n", "n"]
    phi: Array[Floats, "n"]  # the smoothed map
    by_mu: Array[Floats, "n"]  # its derivative by the smoothing
    slope: Array[Floats, "n"]  # and that by w
    anchor: Array[Floats, "n"]  # the start, to which the regularization draws
    trial: Array[Floats, "n"]
    trial_w: Array[Floats, "n"]
    direction: Array[Floats, "n"]


sizes, views = tableau_with(Smoothing)


@kernel
def smoothing_newton(H, vectors, symmetric, start, smoothing, max_iterations, floats, ints, z):
    """Returns (status, Newton steps, natural map in scaled units)."""
    n = len(z)
    t = views(n, floats, ints)
    tau = scale(H, vectors, symmetric, t)

    # The start, within its bounds, also draws the regularization.
    for i in range(n):
        first = start[i] / (t.column_scale[i] * tau) if len(start) == n else 0.0
        t.z[i] = t.own.anchor[i] = min(max(first, t.lo[i]), t.hi[i])
    product(t, t.z, t.w)
    # A warm start needs only as much smoothing as its error.
    mu = smoothing
    if len(start) == n:
        mu = min(smoothing, max(natural(t, t.z, t.w), HALF_OF_THE_DIGITS))
    status, count = minimize(t, mu, max_iterations)

    # Solve the active set of the iterate exactly, and keep the better of the two.
    trial, trial_w = t.own.trial, t.own.trial_w
    for i in range(n):
        trial[i] = min(max(t.z[i], t.lo[i]), t.hi[i])
    set_active_set(t)
    product(t, trial, trial_w)
    before = natural(t, trial, trial_w)
    if before > ROUNDING and solve_members(t, symmetric):
        for i in range(n):
            t.z[i] = min(max(t.z[i], t.lo[i]), t.hi[i])
        product(t, t.z, t.w)
        after = natural(t, t.z, t.w)
        if after < before:
            finish(vectors, tau, t, z)
            return SOLVED, count, after

    # The smoothed answer was better.
    for i in range(n):
        z[i] = min(max(trial[i] * t.column_scale[i] * tau, vectors[1, i]), vectors[2, i])
    return status, count, before


@in_callers
@kernel
def minimize(t, mu, max_iterations):
    """Newton steps on (μ, z) until the natural map vanishes. Returns (status, steps)."""
    own = t.own
    count, step = 0, 1.0
    while natural(t, t.z, t.w) > ROUNDING:
        smooth_map(t, t.z, t.w, mu)
        merit = mu * mu + squared(own.phi)
        if count == max_iterations:
            return MAX_ITERATIONS, count
        # The direction of (μ, z) together.
        mu_step = -mu * (1.0 - part_kept(step, merit))
        for i in range(len(t.q)):
            own.direction[i] = -own.phi[i] - own.by_mu[i] * mu_step
        set_jacobian(t, mu)
        if not lu(own.jacobian, t.pivots, len(t.q)):
            return SINGULAR, count
        lu_solve(own.jacobian, t.pivots, len(t.q), own.direction)
        count += 1
        # As far along it as the merit falls enough.
        step = line_search(t, mu, mu_step, merit)
        if step <= PRODUCT_ERROR:
            return STALLED, count
        mu += step * mu_step
        for i in range(len(t.q)):
            t.z[i], t.w[i] = own.trial[i], own.trial_w[i]
    return SOLVED, count


@in_callers
@kernel
def part_kept(step, merit):
    """How much of μ is kept: little after a full step, the less the nearer a solution is; most after a short one."""
    return 1.0 - step * (1.0 - min(KEPT, np.sqrt(merit)))


@in_callers
@kernel
def set_jacobian(t, mu):
    """(I - D) + D (H + ρ μ I), row by row."""
    jacobian, slope = t.own.jacobian, t.own.slope
    for i in range(len(t.q)):
        for j in range(len(t.q)):
            jacobian[i, j] = slope[i] * t.columns[j, i]
        jacobian[i, i] += 1.0 - slope[i] + slope[i] * REGULARIZATION * mu


@in_callers
@kernel
def line_search(t, mu, mu_step, merit):
    """Halve the step until μ² + |Φ|² falls enough; trial and trial_w are where it leads."""
    own, step = t.own, 1.0
    while step > PRODUCT_ERROR:
        for i in range(len(t.q)):
            own.trial[i] = t.z[i] + step * own.direction[i]
        product(t, own.trial, own.trial_w)
        new_mu = mu + step * mu_step
        smooth_map(t, own.trial, own.trial_w, new_mu)
        if new_mu * new_mu + squared(own.phi) <= (1.0 - 2.0 * DECREASE * step) * merit:
            break
        step *= 0.5
    return step


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
    """|x|²."""
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
def smooth_map(t, z, w, mu):
    """Φ, the slope D of p, and the derivative of Φ by μ."""
    phi, slope, by_mu, anchor = t.own.phi, t.own.slope, t.own.by_mu, t.own.anchor
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
        # Φ, and its derivatives through x
        phi[i] = z[i] - p
        slope[i] = d
        by_mu[i] = -m + d * REGULARIZATION * (z[i] - anchor[i])


@kernel
def set_active_set(t):
    """The active set of the iterate: a variable is between its bounds if z - w is."""
    for i in range(len(t.z)):
        x = t.z[i] - t.w[i]
        t.state[i] = AT_LOWER if x <= t.lo[i] else (AT_UPPER if x >= t.hi[i] else MEMBER)
