"""Fields of a compiled model that are varied by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stiction.errors import InvalidScene, is_number, unknown
from stiction.optional import mujoco

mj = mujoco()
FIELDS = (
    "friction of geoms, mass of bodies, damping, stiffness, armature or frictionloss of joints, ctrl of actuators, "
    "option.timestep, option.gravity"
)


def apply(model: Any, name: str, value: Any) -> None:
    """Set a field of a model, by a name such as `geom.friction`, `pad.mass` or `option.gravity`."""
    owner, dot, what = name.rpartition(".")
    if not dot:
        raise InvalidScene(f"{name}: no parameter of this scene; write KIND.FIELD or NAME.FIELD: {FIELDS}")
    if not is_number(value) or not math.isfinite(value):
        raise InvalidScene(f"{name}: must be a number, got {value!r}")
    if owner == "option":
        set_option(model, what, value)
        return
    if what not in SETTERS:
        raise InvalidScene(f"{name}: {unknown('field', what, [*SETTERS, 'ctrl'])} ({FIELDS})")
    if value < 0.0 or (what == "mass" and value == 0.0):
        least = "above 0" if what == "mass" else "at least 0"
        raise InvalidScene(f"{name}: must be {least}, got {value!r}")
    SETTERS[what](model, owner, float(value), name)


def set_option(model: Any, what: str, value: float) -> None:
    if what == "timestep":
        if value <= 0.0:
            raise InvalidScene(f"option.timestep: must be a time above 0, got {value!r}")
        model.opt.timestep = value
    elif what == "gravity":
        model.opt.gravity[:] = 0.0, 0.0, -value
    else:
        raise InvalidScene(f"option.{what}: {unknown('option', what, ('timestep', 'gravity'))}")


def set_friction(model: Any, owner: str, value: float, name: str) -> None:
    """The sliding coefficient of all geoms, of one, or of those of a body, and of pairs that have their own."""
    geoms = geoms_of(model, owner, name)
    model.geom_friction[geoms, 0] = value
    if owner == "geom":
        model.pair_friction[:, :2] = value


def set_mass(model: Any, owner: str, value: float, name: str) -> None:
    """The mass of a body, or of each body that moves; its inertia grows with it."""
    bodies = [b for b in range(1, model.nbody) if model.body_mass[b] > 0.0]
    if owner != "body":
        known = {model.body(b).name: b for b in bodies if model.body(b).name}
        geoms = {model.geom(g).name: int(model.geom_bodyid[g]) for g in range(model.ngeom) if model.geom(g).name}
        if owner not in known and geoms.get(owner) not in bodies:
            raise InvalidScene(f"{name}: {unknown('body with a mass', owner, known)}")
        bodies = [known.get(owner, geoms.get(owner, 0))]
    for b in bodies:
        model.body_inertia[b] *= value / model.body_mass[b]
        model.body_mass[b] = value
    mj.mj_setConst(model, mj.MjData(model))


def set_of_joints(field: str, by_dof: bool) -> Callable[[Any, str, float, str], None]:
    def set_field(model: Any, owner: str, value: float, name: str) -> None:
        joints = {model.joint(j).name: j for j in range(model.njnt) if model.joint(j).name}
        if owner != "joint" and owner not in joints:
            raise InvalidScene(f"{name}: {unknown('joint', owner, joints)}")
        chosen = range(model.njnt) if owner == "joint" else [joints[owner]]
        values = getattr(model, f"{'dof' if by_dof else 'jnt'}_{field}")
        for j in chosen:
            if by_dof:
                values[model.dof_jntid == j] = value
            else:
                values[j] = value

    return set_field


SETTERS: dict[str, Callable[[Any, str, float, str], None]] = {
    "friction": set_friction,
    "mass": set_mass,
    "damping": set_of_joints("damping", True),
    "armature": set_of_joints("armature", True),
    "frictionloss": set_of_joints("frictionloss", True),
    "stiffness": set_of_joints("stiffness", False),
}


def geoms_of(model: Any, owner: str, name: str) -> list[int]:
    if owner == "geom":
        return list(range(model.ngeom))
    geoms = {model.geom(g).name: g for g in range(model.ngeom) if model.geom(g).name}
    if owner in geoms:
        return [geoms[owner]]
    bodies = {model.body(b).name: b for b in range(model.nbody) if model.body(b).name}
    found = [g for g in range(model.ngeom) if model.geom_bodyid[g] == bodies.get(owner, -1)]
    if not found:
        raise InvalidScene(f"{name}: {unknown('geom', owner, [*geoms, *bodies])}")
    return found
