"""How a step grows with the scene: heaps, walls, ragdolls and grains in motion, in turn with `mujoco.mj_step`.

CPU time, everything in one run, MuJoCo with the elliptic cone and Newton's method. Each scene is let go and stepped
until it has taken the time that it may (`--seconds`), or 250 steps; a step that is not certified ends its run.

`python benchmarks/large.py` prints the table of `docs/large-scenes.md` and draws its figure, `--quick` shows that it
runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from heaps import race
from measure import Table, duration, exponent, ratio_text

import stiction as st

FIGURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "large-scenes.svg"
STEPS = 250
SCENES: dict[str, tuple[dict[str, Any], ...]] = {
    "heap": ({"bodies": 30}, {"bodies": 100}, {"bodies": 300}, {"bodies": 1000}),
    "wall": tuple({"rows": side, "columns": side} for side in (3, 5, 10, 20)),
    "humanoids": tuple({"count": count} for count in (4, 10, 30, 100)),
    "granular-column": tuple({"grains": grains} for grains in (30, 100, 300, 1000)),
}


def measure(quick: bool, limit: float) -> list[Table]:
    """One table a scene."""
    tables = []
    for name, sizes in SCENES.items():
        rows, bodies, typical, theirs = [], [], [], []
        for parameters in sizes[:1] if quick else sizes:
            model = st.Scene.named(name, **parameters).model
            ours, peer, contacts, failure = race(model, 10 if quick else STEPS, limit)
            count = model.nbody - 1
            middle, beside = float(np.median(ours)), float(np.median(peer))
            rows.append((
                " × ".join(map(str, parameters.values())), str(model.nv), str(contacts), str(len(ours)),
                duration(middle), duration(float(ours.mean())), duration(float(ours.max())), duration(beside),
                ratio_text(middle / beside), failure,
            ))  # fmt: skip
            bodies.append(count)
            typical.append(middle)
            theirs.append(beside)
        notes = []
        if len(bodies) > 1:
            notes = [f"A step grows with the bodies to the power {exponent(bodies, typical):.2f}; mj_step to "
                     f"{exponent(bodies, theirs):.2f}."]  # fmt: skip
        columns = ("size", "velocities", "contacts", "steps", "median", "mean", "slowest", "mj_step", "ratio", "failed")
        numbers = {"bodies": bodies, "ours": typical, "mj_step": theirs}
        tables.append(Table(name, columns, rows, notes, numbers))
        print(tables[-1].markdown(), flush=True)
    return tables


def draw(tables: list[Table], path: Path) -> None:
    """Time of a step against the number of bodies, ours and MuJoCo's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 2.6), layout="constrained")
    axes = figure.subplots(1, len(tables), sharey=True)
    for ax, table in zip(axes, tables, strict=True):
        numbers = table.numbers
        ax.loglog(numbers["bodies"], 1e3 * np.array(numbers["ours"]), "o-", color="C0", label="stiction")
        ax.loglog(numbers["bodies"], 1e3 * np.array(numbers["mj_step"]), "s--", color="C1", label="mj_step")
        ax.set_title(table.title, fontsize=9)
        ax.set_xlabel("bodies")
        ax.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("median step (ms of CPU)")
    axes[0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=20.0, help="of CPU time for each size")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    tables = measure(options.quick, options.seconds)
    if not options.quick:
        draw(tables, options.figure)


if __name__ == "__main__":
    main()
