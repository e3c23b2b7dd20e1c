"""Every named scene under both steppers, pushed and driven at random, for as long as one likes.

`python tests/stepping/soak.py FOLDER` makes 500,000 steps, `--steps` another number, `--scene` and `--stepper` choose.
FOLDER takes a line a minute in `soak.log`, one file of results for each scene and stepper (those that are there are not
run again: a soak that was stopped goes on), and what could not be solved: the contact problem as `stiction.load` reads
it, and the simulation just before the step, as `Simulation.restore` does. The status is 1 if something was wrong.

What must not happen: an exception other than `SolveFailed`, a number that is not finite, and energy that nobody gave.
What is counted: steps that were not solved, and runs that were wedged (three in a row, whatever the pushes).

**Energy.** Two bounds, from positions and velocities alone; M, E, T: mass matrix, energy and its kinetic part before
the step, E' and T' after it, v and v' velocities, f forces (Coriolis, gravity, springs, dampers, actuators, pushes).

Contacts and joints, under `TimeStepping`: with C = M + dt D (dampers D act implicitly) and the velocity without them,
v* = v + dt C⁻¹ f, the impulses p give v' = v* + C⁻¹ Jᵀ p, and so ½ v'ᵀ C v' = ½ v*ᵀ C v* + pᵀ J v' - ½ pᵀ J C⁻¹ Jᵀ p.
What pushes or rubs acts against J v', but for overlaps and errors of joints that are taken back, at most at the speed
`recovery`. With the forces r of all rows,

    ½ v'ᵀ C v' - ½ v*ᵀ C v*  <=  recovery dt Σ |r|  +  1e-7 (T + T*).

The last term is what a residual of 1e-8 leaves. All of the motion, under both steppers: with the work W of pushes
(force · displacement) and actuators (force · mean velocity · dt),

    E' - E - W  <=  recovery dt Σ |r|  +  dt |f| · |v' - v|  +  2 (dt ω)² (R + R')  +  servo  +  1e-7 (T + T' + |W|).

A force held constant over the step does dt f · (v + v') / 2 of work on velocities but moves positions by dt v': these
differ by dt f · (v' - v) / 2, and Coriolis forces by as much again. Turning by dt ω changes inertia and levers at
second order: (dt ω)² R, with the energy R of turning, also for gravity (2 ab <= a² + b² puts half of that into the term
before). A servo's force changes by kp dt |v| + kd |v' - v| meanwhile, at speed |v|.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import traceback
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import stiction as st
from stiction.scenes import SCENES

STEPPERS = {"time-stepping": st.TimeStepping, "event-driven": st.EventDriven}
PARAMETERS = {"log-heap": {"logs": 12}}
NOT_TAKEN = {("conveyor", "event-driven"), ("rolling-balls", "event-driven")}  # moving surfaces, rolling friction
LONGEST, SHORTEST = 80, 10  # steps that one push lasts
FAR = 20.0  # m: what has been pushed out of sight is reset
SPUN = 0.5  # rad a step: so is what spins faster; gyroscopic forces, explicit as MuJoCo's, gain energy beyond that
WEDGED = 3  # failures in a row
KEPT = 10  # dumps of a run


@dataclass
class Result:
    """What came of one scene under one stepper."""

    scene: str
    stepper: str
    seed: int
    steps: int = 0
    seconds: float = 0.0  # of the processor
    slowest: float = 0.0  # s, of one step
    residual: float = 0.0  # the worst
    energy: float = 0.0  # the largest share of the energy allowed that was gained
    unsolved: list[int] = field(default_factory=list)  # steps
    wedged: int = 0
    resets: int = 0
    faults: list[str] = field(default_factory=list)  # what must not happen
    dumps: list[str] = field(default_factory=list)

    def line(self) -> str:
        rate = self.steps / self.seconds if self.seconds else 0.0
        return (
            f"{self.scene:22s} {self.stepper:14s} {self.steps:7d} steps {rate:8.0f}/s, slowest {self.slowest:7.3f} s, "
            f"residual {self.residual:.1e}, energy {self.energy:5.2f}, unsolved {len(self.unsolved)}, "
            f"wedged {self.wedged}, resets {self.resets}, faults {len(self.faults)}"
        )


class Pusher:
    """Forces, torques and controls at random, each for some steps; the scene's own control goes on."""

    def __init__(self, scene: st.Scene, rng: np.random.Generator, strength: float) -> None:
        self.own, self.rng, self.left = scene.control, rng, 0
        model = scene.model
        self.bodies = [b for b in range(1, model.nbody) if model.body_weldid[b] != 0]
        self.weight = strength * np.linalg.norm(model.opt.gravity) * model.body_subtreemass
        self.noise = np.zeros(model.nu)
        self.force = np.zeros((model.nbody, 6))

    def choose(self, model: Any) -> None:
        """Nothing at all for two pushes of five; one of fifty is a blow of twenty times the weight."""
        rng = self.rng
        self.force[:] = 0.0
        self.noise[:] = 0.0
        self.left = int(rng.integers(SHORTEST, LONGEST))
        kind = rng.random()
        if kind < 0.4 or not self.bodies:
            return
        body = self.bodies[rng.integers(len(self.bodies))]
        size = self.weight[body] * (20.0 if kind > 0.98 else 1.5 * rng.random())
        self.left = 2 if kind > 0.98 else self.left
        direction = rng.normal(size=3)
        self.force[body, :3] = size * direction / np.linalg.norm(direction)
        if rng.random() < 0.3:
            self.force[body, 3:] = 0.02 * size * rng.normal(size=3)
        if rng.random() < 0.5:
            self.noise = 0.2 * rng.normal(size=model.nu)

    def __call__(self, model: Any, data: Any) -> None:
        if self.own is not None:
            self.own(model, data)
        data.ctrl[:] += self.noise * (np.abs(data.ctrl) + (self.own is None))
        data.xfrc_applied[:] = self.force

    def go_on(self, model: Any) -> None:
        self.left -= 1
        if self.left <= 0:
            self.choose(model)


