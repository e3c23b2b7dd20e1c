"""Films: pictures of a simulation, one after the other, by ffmpeg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.optional import imageio_ffmpeg
from stiction.viewer.pictures import Pictures

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Film", "Pictures"]

# Without dithering: a sky of dots would make files ten times as large.
PALETTE = "split[a][b];[a]palettegen=stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"


class Film:
    """Pictures to an mp4 or a gif."""

    def __init__(self, pictures: Pictures, path: Path, fps: float, width: int, height: int) -> None:
        self.pictures, self.path = pictures, path
        if path.suffix == ".gif":
            how: dict[str, Any] = {"codec": "gif", "pix_fmt_out": "pal8", "output_params": ["-vf", PALETTE]}
        else:
            how = {
                "codec": "libx264",
                "pix_fmt_out": "yuv420p",
                "quality": 7,
                "output_params": ["-movflags", "+faststart"],
            }
        self.writer = imageio_ffmpeg().write_frames(
            str(path), (width, height), fps=fps, macro_block_size=1, ffmpeg_log_level="error", **how
        )
        self.writer.send(None)

    def add(self) -> None:
        self.writer.send(np.ascontiguousarray(self.pictures.take()))

    def close(self) -> None:
        self.writer.close()
        self.pictures.close()
