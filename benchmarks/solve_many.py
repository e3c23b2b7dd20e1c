"""Problems a second: `solve` one by one, `solve_many` with one thread and with two, in turns.

    python benchmarks/solve_many.py [PROBLEMS]

One geometry each, loads and friction drawn at random; every answer is certified. Times of processors are taken beside
those of the clock, so that a busy machine is seen.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import stiction as st
from stiction.problems.zoo import contact_families as families

FAMILIES = {"peg16": families.peg(16, 1), "stack5": families.stack(5, 1), "grasp36": families.grasp(1)}


def timed(run):
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def main(count):
    for name, problem in FAMILIES.items():
        rng = np.random.default_rng(0)
        velocity = problem.velocity + 0.3 * rng.normal(size=(count, problem.m))
        friction = rng.uniform(0.2, 1.0, (count, problem.n))
        few = max(20, count // 50)
        ones = [problem.replace(velocity=velocity[k], friction=friction[k]) for k in range(few)]
        found = st.solve_many(problem, velocity=velocity[:few], friction=friction[:few])
        st.solve(ones[0])
        ways = {
            "solve": (few, lambda: [st.solve(one, throw=False) for one in ones]),  # noqa: B023
            "list, 1 thread": (few, lambda: st.solve_many(ones, workers=1)),  # noqa: B023
            "1 thread": (count, lambda: st.solve_many(problem, velocity=velocity, friction=friction, workers=1)),  # noqa: B023
            "2 threads": (count, lambda: st.solve_many(problem, velocity=velocity, friction=friction, workers=2)),  # noqa: B023
        }
        best = {}
        for _ in range(3):
            for way, (size, run) in ways.items():
                wall, cpu = timed(run)
                before = best.get(way, (np.inf, np.inf))
                best[way] = min(before[0], wall / size), min(before[1], cpu / size)
        found = st.solve_many(problem, velocity=velocity, friction=friction)
        print(f"{name}: {(found.status == 0).sum()} of {count} certified, {found.one_by_one} by solve")
        for way, (wall, cpu) in best.items():
            print(f"  {way:15} {1e6 * wall:8.1f} us a problem, {1e6 * cpu:8.1f} us of processor time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
