"""A scene: a MuJoCo model, ready to be stepped."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.collision.mend import needs_mending
from stiction.bodies.report import IGNORABLE, Report, inspect
from stiction.bodies.shadow import Shadow, refuse_foreign
from stiction.bodies.state import place_bodies, reset
from stiction.bodies.structs import Memory, memory
from stiction.bodies.urdf import is_urdf, spec_of_urdf
from stiction.errors import InvalidScene, unknown
from stiction.optional import mujoco

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

mj = mujoco()

START = "start"
UNNAMED = "MuJoCo Model"  # what MuJoCo calls a model without a name


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """A compiled model and what the package needs to know about it.

    model: the MjModel; nothing of it is ever changed: steps use a shadow of it (`bodies.shadow`)
    control: called with model and data before every step, or None
    margin: distance of a pair of geoms at which contact is looked for, None to follow the motion
    ignore: features that are to be ignored, of "torsion" (torsional and rolling friction) and "surfacevel" (surfaces
        that move by themselves)
    description: one line for people
    """

    model: Any
    control: Callable[[Any, Any], None] | None = None
    margin: float | None = None
    ignore: tuple[str, ...] = ()
    description: str = ""
    mends: bool = field(init=False, repr=False)  # whether contacts are to be mended: `smooth` then needs the memory

    def __post_init__(self) -> None:
        if not isinstance(self.model, mj.MjModel):
            raise InvalidScene(f"Scene: model must be an MjModel, got {type(self.model).__name__}")
        if not set(self.ignore) <= set(IGNORABLE):
            raise InvalidScene(f"Scene: ignore must be a tuple of names of {IGNORABLE}, got {self.ignore!r}")
        if self.margin is not None and not (np.isfinite(self.margin) and self.margin >= 0.0):
            raise InvalidScene(f"Scene: margin must be a distance in m, or None, got {self.margin}")
        object.__setattr__(self, "mends", needs_mending(self.model))

    def __repr__(self) -> str:
        model = self.model
        counts = ((model.nbody - 1, "bodies"), (model.nv, "velocities"), (model.nu, "actuators"))
        parts = ", ".join(f"{count} {what}" for count, what in counts if count)
        name = (self.description or "without a name").rstrip(".")
        return f"<Scene {name!r}: {parts or 'empty'}, time step {model.opt.timestep:g} s>"

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
        if file.is_dir():
            raise InvalidScene(f"{file}: a folder; name the .xml or .urdf file in it")
        if not file.is_file():
            raise InvalidScene(f"{file}: no such file")
        with errors_name(str(file)):
            if is_urdf(file):
                spec = spec_of_urdf(file, packages or {}, floating)
            elif packages or floating:
                raise InvalidScene("packages and floating are for URDF; this is MJCF")
            else:
                spec = mj.MjSpec.from_file(str(file))
            return cls._of_spec(spec, ground, margin=margin, ignore=ignore, description=title(spec) or file.stem)

    @classmethod
    def from_xml(
        cls, text: str, *, ground: float | None = None, margin: float | None = None, ignore: tuple[str, ...] = ()
    ) -> Scene:
        """Read MJCF from a string."""
        with errors_name("scene"):
            spec = mj.MjSpec.from_string(text)
            return cls._of_spec(spec, ground, margin=margin, ignore=ignore, description=title(spec))

    @classmethod
    def of(cls, model: Any, *, margin: float | None = None, ignore: tuple[str, ...] = ()) -> Scene:
        """Any compiled model; it stays as it is."""
        return cls(model, margin=margin, ignore=ignore)

    @classmethod
    def named(cls, name: str, **parameters: Any) -> Scene:
        """A scene of the papers, such as `Scene.named("peg-in-hole", contacts=16)`."""
        from stiction.scenes import SCENES

        if name not in SCENES:
            raise InvalidScene(unknown("scene", name, sorted(SCENES)))
        made = SCENES[name](**parameters)
        with errors_name(name):
            return cls._of_spec(made.spec, None, control=made.control, description=made.description)

    @classmethod
    def _of_spec(cls, spec: Any, ground: float | None, **options: Any) -> Scene:
        if ground is not None:
            if not np.isfinite(ground):
                raise InvalidScene(f"ground must be a height in m, got {ground}")
            spec.worldbody.add_geom(
                name="ground", type=mj.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], pos=[0.0, 0.0, ground]
            )
        return cls(spec.compile(), **options)

    def report(self) -> Report:
        """A report of what is used, ignored and refused."""
        return inspect(self.model, self.ignore)

    def check(self) -> None:
        """Raise if the scene asks for what is not supported."""
        refused = self.report().refused
        if refused:
            raise InvalidScene("; ".join(refused))

    def data(self) -> Any:
        """New data: at the keyframe `start` if the model has one, else at its reference configuration."""
        data = mj.MjData(self.model)
        reset(self.model, data, START)
        return data

    def bind(self, data: Any) -> tuple[Shadow, Memory]:
        """The shadow of the model that MuJoCo steps this data with, and the memory that kernels work on.

        Data and shadow must outlive the memory.
        """
        self.check()
        refuse_foreign(self.model, data)
        shadow = Shadow.of(self.model)
        # Axes of joints, which margins are computed from, are known from the first step on.
        place_bodies(self.model, data)
        return shadow, memory(shadow, data)

    def restore(self) -> None:
        """Does nothing, since the model is never changed; kept for programs written when it was."""


def title(spec: Any) -> str:
    """The name of a model, nothing if it has none."""
    return "" if spec.modelname == UNNAMED else str(spec.modelname)


@contextmanager
def errors_name(name: str) -> Iterator[None]:
    """Turn MuJoCo's errors into one line that names the scene."""
    try:
        yield
    except (ValueError, OSError, RecursionError, mj.FatalError, mj.UnexpectedError) as error:
        line = " ".join(str(error).split())
        if line.startswith("could not find decoder"):
            line = "not a scene; name a .xml (MJCF) or .urdf file"
        raise InvalidScene(f"{name}: {line}") from error
