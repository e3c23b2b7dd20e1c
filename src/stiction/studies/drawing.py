"""Drawing that all figures of the studies share: a style, panels, ticks and slopes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

from stiction import optional
from stiction.studies.results import Plate

STYLE: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.fontsize": 8,
    "legend.frameon": False,
}
FACES = ("0.25", "white", "0.6", "white", "0.6", "0.25", "0.25", "0.6")
SERIES: tuple[dict[str, Any], ...] = tuple(
    {"marker": marker, "ls": line, "mfc": face, "color": "0.25"}
    for marker, line, face in zip("os^DvPx*", ("-", "--", ":", "-.") * 2, FACES, strict=True)
)  # how the curves of one panel differ


def plate(name: str, width: float, height: float) -> Callable[[Callable[[Any, Any], str]], Callable[[Any], Plate]]:
    """Make a plate, of so many inches, of a function that draws results on a figure and returns the caption."""

    def made(draw: Callable[[Any, Any], str]) -> Callable[[Any], Plate]:
        @wraps(draw)
        def drawn(results: Any) -> Plate:
            matplotlib = optional.matplotlib()
            with matplotlib.rc_context(STYLE):
                figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
                return Plate(name, draw(figure, results), figure)

        return drawn

    return made


def grid(
    figure: Any, rows: Sequence[str], columns: Sequence[Any], labels: tuple[str, str], **shared: Any
) -> Iterator[tuple[str, Any, Any]]:
    """(row, column, axes) of a panel for each pair; the labels of x and y stand at the edges only."""
    axes = figure.subplots(len(rows), len(columns), sharex=True, squeeze=False, **shared)
    for ax in axes[-1]:
        ax.set_xlabel(labels[0])
    for ax in axes[:, 0]:
        ax.set_ylabel(labels[1], fontsize=8)
    for row, line in zip(rows, axes, strict=True):
        for column, ax in zip(columns, line, strict=True):
            yield row, column, ax


def corner(ax: Any, text: str) -> None:
    """Text at the upper right, inside."""
    ax.text(0.98, 0.95, text, transform=ax.transAxes, ha="right", va="top", fontsize=8)


def ticks(ax: Any, x: Any = (), y: Any = ()) -> None:
    """These ticks and no others, as plain numbers; an axis for which none is given keeps its own."""
    if len(x):
        ax.set_xticks(x, [f"{tick:g}" for tick in x])
    if len(y):
        ax.set_yticks(y, [f"{tick:g}" for tick in y])
    ax.minorticks_off()


def slope(ax: Any, ends: Any, height: float, power: int, label: str) -> None:
    """A thin line that grows with a power, to a height at its right end, where its label stands."""
    ax.plot(ends, height * (np.asarray(ends) / ends[-1]) ** float(power), color="0.7", lw=0.8)
    ax.text(ends[-1], height, f" {label}", va="center", color="0.5")
