"""Time of a step: a loop of `st.step`, `st.rollout` with one worker and with two, in turns.

    python benchmarks/rollout.py [STEPS]

A turn counts for the clock only if both cores were free: before and after it, two threads that only hash take as long
as one. Times of the processor count always, but say nothing about how long two workers take side by side. Where no turn
counts, the bars of two workers are left open; run it again on a quiet machine.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np

import stiction as st

PHYSICS = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
BATCH, TURNS = 8, 7
FREE = 1.9  # times as much as one that two hashing threads do in the same time, on cores that are free
TWICE, ALONE, OF_LOOP = 1.7, 8.0, 8.0 / 12.0  # bars: two workers; us a step of a box, and over the loop of st.step


def blocks(count):
    bodies = "".join(
        f"<body pos='0 0 {0.1 + 0.2 * i}'><freejoint/><geom type='box' size='.1 .1 .1' mass='2'/></body>"
        for i in range(count)
    )
    return f"<mujoco><worldbody><geom type='plane' size='5 5 1'/>{bodies}</worldbody></mujoco>"


SCENES = {
    "box": lambda: mujoco.MjModel.from_xml_string(blocks(1)),
    "five blocks": lambda: mujoco.MjModel.from_xml_string(blocks(5)),
    "ten blocks": lambda: mujoco.MjModel.from_xml_string(blocks(10)),
    "quadruped": lambda: st.Scene.named("quadruped").model,
}


def timed(run):
    """Seconds of the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def side_by_side():
    """How much two threads do that hash without the interpreter's lock, over what one does in the same time."""

    def work(_):
        hashlib.pbkdf2_hmac("sha256", b"cores", b"free", 40_000)

    with ThreadPoolExecutor(2) as pool:
        one = timed(lambda: list(pool.map(work, range(1))))[0]
        two = timed(lambda: list(pool.map(work, range(2))))[0]
    return 2.0 * one / two


def measured(ways):
    """Of each way, least times of clock and processor; and ratios of one worker to two in turns with free cores."""
    best, speedups = dict.fromkeys(ways, (np.inf, np.inf)), []
    for run in ways.values():
        run()
    free = side_by_side()
    for _ in range(TURNS):
        walls = {}
        for way, run in ways.items():
            walls[way], cpu = timed(run)
            best[way] = min(best[way][0], walls[way]), min(best[way][1], cpu)
        before, free = free, side_by_side()
        if min(before, free) >= FREE:
            speedups.append(walls["1 worker"] / walls["2 workers"])
    return best, speedups


def said(what, bar, value, holds):
    print(f"  {'met   ' if holds else 'MISSED'}  {what}: {value:.2f} (bar {bar:.2f})")


def main(steps):
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    for name, make in SCENES.items():
        model = make()
        data = mujoco.MjData(model)
        start = np.empty(mujoco.mj_stateSize(model, PHYSICS))
        mujoco.mj_getState(model, data, start, PHYSICS)
        every = np.tile(start, (BATCH, 1))

        def loop(model=model):
            for _ in range(BATCH):
                data = mujoco.MjData(model)
                for _ in range(steps):
                    st.step(model, data)

        def rolled(workers, model=model, every=every):
            return lambda: st.rollout(model, mujoco.MjData(model), every, nstep=steps, workers=workers)

        best, speedups = measured({"st.step": loop, "1 worker": rolled(1), "2 workers": rolled(2)})
        each = 1e6 / (BATCH * steps)
        print(name)
        for way, (wall, cpu) in best.items():
            print(f"  {way:10} {each * wall:7.2f} us a step, {each * cpu:7.2f} us of processor time")
        looped, one, both = (cpu for _, cpu in best.values())
        said("one worker over the loop of st.step, processor time", 1.0, one / looped, one <= looped)
        if name == "box":
            said("us a step in the compiled loop", ALONE, each * one, each * one <= ALONE)
            said("the same over st.step", OF_LOOP, one / looped, one <= OF_LOOP * looped)
        else:
            print(f"          processor time of two workers over that of one: {both / one:.2f}")
        if name != "box" and speedups:
            middle = float(np.median(speedups))
            said(f"two workers, {len(speedups)} of {TURNS} turns with free cores", TWICE, middle, middle >= TWICE)
        elif name != "box":
            print("  open    two workers: both cores were free in no turn")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
