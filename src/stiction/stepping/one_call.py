"""A step in one call: MuJoCo's stages and `make_step` by their addresses, without Python in between.

The same machine code that the step runs one call after the other, so that both give the same bits; what it saves are
some eight calls from Python, a µs or two a step. As in `loop`, the first step of a data goes through MuJoCo's bindings,
and so does every step while the arena is not half empty. Callbacks of MuJoCo's are seen at every step. Whatever is not
plain returns to Python: callbacks, input that is refused, contacts to be mended, a step that is not made, and one whose
positions are to be put right apart.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.compiled import is_compiled, without_lock
from stiction.bodies.collision.mend import RIGHT, SPARE, STAGED, look_over
from stiction.bodies.foreign import (
    address_of,
    addresses_in_mujoco,
    call_begin,
    call_c,
    call_look,
    call_step,
)
from stiction.bodies.inputs import FIT
from stiction.bodies.pointers import words as words_at
from stiction.bodies.shadow import CALLBACKS, callbacks
from stiction.bodies.stages import after_control, put_in_order
from stiction.bodies.structs import Struct
from stiction.contacts.gather import WAIT
from stiction.contacts.margins import begin as begin_kernel
from stiction.stepping.engine import direct
from stiction.stepping.fused import (
    DONE,
    INTEGER,
    NO_CERTIFICATE,
    STILL,
    Fused,
    Settings,
    empty,
    leaves_positions,
    make_step,
)
from stiction.stepping.record import EMPTY
from stiction.stepping.report import Report

if TYPE_CHECKING:
    from stiction.stepping.engine import Engine

FUNCTIONS = ("mj_step1", "mj_fwdActuation", "mj_fwdAcceleration", "mj_rnePostConstraint", "mj_sensorAcc", "mj_Euler")
STEP1, ACTUATION, ACCELERATION, BODY_FORCES, SENSORS, EULER, BEGIN, LOOK, MAKE, GLOBALS = range(10)
# Addresses and flags, and from NONE on what MuJoCo's variables hold while there are no callbacks.
SHADOW, DATA, ARENA, USED, MENDS, ACTS, JOINED, SENSES, NONE = range(9)
NOT_LOOKED, UNSORTED, MADE, MOVED = range(4)  # how far a call has come; with UNSORTED, contacts are to be mended
ROOM = 1 << 22  # bytes of the arena that must be free: some thousand contacts
LIKE_STEP = (0, 0, 0.0, 0.0, 0.0, NO_CERTIFICATE)  # what `make_step` returns


class OneCall:
    """The compiled step of one engine."""

    def __init__(self, engine: Engine, addresses: tuple[int, ...]) -> None:
        data, mends = engine.data, engine.mended is not None
        self.call: Any = None
        self.addresses = np.array(addresses, np.int64)
        self.about = np.array([
            engine.shadow._address, data._address, data._address + place("narena"),
            data._address + place("maxuse_arena"), mends, engine.acts, engine.joined, engine.senses,
            *(ctypes.c_int64.from_address(address).value for address in addresses[GLOBALS:]),
        ], np.int64)  # fmt: skip

    def __call__(self, engine: Engine, settings: Settings, warm: bool) -> tuple[Report | None, Any, bool]:
        """The report of a step; or what `fused_step` is to go on with, and whether MuJoCo has prepared the step."""
        if engine.search == STAGED and engine.mended is not None:
            return None, None, False
        old: Any = engine.last if warm and engine.last is not None else EMPTY
        floats, ints = empty(engine.sizes[0]), empty(engine.sizes[1], INTEGER)
        given = (
            self.addresses, self.about, engine.memory, engine.margin, engine.scratch, SPARE,
            (old.floats, old.ints, floats, ints, engine.floats, engine.ints, engine.need), settings, engine.zero,
            LIKE_STEP,
        )  # fmt: skip
        if self.call is None:
            self.call = direct(whole_step, *given)
        far, order, found = self.call(*given)
        if far == MOVED:
            status, steps, time, potential, kinetic, judged = found
            made = Fused(floats, ints, judged, steps, settings, status == STILL)
            engine.problem, engine.last = None, made
            return Report(time, potential, kinetic, made, engine.contradictions if made.still else ()), None, True
        if far == UNSORTED:
            assert engine.mended is not None
            engine.search = put_in_order(engine.shadow, engine.data, engine.mended, engine.search, order)
            after_control(engine.shadow, engine.data, engine.acts)
            return None, None, True
        return None, (floats, ints, found) if far == MADE else None, far == MADE


def one_call_of(engine: Engine) -> OneCall | None:
    """The compiled step of an engine that has made one already; None where steps must go through Python."""
    model, data, where = engine.memory
    if not is_compiled() or engine.model.nplugin or engine.scene.control is not None or callbacks():
        return None
    known = addresses_in_mujoco(*FUNCTIONS, *(f"mjcb_{name}" for name in CALLBACKS))
    begin = address_of(begin_kernel, (where, model, data, engine.margin, engine.scratch), FIT)
    look = address_of(look_over, (model, data, where, SPARE), RIGHT) if engine.mended is not None else 0  # never called
    last: Any = engine.last
    settings = Settings(0.0, 0.0, 0.0, 0.0)
    records = (last.floats, last.ints, last.floats, last.ints, engine.floats, engine.ints, engine.need)
    made = address_of(make_step, (model, data, where, *records, settings, engine.zero), LIKE_STEP)
    if known is None or begin is None or look is None or made is None:
        return None
    count = len(FUNCTIONS)
    return OneCall(engine, (*known[:count], begin, look, made, *known[count:]))


def place(name: str) -> int:
    """The offset of a field in mjData."""
    from importlib import import_module

    structs = import_module("mujoco.introspect.structs").STRUCTS
    return Struct(structs, structs["mjData"].fields).place(name)[0]


@without_lock
def whole_step(addresses, about, memory, margin, scratch, rows, records, settings, zero, like):
    """Make a step; return how far it has come, whether contacts are right, and what `make_step` has returned.

    records: of the last step and of this one, workspace and `need`, as `make_step` takes them
    """
    model, data, where = memory
    old_floats, old_ints, new_floats, new_ints, floats, ints, need = records
    shadow, of_data, arena, used = about[SHADOW], about[DATA], words_at(about[ARENA]), words_at(about[USED])

    # Callbacks need the interpreter, and an arena that is getting full needs MuJoCo's bindings.
    for k in range(len(addresses) - GLOBALS):
        if words_at(addresses[GLOBALS + k])[0] != about[NONE + k]:
            return NOT_LOOKED, RIGHT, like
    if 2 * used[0] > arena[0] or arena[0] - used[0] < ROOM:
        return NOT_LOOKED, RIGHT, like

    # Look: all that comes before the constraints are solved.
    if call_begin(addresses[BEGIN], 0, where, model, data, margin, scratch) != FIT:
        return NOT_LOOKED, RIGHT, like
    call_c(addresses[STEP1], shadow, of_data, 0, 0)
    if about[MENDS] != 0:
        order = call_look(addresses[LOOK], 0, model, data, where, rows)
        if order != RIGHT:
            return UNSORTED, order, like
    if about[ACTS] != 0:
        call_c(addresses[ACTUATION], shadow, of_data, 0, 0)
    call_c(addresses[ACCELERATION], shadow, of_data, 0, 0)

    # The step itself; what is not certified is not written.
    found = call_step(
        addresses[MAKE], like, model, data, where, old_floats, old_ints, new_floats, new_ints, floats, ints, need,
        settings, zero,
    )  # fmt: skip
    if found[0] != DONE and not (found[0] == STILL and leaves_positions(new_ints[WAIT])):
        return MADE, RIGHT, found

    # Advance.
    if about[JOINED] != 0:
        call_c(addresses[BODY_FORCES], shadow, of_data, 0, 0)
    if about[SENSES] != 0:
        call_c(addresses[SENSORS], shadow, of_data, 0, 0)
    call_c(addresses[EULER], shadow, of_data, 0, 0)
    return MOVED, RIGHT, found
