"""`linearize`: one step as a linear map of state and control, as MuJoCo's `mjd_transitionFD`, with exact contact.

    dx⁺ = A dx + B du,      ds = C dx + D du,      x = (position, velocity, activation), positions by their tangents

A step is smooth stages of MuJoCo's, one contact problem, and a motion. The smooth stages and the geometry of contacts
are differenced: MuJoCo computes mass, forces, contacts and their rows beside the present state, once or twice for each
entry of x and u, and no contact problem is solved there. The differences of the data of the contact problem

    d(M, v_free, rows, gap_rate, joints, joint_rate)  →  d(v⁺, p, p_j)

go through the derivatives of the one that was solved (`derivatives.ground`), all columns at once. The motion, and
sensors, are MuJoCo's again. Velocities do not move contacts, and controls no body: only the stages that they enter
are computed anew. Where nothing needs Python in between, all of it is one compiled loop (`stepping.linear_loop`); what
is below does the same for sensors, activations and callbacks, and for columns in which contacts come, go or jump.

Where contact is at a kink, or its motion is not determined, A and B are those of one of the modes that meet there, or
the smallest: `reason` and `kinks` show it. A contact whose place jumps as bodies move (an edge that rolls over a face)
is listed in `jumps`; the smaller of its one-sided differences is taken. Contacts that hold a body in more ways than it
can move must open or slide as soon as it is displaced: `tied` lists the entries of the state for which they do.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from stiction.bodies import linear_stages as stages
from stiction.bodies.dynamics import Damping
from stiction.bodies.scene import Scene
from stiction.bodies.shadow import refuse_foreign
from stiction.bodies.state import set_state
from stiction.bodies.state import state as state_of
from stiction.contacts.gather import COUNTS, ENTRIES, SCRATCH, Constraints, fill, measure
from stiction.contacts.identity import match
from stiction.contacts.write_back import write_back
from stiction.derivatives.differentiate import differentiate
from stiction.derivatives.ground import Forcing
from stiction.errors import InvalidScene, SolveFailed
from stiction.solvers.auto import Auto
from stiction.solvers.solve import solve
from stiction.stepping.choices import check_law, check_solver
from stiction.stepping.engine import Engine, alone
from stiction.stepping.fused import Fused, fused_step
from stiction.stepping.linear_loop import JUMP, SUDDEN, can_difference, difference
from stiction.stepping.pose import NONE, pose, set_joints, set_rates
from stiction.stepping.time_stepping import CONE, DEFAULT, TimeStepping

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.derivatives.contact import Derivatives, Kink
    from stiction.derivatives.ground import Response
    from stiction.problems.contact import ContactProblem
    from stiction.problems.laws import Law
    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]

TIED = 1e-3  # velocity left at contacts that should have none, over what changes there: more than curvature explains
DEFAULT_STEPPER = TimeStepping()
_engines: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()


class Linearization(tuple[Any, ...]):
    """(A, B), or (A, B, C, D) with sensors, to be unpacked; and what is to be known of it.

    A: (2 nv + na, 2 nv + na), B: (2 nv + na, nu), C: (nsensordata, 2 nv + na), D: (nsensordata, nu)
    derivatives: of the contact problem; jumps: contacts whose place jumps, by their number in the problem
    tied: entries of the state, by name and number, whose change makes contacts that share a load change their modes
    """

    derivatives: Derivatives
    jumps: tuple[int, ...]
    tied: tuple[tuple[str, int], ...]

    @property
    def kinks(self) -> tuple[Kink, ...]:
        """Contacts at which the step has no derivative, with the margin in m/s."""
        return self.derivatives.kinks

    @property
    def reason(self) -> str:
        """Why the step has no derivative, empty if it has one."""
        jumping = f"the place of contacts {', '.join(map(str, self.jumps))} jumps" if self.jumps else ""
        named = ", ".join(f"{what}[{k}]" for what, k in self.tied[:6])
        tied = f"contacts that share a load cannot all keep their modes as {named} change" if self.tied else ""
        return "; ".join(part for part in (self.derivatives.reason, jumping, tied) if part)

    @property
    def smooth(self) -> bool:
        """Whether the step has a derivative."""
        return not self.reason


def linearize(
    model: Any,
    data: Any,
    *,
    eps: float = 1e-6,
    centered: bool = True,
    sensors: bool = False,
    law: Law = CONE,
    solver: Any = None,
    stepper: TimeStepping = DEFAULT_STEPPER,
) -> Linearization:
    """The step that `st.step` would make from here, as `A, B` of `mjd_transitionFD`; the data stay as they are.

    eps: length of the differences of MuJoCo's stages, in units of the state; centered: on both sides
    sensors: return C and D as well
    """
    check_law("linearize", law)
    check_solver("linearize", solver)
    if not isinstance(stepper, TimeStepping):
        raise InvalidScene(f"linearize: stepper must be TimeStepping(), got {stepper!r}")
    if stepper.restitution:
        raise InvalidScene("linearize: steps with restitution are not supported; give a stepper without")
    if not (isinstance(eps, (int, float)) and 0.0 < eps <= 1e-2):
        raise InvalidScene(f"linearize: eps must be a positive number of at most 0.01, got {eps!r}")
    engine = probe(model, data)
    with alone(data):
        state = state_of(engine.shadow, data)
    return Differences(engine, state, float(eps), bool(centered), law, solver, stepper).linearized(bool(sensors))


def probe(model: Any, data: Any) -> Engine:
    """An engine over data of its own, kept for the user's."""
    try:
        engine = _engines.get(data)
    except TypeError:
        engine = None  # no MjData: refused below
    if engine is None or engine.model is not model:
        scene = Scene.of(model)
        refuse_foreign(model, data)
        engine = _engines[data] = Engine(scene, scene.data())
    return engine


