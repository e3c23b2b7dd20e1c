"""What a sweep costs beside its function: time of a case, of a second call, and what is left when workers are killed.

    python benchmarks/sweeps.py [here] [cores] [ray]

The function does nothing, chunks have 16 cases. Ray is started before its time is taken.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import stiction as st

CASES = 1600
MANY = 10_000


def nothing(k):
    return k


def hostile(k, folder):
    """One in a hundred raises, two end their workers."""
    mark = Path(folder) / f"killed-{k}"
    if k in (MANY // 5, MANY // 2) and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if k % 100 == 7:
        raise ValueError(k)
    return k


def timed(function, cases, folder, on):
    begin, cpu = time.perf_counter(), time.process_time()
    table = st.sweep(function, cases, folder, on=on, workers=None if on == "here" else 2, chunk=16)
    return table, time.perf_counter() - begin, time.process_time() - cpu


def main(places):
    for on in places:
        if on == "ray":
            import ray

            path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
            ray.init(
                num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}}
            )
        with tempfile.TemporaryDirectory() as folder:
            cases = [{"k": k} for k in range(CASES)]
            st.sweep(nothing, cases[:32], f"{folder}/warm", on=on, chunk=16)
            _, wall, cpu = timed(nothing, cases, f"{folder}/out", on)
            print(
                f"{on}: {1e3 * wall / CASES:.2f} ms a case, {1e3 * cpu / CASES:.2f} ms of processor time in the driver"
            )
            if on == "here":
                continue
            many = [{"k": k, "folder": folder} for k in range(MANY)]
            table, wall, _ = timed(hostile, many, f"{folder}/many", on)
            errors = sum(error is not None for error in table["error"].to_pylist())
            once = table["case"].to_pylist() == list(range(MANY))
            print(f"{on}: {table.num_rows} rows, {errors} errors, each case once: {once}, in {wall:.1f} s")
            _, wall, _ = timed(hostile, many, f"{folder}/many", on)
            print(f"{on}: a second call takes {wall:.3f} s")


if __name__ == "__main__":
    main(sys.argv[1:] or ["here", "cores"])
