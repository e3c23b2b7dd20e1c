"""The judge of contact: by how much, in m/s, an answer violates the laws, from the problem and the answer alone.

Contact i has a local scale W_i, the mean diagonal of its Delassus block, which turns an impulse into a velocity:

    penetration       max(0, -u_n)
    complementarity   |min(u_n, W p_n)|
    cone              W max(0, |p_t| - mu p_n), or what the law has in its place
    dissipation       W |p_t - proj(p_t - u_t / W)| onto the disc, polygon or box of size mu p_n;
                      W |p_t + mu p_n s| where the direction s of sliding is known
    momentum          what is left of M (v - v_free) - Jᵀ p, as a velocity felt at a contact
    joint             |J v + joint_rate|

`residual` is the largest of them over the velocity scale of the problem, the largest free velocity of a contact or
bilateral row; where these cancel, as between bodies that fall together, a millionth of what the whole motion of its
bodies, (v · M v)^½, would be along the contact.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.laws import KINDS, numbers
from stiction.solutions.notebook import contacts, counted, verdict_words
from stiction.solutions.status import Status, verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.solutions.uniqueness import Uniqueness

VISCOUS = KINDS.index("viscous")
UNKNOWN = np.empty((0, 2))
UNKNOWN.flags.writeable = False


class Mode(IntEnum):
    """What a contact does."""

    OPEN = 0
    STICK = 1
    SLIDE = 2


class ContactCertificate(NamedTuple):
    """Violations in m/s, and the dimensionless residual; zero is exact.

    residual: the largest violation over `scale`
    contact: where it is attained, -1 if it is not at a contact
    beyond_cone: how far the answer is from Coulomb's law on the circular cone, in units of `scale`: for a pyramid or a
        box the price of the approximation; without slip, how much contacts that open are held by
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

    def passes(self, tolerance: float) -> bool:
        """Whether the residual is within the tolerance; NaN is not."""
        return self.residual <= tolerance

    def __str__(self) -> str:
        where = f"contact {self.contact}" if self.contact >= 0 else "the bilateral rows"
        return f"residual {self.residual:.1e} at {where}"


class ContactSolution(NamedTuple):
    """Velocities and impulses, and how far they can be trusted.

    status: SOLVED if and only if the certificate passes at `tolerance`
    velocity: (m,) generalized velocities; empty for a problem in Delassus form
    impulse: (n, 3) n, t1, t2, in N s, as it acts on body 2
    joint_impulse: (j,)
    mode: (n,) of each contact, a `Mode`
    contact_velocity: (n, 3) relative velocities u, gap rate included
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

    def uniqueness(self) -> Uniqueness:
        """Which contact forces are determined, and the dimension of the rest."""
        from stiction.solutions.uniqueness import uniqueness

        return uniqueness(self.whose(), self)

    def least_norm(self) -> ContactSolution:
        """The same motion with the smallest impulses that make it, certified anew."""
        from stiction.solutions.uniqueness import least_norm

        problem = self.whose()
        return judged(problem, Status.SOLVED, least_norm(problem, self), self.iterations, self.solver, self.tolerance)

    def whose(self) -> ContactProblem:
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


def certify_contact(problem: ContactProblem, solution: Any) -> ContactCertificate:
    """Judge a contact solution, ours or anybody's: anything with `impulse`, `velocity` and `joint_impulse`."""
    impulse = np.array(solution.impulse, dtype=np.float64)
    velocity = np.array(solution.velocity, dtype=np.float64)
    joint_impulse = np.array(solution.joint_impulse, dtype=np.float64)
    for name, value, shape in (
        ("impulse", impulse, (problem.n, 3)),
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
) -> tuple[ContactCertificate, NDArray[np.float64], NDArray[np.int64]]:
    """The certificate, the contact velocities and the modes."""
    n = problem.n
    white = problem.whitened
    law, facets, rotation, implicit, side = numbers(problem.law)
    u, mode = np.empty((n, 3)), np.empty(n, np.int64)
    coefficients = problem.friction if law != VISCOUS or problem.viscosity is None else problem.viscosity
    slip = UNKNOWN if problem.slip is None else problem.slip
    if problem.mass is None:
        assert problem.delassus is not None
        assert problem.offset is not None
        free = problem.offset.reshape(n, 3)
        u[:] = free + (problem.delassus @ impulse.ravel()).reshape(n, 3)
        found = kernels().judge_delassus(
            law, facets, rotation, implicit, side, problem.friction, coefficients, slip, white.scale,
            free, impulse, u, mode,
        )  # fmt: skip
    else:
        found = kernels().judge_problem(
            law, facets, rotation, implicit, side, problem.friction, coefficients, slip, white.scale,
            problem.mass.reshape(-1), problem.trees, white.factor, problem.rows, problem.segments, problem.gap_rate,
            problem.velocity, problem.joints, problem.joint_rate, velocity, impulse, joint_impulse,
            np.empty(problem.m), u, mode,
        )  # fmt: skip
    return ContactCertificate(*found), u, mode


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
    """Impulses are the solver's, velocities follow from them."""
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
