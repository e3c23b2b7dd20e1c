"""Other people's models, stepped by MuJoCo and by us: `python benchmarks/models.py FOLDER … [--steps N] [--limit S]`.

Every MJCF file under the folders is loaded, and stepped from its first keyframe, or from its start, by `mj_step` and by
`st.step`, in turns. A line tells what became of it: not loaded (a mesh is missing, say, or the file is a part of
another), refused and why, failed and why; what our step costs over MuJoCo's, in the median, on the whole, and at worst
over our median; the largest velocity, the deepest overlap and the largest error of equality constraints at the end,
ours and MuJoCo's. `--into` writes the table to a page, behind its mark; `--limit` ends a model that takes longer.
Nothing of the models is kept.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

import stiction as st

WARM = 5  # steps before the clock counts
TURN = 20  # steps of each before it is the other's turn, so that both see the same load of the machine


class Run(NamedTuple):
    """What stepping a model took, and where it ended."""

    seconds: np.ndarray[Any, np.dtype[np.float64]]  # processor's time of each step
    fastest: float  # |qvel| at its largest
    overlap: float  # m
    error: float  # of equality constraints, in m or rad
    contradictions: int = 0  # steps with some


class Line(NamedTuple):
    """What became of one model."""

    name: str
    state: str  # "stepped", "not loaded", "refused", "failed" or "too slow"
    why: str = ""
    size: str = ""
    ours: Run | None = None
    theirs: Run | None = None

    @property
    def median(self) -> float:
        assert self.ours is not None
        assert self.theirs is not None
        return float(np.median(self.ours.seconds) / np.median(self.theirs.seconds))


def begun(model: Any) -> Any:
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    return data


class Course:
    """A model that is stepped from its start by one of the two."""

    def __init__(self, model: Any, step: Any) -> None:
        self.model, self.step, self.data = model, step, begun(model)
        self.seconds: list[float] = []
        self.fastest, self.contradictions = 0.0, 0

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            start = time.process_time()
            report = self.step(self.model, self.data)
            self.seconds.append(time.process_time() - start)
            self.fastest = max(self.fastest, float(np.abs(self.data.qvel).max(initial=0.0)))
            self.contradictions += bool(getattr(report, "contradictions", ()))

    def end(self) -> Run:
        data = self.data
        overlap = float(-np.minimum(np.array(data.contact.dist), 0.0).min(initial=0.0)) if data.ncon else 0.0
        error = float(np.abs(np.array(data.efc_pos)[: data.ne]).max(initial=0.0))
        return Run(np.array(self.seconds[WARM:]), self.fastest, overlap, error, self.contradictions)


def line(name: str, path: Path, steps: int, limit: float) -> Line:
    """One model, whatever it does."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except Exception as error:  # MuJoCo raises errors of several kinds
        return Line(name, "not loaded", first_line(error).replace(f"{path.parent}/", ""))
    if model.nv == 0:
        return Line(name, "not loaded", "nothing moves")
    dims = sorted({int(dim) for dim in model.geom_condim})
    size = f"{model.nv} velocities, {model.neq} equalities, condim {', '.join(map(str, dims))}"
    refused = st.Scene.of(model).report().refused
    if refused:
        return Line(name, "refused", refused[0], size)
    theirs, ours = Course(model, mujoco.mj_step), Course(model, st.step)
    try:
        for done in range(0, steps, TURN):
            theirs.go_on(min(TURN, steps - done))
            ours.go_on(min(TURN, steps - done))
            if sum(ours.seconds[WARM:]) > limit:
                return Line(name, "too slow", f"{len(ours.seconds)} of {steps} steps in {limit:g} s", size)
    except (st.StictionError, mujoco.FatalError) as error:
        return Line(name, "failed", f"step {len(ours.seconds)}: {first_line(error)}", size)
    return Line(name, "stepped", "", size, ours.end(), theirs.end())


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160].replace("|", "/")


def told(found: Line) -> str:
    """A row of the table."""
    if found.ours is None or found.theirs is None:
        return f"| {found.name} | {found.size} | **{found.state}**: {found.why} | | | | | | |"
    ours, theirs = found.ours, found.theirs
    note = f"{ours.contradictions} steps with contradictions" if ours.contradictions else "stepped"
    return (
        f"| {found.name} | {found.size} | {note} | {found.median:.2f} | "
        f"{ours.seconds.sum() / theirs.seconds.sum():.2f} | "
        f"{ours.seconds.max() / np.median(ours.seconds):.0f} | {ours.fastest:.3g} ({theirs.fastest:.3g}) | "
        f"{1e3 * ours.overlap:.2g} ({1e3 * theirs.overlap:.2g}) | {ours.error:.1e} ({theirs.error:.1e}) |"
    )


def on_page(found: Line) -> str:
    """The same, as short as fits on a page."""
    name = found.name.removesuffix(".xml").removesuffix("/scene")
    if found.ours is None or found.theirs is None:
        return f"| {name} | **{found.state}** | | | | |"
    ours, theirs = found.ours, found.theirs
    mark = " \\*" if ours.contradictions else ""
    return (
        f"| {name}{mark} | {found.median:.2f} | {ours.seconds.sum() / theirs.seconds.sum():.2f} | "
        f"{ours.seconds.max() / np.median(ours.seconds):.0f} | {ours.fastest:.2g} ({theirs.fastest:.2g}) | "
        f"{ours.error:.0e} ({theirs.error:.0e}) |"
    )


MARK = "<!-- table -->"  # of a page: what follows is renewed

HEAD = (
    "| model | size | | median cost over mj_step | whole cost | slowest over median | largest velocity (MuJoCo's) | "
    "overlap at the end, mm | error of equalities |\n|---|---|---|---|---|---|---|---|---|"
)

PAGE_HEAD = "| model | cost | whole | slowest | velocity | equalities |\n|---|---:|---:|---:|---:|---:|"


def summary(lines: list[Line], steps: int) -> str:
    count = {
        state: sum(each.state == state for each in lines)
        for state in ("stepped", "refused", "failed", "too slow", "not loaded")
    }
    medians = [each.median for each in lines if each.ours is not None]
    costs = (
        f" Cost of a step over `mj_step`: median {np.median(medians):.2f}, worst {max(medians):.1f}." if medians else ""
    )
    return (
        f"{len(lines)} files: {count['stepped']} made all of {steps} steps, {count['refused']} refused, "
        f"{count['failed']} failed, {count['too slow']} took too long, {count['not loaded']} could not be loaded."
        f"{costs}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pattern", default="scene*.xml", help="which files, scene*.xml unless told")
    parser.add_argument("--limit", type=float, default=600.0, help="processor's seconds for our steps of one model")
    parser.add_argument("--into", type=Path, help="a page to write the table to")
    chosen = parser.parse_args()
    lines = []
    print(HEAD)
    for folder in chosen.folders:
        if not folder.is_dir():
            print(f"there is no folder {folder}", file=sys.stderr)
            return 2
        for path in sorted(folder.rglob(chosen.pattern)):
            lines.append(line(str(path.relative_to(folder)), path, chosen.steps, chosen.limit))
            print(told(lines[-1]), flush=True)
    print(f"\n{summary(lines, chosen.steps)}")
    if chosen.into is not None:
        rows = "\n".join(on_page(each) for each in lines if each.state != "not loaded")
        page = chosen.into.read_text() if chosen.into.exists() else f"# Models that others wrote\n\n{MARK}"
        kept = page.partition(MARK)[0]
        chosen.into.write_text(f"{kept}{MARK}\n\n{summary(lines, chosen.steps)}\n\n{PAGE_HEAD}\n{rows}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
