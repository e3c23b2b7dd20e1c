"""Forces while contact lasts, impulses when it begins: motion from event to event.

    M a = f + Nᵀ f_n + Tᵀ f_t + Jᵀ f_j        between events, with the forces of `event_forces`
    M (v⁺ - v) = Nᵀ p_n + Tᵀ p_t + Jᵀ p_j     at an impact, u_n⁺ >= -e u_n

A contact bears while its gap is zero and it neither opens nor closes. A piece of motion, by symplectic Euler or
classical Runge–Kutta, ends where a gap closes (an impact) or where sliding stops (its friction becomes static), found
on the true gaps by secants; then forces are computed anew. One step is as many pieces as it takes to pass
the model's timestep. Integration errors of gaps and velocities at contacts that bear are corrected after each piece
(`event_drift`), so that overlaps stay at `touch`, except those that a scene begins with, which are corrected at
`recovery`. Bounces and slides that would end within `touch` are ended at once (`event_calm`).

Where no forces exist, since sliding friction presses a contact ever more (Painlevé), Baraff's ray is applied as an
impulse until that sliding stops, and an impact follows. Bounces whose times accumulate (Zeno) are cut off: after
`impacts` of them in one step, all are inelastic. What cannot be resolved so, or not with so few, ends the step at
velocity level, as `TimeStepping` would: its forces are then those of the rest of the step on average, its impacts
inelastic. All three are noted in the trace of the report's solution.

The report's solution holds forces (N) in the place of impulses, those at the beginning of the step's last piece, and
the worst certificate of all problems of the step; accelerations are in `data.qacc` (its velocities are those of the
problem that was posed, see `event_forces`). Activations of actuators move once a step.

[Baraff1994]; [Drumwright2013] for the viscous law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stiction.bodies.state import set_state, state
from stiction.errors import InvalidProblem, InvalidScene, UnsupportedProblem
from stiction.stepping.choices import check_between, check_viscosity
from stiction.stepping.event_course import Course
from stiction.stepping.restitution import Given, checked

if TYPE_CHECKING:
    from stiction.problems.laws import Law
    from stiction.solvers.contract import Solver
    from stiction.stepping.engine import Engine
    from stiction.stepping.report import Report


@dataclass(frozen=True)
class EventDriven:
    """Forces and events within the model's timestep.

    method: "euler" (symplectic, dampers implicit) or "rk4" (classical Runge–Kutta, all forces explicit)
    restitution, impact: of impacts, as in `TimeStepping`
    viscosity: of every contact, in N / (m/s), for the law `Viscous`
    touch: bodies whose gap is at most this, in m, are in contact; contacts slower than touch / timestep are at rest
    impacts: number of impacts with restitution in one step; later ones are inelastic
    recovery: largest speed, in m/s, at which overlaps and joint errors are corrected
    tolerance: largest residual that counts as solved
    """

    method: str = "euler"
    restitution: Given = 0.0
    impact: str = "newton"
    viscosity: float | None = None
    touch: float = 1e-9
    impacts: int = 10
    recovery: float = 0.1
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if self.method not in ("euler", "rk4"):
            raise InvalidProblem(f"EventDriven: method must be 'euler' or 'rk4', got {self.method!r}")
        if self.impact not in ("newton", "poisson"):
            raise InvalidProblem(f"EventDriven: impact must be 'newton' or 'poisson', got {self.impact!r}")
        object.__setattr__(self, "restitution", checked("EventDriven", self.restitution))
        check_between("EventDriven", "recovery", self.recovery, math.inf)
        check_between("EventDriven", "tolerance", self.tolerance, 1.0)
        check_viscosity("EventDriven", self.viscosity)
        if not (isinstance(self.touch, float) and 0.0 < self.touch < math.inf):
            raise InvalidProblem(f"EventDriven: touch must be a distance above zero, in m, got {self.touch!r}")
        if not (isinstance(self.impacts, int) and self.impacts >= 1):
            raise InvalidProblem(f"EventDriven: impacts must be a whole number of at least 1, got {self.impacts!r}")

    def step(self, engine: Engine, law: Law, solver: Solver | None) -> Report:
        """One step of the model's timestep; if a problem in it is not solved, nothing has moved."""
        if law.corners() is not None:
            raise UnsupportedProblem(
                f"EventDriven does not take {law}: sliding friction has one direction; use Coulomb(), NoSlip(), "
                "Viscous() or Frictionless()"
            )
        if engine.turns:
            raise InvalidScene(
                "EventDriven takes no torsional or rolling friction (condim 4 and 6): use TimeStepping(), set condim "
                "to 3, or pass ignore=('torsion',), which takes it as 3"
            )
        if engine.carries and law.kind != "frictionless":
            raise InvalidScene(
                "EventDriven takes no moving surfaces (surfacevel): use TimeStepping(), or pass "
                "ignore=('surfacevel',), which takes them as still"
            )
        before = state(engine.model, engine.data)
        try:
            return Course(self, engine, law, solver).run()
        except BaseException:
            set_state(engine.model, engine.data, before)
            raise
