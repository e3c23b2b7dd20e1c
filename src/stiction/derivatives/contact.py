"""`Derivatives`: what a contact solution changes with, in matrices or by directions and gradients.

`ground` derives the equations, `modes` what is active, `system` how it is solved, `kinks` where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.derivatives.ground import Change, Ground, Response, one_column
from stiction.derivatives.modes import Modes
from stiction.derivatives.system import System
from stiction.derivatives.tolerances import CONSISTENT, DEPENDS, SHARED
from stiction.errors import InvalidProblem, NotDifferentiable
from stiction.problems.contact import ContactProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]


RESULTS = ("velocity", "impulse", "joint_impulse", "contact_velocity")


class Kink(NamedTuple):
    """A contact at which strict complementarity fails.

    contact: its index; between: what it may change between; margin: what is left, in m/s
    """

    contact: int
    between: str
    margin: float


@dataclass(frozen=True, eq=False, repr=False)
class Derivatives:
    """Derivatives of a contact solution by all data of its problem, computed on demand.

    kinks: contacts where there is no derivative, with the margin in m/s; see `one_sided`
    """

    solution: ContactSolution
    kinks: tuple[Kink, ...]
    strict: bool
    small: Array  # (n,) velocities, in m/s, that count as zero
    examined: System  # with modes by velocities alone; those of `ground` are open where nothing presses
    ground: Ground

    @property
    def modes(self) -> Modes:
        """Modes of the contacts, from velocities alone."""
        return self.examined.work.modes

    @property
    def margin(self) -> Array:
        """(n,) how far each contact is from another mode, in m/s, by a way of sharing the load that avoids kinks.

        Another way may leave more: whether all can be `x` away is asked by `differentiate(solution, within=x)`.
        """
        return self.examined.work.margin

    @cached_property
    def determined(self) -> NDArray[np.bool_]:
        """(n,) whether the derivative of a contact's impulse is the only one, not the smallest of many."""
        return np.asarray(self.ground.system.shared(True) <= SHARED)

    @cached_property
    def independent(self) -> NDArray[np.bool_]:
        """(n,) whether a contact's rate can change alone, all others staying as they are."""
        return np.asarray(self.ground.system.shared(False) <= SHARED)

    @cached_property
    def reason(self) -> str:
        """Why there is no derivative, empty if there is one."""
        from stiction.derivatives.kinks import no_derivative

        return no_derivative(self)

    @property
    def smooth(self) -> bool:
        """Whether there is a derivative: no kink, and a motion that is determined."""
        return not self.reason

    @property
    def problem(self) -> ContactProblem:
        return self.ground.problem

    @cached_property
    def by_free(self) -> Array:
        """(m, m) dv / dv_free."""
        return self.columns("free").velocity

    @cached_property
    def by_friction(self) -> Array:
        """(m, n) dv / dmu; the column of a contact that shares its load depends on how (see `determined`)."""
        return self.columns("friction").velocity

    @cached_property
    def by_gap_rate(self) -> Array:
        """(m, n) dv / dgap_rate; a column alone is a derivative where the contact is `independent`."""
        return self.columns("gap_rate").velocity

    @cached_property
    def by_joint_rate(self) -> Array:
        """(m, j) dv / djoint_rate; redundant rows have none of their own."""
        return self.columns("joint_rate").velocity

    @property
    def by_mass(self) -> ByMatrix:
        """dv / dM, as an operator; changes of the mass have the problem's own shape."""
        self.refuse()
        return ByMatrix(self, "mass", "velocity")

    @cached_property
    def residual(self) -> float:
        """Residual of the linear system, relative to its terms, for changes of every free velocity."""
        return self.columns("free").residual

    def columns(self, name: str) -> Response:
        """Derivatives by every entry of free, friction, gap_rate, joint_rate, viscosity or offset, a column each."""
        self.refuse()
        n, j = self.problem.n, len(self.problem.joints)
        sizes = {
            "free": self.problem.m, "friction": n, "gap_rate": n, "joint_rate": j, "viscosity": n,
            "offset": self.ground.d * n,
        }  # fmt: skip
        if name not in sizes:
            raise InvalidProblem(f"columns: name must be one of {', '.join(sizes)}, got {name!r}; use jvp for others")
        forcing = self.ground.forcing(**{name: np.eye(sizes[name])})
        return self.ground.answer(forcing)

    def jvp(self, direction: Change | Mapping[str, Any]) -> Response:
        """How the answer changes as the problem changes in this direction; a `Change`, or names with arrays."""
        self.refuse()
        forcing = self.ground.forcing(**checked(self.problem, "jvp", direction))
        found = self.ground.answer(forcing)
        if self.strict and found.residual > CONSISTENT:
            redundant = ", ".join(map(str, np.flatnonzero(~self.independent)[:8]))
            raise NotDifferentiable(
                f"jvp: in this direction contacts that share a load (among {redundant}) cannot all stay closed and "
                f"change modes (their rates disagree by {found.residual:.1e}); move them together, or differentiate("
                "solution, strict=False) for the nearest direction in which they stay closed"
            )
        if self.strict:
            self.refuse_shared(direction)
        return one_column(found)

    def refuse_shared(self, direction: Change | Mapping[str, Any]) -> None:
        """Refuse changes of friction and rows whose effect depends on how contacts share a load."""
        given = {k: v for k, v in checked(self.problem, "jvp", direction).items() if k in ("friction", "rows")}
        if not given or self.determined.all() or not self.ground.system.left:
            return
        ground, s = self.ground, self.ground.scale[:, None, None]
        load = np.abs(ground.impulse[:, 0] / ground.scale).max()
        nowhere = np.zeros((1, self.problem.n, ground.d))
        for exchange in ground.system.exchanges * load:
            forcing = ground.forcing(**given, impulse=exchange)
            pushed = ground.whitening.force(forcing.h)
            r = pushed + np.tensordot(ground.rows, forcing.f / s, axes=((0, 1), (0, 1)))
            if len(self.problem.joints):
                basis = self.problem.whitened.joints
                r -= basis.T @ (basis @ r)
            moved = ground.system.answers(np.array(r.T, order="C"), nowhere, nowhere)[0]
            if np.abs(moved).max() > DEPENDS * np.abs(pushed).max(initial=np.abs(forcing.f / s).max(initial=0.0)):
                which = ", ".join(map(str, np.flatnonzero(~self.determined)[:8]))
                raise NotDifferentiable(
                    f"jvp: what {' and '.join(given)} change depends on how contacts {which} share their load; change "
                    "contacts that share a load alike, or differentiate(solution, strict=False) takes it as found"
                )

    def vjp(self, cotangent: Any) -> Change:
        """The gradient by all data of a number whose gradient by the answer is given.

        cotangent: (m,) by velocity, or names (velocity, impulse, joint_impulse, contact_velocity) with arrays
        """
        self.refuse()
        return self.ground.gradient(weights(self.problem, cotangent))

    def one_sided(self, direction: Change | Mapping[str, Any]) -> Response:
        """The derivative along a direction, one-sided, at kinks too: (answer(problem + t way) - answer) / t as t → 0+.

        Each kink leaves a complementary pair undecided (it opens or presses, it sticks or slides); what is left is a
        small complementarity problem in these pairs, solved and certified.
        """
        from stiction.derivatives.one_sided import one_sided

        return one_sided(self, checked(self.problem, "one_sided", direction))

    def refuse(self) -> None:
        if self.strict and self.reason:
            raise NotDifferentiable(self.reason)

    def __repr__(self) -> str:
        what = "smooth" if self.smooth else self.reason
        return f"<Derivatives n = {self.problem.n}, m = {self.problem.m}: {what}>"


