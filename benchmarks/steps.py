"""Whole steps against `mujoco.mj_step`, on the same scenes with the same time step, the same control and in turn.

MuJoCo runs with Newton's method: as it comes (pyramids), and with the elliptic cone, which is our law. Its forces are
judged by our certificate, in its own state: contacts are those that it has found (no margin), an overlap counts as
touching (a soft contact does not take it back, and need not), its forces times dt are the impulses, and its velocities
after the step are the answer. What is left is creep, pull and friction that is too small or too large.

`python benchmarks/steps.py` prints the tables, `--quick` shows that it runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from measure import Aim, Answer, Table, at_most, duration, ratio_text

import stiction as st

BLOCK = 10  # steps that are timed together
PYRAMIDS, CONE = "mj_step", "mj_step, elliptic cone"


class Contest(NamedTuple):
    """A scene: what makes its specification, its control, and how long it settles, in s."""

    make: Callable[[], tuple[Any, Any]]
    settle: float
    most: float | None  # times the time of mj_step that we aim at


def named(name: str, **parameters: Any) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        try:
            from stiction.scenes import SCENES
        except ImportError:  # an older version, beside which `against` times this one
            from stiction.bodies.named import SCENES

        made = SCENES[name](**parameters)
        return made.spec, made.control

    return make


def contests(quick: bool) -> dict[str, Contest]:
    found = {
        "box": Contest(named("box-on-plane"), 0.2, 3.0),
        "stack of 10": Contest(named("block-stack", blocks=10), 0.2, 3.0),
        "humanoid": Contest(humanoid, 2.0, 3.0),
        "quadruped, walking": Contest(named("quadruped"), 0.5, 3.0),
    }
    for bodies, most in ((12, None),) if quick else ((40, 5.0), (100, 5.0), (200, None)):
        found[f"heap of {bodies}"] = Contest(heap(bodies), 3.0, most)
    return found


def against_mujoco(quick: bool) -> list[Table]:
    blocks = 5 if quick else 40
    rows, aims, numbers = [], [], {}
    for name, contest in contests(quick).items():
        seconds, contacts, ours, theirs = race(contest, blocks)
        ratio = {who: float(np.median(seconds["ours"] / seconds[who])) for who in (PYRAMIDS, CONE)}
        rows.append((
            name, str(contacts), *(duration(float(np.median(seconds[who]))) for who in ("ours", PYRAMIDS, CONE)),
            ratio_text(ratio[PYRAMIDS]), ratio_text(ratio[CONE]), f"{ours:.0e}", *(f"{r:.0e}" for r in theirs),
        ))  # fmt: skip
        numbers[name] = {who: each.tolist() for who, each in seconds.items()}
        what = f"{name}: a step over {PYRAMIDS}"
        found = ratio[PYRAMIDS]
        aims.append(Aim(what, "", found, True) if contest.most is None else at_most(what, contest.most, found))
    columns = (
        "scene", "contacts", "ours", PYRAMIDS, CONE, f"ours / {PYRAMIDS}", "ours / elliptic",
        "residual, ours", f"residual, {PYRAMIDS}", "residual, elliptic",
    )  # fmt: skip
    notes = [
        f"Medians of blocks of {BLOCK} steps in turn. Residuals: ours the worst of all steps; MuJoCo's the median over "
        "steps, its forces in its own state, an overlap counted as touching."
    ]
    return [Table("A step against MuJoCo's, Newton's method", columns, rows, notes, {"seconds": numbers}, aims)]


def race(contest: Contest, blocks: int) -> tuple[dict[str, Any], int, float, list[float]]:
    """Seconds a step of each, our contacts, our worst residual, and MuJoCo's typical ones."""
    import mujoco

    rivals = {name: Rival(*contest.make(), cone) for name, cone in ((PYRAMIDS, 0), (CONE, 1))}
    for rival in rivals.values():
        rival.run(round(contest.settle / rival.model.opt.timestep))
    spec, control = contest.make()
    model = spec.compile()
    data = mujoco.MjData(model)
    begin = rivals[CONE].state()
    mujoco.mj_setState(model, data, begin, mujoco.mjtState.mjSTATE_INTEGRATION)
    worst = 0.0

    def ours(steps: int) -> None:
        nonlocal worst
        for _ in range(steps):
            if control is not None:
                control(model, data)
            worst = max(worst, st.step(model, data).certificate.residual)

    ours(round(0.5 / model.opt.timestep))  # compiles, and takes back the overlaps of soft contact
    contestants = {"ours": ours} | {name: rival.run for name, rival in rivals.items()}
    seconds = {name: np.empty(blocks) for name in contestants}
    for k in range(blocks):
        for name, run in contestants.items():
            start = time.perf_counter()
            run(BLOCK)
            seconds[name][k] = (time.perf_counter() - start) / BLOCK
    return seconds, int(data.ncon), worst, [rival.judged(contest.make(), BLOCK) for rival in rivals.values()]


