"""Laws, solvers and steppers that are given to a simulation, checked before anything is stepped."""

from __future__ import annotations

import math
from typing import Any

from stiction.errors import InvalidProblem, InvalidScene
from stiction.problems.laws import Law


def check_law(owner: str, law: Any) -> None:
    if not isinstance(law, Law):
        raise InvalidScene(f"{owner}: law must be a law such as Coulomb(), got {law!r}")


def check_solver(owner: str, solver: Any) -> None:
    """Refuse what is no solver; None stands for the default."""
    refuse_class(owner, "solver", solver)
    if solver is not None and not hasattr(solver, "contract"):
        raise InvalidScene(f"{owner}: solver must be a solver such as st.Auto() or st.ConeNewton(), got {solver!r}")


def check_stepper(owner: str, stepper: Any) -> None:
    refuse_class(owner, "stepper", stepper)
    if not callable(getattr(stepper, "step", None)):
        known = "st.TimeStepping(), st.EventDriven() or st.FirstOrder()"
        raise InvalidScene(f"{owner}: stepper must be {known}, got {stepper!r}")


def check_between(owner: str, name: str, value: Any, high: float) -> None:
    if not (isinstance(value, (int, float)) and 0.0 <= value <= high):
        raise InvalidProblem(f"{owner}: {name} must be from 0 to {high:g}, got {value!r}")


def check_viscosity(owner: str, viscosity: float | None) -> None:
    if viscosity is not None and not 0.0 <= viscosity < math.inf:
        raise InvalidProblem(f"{owner}: viscosity must not be negative, got {viscosity!r}")


def refuse_class(owner: str, what: str, given: Any) -> None:
    if isinstance(given, type):
        name = given.__name__
        raise InvalidScene(f"{owner}: {what} must be an object, but {name} is a class; pass st.{name}()")
