"""The judge of contact: by how much, in m/s, an answer violates the laws, from the problem and the answer alone.

Contact i has a local scale W_i, the mean diagonal of its Delassus block, which turns an impulse into a velocity:

    penetration       max(0, -u_n)
    complementarity   |min(u_n, W p_n)|
    cone              W max(0, |p_t| - mu p_n), or what the law has in its place
    dissipation       W |p_t - proj(p_t - u_t / W)| onto the disc, polygon or box of size mu p_n;
                      W |p_t + mu p_n s| where the direction s of sliding is known
    momentum          what is left of M (v - v_free) - Jᵀ p, as a velocity felt at a contact
    joint             |J v + joint_rate|

`residual` is the largest of them over the velocity scale of its island: the fastest free motion along a contact that
can close in this step, bilateral rows held or not; where none can, the velocity with which each opens. A contact can
close if its gap_rate is not beyond what the island's energy could make it approach at; the gap_rate of one that cannot
sets no scale. So each island is judged by itself, and the whole is as bad as its worst.

- Where free velocities cancel, as between bodies that fall together, the scale is a millionth of what the whole motion
  of its bodies, (v · M v)^½, would be along the contact. The same part of all impulses that act on its bodies is
  allowed for: a light body between heavy ones has the rounding errors of their loads. Impulses far beyond what the
  island's motion could press with count no more, so that an enormous one hides nothing.
- Momentum is balanced on every tree, with contacts or without, in terms of its own; a bilateral row is measured by its
  own free velocity.
- `energy`: the motion after the step is at most that without contact and a hundred times what overlaps, moving surfaces
  and bilateral rows ask for, each by itself. Rows that nearly depend on each other can ask for absurd velocities; those
  are not certified.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.errors import InvalidProblem
from stiction.solutions.notebook import contacts, counted, verdict_words
from stiction.solutions.status import Status, verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.problems.islands import Island
    from stiction.solutions.uniqueness import Uniqueness

UNKNOWN, NO_PLACES = np.empty((0, 2)), np.empty(0, np.int64)
UNKNOWN.flags.writeable = False


class Mode(IntEnum):
    """The state of a contact."""

    OPEN = 0
    STICK = 1
    SLIDE = 2
    SPIN = 3
    ROLL = 4


class ContactCertificate(NamedTuple):
    """Violations in m/s, and the dimensionless residual; zero is exact.

    residual: the largest violation over `scale`
    contact: where it is attained, -1 if it is not at a contact
    scale: velocity scale of the island where the residual is attained, in m/s; 1 if nothing moves
    beyond_cone: how far the answer is from Coulomb's law on the circular cone, in units of `scale`: for a pyramid or a
        box the price of the approximation; without slip, how much contacts that open are held by
    energy: by how much the motion exceeds what forces and recoveries can do, as a part of that
    """

    residual: float
    contact: int
    penetration: float
    complementarity: float
    cone: float
    dissipation: float
    momentum: float
    joint: float
    scale: float
    beyond_cone: float
    energy: float = 0.0

    def passes(self, tolerance: float) -> bool:
        """Whether the residual is within the tolerance; NaN is not."""
        return self.residual <= tolerance

    def __str__(self) -> str:
        where = f"contact {self.contact}" if self.contact >= 0 else "the bilateral rows or the balance of momentum"
        if self.energy > 0.0 and self.energy == self.residual:
            where = "the energy, which nothing in the problem accounts for"
        return f"residual {self.residual:.1e} at {where}"


class ContactSolution(NamedTuple):
    """Velocities and impulses, and how far they can be trusted.

    status: SOLVED if and only if the certificate passes at `tolerance`
    velocity: (m,) generalized velocities; empty for a problem in Delassus form
    impulse: (n, d) n, t1, t2 and, where d is 6, spin and rolling, in N s, as it acts on body 2
    joint_impulse: (j,)
    mode: (n,) of each contact, a `Mode`
    contact_velocity: (n, d) relative velocities u, gap rate and moving surfaces included
    history: residuals, pass by pass, of solvers that record them
    problem: what was solved
    """

    status: Status
    velocity: NDArray[np.float64]
    impulse: NDArray[np.float64]
    joint_impulse: NDArray[np.float64]
    mode: NDArray[np.int64]
    contact_velocity: NDArray[np.float64]
    certificate: ContactCertificate
    iterations: int
    solver: Any
    tolerance: float
    ray: Any = None
    trace: tuple[str, ...] = ()
    history: NDArray[np.float64] | None = None
    problem: ContactProblem | None = None

    @property
    def ok(self) -> bool:
        """Whether the answer is certified."""
        return self.status == Status.SOLVED

    @property
    def as_given(self) -> NDArray[np.float64]:
        """(n, d) impulses along the rows as they were given: in N s, those of turning in N m s."""
        problem = self.require_problem()
        if problem.ratio is None:
            return self.impulse
        return self.impulse * np.column_stack([np.ones(problem.n), problem.ratio])

    def uniqueness(self) -> Uniqueness:
        """Which contact forces are determined, and the dimension of the rest."""
        from stiction.solutions.uniqueness import uniqueness

        return uniqueness(self.require_problem(), self)

    def least_norm(self) -> ContactSolution:
        """The same motion with the smallest impulses that make it, certified anew."""
        from stiction.solutions.uniqueness import least_norm

        problem = self.require_problem()
        return judged(problem, Status.SOLVED, least_norm(problem, self), self.iterations, self.solver, self.tolerance)

    def require_problem(self) -> ContactProblem:
        if self.problem is None:
            raise InvalidProblem("this solution was made without its problem; solve(problem) keeps it")
        return self.problem

    def explain(self) -> str:
        """One line: solver, status, certificate, and what to do next."""
        name = type(self.solver).__name__
        return f"{name}: {self.status.message} ({self.certificate}, {self.iterations} iterations)"

    def __repr__(self) -> str:
        return f"<ContactSolution {counted(self.mode)}: {verdict_words(self)}>"

    def _repr_html_(self) -> str:
        return contacts(repr(self)[1:-1], self)


# Of what the certificate of islands together has the largest.
LARGEST = ("penetration", "complementarity", "cone", "dissipation", "momentum", "joint", "beyond_cone", "energy")


def certify_contact(problem: ContactProblem, solution: Any) -> ContactCertificate:
    """Judge a contact solution, ours or anybody's: anything with `impulse`, `velocity` and `joint_impulse`."""
    impulse = np.array(solution.impulse, dtype=np.float64)
    velocity = np.array(solution.velocity, dtype=np.float64)
    joint_impulse = np.array(solution.joint_impulse, dtype=np.float64)
    for name, value, shape in (
        ("impulse", impulse, problem.rows.shape[:2]),
        ("velocity", velocity, (problem.m,)),
        ("joint_impulse", joint_impulse, (len(problem.joints),)),
    ):
        if value.shape != shape:
            raise InvalidProblem(f"certify: {name} must have shape {shape} to match the problem, got {value.shape}")
    return judge_contact(problem, velocity, impulse, joint_impulse)[0]


