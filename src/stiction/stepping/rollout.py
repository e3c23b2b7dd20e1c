"""`rollout`: many open-loop trajectories, in threads, as `mujoco.rollout` makes them, every step certified.

A trajectory begins with data as `MjData(model)` makes them, at a state that is given, and is what a loop of `st.step`
makes of it, to the bit, whatever the number of threads. Where steps need no Python in between they are made in one
compiled call (`loop`), else one after the other.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.bodies.scene import Scene
from stiction.bodies.shadow import refuse_foreign
from stiction.bodies.state import copy_data, place_bodies
from stiction.errors import InvalidScene, SolveFailed, is_whole
from stiction.optional import mujoco
from stiction.stepping.choices import check_law, check_stepper
from stiction.stepping.engine import Engine, alone
from stiction.stepping.fused import UNCERTIFIED, UNFIT, Fused
from stiction.stepping.loop import ENDED, Loop, can_loop
from stiction.stepping.time_stepping import CONE, DEFAULT, TimeStepping

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from stiction.problems.laws import Law
    from stiction.stepping.record import Step

mj = mujoco()
PHYSICS, CONTROL = int(mj.mjtState.mjSTATE_FULLPHYSICS), int(mj.mjtState.mjSTATE_CTRL)
USER = int(mj.mjtState.mjSTATE_USER)
FAILURES = ("raise", "stop", "best")
SHARE = 500  # steps of one compiled call at most, so that Ctrl-C is answered soon
PATIENCE = 2.0  # s until progress is shown on a terminal
REFRESH = 0.2  # s between two lines of it
DEFAULT_STEPPER = TimeStepping()


class Rollouts(NamedTuple):
    """Trajectories.

    state: (nbatch, nstep, nstate) after each step, as `mjSTATE_FULLPHYSICS` orders it
    sensordata: (nbatch, nstep, nsensordata) of each step
    residual: (nbatch, nstep) of each step's certificate; NaN where no step was made
    failed: (nbatch,) the first step that is not certified, -1 if all are
    """

    state: NDArray[np.float64]
    sensordata: NDArray[np.float64]
    residual: NDArray[np.float64]
    failed: NDArray[np.int64]


def rollout(
    model: Any,
    data: Any,
    initial_state: ArrayLike,
    control: ArrayLike | None = None,
    *,
    control_spec: int = CONTROL,
    skip_checks: bool = False,
    nstep: int | None = None,
    state: NDArray[np.float64] | None = None,
    sensordata: NDArray[np.float64] | None = None,
    law: Law = CONE,
    stepper: Any = DEFAULT_STEPPER,
    workers: int | None = None,
    on_failure: str = "raise",
) -> Rollouts:
    """Open-loop trajectories from initial states under controls, as `mujoco.rollout`, with exact contact.

    model: an MjModel, or one for each trajectory, of the same sizes
    data: an MjData, or a list of them, to step; what they hold is lost
    initial_state: ([nbatch or 1], nstate), as `mjSTATE_FULLPHYSICS` orders it
    control: ([nbatch or 1], [nstep or 1], ncontrol); none: all controls are zero
    control_spec: what the rows of `control` are, of `mjtState`
    skip_checks: take arrays as they are, of full size and contiguous; state, sensordata and nstep must be given
    nstep: number of steps, if it does not follow from the arrays
    state, sensordata: arrays to write to
    workers: threads; by default as many as there are data, or one for each processor if there is one data
    on_failure: at a step that is not certified, "raise"; "stop" this trajectory, which stays where it is, while the
        others go on; or go on with the "best" answer. `failed` has the first such step
    """
    check_law("rollout", law)
    check_stepper("rollout", stepper)
    check_failure(on_failure)
    models, data_list = listed("model", model, mj.MjModel), listed("data", data, mj.MjData)
    threads = count_of(workers, len(data_list) if isinstance(data, Sequence) else os.cpu_count() or 1)
    if skip_checks:
        if nstep is None or state is None or sensordata is None:
            raise InvalidScene("rollout: skip_checks needs nstep, state and sensordata")
        states: Any = initial_state
        controls: Any = np.zeros((len(states), 0, 0)) if control is None else control
        for name, value in (("control", controls), ("state", state), ("sensordata", sensordata)):
            if value.dtype != np.float64 or value.ndim != 3 or not value.flags.c_contiguous:  # kernels do not ask
                raise InvalidScene(f"rollout: {name} must be a contiguous array of float64 with three axes")
        task = Task(states, controls, state, sensordata, len(states), nstep)
    else:
        task = checked(models, initial_state, control, int(control_spec), nstep, state, sensordata)
    if len(models) not in (1, task.batch):
        raise InvalidScene(f"rollout: model must be one, or one for each of {task.batch}, got {len(models)}")
    for each in data_list:
        refuse_foreign(models[0], each)
    options = StepOptions(law, stepped(stepper, on_failure), on_failure, int(control_spec))

    def begun(engine: Engine, k: int) -> None:
        mj.mj_resetData(engine.model, engine.data)
        mj.mj_setState(engine.model, engine.data, task.initial[k], PHYSICS)
        place_bodies(engine.model, engine.data)
        engine.last = None

    rollers = Rollers([Scene.of(each) for each in models], data_list, begun, options)
    return made(task, rollers, min(threads, max(task.batch, 1)))


def rolled(simulation: Any, control: Any, nstep: int | None, workers: int | None, on_failure: str) -> Rollouts:
    """`Simulation.rollout`: from where a simulation is, without moving it."""
    check_failure(on_failure)
    engine = simulation.engine
    with alone(engine.data):
        before = np.empty(mj.mj_stateSize(engine.model, PHYSICS))
        mj.mj_getState(engine.model, engine.data, before, PHYSICS)
        task = checked([engine.model], before, control, CONTROL, nstep, None, None)

        def begun(own: Engine, k: int) -> None:
            copy_data(own.model, engine.data, own.data)
            own.last = engine.last

        options = StepOptions(
            simulation.law, stepped(simulation.stepper, on_failure), on_failure, CONTROL, simulation.solver
        )
        threads = count_of(workers, os.cpu_count() or 1)
        return made(task, Rollers([simulation.scene], [], begun, options), min(threads, max(task.batch, 1)))


# What is asked


class Task(NamedTuple):
    """Arrays of all trajectories."""

    initial: NDArray[np.float64]  # (batch, nstate)
    control: NDArray[np.float64]  # (batch, steps, ncontrol), or without steps if there is none
    state: NDArray[np.float64]
    sensordata: NDArray[np.float64]
    batch: int
    steps: int


class StepOptions(NamedTuple):
    """How steps are made."""

    law: Law
    stepper: Any
    on_failure: str
    spec: int
    solver: Any = DEFAULT


def listed(name: str, given: Any, kind: type) -> list[Any]:
    every = list(given) if isinstance(given, Sequence) else [given]
    for index, each in enumerate(every):
        if not isinstance(each, kind):
            at = f"[{index}]" if isinstance(given, Sequence) else ""
            raise InvalidScene(f"rollout: {name}{at} must be an {kind.__name__}, got {type(each).__name__}")
    if not every:
        raise InvalidScene(f"rollout: {name} is an empty list; give at least one")
    return every


def check_failure(on_failure: str) -> None:
    if on_failure not in FAILURES:
        raise InvalidScene(f"rollout: on_failure must be one of {', '.join(map(repr, FAILURES))}, got {on_failure!r}")


def count_of(workers: int | None, usual: int) -> int:
    if workers is None:
        return usual
    if not is_whole(workers, 1):
        raise InvalidScene(f"rollout: workers must be a whole number of at least 1, got {workers!r}")
    return workers


def stepped(stepper: Any, on_failure: str) -> Any:
    """The stepper; with "best", one that goes on."""
    if on_failure != "best":
        return stepper
    if not isinstance(stepper, TimeStepping):
        raise InvalidScene(f"rollout: on_failure='best' is for TimeStepping, not {type(stepper).__name__}")
    return replace(stepper, on_failure="best")


def checked(
    models: list[Any], initial_state: Any, control: Any, spec: int, nstep: int | None, state: Any, sensordata: Any
) -> Task:
    """Arrays of full size, or InvalidScene that names the one that does not fit, its shape and what it should be."""
    if spec & ~USER:
        raise InvalidScene(f"rollout: control_spec must consist of bits of mjSTATE_USER, got {spec}")
    if nstep is not None and not is_whole(nstep, 0):
        raise InvalidScene(f"rollout: nstep must be a whole number of at least 0, got {nstep!r}")
    sizes = [(mj.mj_stateSize(m, PHYSICS), mj.mj_stateSize(m, spec), m.nsensordata, m.nv) for m in models]
    for index, each in enumerate(sizes):
        if each != sizes[0]:
            raise InvalidScene(f"rollout: model[{index}] has other sizes than model[0]; all must have the same")
    nstate, ncontrol, nsensor, _ = sizes[0]
    first = array("initial_state", initial_state, 2, nstate)
    controls = None if control is None else array("control", control, 3, ncontrol)
    outputs = {"state": (state, nstate), "sensordata": (sensordata, nsensor)}
    given: dict[str, tuple[int, ...]] = {"initial_state": first.shape}
    given |= {} if controls is None else {"control": controls.shape}
    for name, (value, size) in outputs.items():
        if value is not None:
            usable = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.flags.c_contiguous
            if not usable or not value.flags.writeable or value.ndim != 3 or value.shape[2] != size:
                shape = f"(nbatch, nstep, {size})"
                raise InvalidScene(
                    f"rollout: {name} must be a contiguous array of float64 of shape {shape} to write to"
                )
            given[name] = value.shape
    models_given = {"model": (len(models),)} if len(models) > 1 else {}
    batch = agreed("nbatch", {name: shape[0] for name, shape in {**given, **models_given}.items()})
    asked = {} if nstep is None else {"nstep": int(nstep)}
    steps = agreed("nstep", {name: shape[1] for name, shape in given.items() if len(shape) == 3} | asked)
    if controls is not None:
        controls = np.ascontiguousarray(np.broadcast_to(controls, (batch, steps, ncontrol)))
    for name in ("state", "sensordata"):
        if name in given and given[name][:2] != (batch, steps):
            raise InvalidScene(f"rollout: {name} must have shape ({batch}, {steps}, …), got {given[name]}")
    return Task(
        np.ascontiguousarray(np.broadcast_to(first, (batch, nstate))),
        np.zeros((batch, 0, 0)) if controls is None else controls,
        np.empty((batch, steps, nstate)) if state is None else state,
        np.empty((batch, steps, nsensor)) if sensordata is None else sensordata, batch, steps,
    )  # fmt: skip


def array(name: str, value: Any, axes: int, last: int) -> NDArray[np.float64]:
    """Numbers with so many axes, the first of which may be left out."""
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidScene(f"rollout: {name} must be an array of numbers ({error})") from error
    if not 1 <= found.ndim <= axes or found.shape[-1] != last:
        leading = ("[nbatch or 1]", "[nstep or 1]")[: axes - 1]
        raise InvalidScene(f"rollout: {name} must have shape ({', '.join(leading)}, {last}), got {found.shape}")
    return found.reshape((1,) * (axes - found.ndim) + found.shape)


def agreed(what: str, given: dict[str, int]) -> int:
    """The size that these arrays share: the one that is above 1, or 1."""
    sizes = {name: size for name, size in given.items() if size != 1}
    if len(set(sizes.values())) > 1:
        unequal = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InvalidScene(f"rollout: arrays disagree about {what}: {unequal}; each must have the same, or 1")
    return next(iter(sizes.values()), 1)


# Threads


class Rollers:
    """Engines for the threads: each data has its own, which is made once for a model."""

    def __init__(
        self, scenes: list[Scene], data_list: list[Any], begun: Callable[[Engine, int], None], options: StepOptions
    ) -> None:
        self.scenes, self.data_list, self.begun, self.options = scenes, list(data_list), begun, options
        self.lock = threading.Lock()

    def free_data(self) -> Any:
        """A data of the user's that is not in use, or a new one."""
        with self.lock:
            return self.data_list.pop(0) if self.data_list else mj.MjData(self.scenes[0].model)

    def roller(self, data: Any, k: int, before: Roller | None) -> Roller:
        scene = self.scenes[k % len(self.scenes)]
        if before is not None and before.engine.scene is scene:
            return before
        return Roller(Engine(scene, data), self.options)


