"""Kernels compiled by another process while this one compiles what calls them.

Most of what Numba does is done by Python, and so by one core. A kernel alone (`compiled.alone`) is an object file of
its own, which another process can make and keep on disk (`kernel_cache`); who calls it waits for that. If anything goes
wrong there, it is compiled here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from stiction.arrays.calls import UNKNOWN, kinds_of, name_of, named
from stiction.arrays.compiled import Kernel, Target
from stiction.arrays.sources import PACKAGE, unusual

if TYPE_CHECKING:
    from collections.abc import Hashable

_begun: dict[Hashable, subprocess.Popen[bytes] | None] = {}


def ahead(kernel: Any, *given: Any) -> None:
    """Begin to compile a kernel for arguments of these kinds, if it is not yet and there is a core for it."""
    if not isinstance(kernel, Kernel):
        return  # as plain Python
    key = name_of(kernel), kinds_of(given)
    if key in _begun:
        return
    _begun[key] = None
    if is_wanted(kernel, key[1]):
        path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
        _begun[key] = subprocess.Popen(
            [sys.executable, "-m", "stiction.arrays.ahead", *key],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def is_wanted(kernel: Kernel, kinds: str) -> bool:
    """Whether it has to be compiled, and a second process would do it beside this one."""
    from stiction.arrays.kernel_cache import is_kept, places
    from stiction.arrays.prebuilt import library

    shipped = library()
    return (
        sys.executable != ""
        and cores() > 1
        and not Target.one_piece
        and UNKNOWN not in kinds
        and not unusual()
        and (shipped is None or shipped.find(name_of(kernel), kinds) is None)
        and places().folder is not None
        and not is_kept(kernel, kinds)
    )


def cores() -> int:
    """Of this machine, as many as this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def awaited(kernel: Kernel, kinds: str) -> None:
    """Until another process has compiled it, if one has begun to."""
    process = _begun.get((name_of(kernel), kinds))
    if process is not None:
        process.wait()


if __name__ == "__main__":
    named(sys.argv[1]).code(sys.argv[2])
