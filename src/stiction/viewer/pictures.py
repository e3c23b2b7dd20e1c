"""Pictures of a simulation, drawn by MuJoCo without a display, on our backdrop and with our contact forces in them."""

from __future__ import annotations

import contextlib
import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.state import place_bodies
from stiction.errors import InvalidScene, MissingDependency, unknown
from stiction.optional import mujoco
from stiction.viewer import backdrop, film_cones
from stiction.viewer.camera import AZIMUTH, ELEVATION, FOV, Camera, Follower
from stiction.viewer.caption import Caption, words_of
from stiction.viewer.forces import LOOKS, TORQUE, Scale, arrows, cones, outline, torques
from stiction.viewer.gl import ADVICE, headless
from stiction.viewer.shine import SHINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

GEOMS = 4000  # more than the model's: tiles and arrows
WHITE = np.array([255.0, 255.0, 255.0])


class Pictures:
    """Pictures of a simulation, without a display.

    simulation: a `Simulation`, or anything with its model, data, time, report and contacts
    camera: the name of one in the scene, an MjvCamera, azimuth and elevation in degrees from which what moves is
        followed, or None for the angles that we like
    forces, cones, words: whether contact forces, friction cones and a caption are drawn
    """

    def __init__(
        self,
        simulation: Any,
        width: int,
        height: int,
        camera: Any = None,
        forces: bool = True,
        words: bool = True,
        cones: bool = False,
    ) -> None:
        mj = mujoco()
        self.simulation, self.forces, self.words, self.cones = simulation, forces, words, cones
        self.leader: Pictures | None = None  # others with whom the point of view is shared
        self.width, self.height = width, height
        model, data = simulation.model, simulation.data
        if simulation.report is None:
            place_bodies(model, data)
        angles, camera = (camera, None) if isinstance(camera, tuple) else ((AZIMUTH, ELEVATION), camera)
        self.follower = Follower(model, data, width / height, angles)
        # A copy has room for pictures of this size, and the simulation's model stays as it is.
        self.model = copy.copy(model)
        view = self.model.vis
        view.global_.offwidth, view.global_.offheight = (
            max(view.global_.offwidth, width),
            max(view.global_.offheight, height),
        )
        view.quality.offsamples = max(view.quality.offsamples, 4)
        view.global_.fovy = FOV
        self.given = self._camera(camera)
        backdrop.prepare(self.model, self.follower.camera)
        backdrop.tint(self.model)
        distance = self.follower.camera.distance
        self.scale, self.torque_scale = Scale(0.5 * distance), Scale(0.5 * distance)
        self.option = mj.MjvOption()
        self.caption = Caption(width, height)
        self.floor = backdrop.floor_of(self.model)
        self.horizon = 1.0 if self.floor is None else backdrop.horizon_of(self.follower.camera)
        self.sky = backdrop.sky(width, height, None if self.floor is None else self.horizon)
        self._open()

    _closed = True

    def _open(self) -> None:
        mj = mujoco()
        try:
            with headless():
                place: Any = import_module("mujoco.rendering.classic.gl_context")
                self.gl = place.GLContext(self.width, self.height)
            self.gl.make_current()
            self.context = mj.MjrContext(self.model, mj.mjtFontScale.mjFONTSCALE_100.value)
            mj.mjr_setBuffer(mj.mjtFramebuffer.mjFB_OFFSCREEN.value, self.context)
        except MissingDependency:
            raise
        except (ImportError, AttributeError, RuntimeError, mj.FatalError) as error:
            raise MissingDependency(f"{ADVICE} ({str(error).splitlines()[0]})") from error
        self._closed = False
        self.scene = mj.MjvScene(self.model, maxgeom=2 * self.model.ngeom + GEOMS)
        self.overlay = mj.MjvScene(self.model, maxgeom=GEOMS)

    def _camera(self, camera: Any) -> Any:
        mj = mujoco()
        if camera is None or isinstance(camera, mj.MjvCamera):
            return camera
        number = mj.mj_name2id(self.model, mj.mjtObj.mjOBJ_CAMERA, str(camera))
        if number < 0:
            known = [self.model.camera(i).name for i in range(self.model.ncam)]
            raise InvalidScene(unknown("camera", camera, known))
        made = mj.MjvCamera()
        made.type, made.fixedcamid = mj.mjtCamera.mjCAMERA_FIXED, number
        return made

    def _look(self) -> tuple[Any, Camera]:
        """MuJoCo's camera, and where the backdrop is seen from."""
        mj = mujoco()
        camera = self.follower.look(self.simulation.data) if self.leader is None else self.leader.follower.camera
        if self.given is not None:
            return self.given, camera
        made = mj.MjvCamera()
        made.lookat, made.distance = camera.centre, camera.distance
        made.azimuth, made.elevation = camera.azimuth, camera.elevation
        return made, camera

    def take(self, lines: Sequence[str] | None = None) -> NDArray[np.uint8]:
        """(height, width, 3) of the present state; `lines` in place of the caption."""
        mj, model, data = mujoco(), self.simulation.model, self.simulation.data
        if self.simulation.report is None:
            place_bodies(model, data)
        mj.mj_camlight(model, data)
        self.gl.make_current()
        look, camera = self._look()
        everything = mj.mjtCatBit.mjCAT_ALL.value
        mj.mjv_updateScene(self.model, data, self.option, mj.MjvPerturb(), look, everything, self.scene)
        backdrop.dress(self.scene, self.model, data, camera, self.floor)
        picture, depth = self._drawn(self.scene)
        if not backdrop.own_sky(self.model):
            above = slice(None, max(0, round(self.horizon * self.height)))
            np.copyto(picture[above], self.sky[above], where=(depth[above] > self._beyond())[:, :, None])
        stepped = self.simulation.report is not None
        if self.cones and stepped:
            picture = self._with_cones(picture)
        shown = self.forces and stepped
        if shown:
            picture = self._with_arrows(picture, depth)
        if lines is not None or self.words:
            words = [words_of(self.simulation)] if lines is None else list(lines)
            picture = self.caption.write(picture, words, legend=shown and lines is None)
        return np.ascontiguousarray(picture)

    def _beyond(self) -> float:
        """Depth from which on there is only the far wall."""
        near, far = (float(getattr(self.model.vis.map, end)) for end in ("znear", "zfar"))
        wall = 0.9 * far
        return far * (wall - near) / (wall * (far - near))

    def _drawn(self, scene: Any) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        mj = mujoco()
        picture = np.empty((self.height, self.width, 3), np.uint8)
        depth = np.empty((self.height, self.width), np.float32)
        whole = mj.MjrRect(0, 0, self.width, self.height)
        mj.mjr_render(whole, scene, self.context)
        mj.mjr_readPixels(picture, depth, whole, self.context)
        return picture[::-1], depth[::-1]

    def _with_cones(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        simulation = self.simulation
        friction = getattr(simulation, "friction", None)
        height = film_cones.HEIGHT * self.scale.size
        made = cones(simulation, simulation.contacts, friction, height=height)
        projection = film_cones.Projection.of(self.scene, self.width, self.height)
        return film_cones.draw(picture, projection, made, outline(simulation.law))

    def _with_arrows(self, picture: NDArray[np.uint8], depth: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Arrows on top, with a pale rim, and shining through the bodies that are in front of them."""
        mj, drawn = mujoco(), self.overlay
        drawn.ngeom = 0
        drawn.nlight = 1
        drawn.flags[:] = 0
        drawn.flags[mj.mjtRndFlag.mjRND_CULL_FACE] = 1
        for side in range(2):
            seen, given = drawn.camera[side], self.scene.camera[side]
            for name in ("pos", "forward", "up"):
                getattr(seen, name)[:] = getattr(given, name)
            for name in FRUSTUM:
                setattr(seen, name, getattr(given, name))
        light, given = drawn.lights[0], self.scene.lights[0]
        light.headlight, light.castshadow, light.type, light.texid = 1, 0, given.type, -1
        light.pos[:], light.dir[:], light.attenuation[:] = given.pos, given.dir, given.attenuation
        light.ambient[:], light.diffuse[:], light.specular[:] = 0.35, 0.25, 0.0
        contacts = self.simulation.contacts
        groups = [(LOOKS[mode], ends) for mode, ends in arrows(self.simulation, contacts, self.scale).items()]
        groups.append((TORQUE, torques(self.simulation, contacts, self.torque_scale)))
        for look, ends in groups:
            rgba = np.array([*look.colour, 255], np.float32) / 255.0
            for start, end in ends:
                if (geom := backdrop.next_geom(drawn)) is None:
                    break
                nowhere = np.zeros(3), np.zeros(3), np.eye(3).ravel()
                mj.mjv_initGeom(geom, mj.mjtGeom.mjGEOM_ARROW, *nowhere, rgba)
                mj.mjv_connector(geom, mj.mjtGeom.mjGEOM_ARROW, look.shaft * self.scale.size, start, end)
                geom.emission, geom.specular = 0.4, 0.0
        if not drawn.ngeom:
            return picture
        ink, behind = self._drawn(drawn)
        there = behind < 1.0
        rows, columns = np.flatnonzero(there.any(axis=1)), np.flatnonzero(there.any(axis=0))
        if not rows.size:
            return picture
        rim = max(1, round(self.height / 480))
        part = (
            slice(max(rows[0] - rim, 0), rows[-1] + 1 + rim),
            slice(max(columns[0] - rim, 0), columns[-1] + 1 + rim),
        )
        picture[part] = laid_over(picture[part], ink[part], there[part], behind[part] <= depth[part], rim)
        return picture

    def close(self) -> None:
        """Give back what OpenGL holds; names of its objects are only good while our context is the current one."""
        if self._closed:
            return
        self._closed = True
        self.gl.make_current()
        self.context.free()
        self.gl.free()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of a process, there may be nothing left to close
            self.close()


FRUSTUM = (
    "frustum_center", "frustum_width", "frustum_bottom", "frustum_top", "frustum_near", "frustum_far", "orthographic",
)  # fmt: skip


def laid_over(
    below: NDArray[np.uint8], ink: NDArray[np.uint8], there: NDArray[np.bool_], in_front: NDArray[np.bool_], rim: int
) -> NDArray[np.uint8]:
    """Ink where there is some, weaker where something is in front of it, and a pale rim around it."""
    from scipy.ndimage import binary_dilation

    weight = np.where(in_front, 1.0, SHINE) * there
    made = below + weight[:, :, None] * (ink.astype(float) - below)
    around = binary_dilation(there, iterations=rim) & ~there
    made = np.where(around[:, :, None], 0.25 * below + 0.75 * WHITE, made)
    return np.asarray(np.clip(np.round(made), 0, 255), np.uint8)
