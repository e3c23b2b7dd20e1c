"""Large islands: random heaps solved cold, heaps in motion and at rest beside `mujoco.mj_step`, published problems.

CPU time, everything in one run. A moving heap falls between walls, hits and settles: mixed boxes, cylinders, capsules
and spheres of 1 to 10 kg; MuJoCo steps its own copy with the elliptic cone and Newton's method, in turn with ours. Both
begin alike and go their own ways, so that steps are compared by number only. A step that is not certified ends a run.
A heap at rest is let settle by ours first; MuJoCo goes on from there, with either cone, and settles its own way before
steps are compared.

`python benchmarks/heaps.py` prints the tables and what they were meant to reach, `--quick` shows that it runs,
`--seconds 60` bounds the time of each moving heap, `--rest 200 300` adds heaps at rest, `--published DIR` adds all
problems in a folder of files.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measure import TOLERANCE, Table, aims_of, at_most, duration, exponent, ratio_text

import stiction as st
from stiction.errors import UnsymmetricMatrix
from stiction.problems.zoo.contact_families import heap

GAP = 0.24  # m between bodies at first
SIZES = {"box": ".1 .08 .05", "cylinder": ".05 .08", "capsule": ".05 .06", "sphere": ".08"}
SUFFIXES = (".hdf5", ".dat", ".npz")


def random_heaps(quick: bool) -> Table:
    """`contact_families` heaps, cold."""
    rows, aims, numbers = [], [], {}
    for bodies in (10,) if quick else (40, 100):
        seconds, residual = [], []
        problems = [heap(bodies, seed) for seed in range(2 if quick else 10)]
        st.solve(heap(bodies, 0), throw=False)  # compiles
        for problem in problems:
            begin = time.process_time()
            solution = st.solve(problem, throw=False)
            seconds.append(time.process_time() - begin)
            residual.append(solution.certificate.residual)
        solved = int(np.sum(np.array(residual) <= TOLERANCE))
        rows.append((
            str(bodies), str(problems[0].n), f"{solved} of {len(problems)}", duration(float(np.median(seconds))),
            duration(max(seconds)), f"{max(residual):.0e}",
        ))  # fmt: skip
        numbers[str(bodies)] = {"seconds": seconds, "residual": residual}
        aims.append(at_most(f"random heaps of {bodies}: not certified", 0, len(problems) - solved))
        if bodies == 100:
            aims.append(at_most("random heaps of 100: slowest, s", 0.2, max(seconds)))
    columns = ("bodies", "contacts", "certified", "median", "slowest", "worst residual")
    return Table("Random heaps, cold", columns, rows, numbers=numbers, aims=aims)


def moving_heaps(quick: bool, limit: float) -> Table:
    """Whole steps of falling heaps, in turn with MuJoCo's."""
    rows, aims, numbers, sizes, typical = [], [], {}, [], []
    for bodies, most in ((8, 3.0),) if quick else ((100, 3.0), (300, 3.0), (1000, 4.0)):
        ours, theirs, contacts, failure = race(falling(bodies), 20 if quick else 2000, limit)
        ratio, mean = np.median(ours) / np.median(theirs), ours.mean() / theirs.mean()
        rows.append((
            str(bodies), str(len(ours)), str(contacts), duration(float(np.median(ours))), duration(float(ours.max())),
            duration(float(np.median(theirs))), ratio_text(float(ratio)), ratio_text(float(mean)), failure,
        ))  # fmt: skip
        numbers[str(bodies)] = {"ours": ours.tolist(), "mj_step": theirs.tolist()}
        aims += [
            at_most(f"moving heap of {bodies}: median over that of mj_step", most, ratio),
            at_most(f"moving heap of {bodies}: mean over that of mj_step", 5.0, mean),
            at_most(f"moving heap of {bodies}: slowest step over the median", 20.0, ours.max() / np.median(ours)),
        ]
        sizes.append(bodies)
        typical.append(float(np.median(ours)))
    notes = []
    if len(sizes) > 1:
        aims.append(at_most("moving heaps: exponent of growth with bodies", 1.3, exponent(sizes, typical)))
        notes.append("Steps beyond the time that a run may take are not made: larger heaps are seen falling only.")
    columns = ("bodies", "steps", "contacts", "median", "slowest", "mj_step", "ratio", "of means", "not certified")
    return Table("Moving heaps beside mj_step, elliptic cone", columns, rows, notes, numbers, aims)


def race(model: Any, steps: int, limit: float) -> tuple[Any, Any, int, str]:
    """CPU seconds of each step, ours and MuJoCo's; the most contacts seen; the step that failed, if one did."""
    import mujoco

    mine, other = mujoco.MjData(model), mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, mine, 0)
        mujoco.mj_resetDataKeyframe(model, other, 0)
    st.step(model, mujoco.MjData(model))  # compiles
    ours, theirs, contacts, failure = [], [], 0, ""
    end = time.process_time() + limit
    for number in range(steps):
        begin = time.process_time()
        mujoco.mj_step(model, other)
        between = time.process_time()
        try:
            st.step(model, mine)
        except st.SolveFailed as error:
            failure = f"step {number}, {error.solution.certificate.residual:.0e}"
            break
        ours.append(time.process_time() - between)
        theirs.append(between - begin)
        contacts = max(contacts, int(mine.ncon))
        if time.process_time() > end:
            break
    return np.array(ours), np.array(theirs), contacts, failure


