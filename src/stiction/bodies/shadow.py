"""A model of our own beside the user's, which is never written to.

`mjModel` is one C struct of some 6 kB whose pointers lead into one buffer. A `Shadow` is a second struct with the same
pointers, so that masses, friction or sizes edited between steps are seen at once. Two things are its own:

- options and flags, copied from the user's at the beginning of every step (`follow`) and then set for hard contact. The
  elliptic cone gives rows n, t1, t2; the Euler step must not damp a second time; MuJoCo's islands, its dual solvers and
  its noslip pass would compute what nobody reads; sleeping bodies would be left out; speculative contacts and the
  global override would replace distance and friction; a state that MuJoCo finds bad is refused by us and never reset.
- margins, which follow the motion (`contacts.margins`).

Each data has its own shadow, so that two data of one model never see each other's margins. A shadow is an MjModel to
MuJoCo's functions, which raise and release the interpreter's lock as ever. Its Python attributes are those of the
user's model: callbacks (`mjcb_control` and others) get the shadow, which equals the user's model and reads and writes
that model's arrays and options.
"""

from __future__ import annotations

import atexit
import copy
import ctypes
import weakref
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.bodies.pointers import ints
from stiction.bodies.structs import CONE, HEADER, OURS, THEIRS, WORDS, layouts
from stiction.errors import InvalidScene
from stiction.optional import mujoco

mj = mujoco()

ELLIPTIC = int(mj.mjtCone.mjCONE_ELLIPTIC)
EULER = int(mj.mjtIntegrator.mjINT_EULER)
NEWTON = int(mj.mjtSolver.mjSOL_NEWTON)
DISABLED = int(mj.mjtDisableBit.mjDSBL_EULERDAMP | mj.mjtDisableBit.mjDSBL_ISLAND | mj.mjtDisableBit.mjDSBL_AUTORESET)
ENABLED = int(mj.mjtEnableBit.mjENBL_ENERGY)  # computed in every step, so that nobody has to ask
NOT_ENABLED = int(
    mj.mjtEnableBit.mjENBL_OVERRIDE
    | mj.mjtEnableBit.mjENBL_SLEEP
    | mj.mjtEnableBit.mjENBL_DIAGEXACT
    | mj.mjtEnableBit.mjENBL_IPC
    | mj.mjtEnableBit.mjENBL_SPECULATIVE
)
CALLBACKS = tuple(name.removeprefix("get_mjcb_") for name in dir(mj) if name.startswith("get_mjcb_"))
MARGINS = {
    "geom_margin": "ngeom", "body_margin": "nbody", "pair_margin": "npair", "jnt_margin": "njnt",
    "tendon_margin": "ntendon",
}  # fmt: skip


_alive: dict[int, weakref.ref[Any]] = {}  # all shadows, by id: as models they are equal, as memory they are not


@atexit.register
def never_free() -> None:
    """As the interpreter ends it may free a shadow without calling `__del__`, so one that is left is never freed."""
    for each in list(_alive.values()):
        shadow = each()
        if shadow is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(shadow))


class Shadow(mj.MjModel):  # type: ignore[name-defined,misc]
    """See above; `Shadow.of(model)` makes one, which keeps the user's model alive.

    user: the user's model
    margins: the arrays of MARGINS, by name
    """

    __slots__ = ("given", "margins", "user")

    @classmethod
    def of(cls, model: Any) -> Shadow:
        """A shadow of a model, with margins of zero until the first step sets them."""
        made = cls.__new__(cls)
        made.given, made.user = b"", model
        _alive[id(made)] = weakref.ref(made)
        # MuJoCo's Python objects own a model: this one, which is overwritten. Compiling one would call callbacks.
        made.__setstate__(model.__getstate__() if callbacks() else smallest_model())
        shape = layouts()
        made.given = ctypes.string_at(made._address, shape.model.itemsize)
        made.margins = {name: np.zeros(getattr(model, size)) for name, size in MARGINS.items()}
        ctypes.memmove(made._address, model._address, shape.model.itemsize)
        for name, values in made.margins.items():
            ctypes.c_int64.from_address(made._address + shape.model.fields[name][1]).value = values.ctypes.data  # type: ignore[index]
        return made

    def __del__(self, move: Any = ctypes.memmove, _alive: dict[int, Any] = _alive) -> None:
        # MuJoCo must free the buffer that it allocated, never the user's.
        _alive.pop(id(self), None)
        if self.given:
            move(self._address, self.given, len(self.given))

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.user or (isinstance(other, Shadow) and other.user is self.user)

    def __hash__(self) -> int:
        return hash(self.user)

    def __copy__(self) -> Any:
        return copy.copy(self.user)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.user, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return own, (self.user,)


def forwarded(name: str) -> property:
    """An attribute of the user's model; sizes are in the struct itself."""
    return property(attrgetter(f"user.{name}"), lambda self, value: setattr(self.user, name, value))


for _name, _attribute in vars(mj.MjModel).items():
    if not (_name.startswith("_") or _name in mj.MjModel._size_fields or isinstance(_attribute, staticmethod)):
        setattr(Shadow, _name, forwarded(_name))


def callbacks() -> bool:
    """Whether MuJoCo has any."""
    return any(getattr(mj, f"get_mjcb_{name}")() is not None for name in CALLBACKS)


@cache
def smallest_model() -> bytes:
    return bytes(mj.MjModel.from_xml_string("<mujoco/>").__getstate__())


def own(model: Any) -> Any:
    """The user's model of a shadow; any other model as it is."""
    return model.user if isinstance(model, Shadow) else model


def refuse_foreign(model: Any, data: Any) -> None:
    """Raise if a data was not made for this model, or one with the same sizes: MuJoCo would write past its end."""
    if not isinstance(data, mj.MjData):
        raise InvalidScene(f"data must be an MjData, got {type(data).__name__}")
    of = data.model
    if of is model:
        return
    size = layouts().where[HEADER]
    if ctypes.string_at(of._address, size) != ctypes.string_at(model._address, size):
        raise InvalidScene(
            f"this data belongs to another model (nq {of.nq}, nv {of.nv}, nbody {of.nbody}, ngeom {of.ngeom}; this one "
            f"has nq {model.nq}, nv {model.nv}, nbody {model.nbody}, ngeom {model.ngeom}): make one with MjData(model)"
        )


@kernel
def follow(where, model):
    """Copy the user's current options, then set those that hard contact needs; `where` remembers the user's cone."""
    theirs, ours = ints(where[THEIRS]), ints(where[OURS])
    if where[THEIRS] != 0:
        for i in range(where[WORDS]):
            ours[i] = theirs[i]

        # The user's cone decides how forces are written back; everything else is fixed for hard contact.
        m = model[0]
        where[CONE] = m.cone
        m.cone, m.integrator, m.solver, m.noslip_iterations = ELLIPTIC, EULER, NEWTON, 0
        m.disableflags |= DISABLED
        m.enableflags = m.enableflags & ~NOT_ENABLED | ENABLED
