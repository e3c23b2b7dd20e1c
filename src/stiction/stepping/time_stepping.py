"""Steps of fixed length at velocity level, impulses and all.

    M (v⁺ - v) = dt f + impulses,      gap / dt + u_n⁺ >= 0,      q⁺ = q + dt v⁺

A contact is known before it touches, and closes its gap in the step in which it arrives: nothing overlaps but by the
curvature of the motion, and what overlaps is taken back at a bounded speed. Impacts are inelastic unless a coefficient
of restitution e is given: Newton's, u_n⁺ >= -e u_n⁻ where a contact closes, or Poisson's, which gives back e times the
normal impulse of compression and solves once more.

[StewartTrinkle1996], [AnitescuPotra1997]; symplectic in free motion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.state import energy
from stiction.errors import InvalidProblem
from stiction.problems.contact import restored
from stiction.solvers.solve import solve
from stiction.stepping.engine import pose
from stiction.stepping.report import Report

if TYPE_CHECKING:
    from stiction.problems.contact import ContactProblem
    from stiction.problems.laws import Law
    from stiction.solutions.contact import ContactSolution
    from stiction.solvers.contract import Solver
    from stiction.stepping.engine import Engine


@dataclass(frozen=True)
class TimeStepping:
    """Velocity stepping with the model's timestep.

    recovery: speed, in m/s, at which overlaps and errors of joints are taken back at most
    restitution: of impacts, from 0 to 1
    impact: "newton" or "poisson"
    viscosity: in N / (m/s), of every contact, for the law `Viscous`
    tolerance: of the certificate
    warm: begin each solve from the last step's impulses
    """

    recovery: float = 0.1
    restitution: float = 0.0
    impact: str = "newton"
    viscosity: float | None = None
    tolerance: float = 1e-8
    warm: bool = True

    def __post_init__(self) -> None:
        for name, low, high in (("recovery", 0.0, math.inf), ("restitution", 0.0, 1.0), ("tolerance", 0.0, 1.0)):
            value: Any = getattr(self, name)
            if not (isinstance(value, (int, float)) and low <= value <= high):
                raise InvalidProblem(f"TimeStepping: {name} must be from {low:g} to {high:g}, got {value!r}")
        if self.impact not in ("newton", "poisson"):
            raise InvalidProblem(f"TimeStepping: impact must be 'newton' or 'poisson', got {self.impact!r}")
        if self.viscosity is not None and not (np.isfinite(self.viscosity) and self.viscosity >= 0.0):
            raise InvalidProblem(f"TimeStepping: viscosity must not be negative, got {self.viscosity!r}")

    def step(self, engine: Engine, law: Law, solver: Solver | None) -> Report:
        """One step; if its contact problem is not solved, nothing has moved and SolveFailed is raised."""
        found = engine.look()
        model, data = engine.model, engine.data
        dt = model.opt.timestep
        newton = self.restitution if self.impact == "newton" else 0.0
        before = np.append(data.qvel, np.zeros(found.free.size - model.nv)) if newton else None
        problem = pose(found, law, dt, self.recovery, newton, self.viscosity, before)
        engine.problem = problem
        start = engine.start(found) if self.warm else None
        solution = solve(problem, solver, start=start, tolerance=self.tolerance)
        if self.restitution and self.impact == "poisson":
            solution = self.expand(problem, solution, solver)
        potential, kinetic = energy(model, data)
        engine.apply(found, solution)
        engine.keep(found, solution.impulse)
        return Report(data.time, potential, kinetic, solution)

    def expand(self, problem: ContactProblem, pressed: ContactSolution, solver: Solver | None) -> ContactSolution:
        """Give back e times the normal impulse of compression, then let friction and new contacts act.

        Only impacts count: what a contact bears because it is held is no compression.
        """
        approach = problem.dense_rows()[:, 0] @ problem.velocity + problem.gap_rate
        returned = np.zeros_like(pressed.impulse)
        returned[:, 0] = np.where(approach < 0.0, self.restitution * pressed.impulse[:, 0], 0.0)
        raised = problem.respond(pressed.impulse + returned)[0]
        fields = {**vars(problem), "velocity": raised}
        fields.pop("whitened", None)
        second = solve(restored(fields), solver, tolerance=self.tolerance)
        impulse = pressed.impulse + returned + second.impulse
        return second._replace(impulse=impulse, joint_impulse=pressed.joint_impulse + second.joint_impulse)
