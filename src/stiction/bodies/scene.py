"""A scene: a MuJoCo model, ready to be stepped."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies import settings
from stiction.bodies.collision import needs_mending
from stiction.bodies.memory import Memory, memory
from stiction.bodies.report import IGNORABLE, Report, inspect
from stiction.bodies.urdf import is_urdf, spec_of_urdf
from stiction.errors import InvalidScene
from stiction.optional import mujoco

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

mj = mujoco()

START = "start"
UNNAMED = mj.MjSpec().modelname


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """A compiled model and what the package needs to know about it.

    model: the MjModel; its options and margins are set for hard contact (`bodies.settings`), `restore` undoes that
    control: called with model and data before every step, or None
    margin: distance of a pair of geoms at which contact is looked for, None to follow the motion
    ignore: refused features that are to be ignored, of "torsion" and "surfacevel"
    description: one line for people
    """

    model: Any
    control: Callable[[Any, Any], None] | None = None
    margin: float | None = None
    ignore: tuple[str, ...] = ()
    description: str = ""
    mends: bool = field(init=False, repr=False)  # whether contacts are to be mended: `smooth` then needs the memory
    given: dict[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.model, mj.MjModel):
            raise InvalidScene(f"Scene: model must be an MjModel, got {type(self.model).__name__}")
        if not set(self.ignore) <= set(IGNORABLE):
            raise InvalidScene(f"Scene: ignore must be a tuple of names of {IGNORABLE}, got {self.ignore!r}")
        if self.margin is not None and not (np.isfinite(self.margin) and self.margin >= 0.0):
            raise InvalidScene(f"Scene: margin must be a distance in m, or None, got {self.margin}")
        object.__setattr__(self, "mends", needs_mending(self.model))
        object.__setattr__(self, "given", settings.original(self.model))
        settings.apply(self.model)

    def __repr__(self) -> str:
        model = self.model
        counts = ((model.nbody - 1, "bodies"), (model.nv, "velocities"), (model.nu, "actuators"))
        told = ", ".join(f"{count} {what}" for count, what in counts if count)
        name = (self.description or "without a name").rstrip(".")
        return f"<Scene {name!r}: {told or 'empty'}, time step {model.opt.timestep:g} s>"

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        packages: Mapping[str, str | os.PathLike[str]] | None = None,
        floating: bool = False,
        ground: float | None = None,
        margin: float | None = None,
        ignore: tuple[str, ...] = (),
    ) -> Scene:
        """Read MJCF or URDF.

        packages: folders of `package://name/...` in a URDF; others are looked for above the file
        floating: give the root of a URDF a free joint
        ground: height of a horizontal plane to add, in m
        """
        file = Path(path)
        if not file.is_file():
            raise InvalidScene(f"{file}: no such file")
        with told(str(file)):
            if is_urdf(file):
                spec = spec_of_urdf(file, packages or {}, floating)
            elif packages or floating:
                raise InvalidScene("packages and floating are for URDF; this is MJCF")
            else:
                spec = mj.MjSpec.from_file(str(file))
            return cls._of_spec(spec, ground, margin=margin, ignore=ignore, description=named_by(spec) or file.stem)

    @classmethod
    def from_xml(
        cls, text: str, *, ground: float | None = None, margin: float | None = None, ignore: tuple[str, ...] = ()
    ) -> Scene:
        """Read MJCF from a string."""
        with told("scene"):
            spec = mj.MjSpec.from_string(text)
            return cls._of_spec(spec, ground, margin=margin, ignore=ignore, description=named_by(spec))

    @classmethod
    def of(cls, model: Any, *, margin: float | None = None, ignore: tuple[str, ...] = ()) -> Scene:
        """Any compiled model. Its options and margins are changed in place; `restore` sets them back."""
        return cls(model, margin=margin, ignore=ignore)

    @classmethod
    def named(cls, name: str, **parameters: Any) -> Scene:
        """A scene of the papers, such as `Scene.named("peg-in-hole", contacts=16)`."""
        from stiction.bodies.named import SCENES

        if name not in SCENES:
            raise InvalidScene(f"there is no scene {name!r}; there are {', '.join(sorted(SCENES))}")
        made = SCENES[name](**parameters)
        with told(name):
            return cls._of_spec(made.spec, None, control=made.control, description=made.description)

    @classmethod
    def _of_spec(cls, spec: Any, ground: float | None, **options: Any) -> Scene:
        if ground is not None:
            spec.worldbody.add_geom(
                name="ground", type=mj.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], pos=[0.0, 0.0, ground]
            )
        return cls(spec.compile(), **options)

    def report(self) -> Report:
        """What of the scene is used, ignored and refused."""
        return inspect(self.model, self.given, self.ignore)

    def check(self) -> None:
        """Raise if the scene asks for what is not supported."""
        refused = self.report().refused
        if refused:
            raise InvalidScene("; ".join(refused))

    def data(self) -> Any:
        """New data: at the keyframe `start` if the model has one, else at its reference configuration."""
        data = mj.MjData(self.model)
        key = mj.mj_name2id(self.model, mj.mjtObj.mjOBJ_KEY, START)
        if key >= 0:
            mj.mj_resetDataKeyframe(self.model, data, key)
        return data

    def bind(self, data: Any) -> Memory:
        """The memory that kernels work on; both must outlive it."""
        self.check()
        # Axes of joints, which margins are computed from, are known from the first step on.
        mj.mj_kinematics(self.model, data)
        mj.mj_comPos(self.model, data)
        return memory(self.model, data)

    def restore(self) -> None:
        """Set the model's options and margins back to what they were."""
        settings.restore(self.model, self.given)


def named_by(spec: Any) -> str:
    """The name that a file gives its model; MuJoCo names those without one after itself."""
    return "" if spec.modelname == UNNAMED else str(spec.modelname)


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn MuJoCo's errors into one line that names the scene."""
    try:
        yield
    except (ValueError, OSError, mj.FatalError, mj.UnexpectedError) as error:
        line = " ".join(str(error).split())
        raise InvalidScene(f"{name}: {line}") from error
