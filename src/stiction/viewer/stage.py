"""A simulation in a viser scene: bodies as mjviser shows them, and our contact forces, friction cones and pulls.

The scene may be live in a browser or on its way into a file; the stage does not know.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.state import place_bodies
from stiction.optional import mjviser, mujoco, trimesh
from stiction.solutions.contact import Mode
from stiction.viewer import backdrop
from stiction.viewer.camera import FOV, Follower
from stiction.viewer.caption import words_of
from stiction.viewer.forces import LOOKS, PULL, TORQUE, Scale, arrows, cones, outline, torques
from stiction.viewer.server import update
from stiction.viewer.shine import CONE_OPACITY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stiction.stepping.contacts import Contacts
    from stiction.viewer.forces import Look
    from stiction.viewer.push import Grip

ROOT = "/stage"
PIXELS = 24  # of a tile
CLOSE = 1.2  # height of the friction cone of a chosen contact, over the longest arrow


class Beneath:
    """A server whose scene puts everything beneath one node, so that it can be moved as a whole."""

    def __init__(self, given: Any, root: str) -> None:
        self._given, self._root = given, root

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._given, name)
        if name == "scene":
            return Beneath(found, self._root)
        if name.startswith("add_") and callable(found) and hasattr(self._given, "remove_by_name"):
            return lambda node, *arguments, **options: found(f"{self._root}{node}", *arguments, **options)
        return found


class Stage:
    """Draws a simulation on a viser server.

    simulation: a `Simulation`, or anything with its model, data, time, report and contacts
    root: the node beneath which all of it lies
    place: where that node is, in m
    floor: whether its floor is drawn
    aspect: how much wider than high the page is taken to be; what moves fits into that much of it
    lines: in place of the caption, None for scene, law, engine and time
    chosen: number of a contact that is marked, and whose friction cone is shown
    """

    def __init__(
        self,
        server: Any,
        simulation: Any,
        root: str = ROOT,
        place: NDArray[np.float64] | None = None,
        floor: bool = True,
        aspect: float = 1.0,
    ) -> None:
        self.simulation = simulation
        model, data = simulation.model, simulation.data
        if simulation.report is None:
            place_bodies(model, data)
        self.place = np.zeros(3) if place is None else np.asarray(place, float)
        self.root = server.scene.add_frame(root, show_axes=False, position=self.place)
        self.server = Beneath(server, root)
        # mjviser sets colours and widths in the model it is given: a copy keeps the simulation's as it is.
        shown = copy.copy(model)
        backdrop.tint(shown)
        self.scene = mjviser().ViserMujocoScene(self.server, shown, num_envs=1)
        self.scene.camera_tracking_enabled = False
        self.follower = Follower(model, data, aspect)
        self.follows = True
        self._moved = np.zeros(3)
        camera = self.follower.camera
        self.scale, self.torque_scale = Scale(0.5 * camera.distance), Scale(0.5 * camera.distance)
        self.show_forces, self.show_cones = True, False
        self.chosen: int | None = None
        self.lines: list[str] | None = None
        self._arrows = {mode: self._add_arrows(mode.name.lower(), look) for mode, look in LOOKS.items()}
        self._pull, self._torques = self._add_arrows("pull", PULL), self._add_arrows("torque", TORQUE)
        self._cones: Any = None
        self._shape: Any = None
        self._lay_floor(server, root, floor)
        self._caption = server.scene.add_label(
            f"{root}/caption", words_of(simulation), position=self._above(), anchor="bottom-center"
        )
        self._mark = server.scene.add_label(f"{root}/mark", "", anchor="bottom-left", visible=False)
        server.scene.set_background_image(backdrop.sky(64, 256), format="png")
        server.scene.configure_environment_map(environment_intensity=0.35)
        server.scene.configure_default_lights(enabled=True, cast_shadow=True)
        server.initial_camera.position = tuple(camera.position)
        server.initial_camera.look_at = tuple(camera.centre)
        server.initial_camera.fov = np.radians(FOV)

    @property
    def offset(self) -> NDArray[np.float64]:
        """The offset from a point of the page to one of the world: the scene is moved under a camera that stays."""
        return -self.place - self._moved

    def _above(self) -> NDArray[np.float64]:
        """The place of the caption, above everything that moves."""
        camera = self.follower.first
        return np.asarray(camera.centre + np.array([0.0, 0.0, 0.31 * camera.distance]))

    def _lay_floor(self, server: Any, root: str, shown: bool) -> None:
        """Tiles in place of mjviser's endless grid, and a plane that catches the shadows."""
        model, data = self.simulation.model, self.simulation.data
        self._floor: tuple[Any, ...] = ()
        floor = backdrop.floor_of(model)
        if floor is None:
            return
        mj = mujoco()
        body = mj.mj_id2name(model, mj.mjtObj.mjOBJ_BODY, int(model.geom_bodyid[floor]))
        name = f"{root}/fixed_bodies/{body}/{mj.mj_id2name(model, mj.mjtObj.mjOBJ_GEOM, floor)}"
        server.scene.remove_by_name(name)
        if not shown:
            return
        self._ground = np.array(data.geom_xpos[floor]), np.array(data.geom_xmat[floor]).reshape(3, 3)
        quaternion = np.zeros(4)
        mj.mju_mat2Quat(quaternion, self._ground[1].ravel())
        wide = backdrop.tile_size(self.follower.camera.distance) * 2.0 * backdrop.TILES
        tiles = server.scene.add_image(
            f"{root}/floor/tiles", backdrop.checkers(PIXELS), wide, wide, format="png", cast_shadow=False,
            receive_shadow=False, wxyz=quaternion,
        )  # fmt: skip
        shadows = server.scene.add_grid(
            f"{root}/floor/shadows", wide, wide, cell_thickness=0.0, section_thickness=0.0, plane_opacity=0.0,
            shadow_opacity=0.3, wxyz=quaternion,
        )  # fmt: skip
        self._floor = tiles, shadows
        self._move_floor()

    def _move_floor(self) -> None:
        """Move the floor under the camera's middle by whole tiles, so that it seems to stay in place."""
        at, turn = self._ground
        camera = self.follower.camera
        side = 2.0 * backdrop.tile_size(self.follower.first.distance)
        middle = at + turn[:, :2] @ (side * np.round((turn.T @ (camera.centre - at))[:2] / side))
        for below, handle in zip((1e-3, 0.0), self._floor, strict=True):
            place = middle - below * self.follower.first.distance * turn[:, 2] + self._moved
            if not np.array_equal(handle.position, place):
                handle.position = place

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
            self._follow(data)
            self._draw_bodies(data)
            ends = {} if contacts is None else arrows(self.simulation, contacts, self.scale)
            for mode, handle in self._arrows.items():
                set_arrows(handle, ends[mode] + self._moved if self.show_forces and ends else None, LOOKS[mode])
            turning = None
            if contacts is not None and self.show_forces:
                turning = torques(self.simulation, contacts, self.torque_scale) + self._moved
            set_arrows(self._torques, turning, TORQUE)
            pulled = None if grip is None else np.stack([grip.point(data), grip.target])[None] + self._moved
            set_arrows(self._pull, pulled, PULL)
            self._draw_cones(contacts if self.show_cones or self.chosen is not None else None)
            self._draw_mark(contacts)

    def _draw_bodies(self, data: Any) -> None:
        """As `update_from_mjdata` of mjviser, which can keep a body in the middle, but not what we look at."""
        poses: list[Any] = [data.xpos[None], data.xmat.reshape(1, -1, 3, 3)]
        if self.simulation.model.nmocap:
            poses += [data.mocap_pos[None], data.mocap_quat[None]]
        else:
            poses += [np.zeros((1, 0, 3)), np.zeros((1, 0, 4))]
        self.scene._update_visualization(*poses, 0, self._moved, data)

    def _follow(self, data: Any) -> None:
        update(self._caption, text=words_of(self.simulation) if self.lines is None else "\n".join(self.lines))
        if not self.follows:
            return
        # Bodies are moved, not the camera, which belongs to the person at the page; and body by body, since browsers
        # leave out what they think is behind them if a whole branch of the scene is moved.
        moved = self.follower.first.centre - self.follower.look(data).centre
        if not np.array_equal(self._moved, moved):
            self._moved = moved
            if self._floor:
                self._move_floor()

    def _draw_cones(self, contacts: Contacts | None) -> None:
        only = None if self.show_cones else self.chosen
        friction = getattr(self.simulation, "friction", None)
        height = None if only is None else CLOSE * self.scale.size
        made = None if contacts is None else cones(self.simulation, contacts, friction, only, height)
        if made is None or not len(made.apex):
            if self._cones is not None:
                self._cones.visible = False
            return
        wanted = outline(self.simulation.law)
        colours = np.stack(
            [linear(LOOKS[Mode.SLIDE if mode >= Mode.SLIDE else Mode.STICK].colour) for mode in made.mode]
        )
        if self._cones is not None and wanted == self._shape:
            self._cones.batched_positions = (made.apex + self._moved).astype(np.float32)
            self._cones.batched_wxyzs = made.quaternion.astype(np.float32)
            self._cones.batched_scales = made.size.astype(np.float32)
            self._cones.batched_colors = colours
            self._cones.visible = True
            return
        if self._cones is not None:
            self._cones.remove()
        vertices, faces = unit_cone(*wanted)
        self._shape = wanted
        self._cones = self.server.scene.add_batched_meshes_simple(
            "/contact/cones", vertices, faces,
            batched_positions=made.apex + self._moved, batched_wxyzs=made.quaternion, batched_scales=made.size,
            batched_colors=colours, opacity=CONE_OPACITY, side="double", lod="off", cast_shadow=False,
            receive_shadow=False,
        )  # fmt: skip

    def _draw_mark(self, contacts: Contacts | None) -> None:
        """The number of the chosen contact, where it is."""
        shown = contacts is not None and self.chosen is not None and self.chosen < len(contacts)
        if shown:
            assert contacts is not None
            assert self.chosen is not None
            self._mark.position = contacts.position[self.chosen] + self._moved
            update(self._mark, text=f"contact {self.chosen + 1}: {np.linalg.norm(contacts.force[self.chosen]):.4g} N")
        update(self._mark, visible=shown)

    def draggable(self) -> Iterator[tuple[Any, NDArray[np.int32]]]:
        """Handles that can be dragged, and the bodies of their instances."""
        for group in self.scene._mesh_groups:  # mjviser has no public way
            yield group.handle, group.body_ids


def set_arrows(handle: Any, ends: NDArray[np.float64] | None, look: Look) -> None:
    shown = ends is not None and len(ends) > 0
    if shown:
        assert ends is not None
        handle.points = ends.astype(np.float32)
        handle.colors = np.tile(linear(look.colour), (len(ends), 1))
    update(handle, visible=shown)


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
