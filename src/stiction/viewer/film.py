"""Films: pictures of a simulation, one after the other, by ffmpeg."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stiction.optional import imageio_ffmpeg

if TYPE_CHECKING:
    from pathlib import Path

    from stiction.viewer.pictures import Pictures

QUALITY = 15  # of x264, from 0, without loss, to 51
FULL = "No space left on device"
PATIENCE = 10.0  # s in which ffmpeg ends once it has closed its input
# Without dithering: a sky of dots would make files ten times as large.
PALETTE = "split[a][b];[a]palettegen=stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"


class Film:
    """Pictures to an mp4 or a gif; what ffmpeg cannot write becomes an OSError."""

    def __init__(self, pictures: Pictures, path: Path, fps: float, width: int, height: int) -> None:
        self.pictures = pictures
        if path.suffix.lower() == ".gif":
            how = ["-codec:v", "gif", "-pix_fmt", "pal8", "-vf", PALETTE]
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
            raise OSError(None, self._complaint()) from None

    def close(self) -> None:
        """Let ffmpeg finish, and see how it ended."""
        assert self.process.stdin is not None
        try:
            with suppress(OSError):  # it may have ended already: its status shows that
                self.process.stdin.close()
            status = self.process.wait()
            if status or self._complaint() == FULL:
                raise OSError(None, self._complaint())
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.errors.close()
            self.pictures.close()

    def _complaint(self) -> str:
        """The complaint of ffmpeg, in one line."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=PATIENCE)
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").splitlines()
        line = next((line for line in lines if FULL in line), lines[0] if lines else "")
        if FULL in line:
            return FULL
        return f"ffmpeg: {line}" if line else f"ffmpeg ended with status {self.process.poll()}"
