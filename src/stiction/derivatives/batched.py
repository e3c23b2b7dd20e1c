"""Contact solves and their gradients for arrays of other libraries: `stiction.torch` and `stiction.jax`.

A problem is given once, and the data that vary as arrays, each with the shape that the problem has them in, or with a
batch of such arrays first. A batch of contact problems is one call of `solve_many`, unless a solver is asked for; box
problems are solved one by one. A task is all that a library needs to differentiate a function: `shapes` of its results,
`answers` from arrays, `gradients` by these.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from stiction.derivatives.complementarity import LCPDerivatives
from stiction.derivatives.contact import numbers
from stiction.derivatives.differentiate import differentiate
from stiction.errors import InvalidProblem, NotDifferentiableWarning
from stiction.problems.checks import mass_matrix
from stiction.problems.contact import ContactProblem
from stiction.problems.lcp import BoxLCP
from stiction.solutions.contact import judged
from stiction.solutions.status import Status
from stiction.solvers.auto import Auto
from stiction.solvers.solve import solve
from stiction.solvers.solve_many import solve_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.contact import ContactSolution
    from stiction.solutions.solution import Solution

    Array = NDArray[np.float64]

    Shape = tuple[int, ...]

VARYING = ("free", "friction", "gap_rate", "joint_rate", "mass", "viscosity")
LOADS = {"free": "velocity", "friction": "friction", "gap_rate": "gap_rate"}  # what `solve_many` takes arrays of
AUTO = Auto()


class Task(Protocol):
    """A function of arrays with gradients, all of them NumPy's."""

    def shapes(self, given: Sequence[Shape]) -> list[Shape]:
        """Shapes of the results, from those of the arrays."""

    def answers(self, arrays: Sequence[Array]) -> tuple[list[Array], Sequence[Any]]:
        """The results, and the solutions that they come from."""

    def gradients(self, solutions: Sequence[Any], by: Sequence[Array], given: Sequence[Shape]) -> list[Array]:
        """By each array, of a number whose gradients by the results are given."""


@dataclass(frozen=True, eq=False)
class ContactTask:
    """Velocities and impulses of a contact problem; names: of the data that vary, in order."""

    problem: ContactProblem
    names: tuple[str, ...]
    solver: Any
    tolerance: float
    strict: bool

    def shapes(self, given: Sequence[Shape]) -> list[Shape]:
        size = batch_of(self.problem, dict(zip(self.names, given, strict=True)))
        lead = () if size is None else (size,)
        return [(*lead, self.problem.m), (*lead, *self.problem.rows.shape[:2])]

    def answers(self, arrays: Sequence[Array]) -> tuple[list[Array], Sequence[ContactSolution]]:
        data = dict(zip(self.names, arrays, strict=True))
        velocity, impulse, solutions = solve_contacts(self.problem, data, self.solver, self.tolerance)
        return [velocity, impulse], solutions

    def gradients(self, solutions: Sequence[Any], by: Sequence[Array], given: Sequence[Shape]) -> list[Array]:
        shapes = dict(zip(self.names, given, strict=True))
        return list(contact_gradients(solutions, by[0], by[1], shapes, self.strict).values())


@dataclass(frozen=True, eq=False)
class BoxTask:
    """z of a box problem, of H and q."""

    lo: Any
    hi: Any
    solver: Any
    tolerance: float
    strict: bool

    def shapes(self, given: Sequence[Shape]) -> list[Shape]:
        H, q = given
        lead = H[:1] if len(H) == 3 else q[:1] if len(q) == 2 else ()
        return [(*lead, q[-1])]

    def answers(self, arrays: Sequence[Array]) -> tuple[list[Array], list[Solution]]:
        z, solutions = solve_boxes(arrays[0], arrays[1], self.lo, self.hi, self.solver, self.tolerance)
        return [z], solutions

    def gradients(self, solutions: Sequence[Any], by: Sequence[Array], given: Sequence[Shape]) -> list[Array]:
        return list(box_gradients(solutions, by[0], given[0], given[1], self.strict))


