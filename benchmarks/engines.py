"""Whole scenes: ours beside MuJoCo, PyBullet and DART, which get the same bodies, friction, time step and forces.

Nothing is taken from an engine's word. Its impulses are judged by our certificate (`engine_judge.py`); positions and
velocities are read from each, and the rest follows from them: how far bodies that should rest have gone, how fast
contacts slip, what energy is lost, how deep bodies overlap (by MuJoCo's geometry, for all).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from engine_bodies import turned
from engine_judge import judged
from engine_peers import Bullet, Dart, Engine, MuJoCo, Ours
from measure import TOLERANCE, Table, duration, ratio_text
from peers import available
from steps import heap, named

import stiction as st

PATIENCE = 180.0  # seconds for an engine and a scene
SAMPLES = 50  # steps of a course that are judged, and not timed


class Course(NamedTuple):
    """A scene, seconds to settle, seconds that count."""

    make: Callable[[], tuple[Any, Any]]
    settle: float
    seconds: float


def courses(quick: bool) -> dict[str, Course]:
    if quick:
        return {"stack of 10": Course(named("block-stack", blocks=10), 0.1, 0.1)}
    return {
        "stack of 10": Course(named("block-stack", blocks=10), 1.0, 5.0),
        "mass ratio 1000": Course(named("mass-ratio", ratio=1000.0), 1.0, 5.0),
        "grasp, 36 contacts": Course(named("force-closure-grasp"), 0.5, 2.0),
        "pinched capsule": Course(named("pinched-capsule"), 0.5, 5.0),
        "heap of 40": Course(heap(40), 3.0, 2.0),
        "heap of 200": Course(heap(200), 3.0, 1.0),
    }


def scenes(quick: bool) -> list[Table]:
    return [table(name, course) for name, course in courses(quick).items()]


def table(name: str, course: Course) -> Table:
    rows, numbers = [], {}
    for who, build in engines().items():
        found = measured(course, build)
        numbers[who] = found._asdict()
        rows.append((who, *found.cells(numbers["ours"]["median"])))
    columns = (
        "engine", "a step, median", "99th percentile", "times ours", "solved", "residual", "drift [m/s]", "slip [m/s]",
        "energy [J]", "overlap [m]",
    )  # fmt: skip
    missing = [label for label, package in (("PyBullet", "pybullet"), ("DART", "dartpy")) if not available(package)]
    notes = [f"{course.settle:g} s to settle, then {course.seconds:g} s."]
    if missing:
        notes.append(f"Not installed: {', '.join(missing)}.")
    return Table(f"Engines: {name}", columns, rows, notes, numbers)


class Found(NamedTuple):
    """drift: of the body that goes furthest; slip: fastest of a bearing contact, median over steps; energy: gained."""

    median: float = np.nan
    slow: float = np.nan  # 99th percentile
    solved: float = np.nan
    residual: float = np.nan
    drift: float = np.nan
    slip: float = np.nan
    energy: float = np.nan
    overlap: float = np.nan
    failed: str = ""

    def cells(self, ours: float) -> tuple[str, ...]:
        if self.failed:
            return (duration(self.median) if np.isfinite(self.median) else "", self.failed, *[""] * 7)
        numbers = (f"{each:.0e}" for each in (self.residual, self.drift, self.slip, self.energy, self.overlap))
        times = (duration(self.median), duration(self.slow), ratio_text(self.median / ours))
        return (*times, f"{100 * self.solved:.0f} %", *numbers)


def measured(course: Course, build: Callable[..., Engine]) -> Found:
    spec, control = course.make()
    model = spec.compile()
    spent: list[float] = []
    try:
        return followed(build(model, control), course, Overlap(spec.compile()), spent)
    except TimeoutError:
        return Found(median=float(np.median(spent)), failed=f"given up after {PATIENCE:g} s")
    except st.SolveFailed as error:
        return Found(failed=f"failed: residual {error.solution.certificate.residual:.0e}")
    except Exception as error:  # a peer that cannot build or run the scene says why, and the others go on
        return Found(failed=f"failed: {type(error).__name__}: {error}"[:60])


def followed(engine: Engine, course: Course, overlap: Overlap, spent: list[float]) -> Found:
    """An engine through its course; `spent` gets the time of each step, those that settle too as long as it lasts."""
    model = overlap.model
    dt, gravity = model.opt.timestep, model.opt.gravity.copy()
    free = [b for b, part in enumerate(engine.parts) if part.kind == "free"]
    deadline = time.perf_counter() + PATIENCE

    def step() -> None:
        begin = time.perf_counter()
        if begin > deadline:
            raise TimeoutError
        engine.step()
        spent.append(time.perf_counter() - begin)

    for _ in range(round(course.settle / dt)):
        step()
    spent.clear()
    steps = round(course.seconds / dt)
    place, energy = engine.positions()[free], mechanical(engine, gravity)
    verdicts, deepest = [], 0.0
    for k in range(steps):
        if k % max(2, steps // SAMPLES):
            step()
        else:
            verdicts.append(judged(engine, gravity, dt))
            deepest = max(deepest, overlap(engine))
    residuals = np.array([verdict.residual for verdict in verdicts])
    drift = np.linalg.norm(engine.positions()[free] - place, axis=1).max() / course.seconds
    return Found(
        float(np.median(spent)), float(np.percentile(spent, 99)), float((residuals <= TOLERANCE).mean()),
        float(np.median(residuals)), float(drift), float(np.median([verdict.slip for verdict in verdicts])),
        mechanical(engine, gravity) - energy, deepest,
    )  # fmt: skip


def mechanical(engine: Engine, gravity: Any) -> float:
    """Kinetic and potential energy of the free bodies, J."""
    total = 0.0
    for part, pose, motion in zip(engine.parts, engine.poses(), engine.motion(), strict=True):
        if part.kind == "free":
            inward = pose.turn * np.array([1.0, -1.0, -1.0, -1.0])
            spin = turned(inward, motion[3:])
            total += 0.5 * part.mass * motion[:3] @ motion[:3] + 0.5 * spin @ (part.inertia * spin)
            total -= part.mass * gravity @ pose.position
    return float(total)


class Overlap:
    """The deepest overlap of an engine's state, by MuJoCo's geometry."""

    def __init__(self, model: Any) -> None:
        import mujoco

        self.mj, self.model, self.data = mujoco, model, mujoco.MjData(model)

    def __call__(self, engine: Any) -> float:
        self.data.qpos[:] = engine.qpos()
        self.mj.mj_kinematics(self.model, self.data)
        self.mj.mj_collision(self.model, self.data)
        return max(0.0, -min((self.data.contact[i].dist for i in range(self.data.ncon)), default=0.0))


def engines() -> dict[str, Callable[..., Engine]]:
    found: dict[str, Callable[..., Engine]] = {
        "ours": Ours,
        "MuJoCo, pyramids": partial(MuJoCo, cone=0),
        "MuJoCo, elliptic": partial(MuJoCo, cone=1),
        "MuJoCo, elliptic, PGS": partial(MuJoCo, cone=1, solver=0),
        "MuJoCo, elliptic, noslip 10": partial(MuJoCo, cone=1, noslip_iterations=10),
    }
    if available("pybullet"):
        found |= {
            "PyBullet, impulses": partial(Bullet, solver="SI"),
            "PyBullet, Dantzig": partial(Bullet, solver="DANTZIG"),
        }
    if available("dartpy"):
        found |= {"DART, Dantzig": Dart}
    return found
