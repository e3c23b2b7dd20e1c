"""Options that `run`, `view` and `doctor` share: which scene, under which law, solved and stepped how."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from stiction.cli import words
from stiction.errors import InvalidScene

if TYPE_CHECKING:
    from collections.abc import Callable

    from stiction.cli.drive import Driving
    from stiction.stepping.simulation import Simulation

FILES = Group("Scenes from files")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the scene is read."""

    set: Annotated[
        tuple[str, ...],
        Parameter(
            help="A parameter of a named scene, as in `logs=12`; may be repeated.", negative="", show_default=False
        ),
    ] = ()
    ground: Annotated[
        float | None, Parameter(help="Add a horizontal plane at this height, in m.", group=FILES, show_default=False)
    ] = None
    floating: Annotated[
        bool, Parameter(help="Give the root of a URDF a free joint.", group=FILES, negative="", show_default=False)
    ] = False
    package: Annotated[
        tuple[str, ...],
        Parameter(help="NAME=FOLDER of `package://` paths in a URDF; may be repeated.", group=FILES, negative="",
                  show_default=False),
    ] = ()  # fmt: skip
    margin: Annotated[
        float | None,
        Parameter(
            help="Distance, in m, at which contact is looked for.", group=FILES, show_default="follows the motion"
        ),
    ] = None
    ignore: Annotated[
        tuple[str, ...],
        Parameter(help="Feature to ignore: `torsion`, `surfacevel`; may be repeated.", group=FILES, negative="",
                  show_default=False),
    ] = ()  # fmt: skip

    seed: Annotated[
        int | None, Parameter(help="Of a named scene that is made at random.", negative="", show_default=False)
    ] = None

    def scene(self, text: str) -> Any:
        packages = dict(pair.partition("=")[::2] for pair in self.package)
        read = {
            "ground": self.ground, "floating": self.floating, "packages": packages,
            "margin": self.margin, "ignore": self.ignore,
        }  # fmt: skip
        if self.ground is not None and not math.isfinite(self.ground):
            raise InvalidScene(f"--ground must be a height in m, got {self.ground}")
        # A height or margin of 0 is given; False, and what is empty, is not.
        options = {name: value for name, value in read.items() if value or (value == 0.0 and value is not False)}
        given = words.parameters(self.set)
        if self.seed is not None:
            given["seed"] = words.seed(text, self.seed, given)
        return words.scene(text, given, options)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Stepping:
    """How the scene is stepped."""

    law: Annotated[str, Parameter(help=f"Of contact: {', '.join(f'`{law}`' for law in words.LAWS)}.")] = "coulomb"
    solver: Annotated[str, Parameter(help="By its name; `stiction solvers` lists them.")] = "auto"
    stepper: Annotated[
        str,
        Parameter(
            help="`time-stepping`, `event-driven` or `first-order`, with options as in `time-stepping:restitution=0.5`."
        ),
    ] = "time-stepping"
    dt: Annotated[float | None, Parameter(help="Time step in s.", show_default="the scene's")] = None
    on_failure: Annotated[
        str, Parameter(help="At a step that is not solved: `raise` ends the run, `best` goes on with the best answer.")
    ] = "raise"

    def simulation(self, scene: str, reading: Reading, driving: Driving | None = None) -> Simulation:
        """Words are checked before anything is loaded; nothing is written."""
        return self.checked(driving)(reading.scene(scene))

    def checked(self, driving: Driving | None = None) -> Callable[[Any], Simulation]:
        """A function that makes a simulation of a loaded scene; words are checked first."""
        law, viscosity = words.law(self.law)
        stepper = words.stepper(self.stepper, viscosity)
        if self.on_failure != "raise":
            if not hasattr(stepper, "on_failure"):
                raise InvalidScene(f"--on-failure is for time-stepping, not {self.stepper}")
            stepper = dataclasses.replace(stepper, on_failure=self.on_failure)
        solver = None if self.solver == "auto" else words.solver(self.solver)
        if self.dt is not None and not 0.0 < self.dt < float("inf"):
            raise InvalidScene(f"--dt must be a time in s above 0, got {self.dt}")

        def simulation(loaded: Any) -> Simulation:
            from stiction.stepping.simulation import Simulation

            if self.dt is not None:
                loaded.model.opt.timestep = self.dt
            if driving is None:
                return Simulation(loaded, law, solver, stepper)
            made = Simulation(driving.steered(loaded), law, solver, stepper)
            driving.place(made)
            return made

        return simulation


def title(scene: str) -> str:
    """The scene's name, as files are named after it."""
    return Path(scene).stem