class Rival:
    """A scene that MuJoCo steps."""

    def __init__(self, spec: Any, control: Any, cone: int, **options: Any) -> None:
        import mujoco

        self.mj, self.control = mujoco, control
        self.model = spec.compile()
        self.model.opt.cone = cone
        for name, value in options.items():
            setattr(self.model.opt, name, value)
        self.data = mujoco.MjData(self.model)
        start = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_KEY, "start")
        if start >= 0:
            mujoco.mj_resetDataKeyframe(self.model, self.data, start)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if self.control is not None:
                self.control(self.model, self.data)
            self.mj.mj_step(self.model, self.data)

    def state(self) -> Any:
        kind = self.mj.mjtState.mjSTATE_INTEGRATION
        vector = np.empty(self.mj.mj_stateSize(self.model, kind))
        self.mj.mj_getState(self.model, self.data, vector, kind)
        return vector

    def judged(self, made: tuple[Any, Any], steps: int) -> float:
        """The median residual of so many steps. Forces at contacts that we drop as superfluous count as given."""
        from stiction.contacts.gather import CONTACT
        from stiction.stepping.engine import Engine
        from stiction.stepping.pose import pose

        spec, control = made
        scene = st.Scene(spec.compile(), control=control, margin=0.0)
        engine = Engine(scene, scene.data())
        residuals, force, dt = [], np.zeros(6), self.model.opt.timestep
        for _ in range(steps):
            self.mj.mj_setState(scene.model, engine.data, self.state(), self.mj.mjtState.mjSTATE_INTEGRATION)
            engine.look()
            found = engine.gather()
            problem = pose(found, st.Coulomb(), dt, recovery=0.0)
            self.run(1)
            impulse = np.zeros((problem.n, 3))
            for i in range(problem.n):
                if found.kind[i] == CONTACT:
                    self.mj.mj_contactForce(self.model, self.data, int(found.source[i]), force)
                    impulse[i] = dt * force[:3]
                else:
                    impulse[i, 0] = dt * self.limit_force(int(found.source[i]))
            after = self.data.qvel.copy()
            if np.count_nonzero(found.kind == CONTACT) < self.data.ncon:
                problem = problem.replace(velocity=after - (problem.respond(impulse)[0] - problem.velocity))
            answer = Answer(impulse, after, np.zeros(len(problem.joints)))
            residuals.append(st.certify(problem, answer).residual)
        return float(np.median(residuals))

    def limit_force(self, joint: int) -> float:
        limits = self.data.efc_type == self.mj.mjtConstraint.mjCNSTR_LIMIT_JOINT
        return float(self.data.efc_force[limits & (self.data.efc_id == joint)].sum())