class Ledger:
    """Energy before and after a step, and what it may have gained; from the state alone."""

    def __init__(self, model: Any, stepper: Any) -> None:
        self.model = copy.copy(model)
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        self.model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        self.before, self.after = mujoco.MjData(self.model), mujoco.MjData(self.model)
        self.in_one = isinstance(stepper, st.TimeStepping)
        self.recovery = stepper.recoveries[0] if self.in_one else stepper.recovery
        turning = [
            model.jnt_dofadr[j] + k
            for j in range(model.njnt)
            for k in {0: (3, 4, 5), 1: (0, 1, 2), 3: (0,)}.get(int(model.jnt_type[j]), ())
        ]
        self.turning = np.array(turning, int)
        self.kp, self.kd = np.zeros(model.nv), np.zeros(model.nv)
        for i in range(model.nu):
            dof = model.jnt_dofadr[model.actuator_trnid[i, 0]]
            gear = model.actuator_gear[i, 0]
            self.kp[dof] += abs(model.actuator_biasprm[i, 1]) * gear**2
            self.kd[dof] += abs(model.actuator_biasprm[i, 2]) * gear**2

    def read(self, into: Any, data: Any) -> None:
        into.qpos[:], into.qvel[:], into.ctrl[:], into.time = data.qpos, data.qvel, data.ctrl, data.time
        into.xfrc_applied[:] = data.xfrc_applied
        if self.model.na:
            into.act[:] = data.act
        mujoco.mj_forward(self.model, into)

    def open(self, data: Any) -> None:
        self.read(self.before, data)

    def share(self, data: Any) -> float:
        """Energy gained in the step without work, over what is allowed."""
        old, new, model = self.before, self.after, self.model
        self.read(new, data)
        dt = model.opt.timestep
        mass = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, old, mass)
        v, change = np.abs(old.qvel) + np.abs(new.qvel), np.abs(new.qvel - old.qvel)
        work = float(dt * old.qfrc_actuator @ (old.qvel + new.qvel) / 2.0)
        pushed = np.zeros(model.nv)
        for body in np.flatnonzero(old.xfrc_applied.any(axis=1)):
            force, torque = old.xfrc_applied[body, :3], old.xfrc_applied[body, 3:]
            mujoco.mj_applyFT(model, old, force, torque, old.xipos[body], body, pushed)
            turn = np.zeros(3)
            mujoco.mju_subQuat(turn, new.xquat[body], old.xquat[body])  # in the body's axes
            work += float(force @ (new.xipos[body] - old.xipos[body]) + torque @ old.xmat[body].reshape(3, 3) @ turn)
        f = np.abs(old.qfrc_bias) + np.abs(old.qfrc_passive) + np.abs(old.qfrc_actuator) + np.abs(pushed)
        kinetic = old.energy[1] + new.energy[1]
        omega = v[self.turning].max(initial=0.0)
        turning = mass[np.ix_(self.turning, self.turning)]
        spin = sum(float(each.qvel[self.turning] @ turning @ each.qvel[self.turning]) / 2.0 for each in (old, new))
        servo = float(dt * (self.kp * dt * v + self.kd * change) @ v)
        rows = float(np.abs(data.efc_force).sum()) if data.nefc else 0.0
        allowed = (
            self.recovery * dt * rows
            + dt * float(f @ change)
            + 2.0 * (dt * omega) ** 2 * spin
            + servo
            + 1e-7 * (kinetic + abs(work))
            + 1e-12 * (abs(old.energy[0]) + abs(new.energy[0]))
        )
        gained = float(new.energy.sum() - old.energy.sum() - work)
        return max(gained / allowed if gained > 0.0 else 0.0, self.share_of_rows(mass, rows) if self.in_one else 0.0)

    def share_of_rows(self, mass: Any, rows: float) -> float:
        """The same of what contacts and joints have done."""
        old, new, dt = self.before, self.after, self.model.opt.timestep
        effective = mass + dt * np.diag(self.model.dof_damping + self.kd)
        force = mass @ old.qacc_smooth
        free = old.qvel + dt * np.linalg.solve(effective, force)
        without, after = (float(each @ effective @ each) / 2.0 for each in (free, new.qvel))
        allowed = self.recovery * dt * rows + 1e-7 * (old.energy[1] + without) + 1e-15
        return max(after - without, 0.0) / allowed


