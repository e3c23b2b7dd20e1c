"""The same scene by us and by MuJoCo's own steps, read and judged alike.

A step is judged by our certificate of an engine's own impulses at its own contacts, in the motion from
which the step began. MuJoCo's smooth acceleration, its limits, equalities and dry friction are taken as it computed
them, so that contact alone is judged, and overlaps count as touching: engines are not penalised for correcting them.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.bodies.state import place_bodies
from stiction.errors import InvalidScene
from stiction.optional import mujoco
from stiction.problems.contact import ContactProblem
from stiction.solutions.certificate import certify
from stiction.solutions.contact import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stiction.bodies.scene import Scene
    from stiction.stepping.simulation import Simulation

BEARS = 1e-3  # of the largest normal impulse: a contact that bears more counts for slip
COMPILING = 2  # steps that are not timed: the first compiles, and the second, which is the first to be one call
SLIDES = 1e-6  # m/s: faster contacts are drawn as sliding, for engines that report no mode


class Setting(NamedTuple):
    """Options of MuJoCo under a name of the command line; `value` names the one that may be given after a colon."""

    words: str
    options: dict[str, float]
    value: str | None = None


SETTINGS = {
    "mujoco": Setting("MuJoCo, pyramid (default)", {"cone": 0}),
    "mujoco-elliptic": Setting("MuJoCo, elliptic", {"cone": 1}),
    "mujoco-impratio": Setting("MuJoCo, elliptic, impratio {impratio:g}", {"cone": 1, "impratio": 100.0}, "impratio"),
    "mujoco-noslip": Setting(
        "MuJoCo, elliptic, noslip {noslip_iterations:g}", {"cone": 1, "noslip_iterations": 10}, "noslip_iterations"
    ),
}


class Numbers(NamedTuple):
    """The figures of one moment.

    slip: fastest sliding of a contact that bears, m/s
    moved: how far the body that went furthest had gone when the step began, m
    residual: of our certificate
    """

    time: float
    slip: float
    moved: float
    residual: float


class Run:
    """One engine on its way through the scene: what a picture needs, and its numbers."""

    engine_words: str
    law: Any = None

    def __init__(self, scene: Scene, model: Any, data: Any) -> None:
        self.scene, self.model, self.data = scene, model, data
        self.report: Any = None
        self.steps, self.seconds = 0, 0.0
        self._moving = np.flatnonzero(np.asarray(model.body_weldid) != 0)
        self.begin()

    def begin(self) -> None:
        """From here on it counts how far bodies move."""
        place_bodies(self.model, self.data)
        self._start = np.array(self.data.xipos)[self._moving]

    @property
    def time(self) -> float:
        return float(self.data.time)

    @property
    def contacts(self) -> Any:
        raise NotImplementedError

    def step(self) -> None:
        begin = time.thread_time()
        self._step()
        self.seconds += time.thread_time() - begin if self.steps >= COMPILING else 0.0
        self.steps += 1

    def _step(self) -> None:
        raise NotImplementedError

    def moved(self) -> float:
        away = np.array(self.data.xipos)[self._moving] - self._start
        return float(np.linalg.norm(away, axis=1).max(initial=0.0))

    def numbers(self) -> Numbers:
        """The figures of the last step."""
        slip, residual = self._judged()
        return Numbers(self.time, slip, self.moved(), residual)

    def _judged(self) -> tuple[float, float]:
        raise NotImplementedError


class Ours(Run):
    """Our own steps."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation.scene, simulation.model, simulation.data)
        self.simulation, self.law = simulation, simulation.law
        self.engine, self.engine_words = simulation.engine, "stiction"

    @property
    def contacts(self) -> Any:
        return self.simulation.contacts

    def _step(self) -> None:
        self.report = self.simulation.step()

    def _judged(self) -> tuple[float, float]:
        solution = self.report.solution
        return slip_of(solution.impulse, solution.contact_velocity[:, 1:]), float(self.report.certificate.residual)


