"""A simulation inside a notebook."""

from __future__ import annotations

import base64
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiction.errors import InvalidScene
from stiction.viewer.record import KINDS, Recorder

if TYPE_CHECKING:
    import os

    from stiction.stepping.simulation import Simulation


class Shown:
    """A film or a page, with everything in it, for a notebook to show."""

    def __init__(self, path: Path, height: int) -> None:
        self.html = {".html": page, ".gif": gif, ".mp4": mp4}[path.suffix.lower()](path.read_bytes(), height)

    def _repr_html_(self) -> str:
        return self.html


def show(
    what: Simulation | str | os.PathLike[str], seconds: float = 2.0, *, kind: str = "html", height: int = 480,
    **options: Any,
) -> Shown:  # fmt: skip
    """A file that was recorded, or so many seconds of a simulation from here on.

    kind: of a simulation: "html" for a page that can be turned about and replayed, "mp4" or "gif" for a film
    height: in pixels
    options: of `Recorder`
    """
    if isinstance(what, (str, Path)) or hasattr(what, "__fspath__"):
        path = Path(what)
        if path.suffix.lower() not in KINDS or not path.is_file():
            raise InvalidScene(f"show: there is no file {path} that ends in {', '.join(KINDS)}")
        return Shown(path, height)
    if f".{kind}" not in KINDS:
        raise InvalidScene(f"show: kind must be one of {', '.join(each[1:] for each in KINDS)}, got {kind!r}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"shown.{kind}"
        with Recorder(what, path, **options) as film:
            for _ in what.run(seconds):
                film.frame()
        return Shown(path, height)


def page(content: bytes, height: int) -> str:
    return f'<iframe srcdoc="{escape(content.decode())}" style="width: 100%; height: {height}px; border: 0"></iframe>'


def mp4(content: bytes, height: int) -> str:
    return f'<video controls loop height="{height}" src="{inline(content, "video/mp4")}"></video>'


def gif(content: bytes, height: int) -> str:
    return f'<img height="{height}" alt="" src="{inline(content, "image/gif")}">'


def inline(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
