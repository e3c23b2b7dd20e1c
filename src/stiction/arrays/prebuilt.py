"""Kernels that were compiled when the package was built: running them needs neither Numba nor LLVM.

`prebuilt/` holds one shared library for each level of processor and a table of their content: by kernel and kinds of
arguments (`calls`), the symbols and the kind of the results. A library is used if it was built from exactly these
sources, the processor can run it, and no unusual setting of Numba's is in force; `STICTION_PREBUILT=0` disables it.
"""

from __future__ import annotations

import ctypes
import json
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from stiction.arrays.calls import Code
from stiction.arrays.sources import PACKAGE, sources, unusual

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = PACKAGE / "prebuilt"
GATEWAY = "stiction_gateway"  # the symbol of the function in C through which Python calls kernels
# Features that a processor must have, by the compilers' name of the level; the best first.
LEVELS = {
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
}


class Library:
    """The kernels built for this processor: their table, and the code."""

    def __init__(self, path: Path, table: dict[str, dict[str, list[Any]]]) -> None:
        self.table, self.code = table, ctypes.CDLL(str(path))
        self.gateway = self.address(GATEWAY)

    def find(self, name: str, kinds: str) -> Code | None:
        """The code of a kernel for arguments of these kinds; None if it was not built."""
        if kinds not in self.table.get(name, {}):
            return None
        entry, kernel, results = self.table[name][kinds]
        return Code(self.address(entry), self.address(kernel) if kernel else 0, results)

    def address(self, symbol: str) -> int:
        return ctypes.cast(getattr(self.code, symbol), ctypes.c_void_p).value or 0


@cache
def library() -> Library | None:
    """The one for this processor and these sources; None if there is none."""
    if os.environ.get("STICTION_PREBUILT", "1") == "0" or unusual() or not (FOLDER / "table.json").is_file():
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
    """Features of this processor, by Linux's names; none elsewhere."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123
            return next((set(line.split()) for line in file if line.startswith("flags")), set())
    except OSError:
        return set()
