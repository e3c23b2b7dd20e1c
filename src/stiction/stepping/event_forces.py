"""The problem of forces at one moment: accelerations in the place of velocities, forces in that of impulses.

    M (a - a_free) = Nᵀ f_n + Tᵀ f_t + Jᵀ f_j,     J a + J̇v = 0,     0 <= f_n  ⊥  N a + Ṅv >= 0

- Coulomb: f_t = -mu f_n s where a contact slides in the direction s; where it does not, |f_t| <= mu f_n opposes
  T a + Ṫv.
- Viscous: f_t = -c T v, or -c T (v + h a) if implicit.
- NoSlip: T a + Ṫv = 0.

A contact problem has a constant for normals and joints, none for tangents, and its viscous law refers to the free
velocity. Solving for a' = a + d instead of a provides both: a'_free = a_free + d leaves the dynamics as they are, the
constants become Ṅv - N d and J̇v - J d, and the tangents see T d. For Coulomb d solves T d = Ṫv at contacts that do not
slide; for the viscous law a'_free = v, so d = v - a_free (in units of one second), and d = v/h if it is implicit.
"""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.runs import row_dot
from stiction.contacts.gather import clear
from stiction.errors import SolveFailed
from stiction.problems.contact import ContactProblem
from stiction.solutions.contact import Mode
from stiction.solvers.auto import Auto
from stiction.solvers.contact.baraff.baraff import Baraff
from stiction.solvers.solve import solve
from stiction.stepping.event_fused import Solved, forces_by_baraff
from stiction.stepping.event_nearest import nearing_views, room, set_nearest
from stiction.stepping.event_rows import joint_rows, speeds
from stiction.stepping.pose import refuse_dry_friction, viscosities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints
    from stiction.problems.laws import Law
    from stiction.solutions.contact import ContactSolution
    from stiction.stepping.event_fused import Answer

STRAIGHT = 1e-9  # part of the free accelerations below which the bending of tangents is left out


class Forces(NamedTuple):
    """The forces of a moment, certified, and the accelerations (m,) that they make."""

    found: Solved | ContactSolution
    acceleration: NDArray[np.float64]

    @property
    def answer(self) -> Answer | ContactSolution:
        """Forces, modes and accelerations of contacts."""
        return self.found.answer if isinstance(self.found, Solved) else self.found

    @property
    def solution(self) -> ContactSolution:
        return self.found.solution if isinstance(self.found, Solved) else self.found


def pose(
    found: Constraints, mass: NDArray[np.float64], law: Law, *, velocity: NDArray[np.float64],
    gap_rate: NDArray[np.float64] | None = None, joint_rate: NDArray[np.float64] | None = None,
    slip: NDArray[np.float64] | None = None, viscosity: float | None = None,
) -> ContactProblem:  # fmt: skip
    """A contact problem with the rows of a moment."""
    return ContactProblem.from_checked(
        mass=mass, trees=found.starts, velocity=velocity, rows=found.rows, segments=found.segments,
        friction=found.friction, gap_rate=gap_rate, joints=joint_rows(found), joint_rate=joint_rate,
        viscosity=None if viscosity is None else np.full(found.n, viscosity), slip=slip, law=law,
    )  # fmt: skip


def pose_forces(
    found: Constraints, mass: NDArray[np.float64], law: Law, velocity: NDArray[np.float64], free: NDArray[np.float64],
    slip: NDArray[np.float64], bent: NDArray[np.float64], joints_bent: NDArray[np.float64],
    viscosity: float | None, h: float,
) -> tuple[ContactProblem, NDArray[np.float64]]:  # fmt: skip
    """The problem of forces, and d, by which its accelerations exceed the true ones."""
    if law.viscous:
        refuse_dry_friction(found, law)
        c = viscosities(viscosity)
        d, viscosity = (velocity / h, h * c) if law.numbers.implicit else (velocity - free, c)
    else:
        d, viscosity = straightened(found, free, slip, bent), None
    known = slip if not np.isnan(slip).all() else None
    shift, joint_rate = speeds(found, d)[:, 0], joints_bent - joint_rows(found) @ d
    problem = pose(
        found, mass, law, velocity=free + d, gap_rate=bent[:, 0] - shift, joint_rate=joint_rate, slip=known,
        viscosity=viscosity,
    )  # fmt: skip
    return problem, d


def straightened(
    found: Constraints, free: NDArray[np.float64], slip: NDArray[np.float64], bent: NDArray[np.float64]
) -> NDArray[np.float64]:
    """d with T d = Ṫv at the contacts that do not slide: the smallest in the metric of the mass."""
    d = np.empty(free.size)
    floats, ints = room(found, 2 * found.n, joined=False)
    straighten(found, free, slip, bent, floats, ints, d)
    return d


@kernel
def straighten(found, free, slip, bent, floats, ints, d):
    """Fill d; zero where tangents hardly turn."""
    n, m = len(bent), len(free)
    work = nearing_views(2 * n, m, 0, len(found.mass), floats, ints)
    clear(d)

    # Tangents of contacts that do not slide, and the fastest free motion.
    k, most, fastest = 0, 0.0, 0.0
    for i in range(n):
        still = found.friction[i] > 0.0 and isnan(slip[i, 0])
        for c in range(3):
            fastest = max(fastest, abs(row_dot(found.rows[i, c], found.segments[i], free)))
            if still and c > 0:
                work.which[k, 0], work.which[k, 1], work.target[k] = i, c, bent[i, c]
                most = max(most, abs(bent[i, c]))
                k += 1
    if most > STRAIGHT * fastest:
        clear(work.still)
        set_nearest(found, found.mass, work.still, k, inf, work, d)


def solve_forces(problem: ContactProblem, d: NDArray[np.float64], solver: Any, tolerance: float) -> Forces:
    """Ask the solver; where nothing slides yet, ask `Auto` as well if it fails or lets contacts begin to slide.

    Where forces are not determined Coulomb's law can have several answers: the one in which fewer contacts begin to
    slide is taken. SolveFailed carries the last answer, and the ray if it ended in one.
    """
    if isinstance(solver, Baraff):
        fused = forces_by_baraff(problem, solver, tolerance)
        if fused is not None and (
            problem.slip is not None or problem.law.kind != "cone" or not (fused.answer.mode == Mode.SLIDE).any()
        ):
            return Forces(fused, fused.answer.velocity - d)
    found = solve(problem, solver, tolerance=tolerance, throw=False)
    begins = int((found.mode == Mode.SLIDE).sum())
    if not problem.slides and not (found.ok and (begins == 0 or problem.law.kind != "cone")):
        other = solve(problem, tolerance=tolerance, throw=False)
        fewer = int((other.mode == Mode.SLIDE).sum()) < begins
        if other.ok and (fewer or not found.ok):
            why = f"lets {begins} contacts slide" if found.ok else found.status.name.lower()
            note = f"{type(found.solver).__name__}: {why}; {type(other.solver).__name__} instead"
            found = other._replace(trace=(note, *other.trace))
    if not found.ok:
        raise SolveFailed(found)
    return Forces(found, found.velocity - d)


def solver_of_forces(law: Law, solver: Any) -> Any:
    """Baraff's, for laws that it takes, unless another was asked for; with friction, one that takes known slip."""
    chosen = None if isinstance(solver, Auto) else solver
    if chosen is not None and (chosen.contract.slip or law.kind != "cone"):
        return chosen
    return Baraff() if law.kind in Baraff.contract.laws else Auto()
