"""The convex relaxation of Coulomb's law: friction as a cone complementarity problem [Anitescu2006].

    K_i ∋ p_i ⊥ u_i ∈ K_i*,      K = {|p_t| <= mu p_n},  K* = {mu |u_t| <= u_n}

Coulomb's law has u_n + mu |u_t| in place of u_n. Without that term impulses minimise a convex function, and the motion
is the unique nearest to the free one among those with all u_i in K_i*; but a contact that slides opens with the speed
mu |u_t|. Where nothing slides the two laws agree.

Solved by the method of multipliers in velocity space. About centres c_i and for ε > 0

    φ(x) = ½ |x - x_free|² + ε/2 sum of |p_i|²,      p_i = proj(c_i - u_i / ε onto K_i),      u_i = L_i x + b_i

is convex, its gradient is x - x_free - sum of L_iᵀ p_i, and Newton's method with a line search minimises it; the m × m
matrix I + 1/ε sum of L_iᵀ P_i L_i is regular however many contacts there are. Then p becomes the centre and ε shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import cholesky, cholesky_solve, dot
from stiction.arrays.layout import Floats, layout
from stiction.arrays.runs import add_rows, rows_dot
from stiction.arrays.vectors import THREE, Three, at
from stiction.solutions.status import Status
from stiction.solvers.contract import ContactProposal, Contract

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

FIRST_EPSILON, SMALL_EPSILON, LEAST_EPSILON = 0.1, 1e-5, 1e-8  # impulses lose accuracy as ε shrinks
SHRINK, SLOW = 0.2, 0.3  # of ε; of the violation in a stage, where ε shrinks below the small one
MAX_STEPS = 50  # of Newton's method in a stage
FLAT = 1e-13  # gradient, in units of the normal form, at which a stage ends
ARMIJO, SHORTEST = 1e-4, 1e-10  # part of the promised descent that a step must give; the shortest step


@dataclass(frozen=True)
class ConvexRelaxation:
    """The cone complementarity problem, solved to rounding errors.

    stages: centres at most
    tolerance: violation of its own law, in units of the largest free contact velocity, at which a solve ends
    """

    stages: int = 100
    tolerance: float = 1e-9

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="always: the problem is convex",
        cost="20 to 60 systems of size m",
        choose="a convex model is meant",
        laws=("cone",),
    )

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        white = problem.whitened
        n, m = problem.n, white.free.size
        work = workspace(*sizes(n, m))
        impulse = np.zeros((n, 3))
        steps, violation = relaxed(
            white.rows, white.segments.copy(), white.free, white.bias, white.friction.copy(), self.stages,
            self.tolerance, *work, impulse,
        )  # fmt: skip
        status = Status.SOLVED if violation <= self.tolerance else Status.MAX_ITERATIONS
        return ContactProposal(status, int(steps), white.impulse(impulse))


def violation_of(problem: ContactProblem, impulse: NDArray[np.float64], u: NDArray[np.float64]) -> float:
    """|p - proj(p - u)| onto K, the largest of all contacts, in the normal form: zero for an exact answer."""
    white = problem.whitened
    p = white.scaled(impulse)
    y = p - u * (white.scale / white.tau)[:, None]
    length = np.hypot(y[:, 1], y[:, 2])
    mu = problem.friction
    normal = np.maximum(0.0, (y[:, 0] + mu * length) / (1.0 + mu * mu))
    edge = np.where(length > 0.0, mu * normal / np.where(length > 0.0, length, 1.0), 0.0)
    projected = np.column_stack([normal, edge * y[:, 1], edge * y[:, 2]])
    inside = length <= mu * y[:, 0]
    projected[inside] = y[inside]
    return float(np.abs(p - projected).max(initial=0.0))


class Iterate(NamedTuple):
    """Arrays of Newton's method on φ."""

    matrix: Array[Floats, "m", "m"]
    x: Array[Floats, "m"]
    trial: Array[Floats, "m"]
    gradient: Array[Floats, "m"]
    step: Array[Floats, "m"]
    centre: Array[Floats, "n", 3]
    slope: Array[Floats, "n", 5]  # see `respond`
    fresh: Array[Floats, "n", 3]  # impulses that the motion of the last ones asks for


sizes, views = layout(Iterate, "n", "m")


