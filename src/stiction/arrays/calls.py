"""How Python calls machine code: with the address of a block of words.

A word has eight bytes. An array is passed as the address of its Python object, from which the code reads data, shape
and strides (the first members of NumPy's `PyArrayObject`, fixed by its binary interface); numbers are passed as they
are, tuples field by field; results follow the arguments. So the code depends on no version of Python or Numba, and
calling it does not need Numba. One function, the `gateway`, fills the block for all kernels, by a table for each; that
costs a tenth of a microsecond.

The kind of an argument is `d` (float), `q` (int), `?` (bool); D, Q or B with the number of axes for a contiguous array
of these; `R` with a hash for an array of MuJoCo's structs, by their layout. A tuple is `<name|kinds|of|its|fields>`,
with the module and name of its class, if it has one. Everything else is `-` and goes to Numba's own dispatcher.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import struct
import sys
from collections import namedtuple
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stiction.arrays.compiled import Kernel

# Bytes from the address of an object to what is read of it.
TYPE = 8
DATA, AXES, DTYPE, FLAGS = 16, 24, 56, 64  # of an array; shape and strides follow its axes
NUMBER = 16  # of a float, and of NumPy's numbers
LENGTH, FIELDS = 16, 24  # of a tuple
ARRAYS = {np.dtype(np.float64): "D", np.dtype(np.int64): "Q", np.dtype(np.bool_): "B"}
DOUBLES = np.dtype(np.float64)
LETTERS = {float: "d", np.float64: "d", int: "q", np.int64: "q", bool: "?", np.bool_: "?"}
NUMBERS = "dq?"
PLAIN = 0x101  # flags of arrays that are contiguous, last index first, and aligned
UNKNOWN = "-"
METH_FASTCALL = 0x80  # Python's word for functions that get the address and the number of their arguments

# Lines of the gateway's programs: what to do, and two words of it.
ARRAY, FLOAT, INT, BOOL, TUPLE, END, STOP = range(7)
LINE = 3
WORDS, DEPTH = 512, 16  # words of arguments and results that a call has room for, and tuples within each other
PYTHON = (
    "PyObject_Vectorcall", "PyObject_Call", "PyLong_AsLongLong", "PyLong_FromLongLong", "PyFloat_FromDouble",
    "PyBool_FromLong", "PyTuple_New", "PyTuple_SetItem", "PyErr_Occurred", "PyEval_SaveThread", "PyEval_RestoreThread",
    "Py_IncRef", "Py_DecRef",
)  # fmt: skip
KNOWN = {
    "array_type": np.ndarray, "float_type": float, "float64_type": np.float64, "int_type": int,
    "int64_type": np.int64, "true": True, "false": False, "numpys_true": np.True_, "numpys_false": np.False_,
    "none": None,
}  # fmt: skip
Table = namedtuple("Table", ["count", "otherwise", "entry", "keeps_lock", *KNOWN, *PYTHON])  # type: ignore[misc]


class Code(NamedTuple):
    """Machine code of one kernel for arguments of certain kinds."""

    entry: int  # address of what is called with a block of words
    kernel: int  # address of the kernel itself, called as Numba's functions call each other; 0 if it has none
    results: str  # their kind; nothing if there are none


def name_of(kernel: Kernel) -> str:
    return f"{kernel.__module__}:{kernel.__qualname__}"


@cache
def array_is_as_known() -> bool:
    """Whether arrays, numbers and tuples are laid out in memory as the gateway reads them."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    sample = np.zeros((3, 5))
    data, axes, shape, strides, _, dtype, flags = (ctypes.c_int64 * 7).from_address(id(sample) + DATA)
    lengths, steps = ((ctypes.c_int64 * 2).from_address(place) for place in (shape, strides))
    half, seven, pair = np.float64(0.5), np.int64(-7), (0.5, sample)
    numbers = [ctypes.c_double.from_address(id(each) + NUMBER).value for each in (half, pair[0])]
    size, *fields = (ctypes.c_int64 * 3).from_address(id(pair) + LENGTH)
    return (
        (data, axes & 0xFFFFFFFF, dtype) == (sample.ctypes.data, 2, id(DOUBLES))
        and (*lengths, *steps, flags & PLAIN) == (3, 5, 40, 8, PLAIN)
        and (*numbers, size, *fields) == (0.5, 0.5, 2, *map(id, pair))
        and ctypes.c_int64.from_address(id(seven) + NUMBER).value == seven
        and ctypes.c_int64.from_address(id(pair) + TYPE).value == id(tuple)
    )


def kinds_of(given: tuple[Any, ...]) -> str:
    """The kinds of all arguments, as one string."""
    return ",".join(map(kind, given))


def kind(value: Any) -> str:
    whose: Any = type(value)
    if whose is np.ndarray:
        if value.flags.num & PLAIN != PLAIN:
            return UNKNOWN
        dtype = value.dtype
        letter = ARRAYS.get(dtype) if dtype is not DOUBLES else "D"
        letter = letter or struct_letter(dtype)
        return f"{letter}{value.ndim}" if letter else UNKNOWN
    letter = LETTERS.get(whose)
    if letter is not None:
        return letter
    if isinstance(value, tuple):
        fields = [tuple_name(whose), *map(kind, value)]
        return UNKNOWN if UNKNOWN in fields else f"<{'|'.join(fields)}>"
    return "d" if isinstance(value, np.floating) else "q" if isinstance(value, np.integer) else UNKNOWN


