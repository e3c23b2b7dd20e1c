"""How a scene is driven from the command line: held actuators, and the keyframe it starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from stiction.cli import words
from stiction.errors import InvalidScene, is_number, unknown

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

        return replace(scene, control=control)

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
        if not is_number(value) or not math.isfinite(value):
            raise InvalidScene(f"--ctrl {pair}: write ACTUATOR=VALUE, as in --ctrl left=10")
        actuator = numbered("actuator", name, known, "--ctrl")
        low, high = (float(end) for end in model.actuator_ctrlrange[actuator])
        if model.actuator_ctrllimited[actuator] and not low <= value <= high:
            raise InvalidScene(f"--ctrl {pair}: {name} takes values from {low:g} to {high:g}")
        held[actuator] = float(value)
    return held


def to_keyframe(model: Any, data: Any, wanted: str) -> None:
    from stiction.optional import mujoco

    mj = mujoco()
    known = [model.key(i).name or str(i) for i in range(model.nkey)]
    mj.mj_resetDataKeyframe(model, data, numbered("keyframe", wanted, known, "--keyframe"))


def numbered(what: str, name: str, known: list[str], option: str) -> int:
    """The number of something by its name, or by that number itself."""
    if name in known:
        return known.index(name)
    if name.isdigit() and int(name) < len(known):
        return int(name)
    raise InvalidScene(unknown(what, name, known, f" ({option})"))