def contact_task(
    where: str, problem: ContactProblem, solver: Any, tolerance: float, strict: bool, given: dict[str, Any]
) -> ContactTask:
    """The task of these arguments; InvalidProblem names what is missing."""
    if not given:
        raise InvalidProblem(f"{where}: give at least one of {', '.join(VARYING)}")
    shapes_of(problem)
    return ContactTask(problem, tuple(given), solver, tolerance, strict)


def shapes_of(problem: ContactProblem) -> dict[str, tuple[int, ...]]:
    """Shapes of the data that may vary."""
    if problem.mass is None:
        raise InvalidProblem("contact: a problem in Delassus form has no velocities; pose it with its mass")
    n, m = problem.n, problem.m
    return {
        "free": (m,), "friction": (n,), "gap_rate": (n,), "joint_rate": (len(problem.joints),),
        "mass": problem.mass.shape, "viscosity": (n,),
    }  # fmt: skip


def batch_of(problem: ContactProblem, shapes: dict[str, tuple[int, ...]]) -> int | None:
    """The size of the batch that these arrays have, None if they have none; all that have one must agree."""
    wanted, size = shapes_of(problem), None
    for name, shape in shapes.items():
        if name not in wanted:
            raise InvalidProblem(f"contact: {name!r} cannot vary; what can is {', '.join(wanted)}")
        if shape == wanted[name]:
            continue
        if len(shape) != len(wanted[name]) + 1 or shape[1:] != wanted[name]:
            raise InvalidProblem(
                f"contact: {name} must have shape {wanted[name]}, or a batch of these, as the problem has; got {shape}"
            )
        if size is not None and shape[0] != size:
            raise InvalidProblem(f"contact: {name} is a batch of {shape[0]}, but others are batches of {size}")
        size = shape[0]
    return size


def with_data(problem: ContactProblem, data: dict[str, Array]) -> ContactProblem:
    """The problem with some of its data replaced."""
    given = {"velocity" if name == "free" else name: value for name, value in data.items() if name != "mass"}
    other = problem.replace(**given) if given else problem
    if "mass" not in data:
        return other
    assert problem.mass is not None
    mass = numbers("contact", "mass", data["mass"], problem.mass.shape)
    mass = 0.5 * (mass + mass.swapaxes(-1, -2)) if mass.ndim > 1 else mass
    if mass.ndim == 2:
        mass = mass_matrix(mass)
    fields = {name: getattr(other, name) for name in other.__dataclass_fields__}
    return ContactProblem.from_checked(**(fields | {"mass": mass}))


@dataclass(frozen=True, eq=False)
class Members(Sequence["ContactSolution"]):
    """The solutions of a batch, built lazily: each is judged again, with all that derivatives need."""

    problem: Callable[[int], ContactProblem]
    impulse: Array  # (batch, n, d)
    tolerance: float

    def __len__(self) -> int:
        return len(self.impulse)

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self):
            raise IndexError(k)
        return judged(self.problem(k), Status.SOLVED, np.array(self.impulse[k]), 0, AUTO, self.tolerance)


