"""A scene and its data, bound together: the contact problem of the next step is asked for, its answer applied."""

from __future__ import annotations

import copy
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from stiction.arrays.vectors import ZEROS
from stiction.bodies.collision.mend import search_of
from stiction.bodies.inputs import COUNT, FIT, GEOM_SIZE, message
from stiction.bodies.report import twisting
from stiction.bodies.stages import advance, after_control, before_control, may_act
from stiction.bodies.state import copy_data, place_bodies
from stiction.bodies.structs import SURFACES, WIDEST
from stiction.contacts.gather import COUNTS, Constraints, gather
from stiction.contacts.identity import PLACES, carry
from stiction.contacts.margins import begin
from stiction.contacts.write_back import write_back
from stiction.errors import InvalidScene, StictionError
from stiction.stepping.record import Step
from stiction.stepping.restitution import Given, Table, coefficients, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stiction.bodies.scene import Scene
    from stiction.problems.contact import ContactProblem
    from stiction.problems.laws import Law
    from stiction.solutions.contact import ContactSolution
    from stiction.stepping.report import Report


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
    """The memory of one simulation between steps: MuJoCo's own, and the impulses to begin the next solve from.

    model: the user's; shadow: ours, which MuJoCo's functions are called with (`bodies.shadow`)
    """

    def __init__(self, scene: Scene, data: Any) -> None:
        self.scene, self.model, self.data = scene, scene.model, data
        self.shadow, self.memory = scene.bind(data)
        self.turn = turn_of(data)
        self.acquire, self.release = self.turn.lock.acquire, self.turn.lock.release
        self.mended = self.memory if scene.mends else None
        self.search = search_of(self.model)
        self.margin = -1.0 if scene.margin is None else float(scene.margin)
        self.senses, self.joined, self.acts = self.model.nsensor > 0, self.model.neq > 0, may_act(self.model)
        self.scratch = np.empty(6 * self.model.nbody)
        self.prepared = False  # whether all that comes before controls are set has been computed (`prepare`)
        self.last: Step | None = None
        self.problem: ContactProblem | None = None
        self.returned: tuple[Given, Table] | None = None
        self.contradictions: tuple[str, ...] = ()  # what contradicted what when positions were last put right
        # Numbers that `fused.make_step` found to need: floats and ints of a step, floats and ints to work on.
        self.need = np.array([0, COUNTS, 0, 0])
        self.sizes, self.floats, self.ints = (0, COUNTS), np.empty(0), np.empty(0, np.int64)
        self.spent = 0  # Newton steps of the last attempt in one call
        self.fused: Any = None
        self.crew: Any = None  # threads that solve islands of a step, if there are any (`stepping.crew`)
        self.one_call: Any = None  # a step in one call, after the first (`stepping.one_call`); False if there is none
        self.memory.where[WIDEST] = 3 if "torsion" in scene.ignore else 6
        self.memory.where[SURFACES] = "surfacevel" not in scene.ignore
        self.zero: Any = ZEROS[6 if self.turns else 3]  # of a contact, with as many numbers as contacts have directions
        memory = self.memory
        self.begin = direct(begin, memory.where, memory.model, memory.data, self.margin, self.scratch)

    @classmethod
    def resumed(cls, scene: Scene, data: Any, last: Step | None, problem: ContactProblem | None) -> Engine:
        """An engine for a copy of this data, which goes on from the last step with the same bits."""
        made = cls(scene, copy.copy(data))
        copy_data(scene.model, data, made.data)  # once more: places of bodies were computed anew meanwhile
        made.last, made.problem = last, problem
        return made

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

    @property
    def turns(self) -> bool:
        """Whether torsional or rolling friction is to be taken from the model."""
        return self.memory.where[WIDEST] > 3 and bool(twisting(self.model))

    @property
    def carries(self) -> bool:
        """Whether surfaces move by themselves."""
        return bool(self.memory.where[SURFACES] and self.model.flg_surfacevel)

    def look(self) -> None:
        """Kinematics, forces and contacts of the present state, as MuJoCo keeps them."""
        if self.prepared:
            self.prepared = False
            after_control(self.shadow, self.data, self.acts)
            return
        if self.scene.control is not None:
            self.scene.control(self.model, self.data)
        self.refresh()

    def prepare(self) -> None:
        """The part of `look` that controls and applied forces do not change; the next `look` does the rest."""
        self.prepared = False
        self.check_inputs()
        self.search = before_control(self.shadow, self.data, self.mended, self.search)
        self.prepared = True

    def gather(self, law: Law | None = None, flat: bool = True) -> Constraints:
        """The constraints of the state that was looked at; without friction there are no torsion and rolling either.

        flat: as in `contacts.gather`
        """
        taken = self.memory.where[WIDEST]
        try:
            if law is not None and law.kind == "frictionless":
                self.memory.where[WIDEST] = 3
            return gather(self.memory, flat)
        finally:
            self.memory.where[WIDEST] = taken

    def refresh(self) -> None:
        """Look without asking for control; a state that must not enter a step is refused."""
        self.check_inputs()
        self.compute_forces()

    def compute_forces(self) -> None:
        """Kinematics, contacts and all forces but those of constraints."""
        self.search = before_control(self.shadow, self.data, self.mended, self.search)
        after_control(self.shadow, self.data, self.acts)

    def check_inputs(self) -> None:
        """Set options and margins of the next step; raise InvalidScene for a state that must not enter it."""
        model, data, where = self.memory
        unfit = self.begin(where, model, data, self.margin, self.scratch)
        if unfit != FIT:
            self.refuse(unfit)

    def refuse(self, unfit: int) -> None:
        """Raise InvalidScene, unless places of geoms alone are to blame, left by a step of others that failed."""
        if unfit % COUNT == GEOM_SIZE:
            place_bodies(self.shadow, self.data)
            model, data, where = self.memory
            unfit = self.begin(where, model, data, self.margin, self.scratch)
        if unfit != FIT:
            raise InvalidScene(message(unfit, self.model, self.data))

    def start(self, found: Constraints) -> NDArray[np.float64] | None:
        """Impulses of the last step at the contacts that are still there."""
        if self.last is None or not self.last.constraints.n or not found.n:
            return None
        last, n = self.last.arrays, found.n
        start = np.empty(found.rows.shape[:2])
        taken, previous = np.empty(PLACES * last.constraints.n, np.int64), np.empty(n, np.int64)
        carry(self.memory.model, last.constraints, last.impulse, found, taken, previous, start)
        return start

    def keep(self, found: Constraints, impulse: NDArray[np.float64]) -> None:
        """Remember a step; the pace of those before it, but not for how long they were to be taken apart."""
        pace = 0 if self.last is None else self.last.kept[1]
        self.last = Step.of(found, impulse, (0, pace))

    @property
    def gathered(self) -> Constraints | None:
        """The constraints of the last step."""
        return None if self.last is None else self.last.constraints

    @property
    def impulse(self) -> NDArray[np.float64]:
        """(n, d) of the last step, in N s."""
        return np.zeros((0, 3)) if self.last is None else self.last.impulse

    def make_room(self) -> None:
        """Enlarge the workspace to what a step was found to need, and somewhat beyond."""
        floats, ints, scratch, places = (int(SPARE * size) for size in self.need)
        self.sizes = max(self.sizes[0], floats), max(self.sizes[1], ints)
        if self.floats.size < scratch:
            self.floats = np.empty(scratch)
        if self.ints.size < places:
            self.ints = np.empty(places, np.int64)

    def bounce(self, owner: str, given: Given, found: Constraints) -> NDArray[np.float64]:
        """(n,) coefficients of restitution of contacts; `owner` is whose option it is."""
        if not isinstance(given, tuple):
            return np.full(found.n, given)
        if self.returned is None or self.returned[0] != given:
            self.returned = given, table(self.model, owner, given)
        return coefficients(self.returned[1], found)

    def apply(self, found: Constraints, solution: ContactSolution) -> None:
        """Write the forces where MuJoCo keeps its own, and move."""
        write_back(self.memory, found, solution.velocity, solution.impulse, solution.joint_impulse)
        advance(self.shadow, self.data, self.senses, self.joined)


def direct(kernel: Any, *arguments: Any) -> Any:
    """The compiled form of a kernel for arguments of these kinds, so that calls need not look it up."""
    return kernel.for_arguments(*arguments) if hasattr(kernel, "for_arguments") else kernel