def resting_heaps(sizes: list[int], settling: int = 2500, own: int = 200, steps: int = 100) -> Table:
    """Whole steps of heaps that have settled; settling: steps of ours; own: of MuJoCo's after these."""
    import mujoco

    rows, aims, numbers = [], [], {}
    for bodies in sizes:
        model = falling(bodies)
        mine = mujoco.MjData(model)
        for _ in range(settling):
            st.step(model, mine)
        start, ours = (mine.qpos.copy(), mine.qvel.copy()), timed(st.step, model, mine, steps)
        found = [str(bodies), str(int(mine.ncon)), f"{np.abs(mine.qvel).max():.0e}", duration(ours)]
        numbers[str(bodies)] = {"ours": ours}
        for cone, most in (("pyramidal", 0.5), ("elliptic", 1.0)):
            other = falling(bodies)
            other.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
            data = mujoco.MjData(other)
            data.qpos[:], data.qvel[:] = start
            for _ in range(own):
                mujoco.mj_step(other, data)
            theirs = timed(mujoco.mj_step, other, data, steps)
            found += [duration(theirs), ratio_text(ours / theirs)]
            numbers[str(bodies)][cone] = theirs
            aims.append(at_most(f"heap of {bodies} at rest: over mj_step, {cone} cone", most, ours / theirs))
        rows.append(tuple(found))
    columns = ("bodies", "contacts", "fastest, m/s", "median", "pyramidal", "ratio", "elliptic", "ratio")
    return Table("Heaps at rest beside mj_step", columns, rows, numbers=numbers, aims=aims)


def timed(step: Any, model: Any, data: Any, steps: int) -> float:
    """Median CPU seconds of a step."""
    seconds = []
    for _ in range(steps):
        begin = time.process_time()
        step(model, data)
        seconds.append(time.process_time() - begin)
    return float(np.median(seconds))


def falling(bodies: int, seed: int = 0) -> Any:
    """A model: bodies in layers above a floor, between four walls."""
    import mujoco

    random = np.random.default_rng(seed)
    across = max(2, round((bodies / 6) ** 0.5))
    parts = []
    for k in range(bodies):
        kind = tuple(SIZES)[k % len(SIZES)]
        x, y = (GAP * place + random.uniform(-0.02, 0.02) for place in (k % across, k // across % across))
        z, tilt, turn = 0.15 + 0.25 * (k // across**2), random.uniform(0, 40), random.uniform(0, 90)
        mass, mu = 10.0 ** random.uniform(0, 1), random.uniform(0.3, 1.0)
        parts.append(
            f'<body pos="{x} {y} {z}" euler="{tilt} 0 {turn}"><freejoint/>'
            f'<geom type="{kind}" size="{SIZES[kind]}" mass="{mass}" friction="{mu}"/></body>'
        )
    far = GAP * across
    walls = "".join(
        f'<geom type="plane" pos="{x} {y} 0" zaxis="{nx} {ny} 0" size="9 9 1"/>'
        for x, y, nx, ny in ((-0.2, 0, 1, 0), (far, 0, -1, 0), (0, -0.2, 0, 1), (0, far, 0, -1))
    )
    return mujoco.MjModel.from_xml_string(
        '<mujoco><size memory="600M"/><option timestep="0.004" cone="elliptic" solver="Newton"/><worldbody>'
        f'<geom type="plane" size="50 50 1"/>{walls}{"".join(parts)}</worldbody></mujoco>'
    )


def published(folder: Path) -> Table:
    """Every contact problem among the files of a folder."""
    rows, slowest, missed = [], 0.0, 0
    warnings.simplefilter("ignore", UnsymmetricMatrix)
    for path in sorted(each for each in folder.rglob("*") if each.suffix in SUFFIXES):
        begin = time.process_time()
        try:
            problem = st.load(path)
        except st.StictionError as error:
            rows.append((path.name, "", "", "", f"not loaded: {type(error).__name__}"))
            continue
        if not isinstance(problem, st.ContactProblem):
            continue
        read = time.process_time() - begin
        st.solve(problem, throw=False)  # compiles
        build, fields = problem.__reduce__()
        fresh = build(*fields)
        begin = time.process_time()
        solution = st.solve(fresh, throw=False)
        spent = time.process_time() - begin
        slowest, missed = max(slowest, spent), missed + (not solution.ok)
        rows.append((
            path.name, str(problem.n), duration(read), duration(spent), f"{solution.certificate.residual:.0e}"
        ))  # fmt: skip
    aims = [
        at_most("published problems: not certified", 0, missed),
        at_most("published problems: slowest, s", 0.5, slowest),
    ]
    return Table("Published problems", ("file", "contacts", "load", "solve", "residual"), rows, aims=aims)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU time for each moving heap")
    parser.add_argument("--rest", type=int, nargs="+", default=[], help="bodies of heaps at rest")
    parser.add_argument("--published", type=Path, help="folder of contact problems")
    options = parser.parse_args()
    tables = [random_heaps(options.quick), moving_heaps(options.quick, options.seconds)]
    if options.rest:
        tables.append(resting_heaps(options.rest))
    if options.published is not None:
        tables.append(published(options.published))
    for table in (*tables, aims_of(tables)):
        print(table.text())


if __name__ == "__main__":
    main()
