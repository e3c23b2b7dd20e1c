"""Time of a step: a loop of `st.step`, `st.rollout` with one worker and with two, in turns.

    python benchmarks/rollout.py [STEPS]

Times are the best of five, of the clock and of the processor; on a busy machine only the latter mean anything.
"""

from __future__ import annotations

import os
import sys
import time

import mujoco
import numpy as np

import stiction as st

PHYSICS = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
BATCH, TURNS = 8, 5


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
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def main(steps):
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    for name, make in SCENES.items():
        model = make()
        data = mujoco.MjData(model)
        start = np.empty(mujoco.mj_stateSize(model, PHYSICS))
        mujoco.mj_getState(model, data, start, PHYSICS)
        every = np.tile(start, (BATCH, 1))

        def loop():
            for _ in range(BATCH):
                data = mujoco.MjData(model)  # noqa: B023
                for _ in range(steps):
                    st.step(model, data)  # noqa: B023

        def rolled(workers):
            return lambda: st.rollout(model, mujoco.MjData(model), every, nstep=steps, workers=workers)  # noqa: B023

        ways = {"st.step": loop, "1 worker": rolled(1), "2 workers": rolled(2)}
        best = {}
        for run in ways.values():
            run()
        for _ in range(TURNS):
            for way, run in ways.items():
                wall, cpu = timed(run)
                before = best.get(way, (np.inf, np.inf))
                best[way] = min(before[0], wall), min(before[1], cpu)
        each = 1e6 / (BATCH * steps)
        print(name)
        for way, (wall, cpu) in best.items():
            print(f"  {way:10} {each * wall:7.2f} us a step, {each * cpu:7.2f} us of processor time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
