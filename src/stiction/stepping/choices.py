"""Laws, solvers and steppers that are given to a simulation, checked before anything is stepped."""

from __future__ import annotations

from typing import Any

from stiction.errors import InvalidScene
from stiction.problems.laws import Law


def check_law(owner: str, law: Any) -> None:
    if not isinstance(law, Law):
        raise InvalidScene(f"{owner}: law must be a law such as Coulomb(), got {law!r}")


def check_solver(owner: str, solver: Any) -> None:
    refuse_class(owner, "solver", solver)
    if not hasattr(solver, "contract"):
        raise InvalidScene(f"{owner}: solver must be a solver such as st.Auto() or st.ConeNewton(), got {solver!r}")


def check_stepper(owner: str, stepper: Any) -> None:
    refuse_class(owner, "stepper", stepper)
    if not callable(getattr(stepper, "step", None)):
        known = "st.TimeStepping(), st.EventDriven() or st.FirstOrder()"
        raise InvalidScene(f"{owner}: stepper must be {known}, got {stepper!r}")


def refuse_class(owner: str, what: str, given: Any) -> None:
    if isinstance(given, type):
        name = given.__name__
        raise InvalidScene(f"{owner}: {what} must be an object, but {name} is a class; pass st.{name}()")
