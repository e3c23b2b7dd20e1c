"""`step`: in place of `mujoco.mj_step`, in anybody's own loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stiction.bodies.scene import Scene
from stiction.bodies.shadow import refuse_foreign
from stiction.stepping.choices import check_solver, check_stepper
from stiction.stepping.engine import Engine, alone
from stiction.stepping.time_stepping import CONE, TimeStepping

if TYPE_CHECKING:
    from stiction.problems.laws import Law
    from stiction.solvers.contract import Solver
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.report import Report

DEFAULT_STEPPER = TimeStepping()
_engines: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()


def step(
    model: Any,
    data: Any,
    *,
    law: Law = CONE,
    solver: Solver | None = None,
    stepper: TimeStepping | EventDriven = DEFAULT_STEPPER,
) -> Report:
    """One step of `model.opt.timestep` with exact contact, on any compiled model.

    The model is not changed, and edits to it between steps take effect at once. If a contact problem is not solved,
    SolveFailed is raised and the state stays as it was. Threads may step different data of one model at the same time.
    """
    try:
        engine = _engines.get(data)
    except TypeError:
        engine = None  # no MjData: told below
    if engine is None or engine.model is not model:
        engine = made(model, data)
    if solver is not None:
        check_solver("step", solver)
    if stepper is not DEFAULT_STEPPER:
        check_stepper("step", stepper)
    return engine.step(stepper, law, solver, data)


def made(model: Any, data: Any) -> Engine:
    """The engine of a data that has none yet, or one for another model."""
    scene = Scene.of(model)
    refuse_foreign(model, data)
    with alone(data):
        engine = _engines[data] = Engine(scene, data)
        engine.data = None
    return engine
