"""The races of some suites as pictures: time against contestant, one panel a problem set, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import TOLERANCE, Table

PEERS = ("numpy", "quantecon", "Drake", "Siconos", "quadprog", "daqp", "proxsuite", "clarabel")
PLOTTED = {
    "pyramid": "Friction pyramid of 8 facets: median time. Hollow: not all problems solved.",
    "cone": "Circular cone beside the pyramid: median time. Hollow: not all problems solved.",
    "quadratic": "Frictionless contact as a quadratic program: median time. Hollow: not all problems solved.",
    "engines": "Whole scenes: drift of what should rest, against the time of a step.",
}


def draw(suite: str, tables: Sequence[Table], folder: Path) -> Path | None:
    """`folder/performance-<suite>.svg`, or None if there is nothing to draw."""
    if suite not in PLOTTED:
        return None
    panel = scene_panel if suite == "engines" else race_panel
    drawn = [table for table in tables if ("seconds" in table.numbers or suite == "engines")]
    if not drawn:
        return None
    from matplotlib.figure import Figure

    across = min(2, len(drawn))
    down = -(-len(drawn) // across)
    figure = Figure(figsize=(5.2 * across, (2.9 if suite == "engines" else 2.4) * down + 0.4), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, table in zip(axes, drawn, strict=False):
        panel(ax, table)
        ax.set_title(table.title.split(": ", 1)[-1], fontsize=9)
    for ax in axes[len(drawn) :]:
        ax.remove()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"performance-{suite}.svg"
    figure.savefig(path, metadata={"Date": None})
    return path


def race_panel(ax: Any, table: Table) -> None:
    """A row a contestant; the share of solved problems beside it, if it is not all."""
    seconds, residual = table.numbers["seconds"], table.numbers["residual"]
    names = list(seconds)[::-1]
    for y, name in enumerate(names):
        middle = float(np.nanmedian(seconds[name]))
        found = np.array(residual[name], dtype=float)
        yardstick = not np.isfinite(found).any() and "numpy" in name
        solved = 1.0 if yardstick else float((found <= TOLERANCE).mean())
        ours = not any(
            peer in name for peer in ("quantecon", "Drake", "Siconos", "quadprog", "daqp", "prox", "clarabel")
        )
        ax.plot(middle, y, marker="s" if ours else "o", color="k", mfc="k" if solved == 1.0 else "white", ms=6)
        if solved < 1.0:
            ax.annotate(
                f"{100 * solved:.0f} %", (middle, y), (7, 0), textcoords="offset points", va="center", fontsize=7
            )
    ax.set_yticks(range(len(names)), names, fontsize=7)
    ax.set(xscale="log", xlabel="time")
    in_seconds(ax.xaxis)
    ax.margins(x=0.15)
    ax.grid(axis="x", color="0.85", lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def scene_panel(ax: Any, table: Table) -> None:
    """A point an engine; lower is stiller, left is quicker."""
    markers = iter("sovD^<>P*X")
    for name, found in table.numbers.items():
        marker = next(markers)
        if found["failed"]:
            continue
        drift = max(found["drift"], 1e-17)
        ax.plot(found["median"], drift, marker, color="k", mfc="k" if name == "ours" else "white", ms=6, label=name)
    ax.set(xscale="log", yscale="log", xlabel="time of a step", ylabel="drift [m/s]")
    in_seconds(ax.xaxis)
    ax.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    ax.grid(color="0.9", lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def in_seconds(axis: Any) -> None:
    """1 µs, 10 µs, … on a logarithmic axis, with 2 and 5 between them where it spans little."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 30.0 * low else (1.0,)))
    axis.set_major_formatter(EngFormatter("s"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(labelsize=8)