def soak(
    name: str, stepper: str, steps: int, seed: int, folder: Path | None = None, watch: Any = None, strength: float = 1.0
) -> Result:
    """One scene under one stepper. The same arguments give the same steps."""
    result = Result(name, stepper, seed)
    rng = np.random.default_rng([seed, zlib.crc32(f"{name} {stepper}".encode())])
    scene = st.Scene.named(name, **PARAMETERS.get(name, {}))
    pusher = Pusher(scene, rng, strength)
    made = STEPPERS[stepper]()
    ledger = Ledger(scene.model, made)

    def control(model: Any, data: Any) -> None:
        pusher(model, data)
        ledger.open(data)

    sim = st.Simulation(st.Scene(scene.model, control=control, margin=scene.margin, ignore=scene.ignore), stepper=made)
    begun, failed = time.process_time(), 0
    for step in range(steps):
        pusher.go_on(sim.model)
        clock = time.process_time()
        try:
            report = sim.step()
        except st.SolveFailed:
            result.unsolved.append(step)
            keep(sim, result, folder, f"{name}-{stepper}-{seed}-{step}")
            failed += 1
            pusher.left = 0  # perhaps another push can be solved
            if failed == WEDGED:
                result.wedged += 1
                start_again(sim, result)
                failed = 0
            continue
        except Exception:
            result.faults.append(f"step {step}: {traceback.format_exc(limit=-3)}")
            keep(sim, result, folder, f"{name}-{stepper}-{seed}-{step}-fault")
            start_again(sim, result)
            continue
        finally:
            result.steps += 1
            result.slowest = max(result.slowest, time.process_time() - clock)
        failed = 0
        data = sim.data
        if not (np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()):
            result.faults.append(f"step {step}: not finite")
            start_again(sim, result)
            continue
        share = ledger.share(data)
        if not share <= 1.0:
            result.faults.append(f"step {step}: {share:.3g} times the energy that may be gained")
        result.energy = max(result.energy, share)
        result.residual = max(result.residual, report.certificate.residual)
        spins = sim.model.opt.timestep * np.abs(data.qvel[ledger.turning]).max(initial=0.0)
        if np.abs(data.xpos).max() > FAR or spins > SPUN:
            start_again(sim, result)
        if watch is not None:
            watch(result)
    result.seconds = time.process_time() - begun
    return result


