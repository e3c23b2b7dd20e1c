"""What a person may switch to while a simulation runs: laws and solvers, by the names that a list shows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stiction.problems.laws import BoxFriction, Coulomb, Frictionless, NoSlip, Viscous, kind
from stiction.solvers import ALL
from stiction.stepping.time_stepping import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stiction.problems.laws import Law

LAWS: Mapping[str, Law] = MappingProxyType(
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


def laws_for(stepper: Any) -> dict[str, Law]:
    """Those that a stepper can pose: a viscous law needs the stepper's viscosity."""
    viscous = getattr(stepper, "viscosity", None) is not None
    return {name: law for name, law in LAWS.items() if viscous or not isinstance(law, Viscous)}


def solvers_for(law: Law) -> dict[str, Any]:
    """`Auto`, and every contact solver that takes this law."""
    return {"Auto": DEFAULT} | {each.__name__: each() for each in ALL if kind(law) in each.contract.laws}
