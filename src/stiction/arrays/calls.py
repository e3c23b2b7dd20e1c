"""How Python calls machine code: with the address of a block of words.

A word has eight bytes. An array is the address of its Python object, of which the code reads data, shape and strides
(the first members of NumPy's `PyArrayObject`, which its binary interface fixes); numbers are themselves; a tuple is its
fields, one after the other; results follow the arguments. So the code depends neither on a version of Python nor on one
of Numba, and no Numba is needed to call it.

Kinds of arguments are written `d` (float), `q` (int), `?` (bool), for contiguous arrays D, Q, B and the number of axes,
and `R` with a hash for arrays of MuJoCo's structs: another layout of these is another kind. A tuple is
`<name|kinds|of|its|fields>`, with the module and name of its class, if it has one. Everything else is `-`, and is for
Numba's own dispatcher.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stiction.arrays.compiled import Kernel

DATA = 16  # bytes from the address of an array's object to the address of its data
ARRAYS = {np.dtype(np.float64): "D", np.dtype(np.int64): "Q", np.dtype(np.bool_): "B"}
FLOAT = np.dtype(np.float64)
LETTERS = {float: "d", np.float64: "d", int: "q", np.int64: "q", bool: "?", np.bool_: "?"}
NUMBERS = "dq?"
PLAIN = 0x101  # flags of arrays that are contiguous, last index first, and aligned
UNKNOWN = "-"


class Code(NamedTuple):
    """Machine code of one kernel for arguments of certain kinds."""

    entry: int  # address of what is called with a block of words
    kernel: int  # address of the kernel itself, called as Numba's functions call each other; 0 if it has none
    results: str  # their kind; nothing if there are none


def name_of(kernel: Kernel) -> str:
    return f"{kernel.__module__}:{kernel.__qualname__}"


@cache
def array_is_as_known() -> bool:
    """Whether an array's object begins as the code takes it to: data, axes, shape, strides."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    sample = np.zeros((3, 5))
    words = (ctypes.c_int64 * 4).from_address(id(sample) + DATA)
    if words[0] != sample.__array_interface__["data"][0] or words[1] & 0xFFFFFFFF != 2:
        return False
    shape, strides = ((ctypes.c_int64 * 2).from_address(words[k]) for k in (2, 3))
    return (*shape, *strides) == (3, 5, 40, 8)


def kinds_of(given: tuple[Any, ...]) -> str:
    """The kinds of arguments, in one text."""
    return ",".join(map(kind, given))


def kind(value: Any) -> str:
    whose: Any = type(value)
    if whose is np.ndarray:
        if value.flags.num & PLAIN != PLAIN:
            return UNKNOWN
        dtype = value.dtype
        letter = ARRAYS.get(dtype) if dtype is not FLOAT else "D"
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
    """Of a tuple's class, if it can be found by it; plain tuples have none."""
    if not hasattr(whose, "_fields"):
        return ""
    return UNKNOWN if "<" in whose.__qualname__ else f"{whose.__module__}:{whose.__qualname__}"


_layouts: dict[int, tuple[Any, str]] = {}


def struct_letter(dtype: Any) -> str:
    """Of a struct's names, types and places; kept, because there are hundreds of them. Nothing for other arrays."""
    known = _layouts.get(id(dtype))
    if known is None or known[0] is not dtype:
        places = sorted((name, str(field[0]), field[1]) for name, field in (dtype.fields or {}).items())
        text = repr((dtype.itemsize, places, str(dtype)))
        letter = f"R{hashlib.sha256(text.encode()).hexdigest()[:12]}." if dtype.fields else ""
        known = _layouts[id(dtype)] = dtype, letter
    return known[1]


def struct_of(letter: str) -> Any:
    """The struct that was seen under this letter."""
    return next(dtype for dtype, known in _layouts.values() if known == letter)


def split(kinds: str, between: str = ",") -> list[str]:
    """The kinds in a text, those within a tuple together."""
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
    """The letter and the expression of each word of an argument."""
    if kind[0] == "<":
        for k, field in enumerate(fields_of(kind)[1]):
            yield from words_of(field, f"{value}[{k}]")
    else:
        yield kind[0], value if kind in NUMBERS else f"id({value})"


def call_of(code: Code, kinds: str, keeps_lock: bool) -> Any:
    """A Python function around machine code, written out for its arguments.

    keeps_lock: whether other threads of the interpreter wait meanwhile
    """
    form = (ctypes.PYFUNCTYPE if keeps_lock else ctypes.CFUNCTYPE)(ctypes.c_int, *[ctypes.c_void_p] * 3)
    given = split(kinds)
    words = [word for i, each in enumerate(given) for word in words_of(each, f"a{i}")]
    letters = [letter for letter, _ in words_of(code.results, "")] if code.results else []
    spare = ctypes.c_int64()  # where Numba's calls return a value and an error: there is neither
    names = {
        "block": ctypes.c_char * (8 * max(len(words) + len(letters), 1)),
        "pack": struct.Struct("=" + "".join(letter if letter in "dq" else "q" for letter, _ in words)).pack_into,
        "unpack": struct.Struct("=" + "".join("d" if letter == "d" else "q" for letter in letters)).unpack_from,
        "code": form(code.entry), "spare": spare, "nowhere": ctypes.addressof(spare),
    }  # fmt: skip
    lines = [
        f"def call({', '.join(f'a{i}' for i in range(len(given)))}):",
        "    memory = block()",
        f"    pack(memory, {', '.join(['0', *(value for _, value in words)])})",
        "    code(nowhere, nowhere, memory)",
    ]
    if letters:
        lines += [
            f"    r = unpack(memory, {8 * len(words)})",
            f"    return {written(code.results, iter(range(len(letters))), names)}",
        ]
    exec("\n".join(lines), names)
    return names["call"]


def written(kind: str, places: Iterator[int], names: dict[str, Any]) -> str:
    """The expression of a result by the numbers r[0], r[1] and so on, and by the classes that it needs."""
    if kind[0] != "<":
        return f"r[{next(places)}]" + (" != 0" if kind == "?" else "")
    name, fields = fields_of(kind)
    values = ", ".join(written(each, places, names) for each in fields)
    if not name:
        return f"({values},)"
    alias = f"class{len(names)}"
    names[alias] = named(name)
    return f"{alias}({values})"


def named(name: str) -> Any:
    """What `module:attribute` names."""
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found
