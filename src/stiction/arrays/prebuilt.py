"""Kernels that were compiled when the package was built: no Numba is needed to run them.

`prebuilt/` holds one shared library for each kind of processor and a table of what is in them: by kernel and kinds of
arguments, the symbol and the kinds of results. A symbol takes the address of a block of words of eight bytes: an array
is the address of its Python object, of which the library reads data, shape and strides (the first members of NumPy's
`PyArrayObject`, which its binary interface fixes); numbers are themselves; results follow the arguments. So a library
depends neither on a version of Python nor on one of Numba. It is used if it was made of exactly these sources and the
processor can run it, and if kernels are to be compiled as usual; `STICTION_PREBUILT=0` leaves it alone.

Kinds are written `d` (float), `q` (int), `?` (bool), for contiguous arrays D, Q, B and the number of axes, and `R` with
a hash for arrays of MuJoCo's structs: another layout of these is another kind. A NamedTuple is
`<name|kinds|of|its|fields>`, with the module and name of its class, and takes a word for each field.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.sources import PACKAGE, sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stiction.arrays.compiled import Kernel

FOLDER = PACKAGE / "prebuilt"
DATA = 16  # bytes from the address of an array's object to the address of its data
# What a processor must say of itself, by the name of the kind that compilers know; the best first.
LEVELS = {
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
}
UNUSUAL = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")
ARRAYS = {np.dtype(np.float64): "D", np.dtype(np.int64): "Q", np.dtype(np.bool_): "B"}


class Library:
    """What was built for this processor: the table by kernel, and the code."""

    def __init__(self, path: Path, table: dict[str, dict[str, list[Any]]]) -> None:
        self.table, self.code = table, ctypes.CDLL(str(path))


@cache
def library() -> Library | None:
    """The one for this processor and these sources; None if there is none."""
    if os.environ.get("STICTION_PREBUILT", "1") == "0" or any(os.environ.get(name) for name in UNUSUAL):
        return None
    if not (FOLDER / "table.json").is_file() or not array_is_as_known():
        return None
    able = processor()
    level = next((name for name, needs in LEVELS.items() if needs <= able and (FOLDER / f"{name}.so").is_file()), None)
    with (FOLDER / "table.json").open() as file:
        found = json.load(file)
    if level is None or found["sources"] != sources():
        return None
    try:
        return Library(FOLDER / f"{level}.so", found["kernels"])
    except OSError:  # of another system
        return None


def processor() -> set[str]:
    """What this processor can do, in Linux's words; nothing elsewhere."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123
            return next((set(line.split()) for line in file if line.startswith("flags")), set())
    except OSError:
        return set()


