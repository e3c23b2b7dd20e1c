"""A simulation in somebody's hands: play, pause, step, reset, speed, law, solver, actuators, and a pull on a body.

All that a viewer decides is here, and nothing that it draws. Commands may come from any thread: `post` keeps them, and
the thread that steps obeys them between two steps. Whoever draws looks at `moment`, never at the simulation: the thread
of `work` may compile a kernel for a minute while pictures go on.
"""

from __future__ import annotations

import math
import queue
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.scene import START
from stiction.bodies.state import names, set_state
from stiction.errors import InvalidScene, StictionError
from stiction.optional import mujoco
from stiction.stepping.engine import Engine
from stiction.stepping.first_order import FirstOrder
from stiction.viewer.choices import laws_for, solvers_for
from stiction.viewer.history import History, Moment
from stiction.viewer.push import Grip, SteadyGrip, can_be_pulled

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from stiction.bodies.scene import Scene
    from stiction.problems.laws import Law
    from stiction.stepping.simulation import Simulation

SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
PICTURE = 1.0 / 60.0  # s, between pictures, and between moments that are kept
BREATH = 0.001  # s, in which the thread that steps lets others work


class Session:
    """A simulation in the hands of a person. A step that fails pauses it, with the reason in `failure`.

    moment: the simulation as it was last seen; others are in `history`
    made: steps since the beginning, whatever was reset

    laws, solvers: offered by name; None for all that apply. Solvers given here are offered under every law.
    """

    def __init__(
        self,
        simulation: Simulation,
        laws: Mapping[str, Law] | None = None,
        solvers: Mapping[str, Any] | None = None,
    ) -> None:
        self.simulation = simulation
        self.playing, self.speed = True, 1.0
        self.failure: str | None = None
        self.steps = self.made = 0
        self.keyframe = keyframe_of(simulation)
        self.history = History()
        self._names = names(simulation.model)
        self.hand = Hand(simulation.scene)
        simulation.scene = replace(simulation.scene, control=self.hand)
        simulation.engine.scene = simulation.scene
        self._owed = 0.0
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._solvers = solvers
        self.laws = dict(laws_for(simulation.stepper) if laws is None else laws)
        self.law = named(self.laws, simulation.law)
        self.solvers = self._offered()
        self.solver = named(self.solvers, simulation.solver)
        self.moment = self.look()

    def look(self) -> Moment:
        """Keep the present moment."""
        moment = Moment.of(self.simulation, self.hand.began, self.hand.grip)
        if moment.contacts is not None:  # one list of names is enough for all
            moment.contacts.geoms, moment.contacts.bodies = self._names
        self.history.add(moment)
        self.moment = moment
        return moment

    def work(self, closing: threading.Event, watched: threading.Event) -> None:
        """Obey, and step as far as the clock has come, until `closing`; time stands still until `watched`."""
        clock = time.perf_counter()
        while not closing.wait(BREATH):
            self.obey()
            passed = time.perf_counter() - clock
            if passed < PICTURE:
                continue
            clock += passed
            if watched.is_set():
                self.advance(min(passed, 0.1), PICTURE)

    def post(self, command: Callable[[], None]) -> None:
        """Have the stepping thread do this, in the order in which it was asked for."""
        self._commands.put(command)

    def obey(self) -> bool:
        """Carry out the commands that wait; returns whether there were any."""
        done = False
        while not self._commands.empty():
            try:
                self._commands.get()()
            except Exception as error:  # whatever is asked for, the page must outlive it
                self._fail(error)
            done = True
        return done

    def play(self) -> None:
        self.playing, self.failure, self._owed = True, None, 0.0

    def pause(self) -> None:
        self.playing = False

    def step(self) -> bool:
        """One step; False if it failed."""
        done = self._step()
        if done:
            self.look()
        return done

    def _step(self) -> bool:
        try:
            self.simulation.step()
        except Exception as error:  # whatever a step does, the page must outlive it
            self._fail(error)
            return False
        self.failure = None
        self.steps += 1
        self.made += 1
        return True

    def _fail(self, error: Exception) -> None:
        kind = "" if isinstance(error, StictionError) else f"{type(error).__name__}: "
        self.failure, self.playing = f"{kind}{error}", False

    def reset(self) -> None:
        """Back to the chosen keyframe, or to the beginning; clears the history."""
        self.release()
        simulation = self.simulation
        simulation.reset()
        if self.keyframe is not None:
            mujoco().mj_resetDataKeyframe(simulation.model, simulation.data, self.keyframe)
            simulation.engine = Engine(simulation.scene, simulation.data)
            # A keyframe sets controls as well.
            self.hand.held = {i: float(simulation.data.ctrl[i]) for i in self.hand.held}
        self.failure, self.steps, self._owed = None, 0, 0.0
        self.hand.began = None
        self.history.clear()
        self.look()

    def set_keyframe(self, name: str) -> None:
        """Which one to reset to, and reset."""
        offered = keyframes(self.simulation.model)
        self.keyframe = chosen("keyframe", offered, name)
        self.reset()

    def go_on(self, moment: Moment) -> None:
        """From a moment that was kept; what came after it is forgotten."""
        self.release()
        simulation = self.simulation
        set_state(simulation.model, simulation.data, moment.state)
        simulation.data.qacc[:] = moment.acceleration
        simulation.engine = Engine(simulation.scene, simulation.data)
        simulation.engine.last = moment.step
        simulation.report = None  # MuJoCo's list of contacts is that of a later step
        self.hand.began = None
        self.history.forget_after(moment.time)
        self.moment = moment
        self.failure, self._owed = None, 0.0

    def advance(self, seconds: float, allowed: float = 1.0 / 60.0) -> int:
        """Steps for so many seconds of a clock, as far as they fit in the allowed time; what does not is forgotten."""
        if not self.playing:
            return 0
        dt = self.simulation.model.opt.timestep
        self._owed += self.speed * seconds
        deadline = time.perf_counter() + allowed
        made = 0
        while self._owed >= dt and self.playing:
            made += self._step()
            self._owed -= dt
            if time.perf_counter() > deadline:
                self._owed = min(self._owed, dt)
                break
        if made:
            self.look()
        return made

    def set_speed(self, speed: float) -> None:
        if not (math.isfinite(speed) and speed > 0.0):
            raise InvalidScene(f"speed must be a positive number, got {speed!r}")
        self.speed = speed

    def set_law(self, name: str) -> None:
        """Switch the law; a solver that does not take it gives way to the first that does."""
        self.simulation.law, self.law = chosen("law", self.laws, name), name
        self.solvers = self._offered()
        self.set_solver(self.solver if self.solver in self.solvers else next(iter(self.solvers)))

    def set_solver(self, name: str) -> None:
        self.simulation.solver, self.solver = chosen("solver", self.solvers, name), name
        self.failure = None

    def _offered(self) -> dict[str, Any]:
        return solvers_for(self.simulation.law) if self._solvers is None else dict(self._solvers)

    def grab(self, body: int, point: Any) -> bool:
        """Take hold of a body at a point of the world; False if it is fixed."""
        model, data = self.simulation.model, self.simulation.data
        self.release()
        if not can_be_pulled(model, body):
            return False
        stepper, at = self.simulation.stepper, np.asarray(point, float)
        first_order = isinstance(stepper, FirstOrder)
        self.hand.grip = SteadyGrip(model, data, body, at, stepper.time) if first_order else Grip(model, data, body, at)
        return True

    def drag(self, target: Any) -> None:
        """Pull what is held towards a point of the world."""
        if self.hand.grip is not None and np.all(np.isfinite(target)):
            self.hand.grip.target = np.asarray(target, float)

    def release(self) -> None:
        if self.hand.grip is not None:
            self.hand.grip.release(self.simulation.data)
            self.hand.grip = None

    def close(self) -> None:
        """Let go of everything: the simulation is as it was given, at the time it has reached."""
        self.release()
        self.simulation.scene = self.simulation.engine.scene = self.hand.scene


