"""`step`: in place of `mujoco.mj_step`, in anybody's own loop; `step1`, `step2`: in place of its two halves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stiction.bodies.scene import Scene
from stiction.bodies.shadow import refuse_foreign
from stiction.errors import InvalidScene
from stiction.stepping.choices import check_solver, check_stepper
from stiction.stepping.engine import Engine, alone
from stiction.stepping.time_stepping import CONE, TimeStepping

if TYPE_CHECKING:
    from stiction.problems.laws import Law
    from stiction.solvers.contract import Solver
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.first_order import FirstOrder
    from stiction.stepping.report import Report

DEFAULT_STEPPER = TimeStepping()
_engines: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()


def step(
    model: Any,
    data: Any,
    *,
    law: Law = CONE,
    solver: Solver | None = None,
    stepper: TimeStepping | EventDriven | FirstOrder = DEFAULT_STEPPER,
    ignore: tuple[str, ...] = (),
) -> Report:
    """One step of `model.opt.timestep` with exact contact, on any compiled model.

    The model is not changed, and edits to it between steps take effect at once. If a contact problem is not solved,
    SolveFailed is raised and the state stays as it was. Threads may step different data of one model at the same time.

    ignore: features of the model that are left out, as in `Scene.of`
    """
    engine = engine_of(model, data, ignore)
    engine.prepared = False
    return made_step("step", engine, data, law, solver, stepper)


def step1(model: Any, data: Any, *, ignore: tuple[str, ...] = ()) -> None:
    """The part of a step before controls and applied forces are known, as `mj_step1`: `step2` goes on from there.

    Positions of bodies, contacts, sensors of position and velocity can be read in between, and `data.ctrl`,
    `qfrc_applied` and `xfrc_applied` be set from them. Positions and velocities are not to be changed in between.
    """
    engine = engine_of(model, data, ignore)
    with alone(data):
        engine.data = data
        try:
            engine.prepare()
        finally:
            engine.data = None


def step2(
    model: Any,
    data: Any,
    *,
    law: Law = CONE,
    solver: Solver | None = None,
    stepper: TimeStepping | EventDriven | FirstOrder = DEFAULT_STEPPER,
) -> Report:
    """The rest of a step after `step1`, as `mj_step2`: `step1` and `step2` give the same bits as `step`."""
    engine = _engines.get(data) if hasattr(data, "qpos") else None
    if engine is None or engine.model is not model or not engine.prepared:
        raise InvalidScene("step2: this data has no step to go on with; call step1(model, data) before each step2")
    return made_step("step2", engine, data, law, solver, stepper)


def made_step(owner: str, engine: Engine, data: Any, law: Law, solver: Solver | None, stepper: Any) -> Report:
    if solver is not None:
        check_solver(owner, solver)
    if stepper is not DEFAULT_STEPPER:
        check_stepper(owner, stepper)
    return engine.step(stepper, law, solver, data)


def engine_of(model: Any, data: Any, ignore: tuple[str, ...]) -> Engine:
    """The engine of this data; a new one if it has none yet, or one for another model or with other features."""
    try:
        engine = _engines.get(data)
    except TypeError:
        engine = None  # no MjData: refused below
    if engine is not None and engine.model is model and engine.scene.ignore == ignore:
        return engine
    scene = Scene.of(model, ignore=ignore)
    refuse_foreign(model, data)
    with alone(data):
        engine = _engines[data] = Engine(scene, data)
        engine.data = None
    return engine
