"""Laws of contact: what the tangential impulse of a closed contact may be.

All share the normal law 0 <= p_n ⊥ u_n >= 0. u is the relative velocity at the contact, p the impulse on body 2.

A law is a frozen object of options with all that others need to know of it: its kind, its numbers for kernels,
the outline of what friction may be, and what it bounds, holds or turns. A new one is a class here, its kind in KINDS,
a line in SHOWN, its case in the judge (`solutions.contact_laws.tangential`), its word on the command line
(`cli.words.LAWS`), and its kind in the contracts of the solvers that take it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

# Kernels know a law by its place here; from the cone on, friction is bounded by mu p_n.
KINDS = ("frictionless", "viscous", "no-slip", "cone", "pyramid", "box")
FRICTIONLESS, VISCOUS, NO_SLIP, CONE, PYRAMID, BOX = range(6)
ROUND = 200  # corners of a disc that is drawn
IN_PLANE = np.array([[1.0, 0.0], [-1.0, 0.0]])
SQUARE = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


@lru_cache(maxsize=64)
def pyramid_directions(facets: int, rotation: float, dim: int) -> NDArray[np.float64]:
    """(d, 2) edges of the pyramid; in the plane, with its one tangent, only the two that reach furthest along it."""
    angle = 2.0 * np.pi * np.arange(facets) / facets + rotation
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    directions[np.abs(directions) < 1e-15] = 0.0
    if dim == 2:
        directions = directions[[np.argmax(directions[:, 0]), np.argmin(directions[:, 0])]]
    directions.flags.writeable = False
    return directions


class LawNumbers(NamedTuple):
    """A law as kernels take it."""

    kind: int  # place in KINDS
    facets: int = 0
    rotation: float = 0.0
    implicit: bool = False
    side: float = 1.0  # of the box, over mu p_n
    apart: bool = False  # whether sliding, spin and rolling are bounded apart


@dataclass(frozen=True)
class Law:
    """The base of all laws.

    kind: by which solvers distinguish laws, one of KINDS: "cone" and "pyramid" are both Coulomb's
    bounded: whether friction is at most mu p_n, in some sense, and opposes the sliding
    viscous: whether it needs a viscosity
    sticky: whether contacts do not slide, whatever impulse that takes
    turning: whether it takes torsional and rolling friction
    """

    of_kind: ClassVar[str]
    bounded: ClassVar[bool] = False
    viscous: ClassVar[bool] = False
    sticky: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        return self.of_kind

    @property
    def turning(self) -> bool:
        return False

    @property
    def numbers(self) -> LawNumbers:
        """As kernels take it."""
        return numbers_of(self)

    def numbered(self, found: LawNumbers) -> LawNumbers:
        """Add the numbers of this law's options to those found."""
        return found

    def corners(self, dim: int = 3) -> NDArray[np.float64] | None:
        """(k, 2) corners of what friction may be where mu p_n is one; None if it has none. dim 2: in the plane."""
        return None

    def outline(self, dim: int = 3) -> NDArray[np.float64]:
        """(k, 2) the same as a curve to draw: a circle where there are no corners."""
        corners = self.corners(dim)
        if corners is not None:
            return corners
        angle = np.linspace(0.0, 2.0 * np.pi, ROUND)
        return np.column_stack([np.cos(angle), np.sin(angle)])


@cache
def numbers_of(law: Law) -> LawNumbers:
    return law.numbered(LawNumbers(KINDS.index(law.kind)))


@dataclass(frozen=True)
class Frictionless(Law):
    """p_t = 0."""

    of_kind: ClassVar[str] = "frictionless"


@dataclass(frozen=True)
class Viscous(Law):
    """p_t = -viscosity u_t [Drumwright2013, eq. 13–15]: of the free velocity, or of the final one if implicit.

    The viscosity of each contact is the problem's: impulse per sliding velocity, N s / (m/s).
    """

    of_kind: ClassVar[str] = "viscous"
    viscous: ClassVar[bool] = True

    implicit: bool = False

    def numbered(self, found: LawNumbers) -> LawNumbers:
        return found._replace(implicit=bool(self.implicit))


