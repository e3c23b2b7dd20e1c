"""Steps of fixed length at velocity level, impulses and all.

    M (v⁺ - v) = dt f + impulses,      gap / dt + u_n⁺ >= 0,      q⁺ = q + dt v⁺

A contact is known before it touches, and closes its gap in the step in which it arrives: nothing overlaps but by the
curvature of the motion, and what overlaps is taken back at a bounded speed; gaps of the size of rounding count as
closed (`pose.set_rates`). Impacts are inelastic unless a coefficient of restitution e is given: Newton's,
u_n⁺ >= -e u_n⁻ where a contact hits, or Poisson's, which stops it, gives back e times the normal impulse that this
took, and solves once more.

[StewartTrinkle1996], [AnitescuPotra1997]; symplectic in free motion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.stages import advance, move
from stiction.errors import InvalidProblem, SolveFailed
from stiction.problems.laws import Coulomb
from stiction.solutions.contact import certify_contact
from stiction.solvers.auto import Auto, Bounded
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.cone_newton.tolerances import MANY
from stiction.solvers.solve import solve
from stiction.stepping.contradictions import TakenBack, asks, contradict, names_of, still, take_back
from stiction.stepping.crew import crew_for
from stiction.stepping.fused import (
    AMPLIFIED,
    APART,
    OFTEN,
    SELDOM,
    Fused,
    Settings,
    allowance,
    fused_step,
    leaves_positions,
)
from stiction.stepping.one_call import one_call_of
from stiction.stepping.pose import RECOVERY, impact_velocity, pose
from stiction.stepping.report import Report
from stiction.stepping.restitution import Given, checked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints
    from stiction.problems.contact import ContactProblem
    from stiction.problems.laws import Law
    from stiction.solutions.contact import ContactSolution
    from stiction.solvers.contract import Solver
    from stiction.stepping.engine import Engine
    from stiction.stepping.record import Step

CONE = Coulomb()
NOTHING = np.zeros(0)
DEFAULT = Auto()
SHARES = 0.25, 0.5  # of what attempts may take: those with all taken back, each of two, and those with nothing
SLOWER = (0.5, 0.05)  # parts of the speed at which overlaps are corrected, of large islands that are not solved
FASTEST = 1e10  # m/s: an infinite recovery takes errors back within a step


@dataclass(frozen=True)
class TimeStepping:
    """Velocity stepping with the model's timestep.

    recovery: largest speed, in m/s, at which overlaps and errors of equality constraints are corrected; None for 0.1
        m/s where things overlap, and for constraints the speed that the model's solref asks for, if that is larger
    restitution: coefficient of all impacts, from 0 to 1, or by geoms: {"ball": 0.8, ("ball", "floor"): 0.6}
    impact: "newton" (e times the approach speed) or "poisson" (e times the impulse that stopped it)
    viscosity: of every contact, in N / (m/s), for the law `Viscous`
    tolerance: largest residual that counts as solved
    warm: start each solve from the last step's impulses
    workers: threads that solve the islands of a large step, to the same bits; what is one island takes one
    lift: whether contacts that slide slowly may lift as they slide where a step cannot be solved otherwise, in islands
        of more than 20, four of the same two bodies at most: gaps then open by some µm, and `report.lift` and the trace
        say so; False for Coulomb's law as it is, at any cost
    on_failure: what a step does whose contact problem is not solved: "raise" SolveFailed, nothing having moved, or go
        on with the "best" answer that adds no energy; `report.ok` is False then, and the certificate says how far off

    Overlaps and errors of joints that contradict each other make no step fail, nor do those that no solver takes back:
    velocities then obey the laws with nothing taken back, which is what the certificate is about; positions are put
    right apart from them as far as that agrees. `report.contradictions` names what is left, the trace tells of it.
    """

    recovery: float | None = None
    restitution: Given = 0.0
    impact: str = "newton"
    viscosity: float | None = None
    tolerance: float = 1e-8
    warm: bool = True
    on_failure: str = "raise"
    workers: int = 1
    lift: bool = True
    settings: Settings = field(init=False, repr=False, compare=False)  # of fused steps

    def __post_init__(self) -> None:
        for name, low, high in (("recovery", 0.0, math.inf), ("tolerance", 0.0, 1.0)):
            value: Any = getattr(self, name)
            if name == "recovery" and value is None:
                continue
            if not (isinstance(value, (int, float)) and low <= value <= high):
                raise InvalidProblem(f"TimeStepping: {name} must be from {low:g} to {high:g}, got {value!r}")
        if type(self.lift) is not bool:
            raise InvalidProblem(f"TimeStepping: lift must be True or False, got {self.lift!r}")
        settings = Settings(*self.recoveries, float(self.tolerance), DEFAULT.aim_of(self.tolerance), lift=self.lift)
        object.__setattr__(self, "settings", settings)
        object.__setattr__(self, "restitution", checked("TimeStepping", self.restitution))
        if self.impact not in ("newton", "poisson"):
            raise InvalidProblem(f"TimeStepping: impact must be 'newton' or 'poisson', got {self.impact!r}")
        if self.on_failure not in ("raise", "best"):
            raise InvalidProblem(f"TimeStepping: on_failure must be 'raise' or 'best', got {self.on_failure!r}")
        if type(self.workers) is not int or self.workers < 1:
            raise InvalidProblem(f"TimeStepping: workers must be 1 or more threads, got {self.workers!r}")
        if self.viscosity is not None and not (np.isfinite(self.viscosity) and self.viscosity >= 0.0):
            raise InvalidProblem(f"TimeStepping: viscosity must not be negative, got {self.viscosity!r}")

    @property
    def recoveries(self) -> tuple[float, float]:
        """Of overlaps and of equality constraints, in m/s; infinite: what the model's reference asks for."""
        if self.recovery is None:
            return RECOVERY, math.inf
        return float(self.recovery), min(float(self.recovery), FASTEST)

    def step(self, engine: Engine, law: Law, solver: Any) -> Report:
        """One step; if its contact problem is not solved, SolveFailed is raised, nothing moves (see `on_failure`)."""
        solver = DEFAULT if solver is None else solver
        tried = None
        if (law is CONE or law.kind == "cone") and isinstance(solver, Auto) and not self.restitution:
            settings = self.settings if solver.aim is None else self.settings._replace(aim=solver.aim)
            if law is not CONE and law.numbers.apart:
                settings = settings._replace(apart=True)

            # All at once, if MuJoCo's functions may be called so; else one after the other.
            report: Report | None = None
            made, looked = None, False
            engine.crew = crew_for(engine, self.workers) if self.workers > 1 else None
            if engine.one_call and not engine.prepared and engine.crew is None:
                report, made, looked = engine.one_call(engine, settings, self.warm)
                if report is not None:
                    return report
            if not looked:
                engine.look()
            report, tried = fused_step(engine, settings, self.warm, made)
            if report is not None:
                advance(engine.shadow, engine.data, engine.senses, engine.joined)
                if engine.one_call is None:
                    engine.one_call = one_call_of(engine) or False
                return report
            if isinstance(tried, Fused):
                return self.step_still(engine, tried)
        else:
            engine.look()
        return self.step_apart(engine, law, solver, tried)

    def apart(self, engine: Engine) -> tuple[float, float]:
        """How fast positions are put right apart from velocities, and the most that this is of (w · M w)^½."""
        speed = self.recoveries[0]
        return speed, AMPLIFIED * speed * max(float(engine.model.body_subtreemass[0]), 0.0) ** 0.5

    def step_still(self, engine: Engine, made: Fused) -> Report:
        """The rest of a step that was made in one call with nothing taken back: positions are put right apart.

        As seldom as `leaves_positions` says, by as much.
        """
        data, dt, (wait, _) = engine.data, engine.model.opt.timestep, made.kept
        potential, kinetic = data.energy.tolist()
        span, taken = dt if wait < OFTEN else SELDOM * dt, None
        if not leaves_positions(wait):
            arrays = made.arrays
            equality, velocity = data.efc_id[: data.ne], arrays.velocity * (dt / span)
            taken = take_back(arrays.constraints, arrays.joint_rows, equality, velocity, span, *self.apart(engine))
            engine.contradictions = names_of(engine.model, data, arrays.constraints, taken)
        advance(engine.shadow, data, engine.senses, engine.joined)
        if taken is not None:
            move(engine.shadow, data, taken.velocity, span)
        engine.problem, engine.last = None, made
        return Report(data.time, potential, kinetic, made, engine.contradictions)

    def step_apart(self, engine: Engine, law: Law, solver: Any, tried: Step | None) -> Report:
        """The same verb by verb, for all laws, solvers and impacts; tried: a fused step that was not certified."""
        data, dt, bounce, before = engine.data, engine.model.opt.timestep, NOTHING, None
        if tried is not None:
            found, problem = tried.constraints, tried.problem(law)
            start: NDArray[np.float64] | None = tried.impulse
        else:
            found = engine.gather(law)
            if self.restitution:
                bounce = engine.bounce("TimeStepping", self.restitution, found)
                before = np.append(data.qvel, np.zeros(found.free.size - engine.model.nv))
            returned = bounce if self.impact == "newton" else 0.0
            overlaps, joints = self.recoveries
            problem = pose(found, law, dt, overlaps, returned, self.viscosity, before, joints)
            start = engine.start(found)
        engine.problem = problem
        begin = start if self.warm and solver.contract.warm else None
        solution, taken = self.answer(engine, found, problem, solver, begin, doubtful=tried is not None)
        if before is not None and self.impact == "poisson":
            solution = self.expand(problem, found.gap, before, dt, bounce, solution, solver)
        potential, kinetic = data.energy.tolist()
        contradictions = () if taken is None else names_of(engine.model, data, found, taken)
        engine.apply(found, solution)
        if taken is not None:
            move(engine.shadow, data, taken.velocity, dt)
        engine.keep(found, solution.impulse)
        return Report(data.time, potential, kinetic, solution, contradictions)

    def answer(
        self, engine: Engine, found: Constraints, problem: ContactProblem, solver: Solver,
        start: NDArray[np.float64] | None, doubtful: bool,
    ) -> tuple[ContactSolution, TakenBack | None]:  # fmt: skip
        """The answer to go on with, and what is taken back apart from it where overlaps and joints contradict.

        Where anything is to be taken back, only the first choice of solvers is asked to do it with the velocities: the
        others, which may take a hundred times as long, are asked if it cannot be done apart from them either. Where a
        large heap has failed once, overlaps are corrected more slowly at once. All of them together may take as long as
        `allowance` says, with what has been tried before.

        doubtful: whether one attempt has failed already
        """
        failed, back = None, problem.mass is not None and asks(problem)
        whole: Any = solver
        if isinstance(solver, Auto):
            pace = 0 if engine.last is None else engine.last.kept[1]
            left = allowance(pace, problem.n) - (engine.spent if doubtful else 0)
            whole = Bounded(solver.aim, left)
        asked, quietly = whole, whole
        if back and isinstance(solver, Auto):
            whole, quietly = replace(whole, budget=SHARES[0] * left), replace(whole, budget=SHARES[1] * left)
            asked = replace(whole, first=True)
        hard = back and problem.n > MANY and not self.restitution and isinstance(solver, Auto)
        if hard or not (doubtful and contradict(problem)):
            if not (hard and doubtful):
                failed = solve(problem, asked, start=start, tolerance=self.tolerance, throw=False)
                if failed.ok:
                    return failed, None
            slow = self.slower(problem, solver, start) if hard else None
            if slow is not None:
                return slow._replace(trace=(*(() if failed is None else failed.trace), *slow.trace)), None
        if back:
            begin = start if hard else None
            quiet = solve(still(problem), quietly, start=begin, tolerance=self.tolerance, throw=False)
            if quiet.ok:
                rows, dt = engine.data.efc_id[: engine.data.ne], engine.model.opt.timestep
                taken = take_back(found, problem.joints, rows, quiet.velocity, dt, *self.apart(engine))
                tried = () if failed is None else failed.trace
                return quiet._replace(trace=(*tried, *quiet.trace, APART)), taken
            failed = quiet if failed is None else failed
        if asked is not whole:
            failed = solve(problem, whole, start=start, tolerance=self.tolerance, throw=False)
            if failed.ok:
                return failed, None
        assert failed is not None
        if self.on_failure == "raise":
            raise SolveFailed(failed)
        return self.best(problem, failed), None

    def slower(
        self, problem: ContactProblem, solver: Solver, start: NDArray[np.float64] | None
    ) -> ContactSolution | None:
        """The answer with overlaps corrected at a part of their speed, which is a bound; None if there is none either.

        Of a heap that no solver gets to the bottom of, hundreds of overlaps ask for speeds of their own; with others
        it is another problem, and mostly solved.
        """
        if not isinstance(solver, Auto) or problem.law.kind != "cone":
            return None
        newton = ConeNewton(max_cycles=4, tolerance=solver.aim_of(self.tolerance))
        for part in SLOWER:
            rate = np.where(problem.gap_rate < 0.0, part * problem.gap_rate, problem.gap_rate)
            found = solve(problem.replace(gap_rate=rate), newton, start=start, tolerance=self.tolerance, throw=False)
            if found.ok:
                return found._replace(trace=(*found.trace, f"overlaps are corrected at {part:g} of their speed"))
        return None

    def best(self, problem: ContactProblem, failed: ContactSolution) -> ContactSolution:
        """The answer where a problem is not solved, judged as it is; SolveFailed if it is not finite or adds energy."""
        if np.isfinite(failed.velocity).all() and failed.certificate.energy <= 0.0:
            return failed._replace(certificate=certify_contact(problem, failed), problem=problem)
        raise SolveFailed(failed)

    def solved(self, problem: ContactProblem, solver: Solver) -> ContactSolution:
        """The answer of a second impact."""
        found = solve(problem, solver, tolerance=self.tolerance, throw=False)
        if found.ok or self.on_failure == "best":
            return found if found.ok else self.best(problem, found)
        raise SolveFailed(found)

    def expand(
        self,
        problem: ContactProblem,
        gap: NDArray[np.float64],
        before: NDArray[np.float64],
        dt: float,
        bounce: NDArray[np.float64],
        pressed: ContactSolution,
        solver: Solver,
    ) -> ContactSolution:
        """Give back e times the normal impulse of contacts that hit, then let friction and other contacts act.

        The certificate is that of the second solve. The sum of both is no answer to either problem, so none is kept.
        """
        returned = np.zeros_like(pressed.impulse)
        for i in range(problem.n):
            if impact_velocity(problem.rows[i, 0], problem.segments[i], gap[i], dt, before, problem.velocity) < 0.0:
                returned[i, 0] = bounce[i] * pressed.impulse[i, 0]
        if not returned.any():
            return pressed
        raised = problem.respond(pressed.impulse + returned)[0]
        second = self.solved(problem.replace(velocity=raised), solver)
        impulse = pressed.impulse + returned + second.impulse
        joint_impulse = pressed.joint_impulse + second.joint_impulse
        return second._replace(impulse=impulse, joint_impulse=joint_impulse, problem=None)