class Rival(Run):
    """MuJoCo's steps under one of its settings; the model is the scene's own, with the options it was given."""

    def __init__(self, scene: Scene, name: str, value: float | None = None) -> None:
        setting = SETTINGS[name]
        options = dict(setting.options)
        if value is not None:
            if setting.value is None:
                raise InvalidScene(f"{name} takes no value; write --with {name}")
            options[setting.value] = value
        for option, given in options.items():
            setattr(scene.model.opt, option, int(given) if option != "impratio" else float(given))
        super().__init__(scene, scene.model, scene.data())
        self.engine_words = setting.words.format(**options)
        self._before = np.zeros(scene.model.nv)

    def _step(self) -> None:
        if self.scene.control is not None:
            self.scene.control(self.model, self.data)
        self._before[:] = self.data.qvel
        mujoco().mj_step(self.model, self.data)
        if not np.isfinite(self.data.qpos).all():
            raise InvalidScene(f"{self.engine_words}: the state is no longer finite at {self.time:g} s")
        self.report = self  # there was a step

    @property
    def contacts(self) -> Any:
        """As `Simulation.contacts` has them, in arrays; of pairs that press only."""
        found = self._found()
        pressed = found.force[:, 0] > 0.0
        sliding = np.linalg.norm(self._speeds(found), axis=1) > SLIDES
        mode = np.where(pressed, np.where(sliding, Mode.SLIDE, Mode.STICK), Mode.OPEN)
        world = np.einsum("ica,ic->ia", found.frame, found.force)
        body = np.asarray(self.model.geom_bodyid)[found.geom]
        return SimpleNamespace(position=found.position, frame=found.frame, force=found.force, world_force=world,
                               torque=found.torque, body=body, geom=found.geom, mode=mode)  # fmt: skip

    def _found(self) -> Any:
        """Contacts of the step, with forces in N along their frames and rows (n, 3, nv)."""
        mj, model, data = mujoco(), self.model, self.data
        count = data.ncon
        force, torque, frame = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3, 3))
        rows, six = np.zeros((count, 3, model.nv)), np.zeros(6)
        one, two = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        for i in range(count):
            contact = data.contact[i]
            mj.mj_contactForce(model, data, i, six)
            force[i], torque[i], frame[i] = six[:3], six[3:], np.asarray(contact.frame).reshape(3, 3)
            first, second = (int(model.geom_bodyid[g]) for g in contact.geom)
            mj.mj_jac(model, data, one, None, contact.pos, first)
            mj.mj_jac(model, data, two, None, contact.pos, second)
            rows[i] = frame[i] @ (two - one)
        dims = np.array(data.contact.dim).reshape(-1)
        return SimpleNamespace(
            force=force, torque=torque, frame=frame, rows=rows, position=np.array(data.contact.pos).reshape(-1, 3),
            geom=np.array(data.contact.geom).reshape(-1, 2), gap=np.array(data.contact.dist).reshape(-1),
            friction=np.where(dims > 1, np.array(data.contact.friction).reshape(-1, 5)[:, 0], 0.0),
        )  # fmt: skip

    def _speeds(self, found: Any) -> NDArray[np.float64]:
        """(n, 2) sliding after the step."""
        return np.asarray(found.rows[:, 1:] @ np.array(self.data.qvel))

    def _judged(self) -> tuple[float, float]:
        mj, model, data, dt = mujoco(), self.model, self.data, float(self.model.opt.timestep)
        found = self._found()
        if not len(found.force):
            return 0.0, 0.0
        mass = np.zeros((model.nv, model.nv))
        mj.mj_fullM(model, data, mass)
        pushed = np.einsum("icv,ic->v", found.rows, found.force)
        others = np.linalg.solve(mass, np.array(data.qfrc_constraint) - pushed)
        free = self._before + dt * (np.array(data.qacc_smooth) + others)
        problem = ContactProblem(
            mass, free, found.rows[:, 0], found.rows[:, 1:], found.friction, gap_rate=np.maximum(found.gap, 0.0) / dt
        )
        impulse = dt * found.force
        velocity, joint_impulse = problem.respond(impulse)
        answer = SimpleNamespace(impulse=impulse, velocity=velocity, joint_impulse=joint_impulse)
        return slip_of(impulse, self._speeds(found)), float(certify(problem, answer).residual)


def slip_of(impulse: NDArray[np.float64], sliding: NDArray[np.float64]) -> float:
    """The fastest of the contacts that bear."""
    bears = impulse[:, 0] > BEARS * impulse[:, 0].max(initial=0.0)
    return float(np.linalg.norm(sliding[bears], axis=1).max(initial=0.0))


def runs_of(make: Callable[[], Scene], ours: Simulation, names: list[tuple[str, float | None]]) -> list[Run]:
    """Ours first, then MuJoCo by each setting; `make` reads the scene anew for each."""
    return [Ours(ours), *(Rival(make(), name, value) for name, value in names)]


def in_units(value: float, unit: str) -> str:
    """54 µm/s, 1.2 mm, and 3e-15 m where no prefix is known to people."""
    if value == 0.0:
        return f"0 {unit}"
    for prefix, size in (("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9)):
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.0e} {unit}"
