"""Worlds without inertia: velocities follow applied forces, and stop with them.

    M v = τ (f + contact forces),      gap / dt + u_n >= 0,      q⁺ = q + dt v

[Baraff1994, section 5], f = m v: with τ = 1 s, a newton moves a kilogram at one metre a second. Nothing is remembered
from one step to the next but positions, so that assemblies can be dragged, pushed and jammed without anything that
flies, bounces or swings. Friction is Coulomb's, and static in this sense: what is pushed less than friction holds does
not move. Problem, laws, solvers and certificate are those of `TimeStepping`; an impulse is τ times a force.

Dampers resist as forces do, (M + τ D) v = τ f. Springs act as they are at the beginning of a step, which is stable
while dt τ k / m is below two: stiff servos ask for a smaller τ.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.stages import body_forces, euler, move, sensors
from stiction.contacts.write_back import write_back
from stiction.errors import InvalidProblem
from stiction.stepping.choices import check_between, check_viscosity
from stiction.stepping.contradictions import names_of
from stiction.stepping.pose import RECOVERY, pose
from stiction.stepping.report import Report
from stiction.stepping.time_stepping import DEFAULT, FASTEST, TimeStepping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stiction.contacts.gather import Constraints
    from stiction.problems.laws import Law
    from stiction.stepping.engine import Engine


@dataclass(frozen=True)
class FirstOrder:
    """A world in which force is mass times velocity.

    time: τ in v = τ f / m, in s
    recovery: largest speed, in m/s, at which overlaps are corrected; errors of equality constraints are at once
    viscosity: of every contact, in N / (m/s), for the law `Viscous`
    tolerance: largest residual that counts as solved

    After a step `data.qvel` holds the velocities with which it moved, and `data.qacc` forces over masses, v / τ.
    """

    time: float = 1.0
    recovery: float = RECOVERY
    viscosity: float | None = None
    tolerance: float = 1e-8
    stepping: TimeStepping = field(init=False, repr=False, compare=False)  # which answers contradictions

    def __post_init__(self) -> None:
        if not (isinstance(self.time, (int, float)) and 0.0 < self.time < math.inf):
            raise InvalidProblem(f"FirstOrder: time must be above zero, in s, got {self.time!r}")
        check_between("FirstOrder", "recovery", self.recovery, math.inf)
        check_between("FirstOrder", "tolerance", self.tolerance, 1.0)
        check_viscosity("FirstOrder", self.viscosity)
        object.__setattr__(self, "stepping", TimeStepping(recovery=self.recovery, tolerance=self.tolerance))

    def step(self, engine: Engine, law: Law, solver: Any) -> Report:
        """One step of the model's timestep; if its contact problem is not solved, nothing has moved."""
        data, before = engine.data, np.array(engine.data.qvel)
        try:
            return self.moved(engine, law, DEFAULT if solver is None else solver)
        except BaseException:
            data.qvel[:] = before
            raise

    def moved(self, engine: Engine, law: Law, solver: Any) -> Report:
        data, dt = engine.data, float(engine.model.opt.timestep)
        found = self.look(engine, law)
        potential, kinetic = float(data.energy[0]), 0.0

        # The problem of this step, and its answer.
        viscosity = None if self.viscosity is None else self.viscosity * self.time / dt
        problem = engine.problem = pose(found, law, dt, self.recovery, 0.0, viscosity, None, FASTEST)
        start = engine.start(found) if solver.contract.warm else None
        solution, taken = self.stepping.answer(engine, found, problem, solver, start, doubtful=False)
        names = () if taken is None else names_of(engine.model, data, found, taken)

        # Forces and v / τ where MuJoCo keeps forces and accelerations; then motion with v.
        with timestep(engine, self.time):
            write_back(engine.memory, found, solution.velocity, solution.impulse, solution.joint_impulse)
        if engine.joined:
            body_forces(engine.shadow, data)
        if engine.senses:
            sensors(engine.shadow, data)
        pressed = np.array(data.qacc)
        data.qacc[:] = pressed * (self.time / dt)
        euler(engine.shadow, data)
        data.qacc[:] = pressed
        if taken is not None:
            move(engine.shadow, data, taken.velocity, dt)
        engine.keep(found, solution.impulse)
        return Report(data.time, potential, kinetic, solution, names)

    def look(self, engine: Engine, law: Law) -> Constraints:
        """The constraints of a step from rest, found as far away as the last velocities or present forces reach."""
        data, engine.prepared = engine.data, False
        last = np.array(data.qvel)
        engine.check_inputs()
        data.qvel[:] = 0.0
        if engine.scene.control is not None:
            engine.scene.control(engine.model, data)
        engine.compute_forces()

        # Margins were those of the last velocities. Where forces move bodies faster, contacts are looked for again.
        free = self.time * np.array(data.qacc_smooth)
        given = [np.array(each) for each in engine.shadow.margins.values()]
        if np.isfinite(free).all():
            data.qvel[:] = np.where(np.abs(free) > np.abs(last), free, last)
            engine.check_inputs()
            data.qvel[:] = 0.0
            if any((now > then).any() for now, then in zip(engine.shadow.margins.values(), given, strict=True)):
                engine.compute_forces()
        with timestep(engine, self.time):
            return engine.gather(law)


@contextmanager
def timestep(engine: Engine, seconds: float) -> Iterator[None]:
    """Another timestep for kernels: they turn forces into impulses with it, and impulses into forces."""
    kept = engine.memory.model["timestep"]
    given, kept[0] = float(kept[0]), seconds
    try:
        yield
    finally:
        kept[0] = given