def array_is_as_known() -> bool:
    """Whether an array's object begins as the libraries take it to: data, axes, shape, strides."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    sample = np.zeros((3, 5))
    words = (ctypes.c_int64 * 4).from_address(id(sample) + DATA)
    if words[0] != sample.__array_interface__["data"][0] or words[1] & 0xFFFFFFFF != 2:
        return False
    shape, strides = ((ctypes.c_int64 * 2).from_address(words[k]) for k in (2, 3))
    return (*shape, *strides) == (3, 5, 40, 8)


def name_of(kernel: Kernel) -> str:
    return f"{kernel.__module__}:{kernel.__qualname__}"


def chooser(kernel: Kernel) -> Any:
    """A function that runs prebuilt code where there is some for its arguments; None if there is none of the kernel."""
    found = library()
    entries = found.table.get(name_of(kernel)) if found is not None else None
    if found is None or not entries:
        return None
    calls: dict[str, Any] = {}

    def choose(*given: Any) -> Any:
        kinds = ",".join(map(kind, given))
        call = calls.get(kinds)
        if call is None:
            call = calls[kinds] = call_of(found, entries, kinds) or kernel.whole
        return call(*given)

    return choose


def bound(kernel: Kernel, given: tuple[Any, ...]) -> Any:
    """What runs with arguments of the kinds of these; None if it was not built."""
    found = library()
    entries = found.table.get(name_of(kernel)) if found is not None else None
    return call_of(found, entries, ",".join(map(kind, given))) if found is not None and entries else None


def kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        letter = ARRAYS.get(value.dtype) or f"R{layout_hash(value.dtype)}."
        fits = value.flags.c_contiguous and value.flags.aligned
        return f"{letter}{value.ndim}" if fits else "-"
    if isinstance(value, (bool, np.bool_)):
        return "?"
    if isinstance(value, (int, np.integer)):
        return "q"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = [kind(each) for each in value]
        whose = type(value)
        return "-" if "-" in fields else f"<{'|'.join([f'{whose.__module__}:{whose.__qualname__}', *fields])}>"
    return "d" if isinstance(value, (float, np.floating)) else "-"


def fields_of(kind: str) -> tuple[str, list[str]]:
    """The class of a tuple, by name, and the kinds of its fields; those of tuples within are not supported."""
    name, *fields = kind[1:-1].split("|")
    return name, fields


_layouts: dict[int, tuple[Any, str]] = {}


def layout_hash(dtype: Any) -> str:
    """Of a struct's names, types and places; kept, because there are hundreds of them."""
    known = _layouts.get(id(dtype))
    if known is None or known[0] is not dtype:
        text = repr((dtype.itemsize, sorted((k, str(v[0]), v[1]) for k, v in (dtype.fields or {}).items()), str(dtype)))
        known = _layouts[id(dtype)] = dtype, hashlib.sha256(text.encode()).hexdigest()[:12]
    return known[1]


def call_of(found: Library, entries: dict[str, list[Any]], kinds: str) -> Any:
    """A Python function around one symbol, written out for its arguments; None if these kinds were not built."""
    if kinds not in entries:
        return None
    symbol, results = entries[kinds]
    code = getattr(found.code, symbol)
    code.argtypes, code.restype = [ctypes.c_void_p] * 3, ctypes.c_int
    given, words, letters = [], [], []
    for i, each in enumerate(kinds.split(",") if kinds else []):
        given.append(f"a{i}")
        fields = fields_of(each)[1] if each[0] == "<" else None
        for k, letter in enumerate([each] if fields is None else fields):
            value = f"a{i}" if fields is None else f"a{i}[{k}]"
            letters.append(letter[0])
            words.append(value if letter in "dq?" else f"id({value})")
    flat = flattened(results)
    spare = ctypes.c_int64()  # where Numba's calls return a value and an error: there is neither
    names = {
        "block": ctypes.c_char * (8 * max(len(letters) + len(flat), 1)),
        "pack": struct.Struct("=" + "".join(each if each in "dq" else "q" for each in letters)).pack_into,
        "unpack": struct.Struct("=" + "".join("d" if each == "d" else "q" for each in flat)).unpack_from,
        "code": code, "spare": spare, "nowhere": ctypes.addressof(spare),
    }  # fmt: skip
    lines = [
        f"def call({', '.join(given)}):",
        "    memory = block()",
        f"    pack(memory, {', '.join(['0', *words])})",
        "    code(nowhere, nowhere, memory)",
    ]
    if flat:
        lines += [
            f"    r = unpack(memory, {8 * len(letters)})",
            f"    return {written(results, iter(range(len(flat))))}",
        ]
    exec("\n".join(lines), names)
    return names["call"]


def flattened(results: Any) -> list[str]:
    """The letters of results, which are one letter, a list of such, or None."""
    if results is None:
        return []
    return [results] if isinstance(results, str) else [letter for each in results for letter in flattened(each)]


def written(results: Any, places: Iterator[int]) -> str:
    """The expression of results by the numbers r[0], r[1] and so on."""
    if isinstance(results, str):
        return f"r[{next(places)}]" + (" != 0" if results == "?" else "")
    return f"({', '.join(written(each, places) for each in results)},)"
