"""How a scene is driven from the command line: held actuators, and the keyframe it starts from."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from stiction.cli import words
from stiction.errors import InvalidScene

if TYPE_CHECKING:
    from stiction.bodies.scene import Scene
    from stiction.stepping.simulation import Simulation

DRIVING = Group("Driving")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Driving:
    """Controls of the scene, and where it starts."""

    ctrl: Annotated[
        tuple[str, ...],
        Parameter(help="ACTUATOR=VALUE, held all the time; may be repeated.", group=DRIVING, negative="",
                  show_default=False),
    ] = ()  # fmt: skip
    keyframe: Annotated[
        str | None, Parameter(help="Start from this keyframe, by name or number.", group=DRIVING, show_default=False)
    ] = None

    def steered(self, scene: Scene) -> Scene:
        """The scene with its actuators held, on top of what drives it already."""
        held = held_values(scene.model, self.ctrl)
        if not held:
            return scene
        before = scene.control

        def control(model: Any, data: Any) -> None:
            if before is not None:
                before(model, data)
            for actuator, value in held.items():
                data.ctrl[actuator] = value

        made = copy.copy(scene)
        object.__setattr__(made, "control", control)
        return made

    def place(self, simulation: Simulation) -> None:
        """Put a simulation that has not begun at its keyframe."""
        if self.keyframe is None:
            return
        from stiction.stepping.engine import Engine

        to_keyframe(simulation.model, simulation.data, self.keyframe)
        simulation.engine = Engine(simulation.scene, simulation.data)


def held_values(model: Any, pairs: tuple[str, ...]) -> dict[int, float]:
    """`left=10` as the number of an actuator and its control."""
    known = [model.actuator(i).name or str(i) for i in range(model.nu)]
    held = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        value = words.literal(text) if equals else None
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            raise InvalidScene(f"--ctrl {pair}: write ACTUATOR=VALUE, as in --ctrl left=10")
        if name not in known and not (name.isdigit() and int(name) < model.nu):
            raise InvalidScene(words.nearest("actuator", name, known, " (--ctrl)"))
        actuator = known.index(name) if name in known else int(name)
        low, high = (float(end) for end in model.actuator_ctrlrange[actuator])
        if model.actuator_ctrllimited[actuator] and not low <= value <= high:
            raise InvalidScene(f"--ctrl {pair}: {name} takes values from {low:g} to {high:g}")
        held[actuator] = float(value)
    return held


def to_keyframe(model: Any, data: Any, wanted: str) -> None:
    from stiction.optional import mujoco

    mj = mujoco()
    known = [model.key(i).name or str(i) for i in range(model.nkey)]
    if wanted not in known and not (wanted.isdigit() and int(wanted) < model.nkey):
        raise InvalidScene(words.nearest("keyframe", wanted, known, " (--keyframe)"))
    mj.mj_resetDataKeyframe(model, data, known.index(wanted) if wanted in known else int(wanted))
