"""Many steps in one compiled call that holds no lock of the interpreter.

The loop calls MuJoCo's C functions and the kernels `begin` and `make_step` by their addresses, the same machine code
that `st.step` runs one after the other, so that both give the same bits. What needs Python returns there: more room, a
step that is not certified, input that is refused, and an arena that is getting full.

That last one is for safety. MuJoCo ends the process at an error if its functions are not called through its Python
bindings. The first step of a data goes through these (`stepping.rollout`); after it, there is one error that a step can
still meet: the stack, which shares the arena with contacts and constraints, overflows. While half of the arena and
`ROOM` bytes of it are free it does not, unless thousands of contacts come about in one step; with less, every step goes
through the bindings, which raise. MuJoCo's arenas have 13 MiB and more unless a model asks for less (`<size memory>`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import is_compiled, without_lock
from stiction.bodies.foreign import address_of, addresses_in_mujoco, call_begin, call_c, call_step
from stiction.bodies.inputs import FIT
from stiction.bodies.pointers import floats as numbers_at
from stiction.bodies.pointers import words as words_at
from stiction.bodies.shadow import callbacks
from stiction.contacts.margins import begin as begin_kernel
from stiction.optional import mujoco
from stiction.stepping.engine import direct
from stiction.stepping.fused import (
    DONE,
    MORE_ROOM,
    STILL,
    TOO_WIDE,
    UNCERTIFIED,
    UNFIT,
    Fused,
    make_step,
)
from stiction.stepping.one_call import LIKE_STEP, ROOM, place
from stiction.stepping.record import EMPTY, Step
from stiction.stepping.time_stepping import CONE, TimeStepping

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.laws import Law
    from stiction.stepping.engine import Engine

mj = mujoco()
FUNCTIONS = (
    "mj_setState", "mj_step1", "mj_fwdActuation", "mj_fwdAcceleration", "mj_rnePostConstraint", "mj_sensorAcc",
    "mj_Euler", "mj_getState",
)  # fmt: skip
SET_STATE, STEP1, ACTUATION, ACCELERATION, BODY_FORCES, SENSORS, EULER, GET_STATE = range(8)
BEGIN, MAKE = range(8, 10)
# Numbers about a rollout: addresses of shadow, data, its sensor data, the arena's size and use; counts and flags.
SHADOW, DATA, SENSED, ARENA, USED, CONTROLS, SENSES, ACTS, JOINED, SPEC, PHYSICS, WARM = range(12)
PHYSICS_SPEC = int(mj.mjtState.mjSTATE_FULLPHYSICS)
ENDED, REFUSED, CROWDED = -1, -2, -3  # why the loop returned, unless the status of a step is the reason


def can_loop(engine: Engine, law: Law, stepper: Any) -> bool:
    """Whether steps of this kind can be made without Python in between."""
    model = engine.model
    plain = law == CONE and type(stepper) is TimeStepping and not stepper.restitution and engine.scene.control is None
    return bool(
        plain and is_compiled() and engine.mended is None and not model.nplugin and not callbacks()
        and addresses_in_mujoco(*FUNCTIONS) is not None
    )  # fmt: skip


class Trajectory(NamedTuple):
    """Inputs and outputs of the steps, step by step."""

    control: Any
    state: Any
    sensordata: Any
    residual: Any


class Loop:
    """The compiled steps of one engine."""

    def __init__(self, engine: Engine, stepper: TimeStepping, spec: int) -> None:
        self.engine, self.settings, self.warm, self.zero = engine, stepper.settings, stepper.warm, engine.zero
        data, model = engine.data, engine.model
        self.about = np.array([
            engine.shadow._address, data._address, data.sensordata.ctypes.data,
            data._address + place("narena"), data._address + place("maxuse_arena"),
            mj.mj_stateSize(model, spec), model.nsensordata, engine.acts, engine.joined, spec, PHYSICS_SPEC,
            stepper.warm,
        ], np.int64)  # fmt: skip
        self.buffers = [buffers(engine), buffers(engine)]  # of two steps, in turns
        self.call: Any = None

    def ready(self) -> bool:
        """Find the machine code; False where kernels are not compiled here."""
        engine, (model, data, where) = self.engine, self.engine.memory
        known = addresses_in_mujoco(*FUNCTIONS)
        begin = address_of(begin_kernel, (where, model, data, engine.margin, engine.scratch), FIT)
        records = (EMPTY.floats, EMPTY.ints, *self.buffers[0], engine.floats, engine.ints, engine.need)
        made = address_of(make_step, (model, data, where, *records, self.settings, engine.zero), LIKE_STEP)
        if known is None or begin is None or made is None:
            return False
        self.addresses = np.array([*known, begin, made], np.int64)
        return True

    def run(
        self, t: int, end: int, control: NDArray[np.float64], state: NDArray[np.float64],
        sensordata: NDArray[np.float64], residual: NDArray[np.float64],
    ) -> tuple[int, int, Step | None]:  # fmt: skip
        """Make steps from t on; returns the step at which it stopped, why, and what was found of it if it was begun."""
        engine, looked = self.engine, False
        trajectory = Trajectory(control, state, sensordata, residual)
        old = engine.last if self.warm and engine.last is not None else EMPTY
        while True:
            for k, (floats, ints) in enumerate(self.buffers):
                if floats.size < engine.sizes[0] or ints.size < engine.sizes[1]:
                    self.buffers[k] = buffers(engine)
            scene = (*engine.memory, engine.margin, engine.scratch)
            records, room = ((old.floats, old.ints), *self.buffers), (engine.floats, engine.ints, engine.need)
            given = (
                self.addresses, self.about, t, end, looked, trajectory, scene, records, room, self.settings, self.zero,
                LIKE_STEP,
            )  # fmt: skip
            if self.call is None:
                self.call = direct(run_steps, *given)
            t, made, why, found = self.call(*given)
            if made % 2 == 1:
                self.buffers.reverse()
            if made:
                # The last step is in the second buffer; the first is the one to write to next.
                engine.last, engine.problem = Step(*self.buffers[1]), None
                old = engine.last if self.warm else EMPTY
            if why != MORE_ROOM:
                break
            engine.make_room()
            looked = True
        if why not in (UNCERTIFIED, STILL):
            return t, UNFIT if why == TOO_WIDE else why, None
        tried = Step(*self.buffers[0])
        if why == STILL:
            tried = Fused(*self.buffers[0], found[5], found[1], self.settings, True)
        self.buffers[0] = buffers(engine)
        return t, why, tried


def buffers(engine: Engine) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Buffers for the record of a step."""
    return np.empty(engine.sizes[0]), np.empty(engine.sizes[1], np.int64)