@kernel
def relaxed(rows, segments, free, bias, mu, stages, tolerance, floats, ints, impulse):
    """Fill `impulse`; returns Newton steps and the violation of the natural map."""
    n, m = len(rows), len(free)
    matrix, x, trial, gradient, step, centre, slope, fresh = views(n, m, floats, ints)

    # Begin at the free motion, without impulses.
    for j in range(m):
        x[j] = free[j]
    for i in range(n):
        centre[i, 0] = centre[i, 1] = centre[i, 2] = 0.0
    steps, epsilon, violation = 0, FIRST_EPSILON, np.inf
    for _ in range(stages):
        # Newton's method on φ.
        value = respond(rows, segments, free, bias, mu, x, centre, epsilon, impulse, slope, gradient)
        square = dot(gradient, gradient, m)
        for _ in range(MAX_STEPS):
            if square <= FLAT * FLAT:
                break
            assemble(rows, segments, slope, 1.0 / epsilon, matrix)
            for j in range(m):
                step[j] = -gradient[j]
            if cholesky(matrix, m) < m:
                break
            steps += 1
            cholesky_solve(matrix, m, step)

            # As far as φ falls enough.
            descent, length, before, steep = dot(gradient, step, m), 1.0, value, square
            while length > SHORTEST:
                for j in range(m):
                    trial[j] = x[j] + length * step[j]
                value = respond(rows, segments, free, bias, mu, trial, centre, epsilon, impulse, slope, gradient)
                square = dot(gradient, gradient, m)
                # Near the minimum φ differs by rounding only; the gradient decides.
                if value <= before + ARMIJO * length * descent or square <= 0.25 * steep:
                    break
                length *= 0.5
            for j in range(m):
                x[j] = trial[j]
            if not (value < before or square <= 0.25 * steep):
                break
        # The motion that these impulses make, and whether the two obey the law.
        for i in range(n):
            for c in range(3):
                centre[i, c] = impulse[i, c]
        move(rows, segments, free, impulse, x)
        respond(rows, segments, free, bias, mu, x, centre, 1.0, fresh, slope, gradient)

        # The distance to the fixed point; ε falls until that is small.
        last, violation = violation, 0.0
        for i in range(n):
            for c in range(3):
                violation = max(violation, abs(fresh[i, c] - impulse[i, c]))
        if violation <= 0.1 * tolerance:
            break
        if epsilon > SMALL_EPSILON:
            epsilon = max(SHRINK * epsilon, SMALL_EPSILON)
        elif violation > SLOW * last:
            epsilon = max(SHRINK * epsilon, LEAST_EPSILON)
    return steps, violation


@kernel
def respond(
    rows, segments, free, bias, mu, x, centre, epsilon,
    impulse, slope, gradient,
):  # fmt: skip
    """Set impulses, gradient and slopes at x; returns φ.

    slope: (n, 5) weight along (1, mu t) or 1 for all of a sticking contact; weight across; t; its mu, -1 if it sticks
    """
    # ½ |x - free|² ...
    value = 0.0
    for j in range(len(x)):
        gradient[j] = x[j] - free[j]
        value += 0.5 * gradient[j] * gradient[j]
    for i in range(len(rows)):
        # ... and for each contact the square of its projected impulse: inside the cone, beyond its tip, outside.
        y0, y1, y2 = rows_dot(rows[i], segments[i], x, THREE)
        y0 = centre[i, 0] - (y0 + bias[i, 0]) / epsilon
        y1 = centre[i, 1] - (y1 + bias[i, 1]) / epsilon
        y2 = centre[i, 2] - (y2 + bias[i, 2]) / epsilon
        length = (y1 * y1 + y2 * y2) ** 0.5
        # It sticks, it is open, or it slides along the boundary of the cone.
        if length <= mu[i] * y0:
            slope[i, 0], slope[i, 4] = 1.0, -1.0
        elif mu[i] * length <= -y0:
            slope[i, 0] = y0 = y1 = y2 = 0.0
        else:
            y0 = (y0 + mu[i] * length) / (1.0 + mu[i] * mu[i])
            slope[i, 0], slope[i, 1] = 1.0 / (1.0 + mu[i] * mu[i]), mu[i] * y0 / length if length > 0.0 else 0.0
            slope[i, 2], slope[i, 3] = (y1 / length, y2 / length) if length > 0.0 else (1.0, 0.0)
            slope[i, 4] = mu[i]
            y1, y2 = mu[i] * y0 * slope[i, 2], mu[i] * y0 * slope[i, 3]
        impulse[i, 0], impulse[i, 1], impulse[i, 2] = y0, y1, y2
        value += 0.5 * epsilon * (y0 * y0 + y1 * y1 + y2 * y2)
        add_rows(rows[i], segments[i], Three(-y0, -y1, -y2), gradient)
    return value


@kernel
def assemble(rows, segments, slope, stiffness, matrix):
    """The lower triangle of I + stiffness sum of L_iᵀ P_i L_i."""
    # Begin with the identity.
    m = len(matrix)
    for j in range(m):
        for k in range(j):
            matrix[j, k] = 0.0
        matrix[j, j] = 1.0
    for i in range(len(rows)):
        if slope[i, 0] == 0.0:
            continue

        # Add what a contact that presses resists: everything, or along and across its sliding.
        row, segment, width = rows[i], segments[i], segments[i, 1] + segments[i, 3]
        mu, t1, t2 = slope[i, 4], slope[i, 2], slope[i, 3]
        for a in range(width):
            j = place(segment, a)
            for b in range(a + 1):
                if mu < 0.0:
                    total = row[0, a] * row[0, b] + row[1, a] * row[1, b] + row[2, a] * row[2, b]
                else:
                    along = row[0, a] + mu * (t1 * row[1, a] + t2 * row[2, a])
                    along *= row[0, b] + mu * (t1 * row[1, b] + t2 * row[2, b])
                    across = (t1 * row[2, a] - t2 * row[1, a]) * (t1 * row[2, b] - t2 * row[1, b])
                    total = slope[i, 0] * along + slope[i, 1] * across
                k = place(segment, b)
                matrix[max(j, k), min(j, k)] += stiffness * total


@kernel
def place(segment, l):
    """Which velocity the l-th entry of a contact's rows belongs to."""
    return segment[0] + l if l < segment[1] else segment[2] + l - segment[1]


@kernel
def move(rows, segments, free, impulse, x):
    """x = x_free + sum of L_iᵀ p_i."""
    for j in range(len(x)):
        x[j] = free[j]
    for i in range(len(rows)):
        add_rows(rows[i], segments[i], at(impulse, i, THREE), x)
