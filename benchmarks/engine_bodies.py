"""What a scene is made of, for engines that cannot read MJCF, and what every engine tells of a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PLANE, SPHERE, CAPSULE, CYLINDER, BOX = 0, 2, 3, 5, 6
THICK = 1.0  # m, of the boxes that stand for planes where an engine has none that its contact finds well


class Geom(NamedTuple):
    kind: int
    size: Any
    position: Any
    turn: Any  # w, x, y, z
    friction: float


class Body(NamedTuple):
    """kind: "fixed", "free" or "slide"; force: what an actuator does along the axis of a slide."""

    kind: str
    position: Any
    turn: Any
    mass: float
    inertia: Any
    geoms: list[Geom]
    axis: Any
    force: float


class Pose(NamedTuple):
    position: Any
    turn: Any  # w, x, y, z


class Contact(NamedTuple):
    """first, second: bodies; points: where the impulse acts on each, which are apart by the distance in Bullet;
    normal: from the first to the second; impulse: on the second, along world axes."""

    first: int
    second: int
    points: tuple[Any, Any]
    normal: Any
    distance: float
    impulse: Any


def bodies_of(model: Any, control: Any) -> list[Body]:
    """The model's bodies, the world first; others must be free or slide along one axis of the world."""
    import mujoco

    data = mujoco.MjData(model)
    if control is not None:
        control(model, data)
    mujoco.mj_forward(model, data)
    found = []
    for b in range(model.nbody):
        first, count = model.body_jntadr[b], model.body_jntnum[b]
        kinds = [int(k) for k in model.jnt_type[first : first + count]]
        kind = {(): "fixed", (0,): "free", (2,): "slide"}.get(tuple(kinds))
        if kind is None or model.body_parentid[b] != 0:
            raise ValueError(f"body {model.body(b).name} is neither free nor on one slide")
        axis, force = np.zeros(3), 0.0
        if kind == "slide":
            axis, force = model.jnt_axis[first].copy(), float(data.qfrc_actuator[model.jnt_dofadr[first]])
        start, number = model.body_geomadr[b], model.body_geomnum[b]
        geoms = [
            Geom(
                int(model.geom_type[g]), model.geom_size[g].copy(), model.geom_pos[g].copy(),
                model.geom_quat[g].copy(), float(model.geom_friction[g, 0]),
            )
            for g in range(start, start + number)
        ]  # fmt: skip
        axes = np.array([turned(model.body_iquat[b], axis) for axis in np.eye(3)])
        inertia = axes.T @ np.diag(model.body_inertia[b]) @ axes
        aligned = np.allclose(inertia, np.diag(inertia.diagonal()), rtol=0.0, atol=1e-9 * inertia.max(initial=0.0))
        if not (aligned and np.allclose(model.body_ipos[b], 0.0)):
            raise ValueError(f"body {model.body(b).name}: its axes are not those of its inertia")
        found.append(Body(
            kind, model.body_pos[b].copy(), model.body_quat[b].copy(), float(model.body_mass[b]),
            inertia.diagonal().copy(), geoms, axis, force,
        ))  # fmt: skip
    return found


def turned(quaternion: Any, vector: Any) -> Any:
    """A vector, turned by w, x, y, z."""
    w, axis = quaternion[0], np.asarray(quaternion[1:])
    return vector + 2.0 * np.cross(axis, np.cross(axis, vector) + w * np.asarray(vector))


def as_box(geom: Geom) -> Geom:
    """A thick box whose upper face is the plane."""
    if geom.kind != PLANE:
        return geom
    below = geom.position - turned(geom.turn, np.array([0.0, 0.0, THICK]))
    return geom._replace(kind=BOX, size=np.array([5.0, 5.0, THICK]), position=below)
