"""Captions of pictures: scene, law, engine and time, and a legend of the arrows."""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.optional import pillow
from stiction.viewer.forces import LOOKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

INK, PALE = (24, 32, 42), (255, 255, 255)


@cache
def font(size: int) -> Any:
    """DejaVu Sans, which Matplotlib brings; without it the small face that Pillow has."""
    path = full_face()
    return pillow().ImageFont.load_default(size) if path is None else pillow().ImageFont.truetype(str(path), size)


@cache
def full_face() -> Path | None:
    """A font with all letters, if Matplotlib is installed; it is not loaded for that."""
    found = find_spec("matplotlib")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        path = Path(folder) / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
        if path.is_file():
            return path
    return None


def written(line: str) -> str:
    """A line in the letters that the face has."""
    if full_face() is not None:
        return line
    plain = unicodedata.normalize("NFKD", line.replace("µ", "u").replace("–", "-"))
    return "".join(letter for letter in plain if letter.isascii() or letter in "·…°")


def law_words(law: Any) -> str:
    """Coulomb; Coulomb, 8 facets; no slip."""
    name = type(law).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() and k else letter for k, letter in enumerate(name))
    facets = getattr(law, "facets", None)
    return words.lower().replace("coulomb", "Coulomb") + (f", {facets} facets" if facets else "")


def title_of(simulation: Any) -> str:
    return (simulation.scene.description or "scene").rstrip(".")


def words_of(simulation: Any, decimals: int = 2) -> str:
    """Scene, law, engine, time."""
    engine = getattr(simulation, "engine_words", "stiction")
    law = f"{law_words(simulation.law)} law · " if getattr(simulation, "law", None) is not None else ""
    return f"{title_of(simulation)} · {law}{engine} · {simulation.time:.{decimals}f} s"


class Caption:
    """A strip of words at the lower left of pictures of one size."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.size = max(9, round(height / 30))

    def write(
        self, picture: NDArray[np.uint8], lines: Sequence[str], legend: bool = False, corner: str = "lower"
    ) -> NDArray[np.uint8]:
        """The picture with these lines at its lower or upper left; the legend of arrows at its lower right."""
        draw = pillow().ImageDraw
        image = pillow().Image.fromarray(picture)
        pen = draw.Draw(image, "RGBA")
        face, pad, step = font(self.size), round(0.5 * self.size), round(1.35 * self.size)
        shown = [fitted(pen, written(line), face, self.width - 4 * pad) for line in lines]
        wide = max((pen.textlength(line, font=face) for line in shown), default=0.0)
        top = pad if corner == "upper" else self.height - pad - round(step * len(shown) + 0.6 * pad)
        box = (pad, top, pad + wide + 2 * pad, top + step * len(shown) + 0.6 * pad)
        pen.rounded_rectangle(box, radius=pad, fill=(*PALE, 205))
        for k, line in enumerate(shown):
            pen.text((2 * pad, top + 0.3 * pad + k * step), line, font=face, fill=INK)
        if legend and box[2] + 13 * self.size < self.width:
            self._legend(pen, face, pad, step)
        return np.array(image)

    def _legend(self, pen: Any, face: Any, pad: int, step: int) -> None:
        words = [(look.colour, f"{mode.name.lower()}s") for mode, look in LOOKS.items()]
        wide = sum(pen.textlength(text, font=face) + 2.2 * self.size for _, text in words) + 1.5 * pad
        left, top = self.width - pad - wide, self.height - pad - round(step + 0.6 * pad)
        pen.rounded_rectangle((left, top, self.width - pad, top + step + 0.6 * pad), radius=pad, fill=(*PALE, 205))
        x, y = left + pad, top + 0.3 * pad
        for colour, text in words:
            middle = y + 0.62 * step
            thick = max(2, round(self.size / (5 if colour == next(iter(LOOKS.values())).colour else 9)))
            pen.line((x, middle, x + self.size, middle), fill=colour, width=thick)
            tip = (x + 1.45 * self.size, middle)
            half = 0.36 * self.size
            pen.polygon([(x + 0.9 * self.size, middle - half), tip, (x + 0.9 * self.size, middle + half)], fill=colour)
            pen.text((x + 1.7 * self.size, y), text, font=face, fill=INK)
            x += pen.textlength(text, font=face) + 2.2 * self.size


def fitted(pen: Any, line: str, face: Any, wide: float) -> str:
    """As much of a line as fits."""
    if pen.textlength(line, font=face) <= wide:
        return line
    while line and pen.textlength(line + "…", font=face) > wide:
        line = line[:-1]
    return line + "…"