@cache
def tuple_name(whose: Any) -> str:
    """The name by which a tuple's class can be found; empty for plain tuples."""
    if not hasattr(whose, "_fields"):
        return ""
    return UNKNOWN if "<" in whose.__qualname__ else f"{whose.__module__}:{whose.__qualname__}"


_layouts: dict[int, tuple[Any, str]] = {}


def struct_letter(dtype: Any) -> str:
    """The letter of a struct's names, types and offsets, cached, because there are hundreds; empty for other arrays."""
    known = _layouts.get(id(dtype))
    if known is None or known[0] is not dtype:
        places = sorted((name, str(field[0]), field[1]) for name, field in (dtype.fields or {}).items())
        text = repr((dtype.itemsize, places, str(dtype)))
        letter = f"R{hashlib.sha256(text.encode()).hexdigest()[:12]}." if dtype.fields else ""
        known = _layouts[id(dtype)] = dtype, letter
    return known[1]


def struct_of(letter: str) -> Any:
    """The struct with this letter."""
    return next(dtype for dtype, known in _layouts.values() if known == letter)


def split(kinds: str, between: str = ",") -> list[str]:
    """Split a list of kinds, keeping tuples together."""
    found, depth = [""] if kinds else [], 0
    for letter in kinds:
        depth += (letter == "<") - (letter == ">")
        if letter == between and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def fields_of(kind: str) -> tuple[str, list[str]]:
    """The class of a tuple, by name, and the kinds of its fields."""
    name, *fields = split(kind[1:-1], "|")
    return name, fields


def words_of(kind: str, value: str) -> Iterator[tuple[str, str]]:
    """The letter and the expression of each word of an argument or a result."""
    if kind[0] == "<":
        for k, field in enumerate(fields_of(kind)[1]):
            yield from words_of(field, f"{value}[{k}]")
    else:
        yield kind[0], value


def call_of(code: Code, kinds: str, keeps_lock: bool, otherwise: Any) -> Any:
    """The function that Python calls: the `gateway` with a table for this machine code.

    keeps_lock: whether to hold the interpreter's lock; otherwise: called instead with arguments of other kinds
    """
    table = table_of(code, kinds, keeps_lock, otherwise)
    return function_of(ctypes.addressof(method()), table, None)


def table_of(code: Code, kinds: str, keeps_lock: bool, otherwise: Any) -> NDArray[np.int64]:
    """The gateway's table for one kernel: addresses, and the programs that read arguments and make results."""
    given = split(kinds)
    held: list[Any] = [otherwise]  # objects that must live as long as the table
    program = [line for each in given for line in lines_of(each, held)] + [(STOP, 0, 0)]
    program += [*(lines_of(code.results, held) if code.results else ()), (STOP, 0, 0)]
    if len(program) > WORDS or max(code.results.count("<"), kinds.count("<")) > DEPTH:
        raise ValueError(f"{len(program)} words of arguments and results, or the tuples among them, are too many")
    head = (len(given), id(otherwise), code.entry, keeps_lock, *map(id, KNOWN.values()), *functions())
    table = np.array([*head, *(word for line in program for word in line)], np.int64).view(Holding)
    table.held = held
    return table


class Holding(np.ndarray):
    """An array that keeps objects alive whose addresses it holds."""

    held: list[Any]


def lines_of(kind: str, held: list[Any]) -> Iterator[tuple[int, int, int]]:
    """The program that reads an argument, or makes a result, of this kind."""
    if kind[0] == "<":
        name, fields = fields_of(kind)
        whose = named(name) if name else tuple
        held.append(whose)
        yield TUPLE, id(whose), len(fields)
        for field in fields:
            yield from lines_of(field, held)
        yield END, id(whose) if name else 0, 0
    elif kind in NUMBERS:
        yield {"d": FLOAT, "q": INT, "?": BOOL}[kind], 0, 0
    else:
        dtype = dtype_of(kind[:-1])
        held.append(dtype)
        yield ARRAY, id(dtype), int(kind[-1])


def dtype_of(letter: str) -> Any:
    """The dtype that this letter stands for."""
    return struct_of(letter) if letter[0] == "R" else next(each for each, known in ARRAYS.items() if known == letter)


def tidied(value: Any) -> Any:
    """An argument with exactly the types that the gateway checks for: NumPy and Python numbers are converted."""
    if isinstance(value, np.ndarray):
        return value.view(dtype_of(kind(value)[:-1]))
    if isinstance(value, tuple):
        return type(value)(*map(tidied, value)) if hasattr(value, "_fields") else tuple(map(tidied, value))
    return {"d": float, "q": int, "?": bool}[kind(value)](value)


@cache
def functions() -> tuple[int, ...]:
    """Addresses of Python's C functions, in the order of the table."""
    return tuple(ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0 for name in PYTHON)


class Method(ctypes.Structure):
    """The description of a C function for Python (`PyMethodDef`)."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("how", ctypes.c_int), ("text", ctypes.c_char_p))


@cache
def method() -> Method:
    """The description of the gateway."""
    from stiction.arrays.compiled import gateway

    return Method(b"kernel", gateway(), METH_FASTCALL, None)


function_of = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def named(name: str) -> Any:
    """The object that `module:attribute` names."""
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found