def pinched(quick: bool) -> list[Table]:
    """A capsule held by two pads (mujoco issue 3328): how fast it sinks, and what that costs."""
    seconds = 0.5 if quick else 10.0
    options: dict[str, dict[str, Any]] = {
        "mj_step as it comes": {"cone": 0},
        "mj_step, elliptic cone, impratio 10": {"cone": 1, "impratio": 10.0},
        "mj_step, elliptic cone, impratio 100": {"cone": 1, "impratio": 100.0},
        "mj_step, elliptic cone, impratio 10, noslip 10": {"cone": 1, "impratio": 10.0, "noslip_iterations": 10},
    }
    make = named("pinched-capsule")
    sim = st.Simulation(st.Scene.named("pinched-capsule"))
    runs: dict[str, tuple[Any, Callable[[int], None]]] = {"ours, as it comes": (sim.data, lambda n: several(sim, n))}
    for name, chosen in options.items():
        rival = Rival(*make(), **chosen)
        runs[name] = (rival.data, rival.run)
    steps = round(seconds / sim.model.opt.timestep)
    for _, run in runs.values():
        run(250)
    begin = {name: data.body("capsule").xpos.copy() for name, (data, _) in runs.items()}
    spent = {name: np.empty(steps // BLOCK) for name in runs}
    for k in range(steps // BLOCK):
        for name, (_, run) in runs.items():
            start = time.process_time()
            run(BLOCK)
            spent[name][k] = (time.process_time() - start) / BLOCK
    rows, aims = [], []
    for name, (data, _) in runs.items():
        creep = 1e6 * float(np.linalg.norm(data.body("capsule").xpos - begin[name])) / seconds
        rows.append((name, f"{creep:.2g}", duration(float(np.mean(spent[name])))))
        if name.startswith("ours"):
            aims.append(at_most("pinched capsule: creep in µm/s", 1e-6, creep))
    title = f"A pinched capsule, {seconds:g} s: creep, and time of a step"
    notes = ["45 g between pads that push with 10 N each, 31 times what friction needs."]
    return [Table(title, ("engine", "creep [µm/s]", "CPU a step"), rows, notes, aims=aims)]


def several(sim: st.Simulation, steps: int) -> None:
    for _ in range(steps):
        sim.step()


def parts(quick: bool) -> list[Table]:
    """What a step is made of: MuJoCo's stages, our kernel, and what Python adds to both."""
    columns = ("scene", "step", "MuJoCo's stages", "our kernel", "Python", "Newton steps")
    rows, most = [], 0.0
    for name, contest in list(contests(True).items())[:4]:
        step, stages, kernel, newton = parts_of(contest, 100 if quick else 2000)
        rest = step - stages - kernel
        most = max(most, rest)
        rows.append((name, *(duration(each) for each in (step, stages, kernel, rest)), str(newton)))
    notes = [
        "Medians of the same step again and again, without control; a kernel's time is that of its call, less that of "
        "a call that returns at once."
    ]
    aim = at_most("Python's part of a step, in µs", 20.0, 1e6 * most)
    return [Table("What a step is made of", columns, rows, notes, aims=[aim])]


def parts_of(contest: Contest, repeats: int) -> tuple[float, float, float, int]:
    """Seconds of a step, of MuJoCo's stages and of our kernel, and the steps of Newton's method."""
    from stiction.bodies.stages import advance, smooth
    from stiction.bodies.state import set_state, state
    from stiction.contacts.margins import margins

    spec, control = contest.make()
    sim = st.Simulation(st.Scene(spec.compile(), control=control))
    several(sim, round((contest.settle + 0.5) / sim.model.opt.timestep))
    engine, model, data = sim.engine, sim.model, sim.data
    engine.scene = st.Scene.of(model)  # no control from here on
    kernel = engine.fused
    taken: list[Any] = []
    begin, before = state(model, data), engine.last
    engine.fused = lambda *given: taken.append(given) or kernel(*given)
    try:
        newton = sim.step().solution.iterations
    finally:
        engine.fused = kernel
    given = taken[-1]
    refused = (*given[:7], given[7][:0], *given[8:])  # without room it returns at once

    def stages() -> None:
        smooth(engine.shadow, data, engine.mended, engine.acts)
        advance(engine.shadow, data, engine.senses, engine.joined)

    def ready() -> None:
        set_state(model, data, begin)
        margins(engine.memory, engine.scratch, engine.scene.margin)
        engine.last = before  # its start is that of the step before

    def posed() -> None:
        set_state(model, data, begin)
        engine.refresh()

    actions: tuple[tuple[Callable[[], None], Callable[[], Any]], ...] = (
        (ready, sim.step),
        (ready, stages),
        (posed, lambda: kernel(*given)),
        (posed, lambda: kernel(*refused)),
    )
    seconds = np.empty((len(actions), repeats))
    for k in range(repeats):
        for i, (prepare, action) in enumerate(actions):
            prepare()
            start = time.perf_counter()
            action()
            seconds[i, k] = time.perf_counter() - start
    step, bare, called, in_vain = np.median(seconds, axis=1)
    return float(step), float(bare), float(called - in_vain), newton


# Scenes that are not named


def heap(bodies: int) -> Callable[[], tuple[Any, Any]]:
    """Boxes and capsules in a bin, in layers that fall by a few mm."""

    def make() -> tuple[Any, Any]:
        import mujoco

        rng = np.random.default_rng(bodies)
        wide = round((bodies / 3) ** 0.5)  # three layers
        pitch, edge = 0.24, 0.1
        text = []
        for k in range(bodies):
            layer, place = divmod(k, wide * wide)
            x, y = (pitch * (each - 0.5 * (wide - 1)) for each in divmod(place, wide))
            turn, z = rng.uniform(0.0, 0.2), 0.11 + 0.23 * layer
            shape = f'type="box" size="{edge} {edge} {0.8 * edge}"' if k % 2 else 'type="capsule" size="0.08 0.03"'
            text.append(
                f'<body pos="{x} {y} {z}" euler="0 0 {turn}"><freejoint/><geom {shape} mass="1" friction="0.5"/></body>'
            )
        half = 0.5 * pitch * wide + 0.01
        walls = "".join(
            f'<geom type="plane" size="5 5 1" pos="{-half * x} {-half * y} 0" zaxis="{x} {y} 0"/>'
            for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
        )
        return mujoco.MjSpec.from_string(
            '<mujoco><compiler angle="radian"/><option timestep="0.005"/><worldbody>'
            f'<geom type="plane" size="5 5 1"/>{walls}{"".join(text)}</worldbody></mujoco>'
        ), None

    return make


def humanoid() -> tuple[Any, Any]:
    """Twenty-one hinges with damping and limits; it falls, and lies."""
    import mujoco

    def leg(side: int) -> str:
        return f"""
        <body pos="0 {0.1 * side} -0.1"><joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.35" size="0.06" mass="5"/>
          <body pos="0 0 -0.4"><joint axis="0 1 0" range="0 2.5"/>
            <geom type="capsule" fromto="0 0 0 0 0 -0.33" size="0.045" mass="3"/>
            <body pos="0 0 -0.38"><joint axis="0 1 0"/><joint axis="1 0 0"/>
              <geom type="capsule" fromto="-0.05 0 0 0.14 0 0" size="0.03" mass="1"/></body></body></body>"""

    def arm(side: int) -> str:
        return f"""
        <body pos="0 {0.2 * side} 0.15"><joint axis="1 0 0"/><joint axis="0 1 0"/>
          <geom type="capsule" fromto="0 {0.05 * side} 0 0 {0.05 * side} -0.25" size="0.035" mass="2"/>
          <body pos="0 {0.05 * side} -0.28"><joint axis="0 1 0" range="-2 0"/>
            <geom type="capsule" fromto="0 0 0 0 0 -0.22" size="0.03" mass="1.5"/></body></body>"""

    text = f"""
    <mujoco><compiler angle="radian"/><option timestep="0.005"/>
      <default><joint damping="2" armature="0.01" range="-0.7 0.7"/><geom friction="0.7" condim="3"/></default>
      <worldbody><geom type="plane" size="5 5 1"/>
      <body pos="0 0 1.25"><freejoint/><geom type="capsule" fromto="0 0 -0.1 0 0 0.15" size="0.1" mass="15"/>
        <body pos="0 0 0.35"><joint axis="0 1 0"/><geom size="0.1" mass="5"/></body>
        <body pos="0 0 -0.25"><joint axis="0 0 1"/><joint axis="0 1 0"/><geom size="0.09" mass="8"/>
          {leg(-1)}{leg(1)}</body>
        {arm(-1)}{arm(1)}
      </body></worldbody></mujoco>"""
    return mujoco.MjSpec.from_string(text), None


def tables(quick: bool) -> list[Table]:
    return [*against_mujoco(quick), *pinched(quick), *parts(quick)]


if __name__ == "__main__":
    from run import prepare_environment

    prepare_environment()
    for table in tables("--quick" in sys.argv):
        print(table.text(), *(f"{aim.what}: {aim.wanted}, measured {aim.measured:.3g}" for aim in table.aims), sep="\n")
