"""Pictures of a simulation, drawn by MuJoCo with our contact forces in them, and films of such pictures by ffmpeg."""

from __future__ import annotations

import copy
import subprocess
import tempfile
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import InvalidScene, MissingDependency
from stiction.optional import imageio_ffmpeg, mujoco
from stiction.viewer.camera import first_camera
from stiction.viewer.forces import LOOKS, Scale, arrows
from stiction.viewer.gl import ADVICE, headless

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from stiction.stepping.simulation import Simulation

QUALITY = 15  # of x264, from 0, without loss, to 51
FULL = "No space left on device"
PATIENCE = 10.0  # s in which ffmpeg ends once it has closed its input
PALETTE = "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer:bayer_scale=4"


class Pictures:
    """What a simulation looks like, without a display.

    camera: the name of one in the scene, an MjvCamera, or None for the whole scene in view
    """

    def __init__(
        self, simulation: Simulation, width: int, height: int, camera: Any = None, forces: bool = True
    ) -> None:
        mj = mujoco()
        self.simulation, self.forces = simulation, forces
        # A copy has room for pictures of this size, and the simulation's model stays as it is.
        self.model = copy.copy(simulation.model)
        view = self.model.vis.global_
        view.offwidth, view.offheight = max(view.offwidth, width), max(view.offheight, height)
        brighten(self.model)
        self.camera = self._camera(camera)
        self.scale = Scale(float(self.model.stat.extent))
        self.option = mj.MjvOption()
        self.option.flags[mj.mjtVisFlag.mjVIS_TRANSPARENT] = forces  # arrows begin inside of what they push
        try:
            with headless():
                self.renderer = mj.Renderer(self.model, height, width)
        except MissingDependency:
            raise
        except (ImportError, AttributeError, RuntimeError, mj.FatalError) as error:
            raise MissingDependency(f"{ADVICE} ({str(error).splitlines()[0]})") from error

    def _camera(self, camera: Any) -> Any:
        mj = mujoco()
        if isinstance(camera, mj.MjvCamera):
            return camera
        if camera is None:
            made, first = mj.MjvCamera(), first_camera(self.model)
            made.lookat, made.distance = first.centre, first.distance
            made.azimuth, made.elevation = first.azimuth, first.elevation
            return made
        if mj.mj_name2id(self.model, mj.mjtObj.mjOBJ_CAMERA, str(camera)) < 0:
            known = [self.model.camera(i).name for i in range(self.model.ncam)]
            raise InvalidScene(f"there is no camera {camera!r}; there are {', '.join(known) or 'none'}")
        return str(camera)

    def take(self) -> NDArray[np.uint8]:
        """(height, width, 3) of the present state."""
        mj, model, data = mujoco(), self.simulation.model, self.simulation.data
        if self.simulation.report is None:
            mj.mj_kinematics(model, data)
            mj.mj_comPos(model, data)
        mj.mj_camlight(model, data)
        self.renderer.update_scene(data, self.camera, self.option)
        if self.forces and self.simulation.report is not None:
            self._add_arrows()
        return np.asarray(self.renderer.render())

    def _add_arrows(self) -> None:
        mj, scene = mujoco(), self.renderer.scene
        for mode, ends in arrows(self.simulation, self.simulation.contacts, self.scale).items():
            look = LOOKS[mode]
            colour = np.array([*look.colour, 255], np.float32) / 255.0
            for start, end in ends:
                if scene.ngeom >= scene.maxgeom:
                    return
                geom = scene.geoms[scene.ngeom]
                nowhere = np.zeros(3), np.zeros(3), np.eye(3).ravel()
                mj.mjv_initGeom(geom, mj.mjtGeom.mjGEOM_ARROW, *nowhere, colour)
                mj.mjv_connector(geom, mj.mjtGeom.mjGEOM_ARROW, look.shaft * self.scale.size, start, end)
                geom.emission = 0.3
                scene.ngeom += 1

    def close(self) -> None:
        self.renderer.close()


def brighten(model: Any) -> None:
    """Light from the camera, for scenes that bring little of their own; bodies that let arrows shine through."""
    model.vis.headlight.ambient[:] = np.maximum(model.vis.headlight.ambient, 0.35)
    model.vis.headlight.diffuse[:] = np.maximum(model.vis.headlight.diffuse, 0.5)
    model.vis.map.alpha = 0.6


class Film:
    """Pictures to an mp4 or a gif; what ffmpeg cannot write becomes an OSError."""

    def __init__(self, pictures: Pictures, path: Path, fps: float, width: int, height: int) -> None:
        self.pictures = pictures
        if path.suffix.lower() == ".gif":
            how = ["-codec:v", "gif", "-pix_fmt", "rgb8", "-vf", PALETTE]
        else:
            how = ["-codec:v", "libx264", "-pix_fmt", "yuv420p", "-crf", str(QUALITY), "-movflags", "+faststart"]
        rate = str(Fraction(fps).limit_denominator())
        given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", rate, "-i", "-", "-an"]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (until `close`)
        # A session of its own: Ctrl-C reaches the simulation, which then lets ffmpeg finish.
        self.process = subprocess.Popen(
            [imageio_ffmpeg().get_ffmpeg_exe(), "-y", "-v", "error", *given, *how, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.errors, start_new_session=True,
        )  # fmt: skip

    def add(self) -> None:
        picture = np.ascontiguousarray(self.pictures.take())
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(picture.data)
        except OSError:
            raise OSError(None, self._told()) from None

    def close(self) -> None:
        """Let ffmpeg finish, and see how it ended."""
        assert self.process.stdin is not None
        try:
            with suppress(OSError):  # that it has ended already is told by its status
                self.process.stdin.close()
            status = self.process.wait()
            if status or self._told() == FULL:
                raise OSError(None, self._told())
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.errors.close()
            self.pictures.close()

    def _told(self) -> str:
        """What ffmpeg complained of, in one line."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=PATIENCE)
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").splitlines()
        told = next((line for line in lines if FULL in line), lines[0] if lines else "")
        if FULL in told:
            return FULL
        return f"ffmpeg: {told}" if told else f"ffmpeg ended with status {self.process.poll()}"
