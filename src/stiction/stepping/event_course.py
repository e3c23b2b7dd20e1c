"""One step, from event to event (see `event_driven`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.inputs import MAXVAL
from stiction.bodies.motion import moved
from stiction.bodies.stages import advance
from stiction.bodies.state import energy
from stiction.contacts.gather import DRY, Constraints, gather
from stiction.contacts.write_back import write_back
from stiction.errors import InvalidProblem, InvalidScene, SolveFailed
from stiction.problems.laws import Frictionless
from stiction.solutions.status import Status
from stiction.solvers.auto import Auto
from stiction.solvers.contact.baraff.baraff import impulse_along
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.solve import solve
from stiction.stepping.event_calm import calmed
from stiction.stepping.event_forces import Forces, pose
from stiction.stepping.event_fused import impulses_by_newton
from stiction.stepping.event_moment import Moment, classify, find_ended, find_hits
from stiction.stepping.event_motion import TINY, Landing, Motion
from stiction.stepping.event_rows import extended, inertia, select
from stiction.stepping.pose import viscosities
from stiction.stepping.report import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.problems.laws import Law
    from stiction.solutions.contact import ContactSolution
    from stiction.stepping.engine import Engine
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.event_fused import Answer

PIECES = 4  # of motion, for each of `impacts`, after which a step is ended at velocity level


class Course(Motion):
    """One step, on its way."""

    def __init__(self, options: EventDriven, engine: Engine, law: Law, solver: Any) -> None:
        super().__init__(options, engine, law, solver)
        self.blows = self.pieces = 0
        self.calmed = -1
        self.notes: list[str] = []
        self.caught: tuple[Constraints, NDArray[np.bool_]] | None = None

    def run(self) -> Report:
        self.engine.look()
        found = self.engine.gather(flat=False)
        self.probe.follow(self.data)
        potential, kinetic = energy(self.model, self.data)
        begin = float(self.data.time)
        while True:
            moment = self.classify(found)
            if self.blows >= 2 * self.options.impacts or self.pieces >= PIECES * self.options.impacts:
                why = f"{self.blows} impacts and {self.pieces} pieces of motion in one step"
                return self.finish(moment, begin, potential, kinetic, why)
            if self.collide(moment):
                found = self.look()
                continue
            self.pieces += 1
            try:
                forces = self.forces(self.engine.memory, moment)
                if self.calm(moment, forces):
                    found = self.look()
                    continue
                landing = self.piece(moment, forces)
            except SolveFailed as failure:
                solution = failure.solution
                if self.relieve(moment, solution):  # type: ignore[arg-type]
                    found = self.look()
                    continue
                return self.finish(moment, begin, potential, kinetic, f"no forces ({solution.status.name.lower()})")
            position, velocity = self.settle(moment, landing)
            self.catch(moment, landing)
            self.left -= landing.h
            if self.left <= TINY * self.dt:
                return self.report(moment, forces, position, velocity, begin, potential, kinetic)
            self.refuse_boundless(position, velocity)
            self.data.qpos[:], self.data.qvel[:] = position, velocity
            self.data.time += landing.h
            found = self.look()

    def look(self) -> Constraints:
        """Contacts and forces at the present state, with the controls as they are."""
        self.engine.refresh()
        return gather(self.engine.memory)

    def classify(self, found: Constraints) -> Moment:
        """Which contacts bear, and which of them slide."""
        n, v = found.n, extended(found, np.array(self.data.qvel))
        u, bears, (slip, brake) = np.empty((n, 3)), np.empty(n + 1, bool), np.empty((2, n + 1, 2))
        left = self.left if self.law.kind == "cone" else 0.0
        classify(found, v, self.follow_caught(found), self.options.touch, self.slow, left, u, bears, slip, brake)
        chosen = np.flatnonzero(bears)
        return Moment(
            found, chosen, select(found, chosen), inertia(self.engine.memory, found), v, u, bears, slip, brake
        )

    def calm(self, moment: Moment, forces: Forces) -> bool:
        """Leave out bounces and slides that end at once; once for each piece of motion."""
        if self.calmed == self.pieces - 1:
            return False
        velocity = calmed(moment, forces, self.options.touch, self.slow)
        if velocity is None:
            return False
        self.pieces -= 1
        self.calmed = self.pieces
        self.data.qvel[:] = velocity[: self.model.nv]
        return True

    def follow_caught(self, found: Constraints) -> NDArray[np.bool_]:
        """(n,) contacts whose slip direction already reversed in this step: they are braked evenly until its end.

        The marks are carried over from the contacts found before.
        """
        if self.caught is None:
            return np.zeros(found.n, bool)
        old, caught = self.caught
        self.caught = found, np.append(caught, False)[self.origins(old, found)]
        return self.caught[1]

    def catch(self, moment: Moment, landing: Landing) -> None:
        """Mark contacts that stopped along their slip direction but still move across it.

        In space, a direction kept for a whole piece lets sliding end in ever shorter pieces: from here on it is braked
        evenly until the end of the step, as far as friction can.
        """
        found, ended = landing.found, np.empty(landing.found.n, bool)
        some = find_ended(found, landing.origin, extended(found, landing.velocity), moment.slip, self.slow, ended)
        if some or self.caught is not None:
            before = self.follow_caught(found)
            if some or before.any():
                self.caught = found, ended | before

    # Impacts

    def collide(self, moment: Moment) -> bool:
        """If contacts that touch approach each other, or joints move apart, stop them by impulses."""
        found, options = moment.found, self.options
        touching, hits = np.empty((2, found.n), bool)
        if not find_hits(found, moment.v, moment.u, options.touch, self.slow, touching, hits):
            return False
        self.blows += 1
        bounce = np.zeros(found.n)
        if options.restitution and self.blows <= options.impacts:
            bounce = self.engine.bounce("EventDriven", options.restitution, found)
        elif options.restitution and self.blows == options.impacts + 1:
            self.notes.append(f"more than {options.impacts} impacts in one step: the others are inelastic")
        self.strike(moment, np.flatnonzero(touching), moment.v, hits, bounce)
        return True

    def strike(
        self, moment: Moment, chosen: NDArray[np.int64], v: NDArray[np.float64], hits: NDArray[np.bool_],
        bounce: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Velocities after an impact at these contacts; those that hit return the part `bounce` of it."""
        options = self.options
        law: Law = Frictionless() if self.law.viscous else self.law  # viscous forces have no impulse
        returned = np.where(hits, bounce, 0.0)[chosen]
        rate = returned * moment.u[chosen, 0] if options.impact == "newton" else np.zeros(chosen.size)
        problem = pose(select(moment.found, chosen), moment.mass, law, velocity=v, gap_rate=rate)
        self.engine.problem = problem
        answer = self.impulses(problem)
        if returned.any() and options.impact == "poisson":
            # Give back e times the normal impulse of compression, then let friction and new contacts act.
            given = np.zeros_like(answer.impulse)
            given[:, 0] = returned * answer.impulse[:, 0]
            raised = problem.respond(answer.impulse + given)[0]
            answer = self.impulses(pose(select(moment.found, chosen), moment.mass, law, velocity=raised))
        self.data.qvel[:] = answer.velocity[: self.model.nv]

    def impulses(self, problem: ContactProblem) -> Answer | ContactSolution:
        """The impulses of an impact, certified."""
        tolerance = self.options.tolerance
        if problem.law.kind == "cone" and type(self.solver) in (Auto, type(None)):
            aim = (self.solver or Auto()).aim_of(tolerance)
            fused = impulses_by_newton(problem, ConeNewton(tolerance=aim), tolerance)
            if fused is not None:
                return self.certified(fused).answer  # type: ignore[no-any-return]
        return self.certified(solve(problem, self.solver, tolerance=tolerance))  # type: ignore[no-any-return]

    def relieve(self, moment: Moment, solution: ContactSolution) -> bool:
        """Where sliding friction leaves no forces, stop that sliding by an impulse along the ray; then strike."""
        problem = solution.problem
        if solution.status != Status.RAY or solution.ray is None or problem is None or not problem.slides:
            return False
        if problem.n != moment.chosen.size:
            return False
        self.blows += 1
        try:
            blow = impulse_along(problem, solution.ray, moment.v)
        except InvalidProblem:
            return False
        total = float(blow.impulse[:, 0].sum())
        self.notes.append(f"no forces exist at contacts that slide: an impulse of {total:.3g} N s instead")
        touching = np.flatnonzero((moment.found.gap <= self.options.touch) & (moment.found.kind != DRY))
        nothing = np.zeros(moment.found.n)
        self.strike(moment, touching, blow.velocity, nothing.astype(bool), nothing)
        return True

    # The end

    def report(
        self, moment: Moment, forces: Forces, position: NDArray[np.float64], velocity: NDArray[np.float64],
        begin: float, potential: float, kinetic: float,
    ) -> Report:  # fmt: skip
        solution = forces.solution
        self.leave(
            moment.bearing, moment.v + self.dt * forces.acceleration, self.dt * solution.impulse,
            self.dt * solution.joint_impulse, position, velocity, begin,
        )  # fmt: skip
        return self.report_of(solution, potential, kinetic)

    def finish(self, moment: Moment, begin: float, potential: float, kinetic: float, why: str) -> Report:
        """The rest of the step, at velocity level."""
        found, left, dt, nv = moment.found, self.left, self.dt, self.model.nv
        self.notes.append(f"{why}: the last {left:.3g} s at velocity level")
        most = self.options.recovery
        problem = pose(
            found, found.mass.copy(), self.law, velocity=moment.v + (left / dt) * (found.free - moment.v),
            gap_rate=np.maximum(found.gap / left, -most), joint_rate=np.clip(found.joint_gap / left, -most, most),
            viscosity=left * viscosities(self.options.viscosity) if self.law.viscous else None,
        )  # fmt: skip
        self.engine.problem = problem
        solution = self.certified(solve(problem, self.solver, tolerance=self.options.tolerance))
        velocity = solution.velocity[:nv]
        position = self.apart(moved(self.model, np.array(self.data.qpos), velocity, left), velocity, left)
        longer = dt / left
        self.leave(
            found, moment.v + longer * (solution.velocity - moment.v), longer * solution.impulse,
            longer * solution.joint_impulse, position, np.array(velocity), begin,
        )  # fmt: skip
        return self.report_of(solution, potential, kinetic)

    def leave(
        self, found: Constraints, velocity: NDArray[np.float64], impulse: NDArray[np.float64],
        joint_impulse: NDArray[np.float64], position: NDArray[np.float64], speed: NDArray[np.float64], begin: float,
    ) -> None:  # fmt: skip
        """Write forces where MuJoCo keeps its own, let it move whatever else moves, and set the state."""
        write_back(self.engine.memory, found, velocity, impulse, joint_impulse)
        self.refuse_boundless(position, speed)
        advance(self.engine.shadow, self.data, self.engine.senses, self.engine.joined)
        self.data.qpos[:], self.data.qvel[:], self.data.time = position, speed, begin + self.dt
        self.engine.keep(found, impulse)

    def refuse_boundless(self, position: NDArray[np.float64], velocity: NDArray[np.float64]) -> None:
        """Nothing that is no number, or beyond what MuJoCo takes, enters the state."""
        for name, values in (("qpos", position), ("qvel", velocity)):
            bad = ~(np.abs(values) <= MAXVAL)
            if bad.any():
                i = int(bad.argmax())
                raise InvalidScene(
                    f"step: {name}[{i}] = {values[i]} after a piece of motion must be a number of at most {MAXVAL:g}: "
                    "look at forces and masses, or take a smaller timestep; nothing moved"
                )

    def report_of(self, solution: ContactSolution, potential: float, kinetic: float) -> Report:
        assert self.worst is not None
        trace = (f"{self.pieces} pieces of motion, {self.blows} impacts", *self.notes, *solution.trace)
        last = solution._replace(certificate=self.worst, trace=trace)
        return Report(self.data.time, potential, kinetic, last)
