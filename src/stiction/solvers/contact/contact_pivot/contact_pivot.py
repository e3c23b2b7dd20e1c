"""Contact without friction, with viscous friction or without slip: one pivoting method on normal rows alone.

    0 <= z  ⊥  w = N x + b >= 0,      x = x_free + Nᵀ z      (mass whitened to one)

The cost is O(m²) a pivot and O(n m) for all w, linear in the number of contacts (see `pressing`). Viscous friction
changes x_free (explicit) or the mass (implicit); no slip is the same problem after the tangential rows of the closed
contacts have been projected out like joints (see `no_slip`).

[Drumwright2013, Algorithm 1, sec. IV–VI].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import cholesky, dot, subtract_multiple
from stiction.arrays.runs import add_row, row_dot
from stiction.problems.laws import NoSlip, Viscous
from stiction.solutions.status import Status
from stiction.solvers.contact.contact_pivot.no_slip import binding_sizes, without_slip
from stiction.solvers.contact.contact_pivot.pressing import press_contacts, press_sizes
from stiction.solvers.contract import STATUS, ContactProposal
from stiction.solvers.lcp.tolerances import usual_pivots

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

    Vector = NDArray[np.float64]


def propose(problem: ContactProblem, start: Vector | None, max_pivots: int | None) -> ContactProposal:
    """Impulses under a law without a friction cone.

    start: (n, 3) impulses; contacts that press there are the first members, and the first bound set
    """
    white = problem.whitened
    limit = usual_pivots(min(problem.n, white.free.size), True) if max_pivots is None else max_pivots
    impulse = np.zeros((problem.n, 3)) if start is None else white.scaled(start)
    if isinstance(problem.law, NoSlip):
        return bound(problem, start is not None, impulse, limit)
    warm = np.zeros(0) if start is None else impulse[:, 0].copy()
    if isinstance(problem.law, Viscous):
        return viscous(problem, warm, limit)
    status, pivots, z, _ = press(white.rows[:, 0], white.segments, white.bias[:, 0], white.free, warm, limit)
    return ContactProposal(status, pivots, white.impulse(along_normals(z)))


def viscous(problem: ContactProblem, warm: Vector, limit: int) -> ContactProposal:
    """p_t = -c u_t, with u_t of the free velocity (explicit) or of the final one (implicit)."""
    assert isinstance(problem.law, Viscous)
    assert problem.viscosity is not None
    white = problem.whitened
    n, m = problem.n, white.free.size
    if not problem.law.implicit:
        impulse = white.scaled(-problem.viscosity[:, None] * free_sliding(problem))
        free = white.free.copy()
        push(white.rows, white.segments, impulse, free)
        status, pivots, z, _ = press(white.rows[:, 0], white.segments, white.bias[:, 0], free, warm, limit)
        impulse[:, 0] = z
        return ContactProposal(status, pivots, white.impulse(impulse))
    # (1 + Tᵀ c T) x = x_free - Tᵀ c b_t + Nᵀ z: whiten once more. In scaled units p̂ = p / (s τ) and û = u s / τ, so
    # ĉ = c / s².
    drag, factor, normals, free = problem.viscosity / white.scale**2, np.eye(m), np.zeros((n, m)), white.free.copy()
    soften(white.rows, white.segments, white.bias, drag, factor, normals, free)
    whole = np.tile(np.array([0, m, 0, 0]), (n, 1))
    status, pivots, z, x = press(normals, whole, white.bias[:, 0], free, warm, limit)
    impulse = along_normals(z)
    resist(white.rows, white.segments, white.bias, drag, factor, x, impulse)
    return ContactProposal(status, pivots, white.impulse(impulse))


def bound(problem: ContactProblem, warm: bool, impulse: Vector, limit: int) -> ContactProposal:
    """No slip; the trace records how often the set of bound contacts changed."""
    white = problem.whitened
    work = workspace(*binding_sizes(problem.n, white.free.size))
    status, pivots, rounds, held = without_slip(
        white.rows, white.segments, white.bias, white.free, warm, limit, *work, impulse
    )
    trace: tuple[str, ...] = (f"{rounds} changes of the bound set",)
    if held:
        trace += (f"{held} contacts open and yet do not slide: no set was found that lets them go",)
    return ContactProposal(STATUS[status], pivots, white.impulse(impulse), None, trace)


def press(
    normals: Vector, segments: Any, bias: Vector, free: Vector, warm: Vector, limit: int
) -> tuple[Status, int, Vector, Vector]:
    """The frictionless problem: (status, pivots, z, x)."""
    n, m = len(normals), free.size
    z, x = np.zeros(n), np.empty(m)
    rows, constant = np.ascontiguousarray(normals), np.ascontiguousarray(bias)
    status, pivots = press_contacts(rows, segments, constant, free, warm, limit, *workspace(*press_sizes(n, m)), z, x)
    return STATUS[status], pivots, z, x


def along_normals(z: Vector) -> Vector:
    impulse = np.zeros((len(z), 3))
    impulse[:, 0] = z
    return impulse


def free_sliding(problem: ContactProblem) -> Vector:
    """(n, 3) tangential contact velocities without impulses, in m/s; no normal ones."""
    u = np.zeros((problem.n, 3))
    if problem.offset is None:
        slide(problem.rows, problem.segments, problem.velocity, u)
        if problem.tangent_rate is not None:
            u[:, 1:] += problem.tangent_rate
    else:
        u[:, 1:] = problem.offset.reshape(-1, 3)[:, 1:]
    return u


@kernel
def slide(rows, segments, v, u):
    """u_t = T v."""
    for i in range(len(rows)):
        for c in range(1, 3):
            u[i, c] = row_dot(rows[i, c], segments[i], v)


@kernel
def push(rows, segments, impulse, x):
    """x += Tᵀ p_t."""
    for i in range(len(rows)):
        for c in range(1, 3):
            add_row(rows[i, c], segments[i], impulse[i, c], x)


@kernel
def soften(rows, segments, bias, drag, factor, normals, free):
    """factor = L with L Lᵀ = 1 + Tᵀ c T, normals = N L⁻ᵀ, free = L⁻¹ (free - Tᵀ c b_t)."""
    # Add Tᵀ c T to `factor`, which holds the identity, row by row over the two runs of velocities of each contact;
    # subtract Tᵀ c b_t from `free`.
    n, m = len(rows), len(free)
    for i in range(n):
        for c in range(1, 3):
            row, segment = rows[i, c], segments[i]
            add_row(row, segment, -drag[i] * bias[i, c], free)
            place = 0
            for part in range(2):
                first, length = segment[2 * part], segment[2 * part + 1]
                for j in range(length):
                    add_row(row, segment, drag[i] * row[place + j], factor[first + j])
                place += length

    # Whiten by the new mass: free and normals are multiplied by L⁻¹.
    cholesky(factor, m)
    forward(factor, free)
    for i in range(n):
        add_row(rows[i, 0], segments[i], 1.0, normals[i])
        forward(factor, normals[i])


@kernel
def forward(L, x):
    """x = L⁻¹ x."""
    for j in range(len(x)):
        x[j] = (x[j] - dot(L[j], x, j)) / L[j, j]


@kernel
def resist(rows, segments, bias, drag, factor, x, impulse):
    """x = L⁻ᵀ x: back to the velocities before `soften`; then p_t = -c u_t at them."""
    for j in range(len(x) - 1, -1, -1):
        x[j] /= factor[j, j]
        subtract_multiple(x, x[j], factor[j], j)
    for i in range(len(rows)):
        for c in range(1, 3):
            impulse[i, c] = -drag[i] * (row_dot(rows[i, c], segments[i], x) + bias[i, c])