class ByMatrix(NamedTuple):
    """A derivative by a matrix, as an operator.

    derivatives: a `Derivatives` or an `LCPDerivatives`; matrix: the datum; result: the part of the answer
    """

    derivatives: Any
    matrix: str
    result: str

    def apply(self, change: Any) -> Array:
        """How the result changes with this change of the matrix."""
        return np.asarray(getattr(self.derivatives.jvp({self.matrix: change}), self.result))

    def transpose(self, cotangent: Any) -> Array:
        """The gradient by the matrix of a number whose gradient by the result is given; symmetric for a mass."""
        return np.asarray(getattr(self.derivatives.vjp(cotangent), self.matrix))


def checked(problem: ContactProblem, where: str, direction: Any) -> dict[str, Array]:
    """A direction as arrays with one column, mass flat; names and shapes are checked."""
    given = direction._asdict() if isinstance(direction, Change) else direction
    if not isinstance(given, Mapping):
        raise InvalidProblem(f"{where}: the direction must be a Change or a mapping, got {type(direction).__name__}")
    n, m, j, offset = problem.n, problem.m, len(problem.joints), problem.offset
    shapes: dict[str, tuple[int, ...]] = {
        "free": (m,), "friction": (n,), "gap_rate": (n,), "joint_rate": (j,), "rows": problem.rows.shape,
        "joints": (j, m), "viscosity": (n,), "tangent_rate": (n, problem.rows.shape[1] - 1),
    }  # fmt: skip
    if problem.mass is None:
        size = problem.rows.shape[1] * n
        shapes = {"friction": (n,), "viscosity": (n,), "offset": (size,), "delassus": (size, size)}
    else:
        shapes["mass"] = problem.mass.shape
    result = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in shapes:
            form = "in Delassus form" if offset is not None else "of this form"
            raise InvalidProblem(f"{where}: {name!r} is no datum of a problem {form}; there are {', '.join(shapes)}")
        array = numbers(where, name, value, shapes[name])
        result[name] = array.reshape(-1, 1) if name == "mass" else array[..., None]
    if not result:
        raise InvalidProblem(f"{where}: the direction changes nothing; give at least one of {', '.join(shapes)}")
    return result


def weights(problem: ContactProblem, cotangent: Any) -> Response:
    """A gradient by the answer, zero where none is given."""
    if isinstance(cotangent, Response):
        cotangent = dict(zip(RESULTS, cotangent[:4], strict=True))
    given = cotangent if isinstance(cotangent, Mapping) else {"velocity": cotangent}
    at_contacts = problem.rows.shape[:2]
    shapes = {
        "velocity": (problem.m,), "impulse": at_contacts, "joint_impulse": (len(problem.joints),),
        "contact_velocity": at_contacts,
    }  # fmt: skip
    for name in given:
        if name not in shapes:
            raise InvalidProblem(f"vjp: {name!r} is no part of an answer; there are {', '.join(shapes)}")
    parts = [
        np.zeros(shape) if given.get(name) is None else numbers("vjp", name, given[name], shape)
        for name, shape in shapes.items()
    ]
    return Response(parts[0], parts[1], parts[2], parts[3])


def numbers(where: str, name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """An array of finite numbers of this shape."""
    try:
        result = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidProblem(f"{where}: {name} is not an array of numbers ({error})") from None
    if result.shape != shape:
        raise InvalidProblem(f"{where}: {name} must have shape {shape} to match the problem, got {result.shape}")
    if not np.isfinite(result).all():
        at = ", ".join(str(int(i)) for i in np.argwhere(~np.isfinite(result))[0])
        raise InvalidProblem(f"{where}: {name} must be finite, but {name}[{at}] is not")
    return result
