"""`step`: in place of `mujoco.mj_step`, in anybody's own loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stiction.bodies.scene import Scene
from stiction.stepping.engine import Engine
from stiction.stepping.time_stepping import CONE, TimeStepping

if TYPE_CHECKING:
    from stiction.problems.laws import Law
    from stiction.solvers.contract import Solver
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.report import Report

_engines: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()


def step(
    model: Any,
    data: Any,
    *,
    law: Law = CONE,
    solver: Solver | None = None,
    stepper: TimeStepping | EventDriven = TimeStepping(),  # noqa: B008 (frozen)
) -> Report:
    """One step of `model.opt.timestep` with exact contact, on any compiled model.

    The first step with a data sets the model's options for hard contact (see `Scene.of`). If a contact problem is not
    solved, SolveFailed is raised and the state is what it was.
    """
    engine = _engines.get(data)
    if engine is None or engine.model is not model:
        engine = _engines[data] = Engine(Scene.of(model), data)
    engine.data = data
    try:
        return stepper.step(engine, law, solver)
    finally:
        engine.data = None  # an engine that kept its data would keep it alive