class Data(NamedTuple):
    """The data of a contact problem beside the present state."""

    free: Array
    mass: Array
    rows: Array
    gap_rate: Array
    joints: Array
    joint_rate: Array
    tangent_rate: Array
    rate_of_activation: Array


class Differences:
    """The present state, its contact problem and answer; and the same data beside it."""

    def __init__(
        self, engine: Engine, state: Array, eps: float, centered: bool, law: Law, solver: Any, stepper: TimeStepping
    ) -> None:
        self.engine, self.state, self.eps = engine, state, eps
        self.signs = (1.0, -1.0) if centered else (1.0,)
        self.recovery, self.joint_recovery = stepper.recoveries
        self.dt = engine.model.opt.timestep
        set_state(engine.shadow, engine.data, state)
        engine.look()
        self.force, self.rates = np.array(engine.data.qfrc_smooth), np.array(engine.data.act_dot)
        memory = engine.memory
        kept, self.counts = np.empty(int(memory.data["ncon"][0]), np.int64), np.zeros(COUNTS, np.int64)
        measure(memory.model, memory.data, memory.where, self.counts, kept, True)
        self.found, self.solution = self.solved(law, DEFAULT if solver is None else solver, stepper)
        self.problem: ContactProblem = self.solution.require_problem()
        self.jumps: set[int] = set()

        # Memory for the constraints beside the present ones; what makes all stages depend on all of the state.
        self.room = copied(self.found)
        self.scratch = Damping(np.empty(self.counts[SCRATCH]), np.empty(self.counts[ENTRIES]))
        self.anew = stages.depends_on_velocity(engine.model)
        self.whole = self.anew or engine.joined  # the rates that references of equalities ask for depend on velocities

    def solved(self, law: Law, solver: Any, stepper: TimeStepping) -> tuple[Constraints, ContactSolution]:
        """The constraints of the step, and its answer: as `st.step` finds it, in one call where that goes."""
        engine = self.engine
        if law.kind == "cone" and isinstance(solver, Auto):
            settings = stepper.settings if solver.aim is None else stepper.settings._replace(aim=solver.aim)
            _, made = fused_step(engine, settings._replace(apart=law.numbers.apart), False)
            if isinstance(made, Fused):
                arrays = made.arrays
                return arrays.constraints, made.solution(arrays)
        found = copied(engine.gather())
        problem = pose(
            found, law, self.dt, self.recovery, 0.0, stepper.viscosity, joint_recovery=self.joint_recovery
        )  # fmt: skip
        solution: ContactSolution = solve(problem, solver, tolerance=stepper.tolerance, throw=False)
        if not solution.ok:
            raise SolveFailed(solution)
        return found, solution

    @cached_property
    def base(self) -> Data:
        return self.data_of(self.found)._replace(rate_of_activation=self.rates)

    def linearized(self, sensors: bool) -> Linearization:
        """All columns: difference the stages, respond to them, move."""
        model, nu = self.engine.model, self.engine.model.nu
        derivatives = differentiate(self.solution, strict=False)
        places = [(what, k) for what, count in stages.columns(model) for k in range(count)]
        forcing, rates = self.forced(derivatives, places, sensors)
        given = np.abs(forcing.e).max(axis=(0, 1), initial=1.0)

        # Where the step ends; its sensors.
        size = len(places) - nu
        if sensors or model.na:
            response = derivatives.ground.answer(forcing)
            left = np.matmul(derivatives.ground.bases.zero.transpose(0, 2, 1), response.contact_velocity)
            off = np.abs(left).max(axis=(0, 1), initial=0.0)
            whole, seen = self.ends_beside(places, response, rates, sensors)
        else:
            velocity, off = derivatives.ground.motion(forcing)
            velocity, seen = velocity[: model.nv], np.zeros((0, len(places)))
            position = stages.moved_tangent(model, self.solution.velocity[: model.nv], velocity, self.dt)
            whole = np.concatenate([position, velocity])
        set_state(self.engine.shadow, self.engine.data, self.state)
        parts = [whole[:, :size], whole[:, size:]]
        if sensors:
            parts += [seen[:, :size], seen[:, size:]]
        result = Linearization(np.ascontiguousarray(part) for part in parts)
        result.derivatives, result.jumps = derivatives, tuple(sorted(self.jumps))
        result.tied = tuple(places[column] for column in np.flatnonzero(off > TIED * given))
        return result

    def ends_beside(
        self, places: list[tuple[str, int]], response: Response, rates: dict[tuple[str, int, float], Array],
        sensors: bool,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Differences of the states, and sensors, at the ends of steps beside the present one."""
        model, found = self.engine.model, self.solution
        now = found.velocity, found.impulse, found.joint_impulse
        base = self.end("", 0, 0.0, *now, self.base.rate_of_activation, sensors)
        ends, sensed = [], []
        for column, (what, k) in enumerate(places):
            both = []
            for sign in self.signs:
                moved = sign * self.eps
                v = found.velocity + moved * response.velocity[:, column]
                p = found.impulse + moved * response.impulse[:, :, column]
                j = found.joint_impulse + moved * response.joint_impulse[:, column]
                both.append(self.end(what, k, sign, v, p, j, rates[what, k, sign], sensors))
            back = both[1] if len(both) == 2 else base
            length = self.eps * len(both)
            ends.append(stages.difference(model, back[0], both[0][0]) / length)
            sensed.append((both[0][1] - back[1]) / length)
        size = 2 * model.nv + model.na
        return (
            np.array(ends).T.reshape(size, len(places)),
            np.array(sensed).T.reshape(model.nsensordata, len(places)),
        )

    def compute_beside(self, what: str, k: int, sign: float) -> None:
        """MuJoCo's stages with one entry of state or control changed."""
        engine = self.engine
        set_state(engine.shadow, engine.data, self.state)
        stages.nudge(engine.shadow, engine.data, what, k, sign * self.eps)
        if what == "qpos" or self.whole:
            engine.refresh()
        else:
            stages.after_positions(engine.shadow, engine.data)

    def gathered(self) -> Constraints:
        """The constraints of the stages as they are; in the same memory each time, if there are as many."""
        memory = self.engine.memory
        kept = np.empty(int(memory.data["ncon"][0]), np.int64)
        counts = np.zeros(COUNTS, np.int64)
        problem = measure(memory.model, memory.data, memory.where, counts, kept, True)
        if problem or not np.array_equal(counts, self.counts):
            return self.matched(self.engine.gather())
        fill(memory.model, memory.data, memory.where, kept, self.room, self.scratch)
        return self.matched(self.room)

    def data_of(self, found: Constraints) -> Data:
        """The problem that `pose` makes of constraints."""
        gap_rate = np.empty(found.n)
        set_rates(found, self.dt, self.recovery, NONE, NONE, gap_rate)
        joints, joint_rate = np.empty((len(found.joint_gap), len(found.free))), np.empty(len(found.joint_gap))
        set_joints(found, self.dt, self.joint_recovery, joints, joint_rate)
        return Data(
            np.array(found.free), np.array(found.mass), np.array(found.rows), gap_rate, joints, joint_rate,
            np.array(found.surface[:, 1:]), np.array(self.engine.data.act_dot),
        )  # fmt: skip

    def matched(self, now: Constraints) -> Constraints:
        """The constraints in the order of the present ones; those that are gone stay as they were."""
        old = self.found
        if now.n == old.n and np.array_equal(now.pair, old.pair) and np.array_equal(now.segments, old.segments):
            return now
        previous = match(self.engine.memory, old, now)
        rows, gap, surface = np.array(old.rows), np.array(old.gap), np.array(old.surface)
        width = min(rows.shape[2], now.rows.shape[2])
        for i, o in enumerate(previous):
            if o >= 0 and np.array_equal(now.segments[i], old.segments[o]):
                rows[o, :, :width], gap[o] = now.rows[i, :, :width], now.gap[i]
                if len(surface) and len(now.surface):
                    surface[o] = now.surface[i]
        if len(now.joint_gap) != len(old.joint_gap) or len(now.free) != len(old.free):
            raise InvalidScene(
                "linearize: equality constraints or dry friction appear beside the present state; take a smaller eps"
            )
        return now._replace(
            rows=rows, gap=gap, slack=old.slack, segments=old.segments, kind=old.kind, address=old.address,
            source=old.source, pair=old.pair, spot=old.spot, friction=old.friction, surface=surface,
            frame=old.frame,
        )  # fmt: skip

    def forced(
        self, derivatives: Derivatives, places: list[tuple[str, int]], sensors: bool
    ) -> tuple[Forcing, dict[tuple[str, int, float], Array]]:
        """Inputs of the derivatives of the contact problem, a column for each place; rates of activations."""
        ground, engine = derivatives.ground, self.engine
        if sensors or ground.explicit or not can_difference(engine, self.anew):
            change, rates = self.changes(derivatives, places)
            return ground.forcing(**change), rates
        found = difference(
            engine, self.found, self.room, self.counts, self.scratch, self.solution, self.eps, len(self.signs), self.dt,
            self.recovery, self.joint_recovery,
        )  # fmt: skip
        h, e, c = found.momentum.T, found.velocity.transpose(1, 2, 0), found.rate.T
        slow = np.flatnonzero(found.slow)
        if len(slow):
            change, _ = self.changes(derivatives, [places[column] for column in slow])
            h[:, slow], e[:, :, slow], c[:, slow], _ = ground.forcing(**change)
        return Forcing(h, e, c, np.zeros(e.shape)), {}

    def changes(
        self, derivatives: Derivatives, places: list[tuple[str, int]]
    ) -> tuple[dict[str, Array], dict[tuple[str, int, float], Array]]:
        """Differences of the data, a column for each place; and the rates of activations beside the present state."""
        names = ("free", "mass", "rows", "gap_rate", "joints", "joint_rate", "tangent_rate")
        change = {name: np.zeros((*getattr(self.base, name).shape, len(places))) for name in names}
        rates: dict[tuple[str, int, float], Array] = {}
        length, nv = self.eps * len(self.signs), self.engine.model.nv
        two = len(self.signs) == 2

        # Velocities and controls move no body: only forces change, and with them the free velocity.
        pushed = np.zeros((len(self.base.free), len(places)))
        whole = [column for column, (what, _) in enumerate(places) if what == "qpos" or self.whole]
        for column in sorted(set(range(len(places))) - set(whole)):
            what, k = places[column]
            forces = []
            for sign in self.signs:
                self.compute_beside(what, k, sign)
                forces.append(np.array(self.engine.data.qfrc_smooth))
                rates[what, k, sign] = np.array(self.engine.data.act_dot)
            pushed[:nv, column] = (forces[0] - (forces[1] if two else self.force)) / length
            if what == "qvel":
                change["free"][k, column] = 1.0
        whitening = derivatives.ground.whitening
        change["free"] += self.dt * whitening.velocity(whitening.force(pushed))

        # Positions move everything; they come last, so that until now all that follows from them was there.
        ahead: list[Data] = []
        back: list[Data] = []
        for column in whole:
            what, k = places[column]
            for sign, side in zip(self.signs, (ahead, back), strict=False):
                self.compute_beside(what, k, sign)
                side.append(self.data_of(self.gathered()))
                rates[what, k, sign] = side[-1].rate_of_activation
        back = back if two else [self.base] * len(whole)
        for name in names:
            for column, one, other in zip(whole, ahead, back, strict=True):
                change[name][..., column] = (getattr(one, name) - getattr(other, name)) / length
        if two and self.problem.n and whole:
            self.tame_jumps(change, np.array(whole), ahead, back)
        return {name: value for name, value in change.items() if value.size}, rates

    def tame_jumps(
        self, change: dict[str, Array], whole: NDArray[np.int64], ahead: list[Data], back: list[Data]
    ) -> None:
        """Where a contact jumps on one side of the present state, take the other side's difference."""
        one = np.stack([a.rows - self.base.rows for a in ahead], -1) / self.eps
        two = np.stack([self.base.rows - b.rows for b in back], -1) / self.eps
        first, second = (np.abs(side).max(axis=(1, 2)) for side in (one, two))
        far = np.abs(one - two).max(axis=(1, 2)) > JUMP * (1.0 + np.maximum(first, second)) + SUDDEN / self.eps
        for i, at in np.argwhere(far):
            better, column = one if first[i, at] <= second[i, at] else two, whole[at]
            change["rows"][i, :, :, column] = better[i, :, :, at]
            data = (ahead if better is one else back)[at]
            side = 1.0 if better is one else -1.0
            change["gap_rate"][i, column] = side * (data.gap_rate[i] - self.base.gap_rate[i]) / self.eps
            if len(self.base.tangent_rate):
                moved = data.tangent_rate[i] - self.base.tangent_rate[i]
                change["tangent_rate"][i, :, column] = side * moved / self.eps
            self.jumps.add(int(i))

    def end(
        self, what: str, k: int, sign: float, velocity: Array, impulse: Array, joint_impulse: Array, act_dot: Array,
        sensors: bool,
    ) -> tuple[tuple[Array, ...], Array]:  # fmt: skip
        """State and sensors after a step beside the present one, its answer known."""
        engine = self.engine
        set_state(engine.shadow, engine.data, self.state)
        if what:
            stages.nudge(engine.shadow, engine.data, what, k, sign * self.eps)
        if sensors and engine.senses:
            engine.refresh()
            now = engine.gather()
            p = np.zeros(now.rows.shape[:2])
            if now.n:
                previous = match(engine.memory, self.found, now) if self.found.n else np.full(now.n, -1)
                p[previous >= 0] = impulse[previous[previous >= 0]]
            write_back(engine.memory, now, velocity, p, joint_impulse)
            stages.sense(engine.shadow, engine.data, engine.joined)
        seen = np.array(engine.data.sensordata)
        return stages.euler_end(engine.shadow, engine.data, velocity, act_dot, self.dt), seen


def copied(found: Constraints) -> Constraints:
    """The same in memory of its own."""
    return Constraints._make(np.array(each) for each in found)