def start_again(sim: st.Simulation, result: Result) -> None:
    sim.reset()
    result.resets += 1


def keep(sim: st.Simulation, result: Result, folder: Path | None, title: str) -> None:
    """The problem and the simulation just before the step, which has moved nothing."""
    if folder is None or len(result.dumps) >= KEPT:
        return
    try:
        sim.dump(folder / f"{title}.problem.npz")
        sim.save(folder / f"{title}.simulation.npz")
        result.dumps.append(title)
    except Exception as error:
        result.dumps.append(f"{title}: not kept ({type(error).__name__}: {error})")


# Processor time of a step, in ms and roughly, with its ledger; scenes that are not here cost what is in OTHERWISE.
COST = {
    ("log-heap", "time-stepping"): 13.0,
    ("log-heap", "event-driven"): 150.0,
    ("card-house", "time-stepping"): 4.0,
    ("card-house", "event-driven"): 200.0,
    ("block-feeder", "time-stepping"): 2.0,
    ("block-feeder", "event-driven"): 25.0,
    ("double-action-jack", "event-driven"): 8.0,
    ("dominoes", "event-driven"): 25.0,
    ("block-stack", "event-driven"): 9.0,
    ("quadruped", "event-driven"): 9.0,
}
OTHERWISE = {"time-stepping": 0.7, "event-driven": 4.0}


def plan(steps: int, scenes: Any = tuple(SCENES), steppers: Any = tuple(STEPPERS)) -> dict[tuple[str, str], int]:
    """Steps of each scene and stepper, that add up to so many: fewer of those that cost more, by the square root."""
    runs = [(name, stepper) for name in scenes for stepper in steppers if (name, stepper) not in NOT_TAKEN]
    share = np.array([COST.get(run, OTHERWISE[run[1]]) ** -0.5 for run in runs])
    counts = np.floor(steps * share / share.sum()).astype(int)
    counts[: steps - counts.sum()] += 1
    return dict(zip(runs, counts.tolist(), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="takes results, a log, and what was not solved")
    parser.add_argument("--steps", type=int, default=500_000, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strength", type=float, default=1.0, help="of pushes: 1 is up to one and a half weights")
    parser.add_argument("--scene", action="append", choices=list(SCENES), help="one of them; all if none is named")
    parser.add_argument("--stepper", action="append", choices=list(STEPPERS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    results = []
    with (options.folder / "soak.log").open("a", encoding="utf-8", buffering=1) as log:

        def say(text: str) -> None:
            log.write(text + "\n")
            print(text, flush=True)

        last = time.monotonic()

        def watch(result: Result) -> None:
            nonlocal last
            if time.monotonic() - last > 60.0:
                last = time.monotonic()
                say(f"  {result.scene}, {result.stepper}: step {result.steps}, unsolved {len(result.unsolved)}")

        for (name, stepper), steps in plan(options.steps, options.scene or SCENES, options.stepper or STEPPERS).items():
            path = options.folder / f"{name}-{stepper}-{options.seed}-{options.strength:g}-{steps}.json"
            if path.exists():
                result = Result(**json.loads(path.read_text(encoding="utf-8")))
            else:
                result = soak(name, stepper, steps, options.seed, options.folder, watch, options.strength)
                path.write_text(json.dumps(asdict(result), indent=1), encoding="utf-8")
            results.append(result)
            say(result.line())
            for fault in result.faults[:3]:
                say("  " + fault.replace("\n", "\n  "))
        total = sum(each.steps for each in results)
        unsolved, wedged = sum(len(each.unsolved) for each in results), sum(each.wedged for each in results)
        faults = sum(len(each.faults) for each in results)
        say(f"{total} steps: {unsolved} not solved, {wedged} times wedged, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
