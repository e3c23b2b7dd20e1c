"""A simulation in a viser scene: bodies as mjviser shows them, and our contact forces, friction cones and pulls.

The scene may be live in a browser or on its way into a file; the stage does not know.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.optional import mjviser, mujoco, trimesh
from stiction.viewer.camera import first_camera
from stiction.viewer.forces import LOOKS, PULL, Scale, arrows, cones, outline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stiction.stepping.contacts import Contacts
    from stiction.stepping.simulation import Simulation
    from stiction.viewer.forces import Look
    from stiction.viewer.push import Grip

GREY = (90, 90, 90)


class Stage:
    """Draws a simulation on a viser server."""

    def __init__(self, server: Any, simulation: Simulation) -> None:
        self.server, self.simulation = server, simulation
        model = simulation.model
        # mjviser sets colours and widths in the model it is given: a copy keeps the simulation's as it is.
        self.scene = mjviser().ViserMujocoScene(server, copy.copy(model), num_envs=1)
        self.scene.camera_tracking_enabled = False
        self.scale = Scale(float(model.stat.extent))
        self.show_forces, self.show_cones = True, False
        self._arrows = {mode: self._add_arrows(mode.name.lower(), look) for mode, look in LOOKS.items()}
        self._pull = self._add_arrows("pull", PULL)
        self._cones: Any = None
        self._shape: Any = None
        camera = first_camera(model)
        server.initial_camera.position = tuple(camera.position)
        server.initial_camera.look_at = tuple(camera.centre)

    def _add_arrows(self, name: str, look: Look) -> Any:
        size = self.scale.size
        return self.server.scene.add_arrows(
            f"/contact/{name}", np.zeros((0, 2, 3), np.float32), linear(look.colour),
            shaft_radius=look.shaft * size, head_radius=look.head * size, head_length=look.point * size,
        )  # fmt: skip

    def draw(self, contacts: Contacts | None, grip: Grip | None = None) -> None:
        """The present state, with the contacts of the last step if there was one."""
        data = self.simulation.data
        if contacts is None:
            mujoco().mj_kinematics(self.simulation.model, data)
        with self.server.atomic():
            self.scene.update_from_mjdata(data)
            ends = {} if contacts is None else arrows(self.simulation, contacts, self.scale)
            for mode, handle in self._arrows.items():
                set_arrows(handle, ends.get(mode) if self.show_forces else None, LOOKS[mode])
            set_arrows(self._pull, None if grip is None else np.stack([grip.point(data), grip.target])[None], PULL)
            self._draw_cones(contacts if self.show_cones else None)

    def _draw_cones(self, contacts: Contacts | None) -> None:
        made = None if contacts is None else cones(self.simulation, contacts)
        if made is None or not len(made.apex):
            if self._cones is not None:
                self._cones.visible = False
            return
        wanted = outline(self.simulation.law)
        if self._cones is not None and wanted == self._shape:
            self._cones.batched_positions = made.apex.astype(np.float32)
            self._cones.batched_wxyzs = made.quaternion.astype(np.float32)
            self._cones.batched_scales = made.size.astype(np.float32)
            self._cones.visible = True
            return
        if self._cones is not None:
            self._cones.remove()
        vertices, faces = unit_cone(*wanted)
        self._shape = wanted
        self._cones = self.server.scene.add_batched_meshes_simple(
            "/contact/cones", vertices, faces,
            batched_positions=made.apex, batched_wxyzs=made.quaternion, batched_scales=made.size,
            batched_colors=linear(GREY), opacity=0.4, side="double", lod="off", cast_shadow=False, receive_shadow=False,
        )  # fmt: skip

    def holds(self) -> Iterator[tuple[Any, NDArray[np.int32]]]:
        """What can be dragged: handles of the scene, and the bodies that their instances are."""
        for group in self.scene._mesh_groups:  # mjviser tells this nowhere else
            yield group.handle, group.body_ids


def set_arrows(handle: Any, ends: NDArray[np.float64] | None, look: Look) -> None:
    shown = ends is not None and len(ends) > 0
    if shown:
        assert ends is not None
        handle.points = ends.astype(np.float32)
        handle.colors = np.tile(linear(look.colour), (len(ends), 1))
    if handle.visible != shown:
        handle.visible = shown


def linear(colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Colours of instances are amounts of light in viser, not as screens count them."""
    return np.round(255.0 * (np.array(colour) / 255.0) ** 2.2).astype(np.uint8)


def unit_cone(around: int, turn: float, radius: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Apex at the origin, open end at z = 1, and its first corner at this angle from t1."""
    shapes = trimesh()
    made = shapes.creation.cone(radius=radius, height=1.0, sections=around)
    vertices = np.array(made.vertices) @ shapes.transformations.rotation_matrix(turn, (0.0, 0.0, 1.0))[:3, :3].T
    vertices[:, 2] = 1.0 - vertices[:, 2]
    return vertices, np.array(made.faces)[:, ::-1]
