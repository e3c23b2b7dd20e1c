"""Laws and solvers that a person may switch to while a simulation runs, by the names that a list shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stiction.problems.laws import SHOWN
from stiction.solvers import ALL
from stiction.stepping.time_stepping import DEFAULT

if TYPE_CHECKING:
    from stiction.problems.laws import Law


def laws_for(stepper: Any) -> dict[str, Law]:
    """Those that a stepper can pose: a viscous law needs the stepper's viscosity."""
    viscous = getattr(stepper, "viscosity", None) is not None
    return {name: law for name, law in SHOWN.items() if viscous or not law.viscous}


def solvers_for(law: Law) -> dict[str, Any]:
    """`Auto`, and every contact solver that takes this law."""
    return {"Auto": DEFAULT} | {each.__name__: each() for each in ALL if law.kind in each.contract.laws}
