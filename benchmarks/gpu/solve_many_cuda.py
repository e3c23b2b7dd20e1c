"""Problems a second on a GPU: `solve_many(..., on="cuda")`, one geometry and mixed ones, all answers judged by the CPU.

    python benchmarks/gpu/solve_many_cuda.py [PROBLEMS] [OUT.json]

Three families, drawn as the zoo draws them: pegs with 16 contacts, stacks of five, grasps with 36. `kernel` is the
launch alone (normal form, solve and judge, data on the device); `call` is `solve_many`, with checks, transfers and
whatever the CPU has to finish; `streamed` is the same for packed problems of mixed geometry, without packing. Every
answer that is called solved is judged once more by the CPU.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import cuda

import stiction as st
from stiction.arrays.compiled import without_lock
from stiction.arrays.layout import cut
from stiction.arrays.vectors import THREE
from stiction.problems.joints import DEPENDENT
from stiction.problems.normal_form import Posed, whiten_posed
from stiction.problems.response import respond
from stiction.problems.zoo import contact_families as families
from stiction.problems.zoo.rigid_bodies import Touch, block, posed
from stiction.solutions.contact_laws import TRUE_CONE, judge_problem
from stiction.solvers import many_on_gpu as gpu
from stiction.solvers.solve_many import Scratches, work_views

TOLERANCE = 1e-8
BARS = {"peg16": 5.0e6, "stack5": 0.8e6, "grasp36": 0.5e6}
GEOMETRIES = 4096  # different ones of a mixed batch, each under many loads, with data of its own for each problem
SHARE = 4096  # answers judged in one call


def mixed_peg(rng, seed):
    return families.peg(16, seed, rng.uniform(0.3, 0.7), rng.uniform(1.0, 3.0), rng.uniform(0.5, 2.0))


def mixed_stack(rng, seed):
    """Five blocks of other lengths, heights and masses, pushed as in `stack`."""
    heights, touches, bodies, floor = rng.uniform(0.7, 1.3, 5), [], [], 0.0
    for b, height in enumerate(heights):
        side = rng.uniform(0.9, 1.1, 2)
        bodies.append(block((*side, height), (0.0, 0.0, floor + 0.5 * height), rng.uniform(0.5, 2.0)))
        reach = 0.5 * np.minimum(side, [0.9, 0.9])
        touches += [Touch((x * reach[0], y * reach[1], floor), (0, 0, 1), b - 1, b) for x in (-1, 1) for y in (-1, 1)]
        floor += height
    impulse = np.zeros((5, 6))
    impulse[:, 2] = [-9.81 * body.mass for body in bodies]
    impulse[-1] += 2.0 * rng.normal(size=6)
    return posed(bodies, touches, impulse, rng.uniform(0.2, 0.3, len(touches)))


def mixed_grasp(rng, seed):
    """Two boxes between grippers: other masses, and 12 contacts around faces of other sizes."""
    bodies, impulse = families.gripped(seed)
    bodies = [
        body._replace(mass=s * body.mass, inertia=s * body.inertia)
        for s, body in zip(rng.uniform(0.7, 1.3, 4), bodies, strict=True)
    ]
    steps, touches = np.linspace(-1.0, 1.0, 4)[:-1], []
    ring = [*((a, -1.0) for a in steps), *((1.0, a) for a in steps)]
    ring += [(-y, -z) for y, z in ring]
    for i in range(3):
        wide, high = rng.uniform(0.3, 0.5, 2)
        touches += [Touch((i - 1.0, wide * y, high * z), (1.0, 0.0, 0.0), i, i + 1) for y, z in ring]
    return posed(bodies, touches, impulse, np.full(36, 0.5))


FAMILIES = {
    "peg16": (lambda seed: families.peg(16, seed), mixed_peg),
    "stack5": (lambda seed: families.stack(5, seed), mixed_stack),
    "grasp36": (lambda seed: families.grasp(seed), mixed_grasp),
}


def loads(name, problem, count, rng):
    """Velocities and frictions of a family: what its function draws, for many seeds at once."""
    inverse = np.linalg.inv(problem.mass)
    bodies = len(inverse)
    push = np.zeros((count, bodies, 6))
    friction = rng.uniform(0.2, 0.3, (count, problem.n))
    if name == "peg16":
        push += rng.normal(size=push.shape)
    elif name == "stack5":
        push[:, -1] += 2.0 * rng.normal(size=(count, 6))
        push[:, :, 2] -= 9.81
    else:
        push += families.gripped(0)[1] + 0.3 * rng.normal(size=push.shape)
        friction[:] = 0.5
    return np.einsum("bij,cbj->cbi", inverse, push).reshape(count, -1), friction


@without_lock
def judge_cases(
    shapes, cases, numbers, indices, velocities, frictions, gap_rates, begin, end, floats, ints, impulse, velocity,
    residual,
):  # fmt: skip
    """Judge answers from `begin` to `end` as `solve` does."""
    for k in range(begin, end):
        g = cases[k, 0]
        n, m, j, given, entries = shapes[g, 0], shapes[g, 1], shapes[g, 3], shapes[g, 4], shapes[g, 5]
        problem = Posed(
            cut(numbers, shapes[g, 6], (entries,)),
            cut(indices, shapes[g, 10], (shapes[g, 2],)),
            cut(velocities, cases[k, 1], (m,)),
            cut(numbers, shapes[g, 7], (n, 3, given)),
            cut(indices, shapes[g, 11], (n, 4)),
            cut(frictions, cases[k, 2], (n,)),
            cut(gap_rates, cases[k, 3], (n,)),
            cut(numbers, shapes[g, 8], (j, m)),
            cut(numbers, shapes[g, 9], (j,)),
            cut(numbers, 0, (0, 3)),
        )
        own, rest = cut(floats, 0, (m,)), cut(floats, m, (len(floats) - m,))
        work = work_views(n, 3, m, j, m if j > 0 else given, entries, given, rest, ints)
        tau, rank = whiten_posed(problem, work.white, DEPENDENT, THREE, False, False)
        answer = impulse[k, :n]
        respond(problem, work.white, tau, rank, answer, work.response, own, work.joint_impulse, THREE)
        judged = judge_problem(
            TRUE_CONE, problem.friction, cut(work.floats, 0, (0, 2)), problem, work.white, work.judging,
            velocity[k, :m], answer, work.joint_impulse, work.contact_velocity, work.mode, THREE,
        )  # fmt: skip
        residual[k] = judged[0]


def judged(batch, impulse, velocity):
    """Residuals of all answers, by the CPU's judge, on all processors."""
    count = len(batch.cases)
    residual = np.full(count, np.nan)

    def run(begin):
        floats, ints = np.empty(gpu.BINS[-1]), np.empty(gpu.BINS[-1] // gpu.INTS, np.int64)
        judge_cases(*batch, begin, min(begin + SHARE, count), floats, ints, impulse, velocity, residual)

    run(0)  # compiles
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, range(0, count, SHARE)))
    return residual