@without_lock
def run_steps(addresses, about, t, end, looked, trajectory, scene, records, room, settings, zero, like):
    """Make steps t to end; return the step that is to be made next, how many were made, why no more, and what of it.

    looked: whether MuJoCo has prepared step t already; records: of the last step, of the next, and a spare one
    """
    model, data, where, margin, scratch = scene
    (old_floats, old_ints), (new_floats, new_ints), (spare_floats, spare_ints) = records
    floats, ints, need = room
    control, residual = trajectory.control, trajectory.residual
    shadow, of_data = about[SHADOW], about[DATA]
    sensed, arena, used = numbers_at(about[SENSED]), words_at(about[ARENA]), words_at(about[USED])
    made = 0
    while t < end:
        # Look: the control, then all that comes before the constraints are solved.
        if not looked:
            if 2 * used[0] > arena[0] or arena[0] - used[0] < ROOM:
                return t, made, CROWDED, like
            if about[CONTROLS] > 0 and control.size > 0:
                call_c(addresses[SET_STATE], shadow, of_data, control[t].ctypes.data, about[SPEC])
            if call_begin(addresses[BEGIN], 0, where, model, data, margin, scratch) != FIT:
                return t, made, REFUSED, like
            call_c(addresses[STEP1], shadow, of_data, 0, 0)
            if about[ACTS] != 0:
                call_c(addresses[ACTUATION], shadow, of_data, 0, 0)
            call_c(addresses[ACCELERATION], shadow, of_data, 0, 0)
        looked = False

        # The step itself; what is not certified is not written.
        found = call_step(
            addresses[MAKE], like, model, data, where, old_floats, old_ints, new_floats, new_ints, floats, ints, need,
            settings, zero,
        )  # fmt: skip
        if found[0] != DONE:
            return t, made, found[0], found

        # Advance, and keep what came of it.
        if about[JOINED] != 0:
            call_c(addresses[BODY_FORCES], shadow, of_data, 0, 0)
        if about[SENSES] > 0:
            call_c(addresses[SENSORS], shadow, of_data, 0, 0)
        call_c(addresses[EULER], shadow, of_data, 0, 0)
        call_c(addresses[GET_STATE], shadow, of_data, trajectory.state[t].ctypes.data, about[PHYSICS])
        for i in range(about[SENSES]):
            trajectory.sensordata[t, i] = sensed[i]
        residual[t] = found[5][0]
        t += 1
        made += 1

        # This step is the last one from now on; the buffer before it is written to next.
        if about[WARM] != 0:
            old_floats, old_ints = new_floats, new_ints
        new_floats, new_ints, spare_floats, spare_ints = spare_floats, spare_ints, new_floats, new_ints
    return t, made, ENDED, like
