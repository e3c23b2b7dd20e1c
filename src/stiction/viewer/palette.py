"""One palette for films, pages and plots, distinguishable by colour-blind people and in print.

The hues are those of Okabe and Ito (2008), which common kinds of colour blindness keep apart. Grey levels of the two
modes of a contact differ by more than a quarter of the scale, so that they also differ without any colour.
"""

from __future__ import annotations

from typing import NamedTuple

Colour = tuple[int, int, int]  # 0 to 255

BLACK: Colour = (0, 0, 0)
BLUE: Colour = (0, 114, 178)
ORANGE: Colour = (230, 159, 0)
GREEN: Colour = (0, 158, 115)
VERMILION: Colour = (213, 94, 0)
PURPLE: Colour = (204, 121, 167)
SKY_BLUE: Colour = (86, 180, 233)

STICK, SLIDE, PULL = (0, 92, 168), ORANGE, GREEN  # a little darker than the blue: arrows are lit
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE)  # of a plot, in this order


class Theme(NamedTuple):
    """Paper and ink of a plot."""

    paper: str
    ink: str
    faint: str
    lines: tuple[str, ...]


def grey(colour: Colour) -> float:
    """How bright a colour prints, from 0 to 1 (Rec. 601)."""
    red, green, blue = colour
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255.0


def hexed(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def lightened(colour: Colour, by: float) -> Colour:
    """Towards white, for dark paper."""
    red, green, blue = (round(part + by * (255 - part)) for part in colour)
    return red, green, blue


LIGHT = Theme("#ffffff", "#1a1a1a", "#d0d0d0", tuple(hexed(each) for each in (BLACK, *LINES)))
DARK = Theme("#14181d", "#e8e8e8", "#3c4249", tuple(hexed(lightened(each, 0.3)) for each in ((200, 200, 200), *LINES)))
THEMES = {"light": LIGHT, "dark": DARK}