def made(task: Task, rollers: Rollers, threads: int) -> Rollouts:
    """All trajectories; an error, or Ctrl-C, ends those that run and lets none begin."""
    found = Rollouts(task.state, task.sensordata, np.full((task.batch, task.steps), np.nan), np.full(task.batch, -1))
    stop, numbers, progress = threading.Event(), iter(range(task.batch)), Progress(task.batch * task.steps)
    turn = threading.Lock()

    def work() -> None:
        data, roller = rollers.free_data(), None
        with alone(data):
            while not stop.is_set():
                with turn:
                    k = next(numbers, None)
                if k is None:
                    return
                roller = rollers.roller(data, k, roller)
                rollers.begun(roller.engine, k)
                roller.run(k, task, found, stop, progress)

    if threads == 1:
        work()
    else:
        with ThreadPoolExecutor(threads) as pool:
            try:
                at_work = [pool.submit(work) for _ in range(threads)]
                left = set(at_work)
                while left:
                    over, left = wait(left, REFRESH, "FIRST_EXCEPTION")
                    progress.show()
                    for each in over:
                        each.result()
            finally:
                stop.set()
    progress.close()
    return found


class Progress:
    """A line on a terminal about a rollout that takes long."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.begin, self.due = total, 0, time.monotonic(), PATIENCE
        self.shown = False

    def add(self, steps: int) -> None:
        self.done += steps  # threads may lose some; this is for people
        if threading.current_thread() is threading.main_thread():
            self.show()

    def show(self) -> None:
        passed = time.monotonic() - self.begin
        if passed < self.due or not self.done or not sys.stderr.isatty():
            return
        self.due, self.shown = passed + REFRESH, True
        left = passed * max(self.total - self.done, 0) / self.done
        share = 100.0 * min(self.done / self.total, 1.0)
        sys.stderr.write(f"\rrollout: {share:.0f} % of {self.total} steps, {math.ceil(left)} s left ")
        sys.stderr.flush()

    def close(self) -> None:
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


# One trajectory


class Roller:
    """Makes trajectories on one data."""

    def __init__(self, engine: Engine, options: StepOptions) -> None:
        self.engine, self.options = engine, options
        self.loop: Loop | None = None
        self.proven = False  # whether a step went well through MuJoCo's bindings
        if can_loop(engine, options.law, options.stepper) and options.solver == DEFAULT:
            loop = Loop(engine, options.stepper, options.spec)
            self.loop = loop if loop.ready() else None

    def run(self, k: int, task: Task, found: Rollouts, stop: threading.Event, progress: Progress) -> None:
        """Trajectory k, from where its data is now."""
        outputs = found.state[k], found.sensordata[k], found.residual[k]
        control, t = task.control[k], 0
        while t < task.steps and not stop.is_set():
            begin = t
            try:
                t = self.make_steps(t, min(t + SHARE, task.steps), control, *outputs, found.failed[k : k + 1])
            except (SolveFailed, InvalidScene) as error:
                t = int(getattr(error, "step", t))
                found.failed[k] = t
                if self.options.on_failure == "stop":
                    self.stay(t, *outputs)
                    return
                error.add_note(f"in trajectory {k}, at step {t}")
                raise
            progress.add(t - begin)

    def make_steps(
        self, t: int, end: int, control: NDArray[np.float64], state: NDArray[np.float64],
        sensordata: NDArray[np.float64], residual: NDArray[np.float64], failed: NDArray[np.int64],
    ) -> int:  # fmt: skip
        """Make steps t to end, or fewer; returns the next one to make."""
        tried: Step | None = None
        why = 0
        if self.loop is not None and self.proven:
            t, why, tried = self.loop.run(t, end, control, state, sensordata, residual)
            if why == ENDED:
                return t
        try:
            report = self.one(t, control, why, tried)
        except (SolveFailed, InvalidScene) as error:
            error.step = t  # type: ignore[union-attr]
            raise
        self.proven = True
        mj.mj_getState(self.engine.model, self.engine.data, state[t], PHYSICS)
        sensordata[t] = self.engine.data.sensordata
        residual[t] = report.certificate.residual
        if not report.ok and failed[0] < 0:
            failed[0] = t
        return t + 1

    def one(self, t: int, control: NDArray[np.float64], why: int, tried: Step | None) -> Any:
        """Make step t from Python: all of it, or what the loop has left of it."""
        engine, options = self.engine, self.options
        if why in (UNCERTIFIED, UNFIT) and self.loop is not None and self.proven:
            return options.stepper.step_apart(engine, options.law, options.solver, tried)
        if isinstance(tried, Fused):
            return options.stepper.step_still(engine, tried)
        if control.size:
            mj.mj_setState(engine.model, engine.data, control[t], options.spec)
        return options.stepper.step(engine, options.law, options.solver)

    def stay(self, t: int, state: NDArray[np.float64], sensordata: NDArray[np.float64], residual: Any) -> None:
        """Fill what is left of a trajectory that has stopped with where it is."""
        last = np.empty(state.shape[1])
        mj.mj_getState(self.engine.model, self.engine.data, last, PHYSICS)
        state[t:] = last
        sensordata[t:] = sensordata[t - 1] if t else 0.0
        residual[t:] = np.nan