def solve_contacts(
    problem: ContactProblem, data: dict[str, Array], solver: Any, tolerance: float
) -> tuple[Array, Array, Sequence[ContactSolution]]:
    """Velocities and impulses, with the batch first if there is one, and the solutions."""
    wanted = shapes_of(problem)
    size = batch_of(problem, {name: value.shape for name, value in data.items()})

    def member(k: int) -> ContactProblem:
        one = {name: value if value.shape == wanted[name] else value[k] for name, value in data.items()}
        return with_data(problem, one)

    if size is None or solver is not None:
        solutions = [solve(member(k), solver, tolerance=tolerance) for k in range(1 if size is None else size)]
        velocity = np.array([each.velocity for each in solutions]).reshape(-1, problem.m)
        impulse = np.array([each.impulse for each in solutions]).reshape(-1, *problem.rows.shape[:2])
        return (velocity[0], impulse[0], solutions) if size is None else (velocity, impulse, solutions)

    # All at once; one that is not certified raises as it does alone.
    if size and set(data) <= set(LOADS):
        loads: dict[str, Any] = {LOADS[name]: value for name, value in data.items()}
        found = solve_many(problem, tolerance=tolerance, **loads)
    else:
        found = solve_many([member(k) for k in range(size)], tolerance=tolerance)
    for k in np.flatnonzero(found.status != Status.SOLVED):
        solve(member(int(k)), tolerance=tolerance)
    impulse = found.impulse.reshape(size, *problem.rows.shape[:2])
    return found.velocity.reshape(size, problem.m), impulse, Members(member, impulse, tolerance)


def contact_gradients(
    solutions: Sequence[ContactSolution], velocity: Array, impulse: Array, shapes: dict[str, tuple[int, ...]],
    strict: bool,
) -> dict[str, Array]:  # fmt: skip
    """Gradients by the data of these shapes; what all of a batch share gets the sum."""
    result = {name: np.zeros(shape) for name, shape in shapes.items()}
    single = velocity.ndim == 1
    for k, solution in enumerate(solutions):
        found = differentiate(solution, strict=strict)
        if not strict:
            warn_one_sided(found.reason)
        by = {"velocity": velocity, "impulse": impulse} if single else {"velocity": velocity[k], "impulse": impulse[k]}
        gradient = found.vjp(by)._asdict()
        for name, total in result.items():
            value = gradient[name]
            if value is not None:
                (total if total.shape == value.shape else total[k])[...] += value
    return result


def solve_boxes(H: Array, q: Array, lo: Any, hi: Any, solver: Any, tolerance: float) -> tuple[Array, list[Solution]]:
    """z of each problem, and the solutions; H (n, n) or (batch, n, n), q (n,) or (batch, n)."""
    if H.ndim not in (2, 3) or q.ndim not in (1, 2):
        raise InvalidProblem(f"lcp: H must be (n, n) and q (n,), or batches of these; got {H.shape} and {q.shape}")
    if H.ndim == 3 and q.ndim == 2 and len(H) != len(q):
        raise InvalidProblem(f"lcp: H is a batch of {len(H)}, but q is one of {len(q)}")
    single = H.ndim == 2 and q.ndim == 1
    size = 1 if single else len(H) if H.ndim == 3 else len(q)
    solutions = []
    for k in range(size):
        problem = BoxLCP(H[k] if H.ndim == 3 else H, q[k] if q.ndim == 2 else q, lo, hi)
        solutions.append(solve(problem, solver, tolerance=tolerance))
    z = np.array([each.z for each in solutions]).reshape(size, q.shape[-1])
    return (z[0] if single else z), solutions


def box_gradients(
    solutions: Sequence[Solution], z: Array, shape_H: tuple[int, ...], shape_q: tuple[int, ...], strict: bool
) -> tuple[Array, Array]:
    """Gradients by H and q."""
    H, q = np.zeros(shape_H), np.zeros(shape_q)
    for k, solution in enumerate(solutions):
        found: LCPDerivatives = differentiate(solution, strict=strict)
        if not strict:
            warn_one_sided(found.reason)
        gradient = found.vjp(z if z.ndim == 1 else z[k])
        assert gradient.q is not None
        assert gradient.H is not None
        (q[k] if q.ndim == 2 else q)[...] += gradient.q
        (H[k] if H.ndim == 3 else H)[...] += gradient.H
    return H, q


def warn_one_sided(reason: str) -> None:
    """Warn if there is a reason why no gradient exists: that of one side is returned then."""
    if reason:
        warnings.warn(f"this gradient is that of one side: {reason}", NotDifferentiableWarning, stacklevel=3)