def judge_contact(
    problem: ContactProblem,
    velocity: NDArray[np.float64],
    impulse: NDArray[np.float64],
    joint_impulse: NDArray[np.float64],
    least: float = 0.0,
) -> tuple[ContactCertificate, NDArray[np.float64], NDArray[np.int64]]:
    """The certificate, the contact velocities and the modes.

    least: velocity scale, in m/s, of an island in Delassus form of which nothing is known to move
    """
    from stiction.problems.delassus_form import delassus_scale, paces
    from stiction.problems.islands import islands

    if problem.mass is None or problem.mass.ndim == 2:
        parts = islands(problem)
        if len(parts) > 1:
            return judge_apart(problem, parts, velocity, impulse, joint_impulse)
    n, m, law = problem.n, problem.m, problem.law.numbers
    u, mode = np.empty(impulse.shape), np.empty(n, np.int64)
    viscosity = problem.friction if not problem.law.viscous or problem.viscosity is None else problem.viscosity
    slip = UNKNOWN if problem.slip is None else problem.slip
    if problem.delassus is not None:
        assert problem.offset is not None
        free = problem.offset.reshape(impulse.shape)
        u[:] = free + (problem.delassus @ impulse.ravel()).reshape(impulse.shape)
        size = float(paces(free, problem.labels[1])[1].max(initial=0.0))
        found = kernels().judge_delassus(
            law,
            problem.friction,
            viscosity,
            slip,
            delassus_scale(problem.delassus, impulse.shape[1]),
            size,
            least,
            free,
            impulse,
            u,
            mode,
            problem.zero,
        )
    else:
        white = problem.whitened
        scratch = kernels().judging_views(m, np.empty(kernels().judging_sizes(m)[0]), NO_PLACES)
        found = kernels().judge_problem(
            law, viscosity, slip, problem.posed, white.record, scratch, velocity, impulse, joint_impulse, u, mode,
            problem.zero,
        )  # fmt: skip
    return ContactCertificate(*found), u, mode


def judge_apart(
    problem: ContactProblem,
    parts: list[Island],
    velocity: NDArray[np.float64],
    impulse: NDArray[np.float64],
    joint_impulse: NDArray[np.float64],
) -> tuple[ContactCertificate, NDArray[np.float64], NDArray[np.int64]]:
    """Certify a problem without trees island by island; velocities without contact are one of the islands."""
    from stiction.problems.islands import rest
    from stiction.problems.normal_form import ROUNDED

    u, mode, found = np.empty(impulse.shape), np.empty(problem.n, np.int64), []
    # Where nothing at all is given, rounding is measured by a part of what the rest does.
    least = 0.0 if problem.offset is None else ROUNDED * float(np.abs(problem.offset).max(initial=0.0))
    for each in (*parts, rest(problem)):
        certificate, u[each.contacts], mode[each.contacts] = judge_contact(
            each.problem, velocity[each.velocities], impulse[each.contacts], joint_impulse[each.joints], least
        )
        contact = int(each.contacts[certificate.contact]) if certificate.contact >= 0 else -1
        found.append(certificate._replace(contact=contact))
    worst = max(found, key=lambda each: (each.residual != each.residual, each.residual))
    most = {name: max(getattr(each, name) for each in found) for name in LARGEST}
    return worst._replace(**most), u, mode


def judged(
    problem: ContactProblem,
    claimed: Status,
    impulse: NDArray[np.float64],
    iterations: int,
    solver: Any,
    tolerance: float,
    ray: NDArray[np.float64] | None = None,
    trace: tuple[str, ...] = (),
    history: NDArray[np.float64] | None = None,
) -> ContactSolution:
    """Judge a proposal: impulses are the solver's, velocities follow from them."""
    velocity, joint_impulse = problem.respond(impulse)
    certificate, u, mode = judge_contact(problem, velocity, impulse, joint_impulse)
    status = verdict(claimed, certificate.residual <= tolerance)
    return ContactSolution(
        status, velocity, impulse, joint_impulse, mode, u, certificate, iterations, solver, tolerance,
        None if status == Status.SOLVED else ray, trace, history, problem,
    )  # fmt: skip


@cache
def kernels() -> Any:
    """Loaded when first needed: importing the package does not import Numba."""
    from stiction.solutions import contact_laws

    return contact_laws
