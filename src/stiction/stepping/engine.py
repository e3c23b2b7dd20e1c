"""A scene and its data, bound together: the contact problem of the next step is asked for, its answer applied."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from stiction.bodies.inputs import COUNT, FIT, GEOM_SIZE, message
from stiction.bodies.stages import advance, may_act, smooth
from stiction.bodies.state import place_bodies
from stiction.compiled import kernel
from stiction.contacts.gather import DRY, Gathered, gather
from stiction.contacts.identity import match
from stiction.contacts.margins import begin
from stiction.contacts.write_back import write_back
from stiction.errors import InvalidScene, StictionError
from stiction.problems.contact import ContactProblem, restored
from stiction.problems.laws import Law, Viscous, kind
from stiction.problems.normal_form import consistent_rates, row_dot
from stiction.stepping.restitution import Given, Table, coefficients, table
from stiction.stepping.sheet import COUNTS, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stiction.bodies.scene import Scene
    from stiction.solutions.contact import ContactSolution
    from stiction.stepping.report import Report


CLOSED = 5e-10  # rate of a gap, over the fastest free approach of all contacts, that is rounding
SPARE = 1.25  # room that is made, over what is needed
BUSY = (
    "this data is being stepped already, by another thread or by the step that calls this one: give each thread its "
    "own Simulation or MjData (they may share the model), or let the threads take turns"
)

_turns: WeakKeyDictionary[Any, Turn] = WeakKeyDictionary()
_giving_turns = threading.Lock()


class Turn:
    """Whose turn it is to change a data: MuJoCo's functions would crash if two threads did at once.

    The lock keeps other threads out, `taken` the same thread, from within a step. An interrupt may leave the lock to
    the thread that it hit, which does no harm.
    """

    __slots__ = ("lock", "taken")

    def __init__(self) -> None:
        self.lock, self.taken = threading.RLock(), False


def turn_of(data: Any) -> Turn:
    with _giving_turns:
        turn = _turns.get(data)
        if turn is None:
            turn = _turns[data] = Turn()
        return turn


@contextmanager
def alone(data: Any) -> Iterator[None]:
    """Raise if this data is being stepped, and let nobody step it meanwhile."""
    turn = turn_of(data)
    if not turn.lock.acquire(False):
        raise StictionError(BUSY)
    try:
        if turn.taken:
            raise StictionError(BUSY)
        turn.taken = True
        try:
            yield
        finally:
            turn.taken = False
    finally:
        turn.lock.release()


class Engine:
    """What one simulation keeps between steps: MuJoCo's memory, and the impulses to begin the next solve from.

    model: the user's; shadow: ours, which MuJoCo's functions are called with (`bodies.shadow`)
    """

    def __init__(self, scene: Scene, data: Any) -> None:
        self.scene, self.model, self.data = scene, scene.model, data
        self.shadow, self.memory = scene.bind(data)
        self.turn = turn_of(data)
        self.acquire, self.release = self.turn.lock.acquire, self.turn.lock.release
        self.mended = self.memory if scene.mends else None
        self.margin = -1.0 if scene.margin is None else float(scene.margin)
        self.senses, self.joined, self.acts = self.model.nsensor > 0, self.model.neq > 0, may_act(self.model)
        self.scratch = np.empty(6 * self.model.nbody)
        self.last: Sheet | None = None
        self.problem: ContactProblem | None = None
        self.returned: tuple[Given, Table] | None = None
        # Numbers that `quick.one_call` found to need: floats and ints of a step, floats and ints to work on.
        self.need = np.array([0, COUNTS, 0, 0])
        self.sizes, self.floats, self.ints = (0, COUNTS), np.empty(0), np.empty(0, np.int64)
        self.one_call: Any = None
        memory = self.memory
        self.begin = direct(begin, memory.where, memory.model, memory.data, self.margin, self.scratch)

    def step(self, stepper: Any, law: Law, solver: Any, data: Any = None) -> Report:
        """One step, if nobody else is making one; data: for engines that keep none."""
        if not self.acquire(False):
            raise StictionError(BUSY)
        turn = self.turn
        try:
            if turn.taken:
                raise StictionError(BUSY)
            turn.taken = True
            try:
                if data is not None:
                    self.data = data
                return stepper.step(self, law, solver)  # type: ignore[no-any-return]
            finally:
                turn.taken = False
                if data is not None:
                    self.data = None  # an engine that kept its data would keep it alive
        finally:
            self.release()

    def look(self) -> Gathered:
        """Kinematics, forces and contacts of the present state."""
        self.prepare()
        return gather(self.memory)

    def prepare(self) -> None:
        """Kinematics, forces and contacts, as MuJoCo keeps them."""
        if self.scene.control is not None:
            self.scene.control(self.model, self.data)
        self.refresh()

    def refresh(self) -> None:
        """The same under the controls as they are; what must not enter a step is refused."""
        model, data, where = self.memory
        unfit = self.begin(where, model, data, self.margin, self.scratch)
        if unfit != FIT:
            self.refuse(unfit)
        smooth(self.shadow, self.data, self.mended, self.acts)

    def refuse(self, unfit: int) -> None:
        """Raise InvalidScene, unless places of geoms alone are to blame, left by a step of others that failed."""
        if unfit % COUNT == GEOM_SIZE:
            place_bodies(self.shadow, self.data)
            model, data, where = self.memory
            unfit = self.begin(where, model, data, self.margin, self.scratch)
        if unfit != FIT:
            raise InvalidScene(message(unfit, self.model, self.data))

    def start(self, found: Gathered) -> NDArray[np.float64] | None:
        """Impulses of the last step at the contacts that are still there."""
        last = self.gathered
        if last is None or not last.n or not found.n:
            return None
        previous = match(self.memory, last, found)
        start = np.zeros((found.n, 3))
        carry(previous, self.impulse, start)
        return start

    def keep(self, found: Gathered, impulse: NDArray[np.float64]) -> None:
        """Remember a step."""
        self.last = Sheet.of(found, impulse)

    @property
    def gathered(self) -> Gathered | None:
        """The constraints of the last step."""
        return None if self.last is None else self.last.found

    @property
    def impulse(self) -> NDArray[np.float64]:
        """(n, 3) of the last step, in N s."""
        return np.zeros((0, 3)) if self.last is None else self.last.impulse

    def make_room(self) -> None:
        """For steps of the size that was found to be needed, and somewhat larger ones, from now on."""
        floats, ints, scratch, places = (int(SPARE * size) for size in self.need)
        self.sizes = max(self.sizes[0], floats), max(self.sizes[1], ints)
        if self.floats.size < scratch:
            self.floats = np.empty(scratch)
        if self.ints.size < places:
            self.ints = np.empty(places, np.int64)

    def bounce(self, owner: str, given: Given, found: Gathered) -> NDArray[np.float64]:
        """(n,) coefficients of restitution of contacts; `owner` is whose option it is."""
        if not isinstance(given, tuple):
            return np.full(found.n, given)
        if self.returned is None or self.returned[0] != given:
            self.returned = given, table(self.model, owner, given)
        return coefficients(self.returned[1], found)

    def apply(self, found: Gathered, solution: ContactSolution) -> None:
        """Write the forces where MuJoCo keeps its own, and move."""
        write_back(self.memory, found, solution.velocity, solution.impulse, solution.joint_impulse)
        advance(self.shadow, self.data, self.senses, self.joined)


def direct(kernel: Any, *arguments: Any) -> Any:
    """A kernel as compiled for arguments of these kinds, without the search for it that its every call begins with."""
    return kernel.for_arguments(*arguments) if hasattr(kernel, "for_arguments") else kernel


def pose(
    found: Gathered, law: Law, dt: float, recovery: float, bounce: float | NDArray[np.float64] = 0.0,
    viscosity: float | None = None, before: NDArray[np.float64] | None = None,
) -> ContactProblem:  # fmt: skip
    """The contact problem of a step; nothing is copied that need not be.

    recovery: speed, in m/s, with which overlaps and errors of joints are taken back at most
    bounce, before: part of its speed that a contact which hits returns, and velocities of all before the step; without
        `before` nothing hits, contacts close their gaps
    viscosity: in N / (m/s), for `Viscous`
    """
    n, m, j = found.n, len(found.free), len(found.joint_gap)
    rows, segments = found.rows, found.segments
    gap_rate, joint_rate, joints = np.empty(n), np.empty(j), np.zeros((j, m))
    set_rates(
        found.gap, rows, segments, dt, recovery, NONE if before is None else np.full(n, bounce),
        NONE if before is None else before, found.free, gap_rate,
    )  # fmt: skip
    if j:
        set_joints(found.joints, found.joint_segments, found.joint_gap, dt, recovery, joints, joint_rate)
        make_consistent(found.mass, found.starts, joints, joint_rate)
    if kind(law) not in ("cone", "pyramid", "box") and (found.kind == DRY).any():
        raise InvalidScene(f"dry friction of joints (frictionloss) needs a law of Coulomb's, not {law}")
    return restored({
        "mass": found.mass,
        "trees": found.starts,
        "velocity": found.free,
        "rows": rows,
        "segments": segments,
        "friction": found.friction,
        "gap_rate": gap_rate,
        "joints": joints,
        "joint_rate": joint_rate,
        "viscosity": np.full(n, dt * viscosities(viscosity)) if isinstance(law, Viscous) else None,
        "slip": None,
        "law": law,
        "delassus": None,
        "offset": None,
        "dim": 3,
    })  # fmt: skip


def make_consistent(
    mass: NDArray[np.float64], trees: NDArray[np.int64], joints: NDArray[np.float64], rate: NDArray[np.float64]
) -> None:
    """Make redundant bilateral rows ask for nothing that the others do not allow (`normal_form.leave_redundant`)."""
    j, m = joints.shape
    most = min(j, m)
    consistent_rates(
        mass, trees, joints, rate, np.empty(mass.size), np.empty(m, np.int64), np.empty((j, m)), np.empty((most, m)),
        np.empty(most, np.int64), np.empty((most, most)), np.empty(most), np.empty(j),
    )  # fmt: skip


def viscosities(given: float | None) -> float:
    if given is None:
        raise InvalidScene("the law Viscous needs a viscosity in N / (m/s): give it to the stepper")
    return given


NONE = np.zeros(0)


@kernel
def set_rates(gap, rows, segments, dt, recovery, bounce, before, free, rate):
    """u_n >= 0 keeps the gap from closing: gap / dt, bounded where it is overlap; at impacts e v_n instead.

    Gaps that are the rounding of steps before count as closed. They never fit together, and where contacts outnumber
    the motions that they resist, fitting them would move all of what is at rest by as much, in every step.
    """
    fastest = 0.0
    for i in range(len(gap)):
        fastest = max(fastest, abs(row_dot(rows[i, 0], segments[i], free)))
    for i in range(len(gap)):
        rate[i] = max(gap[i] / dt, -recovery)
        if abs(rate[i]) <= CLOSED * fastest:
            rate[i] = 0.0
        if len(before) > 0:
            speed = hit(rows[i, 0], segments[i], gap[i], dt, before, free)
            if speed < 0.0:
                rate[i] = min(rate[i], bounce[i] * speed)


@kernel
def hit(row, segment, gap, dt, before, free):
    """The speed with which a contact hits in this step, negative; zero if it does not.

    What approaches no faster than the forces of one step make it is held, not hit.
    """
    speed = row_dot(row, segment, before)
    if speed < -abs(row_dot(row, segment, free) - speed) and gap + dt * speed <= 0.0:
        return speed
    return 0.0


@kernel
def set_joints(rows, segments, error, dt, recovery, joints, rate):
    for i in range(len(rows)):
        taken = 0
        for s in range(2):
            for e in range(segments[i, 2 * s + 1]):
                joints[i, segments[i, 2 * s] + e] = rows[i, taken]
                taken += 1
        rate[i] = min(max(error[i] / dt, -recovery), recovery)


@kernel
def carry(previous, impulse, start):
    for i in range(len(previous)):
        if previous[i] >= 0:
            for c in range(3):
                start[i, c] = impulse[previous[i], c]
