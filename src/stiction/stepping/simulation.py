"""A scene in time."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.report import counted
from stiction.bodies.scene import START, Scene
from stiction.bodies.state import model_bytes, model_of, names, reset, set_state, state
from stiction.errors import InvalidScene
from stiction.problems.files import read_arrays, write_arrays
from stiction.stepping import saved
from stiction.stepping.choices import check_law, check_solver, check_stepper
from stiction.stepping.contacts import Contacts
from stiction.stepping.engine import Engine, alone
from stiction.stepping.record import Step
from stiction.stepping.rollout import rolled
from stiction.stepping.time_stepping import CONE, DEFAULT, TimeStepping

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from stiction.problems.laws import Law
    from stiction.solvers.contract import Solver
    from stiction.stepping.linearize import Linearization
    from stiction.stepping.report import Report
    from stiction.stepping.rollout import Rollouts


class Simulation:
    """Steps a scene: `step()` once, or `run(seconds)` as a generator of reports. The same inputs give the same bits."""

    def __init__(
        self,
        scene: Scene,
        law: Law = CONE,
        solver: Solver | None = None,
        stepper: Any = None,
    ) -> None:
        if not isinstance(scene, Scene):
            raise InvalidScene(f"Simulation: not a Scene, but {type(scene).__name__}; use Scene.load or Scene.of")
        check_law("Simulation", law)
        check_solver("Simulation", solver)
        if stepper is not None:
            check_stepper("Simulation", stepper)
        self.scene, self.law = scene, law
        self.solver: Any = DEFAULT if solver is None else solver
        self.stepper: Any = TimeStepping() if stepper is None else stepper
        self.engine = Engine(scene, scene.data())
        self.report: Report | None = None

    @property
    def model(self) -> Any:
        """The MjModel underneath."""
        return self.engine.model

    @property
    def data(self) -> Any:
        """The MjData underneath."""
        return self.engine.data

    @property
    def time(self) -> float:
        return float(self.engine.data.time)

    def step(self) -> Report:
        """One step. If its contact problem is not solved, SolveFailed is raised and nothing has moved."""
        report = self.report = self.engine.step(self.stepper, self.law, self.solver)
        return report

    def run(self, seconds: float) -> Iterator[Report]:
        """Steps until `seconds` more have passed, one report each."""
        if not (isinstance(seconds, (int, float)) and 0.0 <= seconds < math.inf):
            raise InvalidScene(f"run: seconds must be a positive number, got {seconds!r}")
        for _ in range(round(seconds / self.model.opt.timestep)):
            yield self.step()

    def linearize(self, *, eps: float = 1e-6, centered: bool = True, sensors: bool = False) -> Linearization:
        """The next step as a linear map of state and control: `A, B = simulation.linearize()`; see `st.linearize`.

        The scene's `control` is not asked: B is the derivative by `data.ctrl` as it is.
        """
        from stiction.stepping.linearize import linearize

        return linearize(
            self.model, self.data, eps=eps, centered=centered, sensors=sensors, law=self.law, solver=self.solver,
            stepper=self.stepper,
        )  # fmt: skip

    def rollout(
        self,
        control: ArrayLike | None = None,
        *,
        nstep: int | None = None,
        workers: int | None = None,
        on_failure: str = "raise",
    ) -> Rollouts:
        """Trajectories under these controls from here, see `st.rollout`; the simulation itself does not move.

        control: ([nbatch or 1], [nstep or 1], nu); none: controls stay as they are
        """
        return rolled(self, control, nstep, workers, on_failure)

    def reset(self) -> None:
        """Return to the initial state and forget everything since, warm starts included."""
        with alone(self.data):
            reset(self.model, self.data, START)
            self.engine = Engine(self.scene, self.data)
            self.report = None

    def copy(self) -> Simulation:
        """A second simulation in the same state, which continues with the same bits; both share the scene's model."""
        with alone(self.data):
            made = object.__new__(type(self))
            made.__dict__ |= vars(self)
            made.engine = Engine.resumed(self.scene, self.data, self.engine.last, self.engine.problem)
        return made

    __copy__ = copy

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and deep copies: all there is, but the model, which the data brings along."""
        with alone(self.data):
            engine, scene = self.engine, self.scene
            return vars(self) | {
                "scene": {name: getattr(scene, name) for name in ("control", "margin", "ignore", "description")},
                "engine": {"data": self.data, "last": engine.last, "problem": engine.problem},
            }

    def __setstate__(self, fields: dict[str, Any]) -> None:
        kept = fields["engine"]
        self.__dict__ |= fields
        self.scene = Scene(kept["data"].model, **fields["scene"])
        self.engine = Engine.resumed(self.scene, **kept)

    def __repr__(self) -> str:
        model = self.model
        bodies = counted(model.nbody - 1, "body", "bodies")
        what = self.scene.description or "a scene"
        return (
            f"<Simulation of {what}: {bodies}, {counted(model.nv, 'velocity', 'velocities')}, t = {self.time:.6g} s, "
            f"{self.law}, {self.solver}, {type(self.stepper).__name__}>"
        )

    @property
    def contacts(self) -> Contacts:
        """The contacts of the last step."""
        if self.report is None or self.engine.gathered is None:
            raise InvalidScene("contacts: no step has been made yet; call step() first")
        return Contacts(self.model, self.data, self.engine.gathered, self.report.solution)

    def net_force(self, body: str, other: str | None = None) -> NDArray[np.float64]:
        """The force in N, in the world's axes, that contacts exerted on a body in the last step."""
        known = names(self.model)[1]
        for name in (body, other):
            if name is not None and name not in known:
                raise InvalidScene(f"net_force: there is no body {name!r}; there are {', '.join(known)}")
        return self.contacts.net_force(body, other)

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write the contact problem of the last step, solved or not, for `stiction.load`."""
        problem = self.engine.problem
        if problem is None and self.report is not None:
            problem = self.report.solution.problem
        if problem is None:
            raise InvalidScene("dump: no step has been tried yet; call step() first")
        problem.save(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next step depends on: model, state, warm start, law, solver, stepper.

        A scene's `control` is a function, which no file can hold: give it to `restore` again.
        """
        gathered = self.engine.gathered
        fields: dict[str, Any] = {
            "model": model_bytes(self.model),
            "state": state(self.model, self.data),
            "acceleration": np.array(self.data.qacc),
            "impulse": self.engine.impulse,
            "choices": json.dumps([saved.described(each) for each in (self.law, self.solver, self.stepper)]),
            "scene": json.dumps({"margin": self.scene.margin, "ignore": list(self.scene.ignore)}),
        }
        if gathered is not None:
            fields |= saved.arrays_of(gathered) | {"kept": np.array(self.engine.last.kept)}  # type: ignore[union-attr]
        write_arrays(Path(path), saved.sealed(fields))

    @classmethod
    def restore(cls, path: str | os.PathLike[str], *, control: Any = None) -> Simulation:
        """A simulation that continues with the same bits as the saved one would have; altered files are refused."""
        file = Path(path)
        if not file.is_file():
            raise InvalidScene(f"restore: there is no file {file}")
        try:
            return cls._restored(saved.unsealed(read_arrays(file)), control)
        except Exception as error:  # damaged archives, texts and models raise errors of many kinds
            reason = " ".join(str(error).split()).removeprefix(f"load: {file}").lstrip(": ")
            raise InvalidScene(
                f"restore: {file} holds no simulation, or is damaged ({reason}); save it anew"
            ) from error

    @classmethod
    def _restored(cls, fields: dict[str, NDArray[Any]], control: Any) -> Simulation:
        options = json.loads(str(fields["scene"]))
        scene = Scene(
            model_of(fields["model"]), control=control, margin=options["margin"], ignore=tuple(options["ignore"])
        )
        simulation = cls(scene, *saved.chosen(str(fields["choices"])))
        set_state(scene.model, simulation.data, fields["state"])
        simulation.data.qacc[:] = fields["acceleration"]
        simulation.engine = Engine(scene, simulation.data)
        if "counts" in fields:
            simulation.engine.last = Step.of(*saved.last_step(fields))
        return simulation