def kernel_time(batch, kind, settings, n, m, repeats=3):
    """Seconds of one launch over a whole batch that is on the device, and the answers of the last."""
    lane, kernel, times = gpu.Lane(), gpu.compiled(kind), []
    answers = gpu.empty(len(batch.cases), (n, 3), m)
    for _ in range(repeats + 1):
        for name, array in batch._asdict().items():
            lane.send(name, array)
        lane.stream.synchronize()
        begin, end = cuda.event(), cuda.event()
        begin.record(lane.stream)
        there = lane.launch(kernel, batch, settings, answers)
        end.record(lane.stream)
        end.synchronize()
        times.append(1e-3 * cuda.event_elapsed_time(begin, end))
    lane.receive(there, answers)
    return min(times[1:]), answers


def kernel_times(batch, kind, n, m):
    """Seconds of both launches, the answers, and how many the first has left."""
    settings = Scratches(TOLERANCE).settings
    seconds, answers = kernel_time(batch, kind, settings._replace(steps=gpu.SHORT[kind.starts]), n, m)
    left = np.flatnonzero(answers.status != 0)
    if len(left) >= gpu.MANY:
        few = batch._replace(cases=np.ascontiguousarray(batch.cases[left]))
        more, again = kernel_time(few, kind._replace(starts=1), settings, n, m)
        gpu.put(again, left, answers)
        seconds += more
    return seconds, answers, len(left)


def one_geometry(name, problem, count, rng, told):
    velocity, friction = loads(name, problem, count, rng)
    shape = gpu.shape_of(problem)
    kind = gpu.Kind(gpu.bin_of(shape), 3, gpu.starts_of(problem))
    shapes, numbers, indices = gpu.geometries([problem], [shape])
    cases = np.zeros((count, 4), np.int64)
    cases[:, 1], cases[:, 2] = problem.m * np.arange(count), problem.n * np.arange(count)
    batch = gpu.Batch(shapes, cases, numbers, indices, velocity.reshape(-1), friction.reshape(-1), problem.gap_rate)
    seconds, answers, second = kernel_times(batch, kind, problem.n, problem.m)
    left = int((answers.status != 0).sum())
    told(name, "one geometry", "kernel", count / seconds, second_launch=second, left=left)
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        found = st.solve_many(problem, velocity=velocity, friction=friction, on="cuda", tolerance=TOLERANCE)
        best = min(best, time.perf_counter() - begin)
    told(name, "one geometry", "call", count / best, left=found.left_by_gpu, one_by_one=found.one_by_one)
    residual = judged(batch, found.impulse, found.velocity)
    solved = found.status == 0
    told(
        name, "one geometry", "judged by the CPU", None, solved=int(solved.sum()), worst=float(residual[solved].max()),
        failed=int((~(residual[solved] <= TOLERANCE)).sum()),
    )  # fmt: skip
    few = min(count, 20_000)
    st.solve_many(problem, velocity=velocity[:few], friction=friction[:few])
    begin = time.perf_counter()
    st.solve_many(problem, velocity=velocity[:few], friction=friction[:few])
    told(name, "one geometry", f"CPU, {os.cpu_count()} threads", few / (time.perf_counter() - begin))


