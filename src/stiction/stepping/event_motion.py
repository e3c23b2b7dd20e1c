"""One piece of motion: forces at its beginning, where it ends, and the correction of drift there.

Symplectic Euler:  v⁺ = v + h a,  q⁺ = q + h v⁺.  Runge–Kutta: forces are computed anew at its three other stages, for
the contacts that bore at the beginning. A contact that slid then goes on sliding in the direction of its velocity or,
once it has lost half of its speed, in its first direction.

A piece is as long as what is left of the step, unless an event comes first: a gap that closes, or the end of a sliding.
The first guess is when a gap would close at constant acceleration, so that nothing passes through a thin wall unseen;
what has not closed by then is followed farther, gap by gap, since the rows turn on the way.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from stiction.bodies.motion import Probe, moved
from stiction.contacts.gather import Constraints, gather
from stiction.contacts.identity import match
from stiction.stepping.event_drift import back_at_rest, back_in_place, pushed_apart
from stiction.stepping.event_forces import Forces, pose_forces, solve_forces, solver_of_forces
from stiction.stepping.event_moment import (
    Moment,
    clearance,
    find_held,
    find_lasting,
    first_closing,
    next_closing,
)
from stiction.stepping.event_rows import bend, extended, inertia, select, speeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.laws import Law
    from stiction.solutions.contact import ContactCertificate
    from stiction.stepping.engine import Engine
    from stiction.stepping.event_driven import EventDriven

STRIDE = 1.0 / 16.0  # of the timestep: for differences along the motion
FAST = 0.5  # of its initial speed: a contact slower than that keeps its slip direction until it stops
LANDINGS = 60  # tries to find an event
OPENING = 1e-9  # of the scale of accelerations: contacts that open no faster stay closed, loaded or not
POSITION_DRIFT = 1e-2  # of `touch`: smaller drift is not corrected
VELOCITY_DRIFT = 1e-6  # of the slowest speed: the same of velocities
PASSES = 4  # of drift correction
TINY = 1e-10  # of the timestep: closer events are one

_probes: WeakKeyDictionary[Engine, Probe] = WeakKeyDictionary()


class Landing(NamedTuple):
    """Where a piece of motion of length h would end.

    origin: for each contact there its number at the beginning, -1 if it is new
    clear: least of what must not become negative: gaps over `touch`, speeds of sliding over the slowest
    last: the forces computed last
    """

    h: float
    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    found: Constraints
    mass: NDArray[np.float64]
    origin: NDArray[np.int64]
    clear: float
    last: Forces


class Motion:
    """Pieces of motion of one step."""

    def __init__(self, options: EventDriven, engine: Engine, law: Law, solver: Any) -> None:
        self.options, self.engine, self.law, self.solver = options, engine, law, solver
        self.model, self.data = engine.model, engine.data
        self.dt = float(engine.model.opt.timestep)
        self.slow = options.touch / self.dt
        self.by = solver_of_forces(law, solver)
        self.left = self.dt
        self.worst: ContactCertificate | None = None
        probe = _probes.get(engine)
        if probe is None:
            probe = _probes[engine] = Probe(engine.shadow)
        self.probe = probe

    def certified(self, found: Any) -> Any:
        """An answer, with its certificate remembered if it is the worst so far."""
        if self.worst is None or not found.certificate.residual <= self.worst.residual:
            self.worst = found.certificate
        return found

    def forces(self, memory: Any, moment: Moment, position: NDArray[np.float64] | None = None) -> Forces:
        """Forces at contacts that bear, with what MuJoCo's memory knows of the smooth forces."""
        nv, bearing = self.model.nv, moment.bearing
        if position is None:
            position = np.array(self.data.qpos)
        if self.options.method == "euler":
            free, mass = (bearing.free - moment.v) / self.dt, bearing.mass.copy()
        else:
            data = self.data if memory is self.engine.memory else self.probe.data
            free, mass = np.append(data.qacc_smooth, bearing.free[nv:] / self.dt), moment.mass
        bent, joints_bent = bend(self.probe, bearing, position, moment.v[:nv], STRIDE * self.dt)
        bent[:, 1:] += moment.brake[moment.chosen]
        slip = moment.slip[moment.chosen]
        problem, d = pose_forces(
            bearing, mass, self.law, moment.v, free, slip, bent, joints_bent, self.options.viscosity, self.dt
        )
        self.engine.problem = problem
        found = solve_forces(problem, d, self.by, self.options.tolerance)
        self.certified(found.found)
        return found

    def piece(self, moment: Moment, forces: Forces) -> Landing:
        """Move on until the step ends or something happens.

        Farther and farther until an event is behind, then by secants between both sides of it. Which contact is the
        next one changes on the way, so that secants alone would creep along one side: the end that stays there counts
        half as much each time (the Illinois rule).
        """
        low, low_clear, high, high_clear = 0.0, math.nan, None, 0.0
        h = min(self.left, self.foreseen(moment, forces))
        best: Landing | None = None
        was_behind: bool | None = None
        for _ in range(LANDINGS):
            landing = self.land(moment, forces, h)
            behind = landing.clear < -1.0
            if not behind:
                best = landing
                if landing.clear <= 1.0 or h >= self.left:
                    return landing
                low, low_clear = h, landing.clear
                if high is None:
                    h = min(self.left, h + self.farther(moment, landing))
                    continue
                high_clear *= 0.5 if was_behind is False else 1.0
            else:
                high, high_clear = h, landing.clear
                low_clear = self.clear_here(moment) if low == 0.0 and was_behind is None else low_clear
                low_clear *= 0.5 if was_behind else 1.0
            was_behind = behind
            if high - low <= self.shortest(landing):
                break
            # Halve where nothing is near the lower end.
            share = 0.5 if math.isinf(low_clear) or low_clear <= 0.0 else low_clear / (low_clear - high_clear)
            h = low + min(max(share, 0.05), 0.95) * (high - low)
        return landing if best is None else best

    def foreseen(self, moment: Moment, forces: Forces) -> float:
        """When the first gap closes if normal accelerations stay: g + u t + a t² / 2 = 0, or a t² for Euler."""
        if moment.found.n == moment.chosen.size:
            return math.inf
        factor, least = 2.0 if self.options.method == "euler" else 1.0, TINY * self.dt
        return first_closing(moment.found, moment.u, moment.bears, forces.acceleration, factor, least)  # type: ignore[no-any-return]

    def farther(self, moment: Moment, landing: Landing) -> float:
        """How much later the first gap closes, by the parabola through its beginning and its end, where u is known.

        Rows turn on the way, so that gaps may close far from when they were foreseen: at the dead point of a crank
        they do so at no speed at all. A parabola that does not reach zero is followed to its lowest point.
        """
        found, v = landing.found, extended(landing.found, landing.velocity)
        return next_closing(  # type: ignore[no-any-return]
            found, landing.origin, v, landing.h, moment.found.gap, moment.bears, TINY * self.dt
        )

    def land(self, moment: Moment, forces: Forces, h: float) -> Landing:
        """The end of a piece of length h."""
        nv, start = self.model.nv, np.array(self.data.qpos)
        v, a, last = moment.v[:nv], forces.acceleration[:nv], forces
        if self.options.method == "euler":
            velocity = v + h * a
            position = moved(self.model, start, velocity, h)
        else:
            velocities, accelerations = [v], [a]
            for share in (0.5, 0.5, 1.0):
                place = moved(self.model, start, velocities[-1], share * h)
                speed = v + share * h * accelerations[-1]
                last = self.stage(moment, place, speed, self.data.time + share * h)
                velocities.append(speed)
                accelerations.append(last.acceleration[:nv])
            weights = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0
            velocity = v + h * (weights @ np.array(accelerations))
            position = moved(self.model, start, weights @ np.array(velocities), h)
        self.probe.place(position, velocity)
        found = gather(self.probe.memory)
        mass = inertia(self.probe.memory, found)
        origin = self.origins(moment.found, found)
        return Landing(h, position, velocity, found, mass, origin, self.clear(moment, found, origin, velocity), last)

    def stage(
        self, moment: Moment, position: NDArray[np.float64], velocity: NDArray[np.float64], time: float
    ) -> Forces:
        """Forces on the way, at the contacts that bore at the beginning; what slid then slides."""
        self.probe.press(position, velocity, time)
        found = gather(self.probe.memory)
        origin = self.origins(moment.found, found)
        bears = np.append(moment.bears[origin], False)
        chosen = np.flatnonzero(bears)
        old, bearing, v = origin[chosen], select(found, chosen), extended(found, velocity)
        u, slip, brake = speeds(found, v), np.full((found.n + 1, 2), np.nan), np.zeros((found.n + 1, 2))
        sliding, slid = u[chosen, 1:], moment.slip[old]
        along, speed = (slid * sliding).sum(axis=1), np.hypot(sliding[:, 0], sliding[:, 1])
        before = np.hypot(moment.u[old, 1], moment.u[old, 2])
        turned = (along > FAST * before)[:, None]
        slip[chosen] = np.where(turned, sliding / np.where(speed > 0.0, speed, 1.0)[:, None], slid)
        brake[chosen] = moment.brake[old]
        here = Moment(found, chosen, bearing, inertia(self.probe.memory, found), v, u, bears, slip, brake)
        return self.forces(self.probe.memory, here, position)

    def shortest(self, landing: Landing) -> float:
        """A time in which nothing moves by `touch`: where gaps jump, no closer look finds more."""
        fastest = np.abs(speeds(landing.found, extended(landing.found, landing.velocity))).max(initial=0.0)
        return max(TINY * self.dt, self.options.touch / max(float(fastest), self.slow) if fastest > 0.0 else 0.0)

    def clear(
        self, moment: Moment, found: Constraints, origin: NDArray[np.int64], velocity: NDArray[np.float64]
    ) -> float:
        """How far everything is from an event: negative once it has happened, within ±1 it is there."""
        return clearance(  # type: ignore[no-any-return]
            found, origin, extended(found, velocity), moment.found.gap, moment.bears, moment.slip, self.options.touch,
            self.slow,
        )  # fmt: skip

    def clear_here(self, moment: Moment) -> float:
        """The same at the beginning of a piece."""
        return self.clear(moment, moment.found, np.arange(moment.found.n), moment.v[: self.model.nv])

    def settle(self, moment: Moment, landing: Landing) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positions and velocities at the end of a piece, without the drift of contacts that bear."""
        found, origin, mass = landing.found, landing.origin, landing.mass
        nv, touch = self.model.nv, self.options.touch
        most = self.options.recovery * landing.h + touch
        position, velocity = landing.position, landing.velocity
        closes, sticks = self.lasting(moment, landing.last, landing.h >= (1.0 - TINY) * self.left)
        near, pushed = most, np.zeros(moment.found.n + 1, bool)
        for k in range(2 * PASSES):
            if k < PASSES:
                held = np.empty(found.n, bool)
                find_held(found, origin, closes, near, touch, pushed, held)
                shift, farthest = back_in_place(found, mass, held, most, POSITION_DRIFT * touch)
            else:
                shift, farthest = pushed_apart(found, mass, most, touch)
            if shift is None:
                break
            most -= farthest
            position = moved(self.model, position, shift[:nv], 1.0)
            self.probe.place(position, velocity)
            found = gather(self.probe.memory)
            mass, origin = inertia(self.probe.memory, found), self.origins(moment.found, found)
        held, stuck = closes[origin] & (found.gap <= near), sticks[origin]
        rest = back_at_rest(found, mass, extended(found, velocity), held, stuck, VELOCITY_DRIFT * self.slow)
        return position, velocity if rest is None else rest[:nv]

    def lasting(self, moment: Moment, forces: Forces, last: bool) -> NDArray[np.bool_]:
        """(2, n + 1) of the contacts at the beginning, which stay closed and which stick."""
        closes, sticks = which = np.zeros((2, moment.found.n + 1), bool)
        answer = forces.answer
        if len(answer.mode) == moment.chosen.size:
            opening = OPENING * forces.found.certificate.scale
            find_lasting(moment, answer.contact_velocity, answer.mode, opening, last, closes, sticks)
        return which

    def apart(self, position: NDArray[np.float64], velocity: NDArray[np.float64], h: float) -> NDArray[np.float64]:
        """Positions near these at which nothing overlaps."""
        touch, most = self.options.touch, self.options.recovery * h
        for _ in range(PASSES):
            self.probe.place(position, velocity)
            found = gather(self.probe.memory)
            shift, farthest = pushed_apart(found, inertia(self.probe.memory, found), most, touch)
            if shift is None:
                break
            most -= farthest
            position = moved(self.model, position, shift[: self.model.nv], 1.0)
        return position

    def origins(self, old: Constraints, new: Constraints) -> NDArray[np.int64]:
        """(n,) for each contact its number at the beginning, -1 if it is new."""
        return match(self.probe.memory, old, new) if old.n and new.n else np.full(new.n, -1)