class Hand:
    """A person's additions to a scene's own control: actuators that are held at a value, and a pull.

    began: positions from which the last step began, which MuJoCo has overwritten when the step is over
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.held: dict[int, float] = {}
        self.grip: Grip | None = None
        self.began: NDArray[np.float64] | None = None

    def __call__(self, model: Any, data: Any) -> None:
        self.began = data.qpos.copy()
        if self.scene.control is not None:
            self.scene.control(model, data)
        for actuator, value in self.held.items():
            data.ctrl[actuator] = value
        if self.grip is not None:
            self.grip.pull(model, data)


def named(offered: dict[str, Any], value: Any) -> str:
    """Under which name a value is offered; one that is not is added."""
    for name, each in offered.items():
        if each == value:
            return name
    offered[repr(value)] = value
    return repr(value)


def chosen(what: str, offered: Mapping[str, Any], name: str) -> Any:
    if name not in offered:
        raise InvalidScene(f"there is no {what} {name!r}; there are {', '.join(offered)}")
    return offered[name]


def keyframes(model: Any) -> dict[str, int | None]:
    """Numbers of the keyframes by name; None is where the scene begins by itself."""
    own = {model.key(i).name or f"keyframe {i}": i for i in range(model.nkey)}
    own.pop(START, None)
    return {"the beginning": None} | own


def keyframe_of(simulation: Simulation) -> int | None:
    """The keyframe at which a simulation stands that has not begun."""
    model, data = simulation.model, simulation.data
    if simulation.report is not None:
        return None
    for i in keyframes(model).values():
        if i is not None and np.array_equal(model.key_qpos[i], data.qpos) and data.time == model.key_time[i]:
            begun = simulation.scene.data()
            return None if np.array_equal(begun.qpos, data.qpos) else i
    return None


def actuator_ranges(simulation: Simulation) -> list[tuple[str, float, float, float]]:
    """Name, lowest and highest control and the present one, of every actuator.

    One without limits may go to twice what the scene's own control asks for, both ways.
    """
    model, data = simulation.model, simulation.data
    if simulation.scene.control is not None:
        simulation.scene.control(model, data)
    ranges = []
    for i in range(model.nu):
        now = float(data.ctrl[i])
        low, high = (float(end) for end in model.actuator_ctrlrange[i])
        if not model.actuator_ctrllimited[i]:
            low, high = (-2.0 * abs(now), 2.0 * abs(now)) if now else (-1.0, 1.0)
        ranges.append((model.actuator(i).name or f"actuator {i}", low, high, min(max(now, low), high)))
    return ranges
