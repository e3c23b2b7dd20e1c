"""What a step costs in two states of the sources, side by side in one run: did a change make steps slower?

`python benchmarks/against.py OLD [NEW]`: a commit or a folder that holds the package `stiction` each; NEW is the `src`
beside this file if it is not given. Two processes step the same scenes, those of the suite `steps` and some that are
hard, in turns of a few steps, so that a busy machine slows both alike; each turn begins from the same state in both,
since how many contacts MuJoCo finds may depend on the last digit. What is compared is the processor's time of each
turn. The ratio is the median over turns of new / old, with the quartiles. `--most 1.05` makes the status 1 if one is
above that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BLOCK = 20  # steps of a turn
HARD = ("card-house", "masonry-arch", "dominoes", "block-feeder", "double-action-jack", "peg-in-hole")


class Worker:
    """A process with one of the two packages, that makes steps when it is asked to."""

    def __init__(self, sources: Path) -> None:
        one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        path = os.pathsep.join([str(sources), str(HERE)])
        command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
        surroundings = {**os.environ, **one, "PYTHONPATH": path}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=surroundings)
        home = Path(self.ask("home")).resolve()
        if home != (sources / "stiction").resolve():
            raise SystemExit(f"{sources}: stiction was imported from {home} instead")

    def ask(self, *words: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"a process ended with status {self.process.wait()} when it was asked to {words[0]}")
        return json.loads(answer)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def work() -> None:
    """The other end: a line of JSON in, a line of JSON out."""
    import stiction as st

    answers = sys.stdout
    sys.stdout = sys.stderr
    run: Callable[[int], int] = lambda steps: steps  # noqa: E731
    state: Callable[[list[float] | None], list[float]] = lambda given: given or []  # noqa: E731
    for line in sys.stdin:
        what, *rest = json.loads(line)
        if what == "home":
            told: Any = str(Path(str(st.__file__)).parent)
        elif what == "begin":
            run, state, told = begin(*rest)
        elif what == "state":
            told = state(*rest)
        else:
            start = time.process_time()
            failed = run(*rest)
            told = [(time.process_time() - start) / rest[0], failed]
        print(json.dumps(told), file=answers, flush=True)


def begin(name: str, quick: bool) -> tuple[Callable[[int], int], Callable[[list[float] | None], list[float]], int]:
    """A scene that has settled under `mj_step` and then under ours; how to step it, its state, its contacts."""
    import mujoco
    import numpy as np
    from steps import Contest, Rival, contests, named

    import stiction as st

    contest = contests(quick).get(name) or Contest(named(name), 0.0, None)
    rival = Rival(*contest.make(), 1)
    rival.run(round(contest.settle / rival.model.opt.timestep))
    spec, control = contest.make()
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, rival.state(), mujoco.mjtState.mjSTATE_INTEGRATION)

    def run(steps: int) -> int:
        failed = 0
        for _ in range(steps):
            if control is not None:
                control(model, data)
            try:
                st.step(model, data)
            except st.SolveFailed:
                failed += 1
        return failed

    def state(given: list[float] | None) -> list[float]:
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        if given is not None:
            mujoco.mj_setState(model, data, np.array(given), kind)
        out = np.empty(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, data, out, kind)
        return out.tolist()  # type: ignore[no-any-return]

    run(BLOCK if quick else round(0.5 / model.opt.timestep))  # compiles, and takes back the overlaps of soft contact
    return run, state, int(data.ncon)


def sources_of(given: str) -> Path:
    """A folder as it is; a commit as its sources are unpacked, once."""
    folder = Path(given)
    for each in (folder, folder / "src"):
        if (each / "stiction" / "__init__.py").is_file():
            return each.resolve()
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{given} is neither a folder that holds the package stiction nor a commit")
    place = ROOT / ".cache" / "against" / found.stdout.strip()
    if not (place / "src").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", found.stdout.strip(), "src"], capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", str(place)], input=archive.stdout, check=True)
    return place / "src"


def compare(old: Path, new: Path, scenes: list[str], turns: int, quick: bool) -> dict[str, list[float]]:
    """Prints a line a scene; the ratios of all turns by scene."""
    import numpy as np

    workers = [Worker(old), Worker(new)]
    ratios = {}
    print(f"{'scene':22s} {'contacts':>8s} {'old':>10s} {'new':>10s} {'new / old':>10s}  quartiles")
    for name in scenes:
        contacts = [worker.ask("begin", name, quick) for worker in workers]
        seconds, failed = np.empty((turns, 2)), [0, 0]
        for k in range(turns):
            state = workers[k % 2].ask("state", None)
            for worker in workers:
                worker.ask("state", state)
                worker.ask("go", 1)  # from a start that has no last step to begin with
            for i in (0, 1) if k % 2 else (1, 0):
                seconds[k, i], more = workers[i].ask("go", BLOCK)
                failed[i] += more
        ratio = seconds[:, 1] / seconds[:, 0]
        ratios[name] = ratio.tolist()
        low, middle, high = np.percentile(ratio, [25, 50, 75])
        old_time, new_time = 1e6 * np.median(seconds, axis=0)
        note = f"  not solved: {failed[0]} old, {failed[1]} new" if any(failed) else ""
        times = f"{old_time:7.1f} µs {new_time:7.1f} µs"
        print(f"{name:22s} {contacts[1]:8d} {times} {middle:10.3f}  {low:.3f} to {high:.3f}{note}", flush=True)
    for worker in workers:
        worker.close()
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(description="Processor time of a step in two states of the sources, in turns.")
    parser.add_argument("old", nargs="?", help="a commit, or a folder that holds the package")
    parser.add_argument("new", nargs="?", default=str(ROOT / "src"), help="the same; the sources here if not given")
    parser.add_argument("--scene", action="append", help="one of them; all if none is named")
    parser.add_argument("--turns", type=int, default=40, help=f"of {BLOCK} steps each")
    parser.add_argument("--quick", action="store_true", help="few turns: to see that it runs")
    parser.add_argument("--most", type=float, help="status 1 if the median ratio of a scene is above this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios of all turns")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return 0
    if options.old is None:
        parser.error("name the old sources: a commit, or a folder that holds the package")
    scenes = options.scene or [*scenes_of(options.quick), *(() if options.quick else HARD)]
    turns = 3 if options.quick else options.turns
    ratios = compare(sources_of(options.old), sources_of(options.new), scenes, turns, options.quick)
    if options.json:
        options.json.write_text(json.dumps(ratios))
    medians = {name: sorted(each)[len(each) // 2] for name, each in ratios.items()}
    slower = {name: each for name, each in medians.items() if options.most is not None and each > options.most}
    for name, each in slower.items():
        print(f"{name}: {each:.3f} is more than {options.most:g}")
    return 1 if slower else 0


def scenes_of(quick: bool) -> list[str]:
    sys.path.insert(0, str(HERE))
    from steps import contests

    return list(contests(quick))


if __name__ == "__main__":
    sys.exit(main())