def mixed(name, make, count, rng, told):
    distinct = [make(rng, seed + 1) for seed in range(min(GEOMETRIES, count))]
    shapes = [gpu.shape_of(problem) for problem in distinct]
    kind = gpu.Kind(gpu.bin_of(shapes[0]), 3, gpu.starts_of(distinct[0]))
    small, copies = gpu.batch_of(distinct, shapes), -(-count // len(distinct))
    batch = tiled(small, copies, count)
    n, m = distinct[0].n, distinct[0].m
    seconds, answers, second = kernel_times(batch, kind, n, m)
    left = int((answers.status != 0).sum())
    told(name, "mixed geometry", "kernel", count / seconds, second_launch=second, left=left)
    residual, solved = judged(batch, answers.impulse, answers.velocity), answers.status == 0
    told(
        name, "mixed geometry", "judged by the CPU", None, solved=int(solved.sum()),
        worst=float(residual[solved].max()), failed=int((~(residual[solved] <= TOLERANCE)).sum()),
    )  # fmt: skip

    # Packed chunks as `solve_many` streams them, each with data of its own.
    each = gpu.CHUNK_BYTES // (8 * max(len(batch.numbers) // count, 1))
    chunk = max(1, min(gpu.CHUNK, each) // len(distinct)) * len(distinct)
    chunks = -(-count // chunk)
    packed = [tiled(small, chunk // len(distinct), chunk) for _ in range(chunks)]
    after = [gpu.Answers(*(np.empty((chunk, *a.shape[1:]), a.dtype) for a in answers)) for _ in range(chunks)]
    settings = Scratches(TOLERANCE).settings
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        gpu.run(range(chunks), lambda k: (packed[k], after[k], lambda: None), kind, settings)
        best = min(best, time.perf_counter() - begin)
    left = sum(int((each.status != 0).sum()) for each in after)
    told(name, "mixed geometry", "streamed", chunks * chunk / best, left=left)
    begin = time.perf_counter()
    found = st.solve_many(distinct * 8, on="cuda")
    seconds = time.perf_counter() - begin
    told(name, "mixed geometry", "list of problems", len(distinct) * 8 / seconds, ok=found.ok, left=found.left_by_gpu)


def tiled(batch, copies, count):
    """A batch repeated, each problem with data of its own."""
    shapes = np.concatenate([
        batch.shapes + np.array([0] * 6 + [k * len(batch.numbers)] * 4 + [k * len(batch.indices)] * 2)
        for k in range(copies)
    ])[:count]  # fmt: skip
    sizes = [0, len(batch.velocities), len(batch.frictions), len(batch.gap_rates)]
    cases = np.concatenate([batch.cases + k * np.array([len(batch.shapes), *sizes[1:]]) for k in range(copies)])[:count]
    return gpu.Batch(
        np.ascontiguousarray(shapes), np.ascontiguousarray(cases), *(np.tile(a, copies) for a in batch[2:])
    )


def main(count, out):
    device = cuda.get_current_device()
    machine = {
        "gpu": str(device.name), "compute_capability": list(device.compute_capability), "cpus": os.cpu_count(),
        "processor": platform.processor() or platform.machine(), "python": platform.python_version(),
        "numpy": np.__version__, "stiction": st.__version__, "problems": count, "tolerance": TOLERANCE,
    }  # fmt: skip
    print(json.dumps(machine), flush=True)
    results = []

    def told(family, geometry, what, rate, **more):
        results.append({"family": family, "geometry": geometry, "what": what, "per_s": rate, **more})
        print(json.dumps(results[-1]), flush=True)
        if out:
            with open(out, "w") as file:  # noqa: PTH123
                json.dump({"machine": machine, "results": results}, file, indent=1)

    for name, (make, other) in FAMILIES.items():
        begin = time.perf_counter()
        kind = gpu.Kind(gpu.bin_of(gpu.shape_of(make(1))), 3, gpu.starts_of(make(1)))
        kernel = gpu.compiled(kind)
        size = next(iter(kernel.overloads.values()))
        told(
            name, "any", "compiled or loaded", None, seconds=round(time.perf_counter() - begin, 1), kind=kind,
            registers=size.regs_per_thread, local_bytes=size.local_mem_per_thread,
        )  # fmt: skip
        one_geometry(name, make(1), count, np.random.default_rng(7), told)
        mixed(name, other, count, np.random.default_rng(8), told)
    for row in results:
        if row["what"] in ("kernel", "call", "streamed"):
            bar = BARS[row["family"]] * (1.0 if row["geometry"] == "one geometry" else 0.5)
            words = f"{row['family']:8} {row['geometry']:15} {row['what']:9}"
            print(f"{words} {row['per_s'] / 1e6:7.2f} M/s, bar {bar / 1e6:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, sys.argv[2] if len(sys.argv) > 2 else None)
