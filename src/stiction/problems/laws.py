"""Laws of contact: what the tangential impulse of a closed contact may be.

All share the normal law 0 <= p_n ⊥ u_n >= 0. u is the relative velocity at the contact, p the impulse on body 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from stiction.errors import InvalidProblem


@dataclass(frozen=True)
class Frictionless:
    """p_t = 0."""


@dataclass(frozen=True)
class Viscous:
    """p_t = -viscosity u_t [Drumwright2013, eq. 13–15]: of the free velocity, or of the final one if implicit.

    The viscosity of each contact is the problem's: impulse per sliding velocity, N s / (m/s).
    """

    implicit: bool = False


@dataclass(frozen=True)
class NoSlip:
    """u_t = 0 wherever a contact stays closed, whatever impulse that takes [Drumwright2013, eq. 45–57].

    The paper binds the tangents of every contact, including those that open, and so holds bodies that should slide off.
    Here a contact either does not slide or carries no impulse: one that opens carries none if there is such a solution;
    where none is found it is kept from sliding as in the paper, and trace and certificate report it.
    """


@dataclass(frozen=True)
class Coulomb:
    """|p_t| <= mu p_n, and p_t opposes the sliding as strongly as that allows.

    facets: none for the circular cone; else the number of sides, at least 3, of an inscribed pyramid, whose edges are
        the directions `rotation + 2 pi j / facets` from the first tangent
    rotation: in radians
    """

    facets: int | None = None
    rotation: float = 0.0

    def __post_init__(self) -> None:
        facets: Any = self.facets
        if facets is not None and not (isinstance(facets, Integral) and int(facets) >= 3):
            raise InvalidProblem(f"Coulomb: facets must be a whole number of at least 3, got {self.facets!r}")
        rotation: Any = self.rotation
        if not (isinstance(rotation, Real) and np.isfinite(float(rotation))):
            raise InvalidProblem(f"Coulomb: rotation must be a finite number, got {self.rotation!r}")


@dataclass(frozen=True)
class BoxFriction:
    """|p_t1| <= mu p_n and |p_t2| <= mu p_n, each opposing its own component [Lacoursiere2003, eq. 7–8].

    scaled: shrink both bounds by sqrt(2), so that the box lies inside the cone
    """

    scaled: bool = False


Law = Frictionless | Viscous | NoSlip | Coulomb | BoxFriction


KINDS = ("frictionless", "viscous", "no-slip", "cone", "pyramid", "box")


class LawNumbers(NamedTuple):
    """A law as kernels take it."""

    kind: int  # place in KINDS
    facets: int = 0
    rotation: float = 0.0
    implicit: bool = False
    side: float = 1.0  # of the box, over mu p_n


@cache
def numbers(law: Law) -> LawNumbers:
    """A law as kernels take it."""
    found = LawNumbers(KINDS.index(kind(law)))
    if isinstance(law, Coulomb):
        return found._replace(facets=int(law.facets or 0), rotation=float(law.rotation))
    if isinstance(law, Viscous):
        return found._replace(implicit=bool(law.implicit))
    return found._replace(side=math.sqrt(0.5)) if isinstance(law, BoxFriction) and law.scaled else found


@cache
def kind(law: Law) -> str:
    """How solvers tell laws apart: "cone" and "pyramid" are both Coulomb's."""
    if isinstance(law, Coulomb):
        return "cone" if law.facets is None else "pyramid"
    return {Frictionless: "frictionless", Viscous: "viscous", NoSlip: "no-slip", BoxFriction: "box"}[type(law)]