@dataclass(frozen=True)
class NoSlip(Law):
    """u_t = 0 wherever a contact stays closed, whatever impulse that takes [Drumwright2013, eq. 45–57].

    The paper binds the tangents of every contact, including those that open, and so holds bodies that should slide off.
    Here a contact either does not slide or carries no impulse: one that opens carries none if there is such a solution;
    where none is found it is kept from sliding as in the paper, and trace and certificate report it.
    """

    of_kind: ClassVar[str] = "no-slip"
    sticky: ClassVar[bool] = True


@dataclass(frozen=True)
class Coulomb(Law):
    """|p_t| <= mu p_n, and p_t opposes the sliding as strongly as that allows.

    facets: none for the circular cone; else the number of sides, at least 3, of an inscribed pyramid, whose edges are
        the directions `rotation + 2 pi j / facets` from the first tangent
    rotation: in radians
    joint: how torsional and rolling friction, where there are any, go with sliding: all friction bounded together, as
        in MuJoCo's elliptic cone, or each apart, |p_t| <= mu p_n, |torsion| <= mu_t p_n and |rolling| <= mu_r p_n
    """

    bounded: ClassVar[bool] = True

    facets: int | None = None
    rotation: float = 0.0
    joint: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.joint, bool):
            raise InvalidProblem(f"Coulomb: joint must be True or False, got {self.joint!r}")
        facets: Any = self.facets
        if facets is not None and not (isinstance(facets, Integral) and int(facets) >= 3):
            raise InvalidProblem(f"Coulomb: facets must be a whole number of at least 3, got {self.facets!r}")
        rotation: Any = self.rotation
        if not (isinstance(rotation, Real) and np.isfinite(float(rotation))):
            raise InvalidProblem(f"Coulomb: rotation must be a finite number, got {self.rotation!r}")

    def __repr__(self) -> str:
        apart = "" if self.joint else ", joint=False"
        return f"Coulomb(facets={self.facets!r}, rotation={self.rotation!r}{apart})"

    @property
    def kind(self) -> str:
        return "cone" if self.facets is None else "pyramid"

    @property
    def turning(self) -> bool:
        return self.facets is None

    def numbered(self, found: LawNumbers) -> LawNumbers:
        return found._replace(facets=int(self.facets or 0), rotation=float(self.rotation), apart=not self.joint)

    def corners(self, dim: int = 3) -> NDArray[np.float64] | None:
        if self.facets is not None:
            return pyramid_directions(self.facets, self.rotation, dim)
        return IN_PLANE if dim == 2 else None


@dataclass(frozen=True)
class BoxFriction(Law):
    """|p_t1| <= mu p_n and |p_t2| <= mu p_n, each opposing its own component [Lacoursiere2003, eq. 7–8].

    scaled: shrink both bounds by sqrt(2), so that the box lies inside the cone
    """

    of_kind: ClassVar[str] = "box"
    bounded: ClassVar[bool] = True

    scaled: bool = False

    def numbered(self, found: LawNumbers) -> LawNumbers:
        return found._replace(side=math.sqrt(0.5) if self.scaled else 1.0)

    def corners(self, dim: int = 3) -> NDArray[np.float64] | None:
        return self.numbers.side * (IN_PLANE if dim == 2 else SQUARE)


# All laws, by the names that a list to choose from shows.
SHOWN: Mapping[str, Law] = MappingProxyType(
    {
        "Coulomb": Coulomb(),
        "Coulomb, 8 facets": Coulomb(facets=8),
        "Coulomb, 4 facets": Coulomb(facets=4),
        "box friction": BoxFriction(),
        "no slip": NoSlip(),
        "viscous": Viscous(),
        "frictionless": Frictionless(),
    }
)
# By the name that files and messages have.
LAWS: Mapping[str, type[Law]] = MappingProxyType({type(law).__name__: type(law) for law in SHOWN.values()})
