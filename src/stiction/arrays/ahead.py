"""Kernels compiled by another process while this one compiles what calls them.

Most of what Numba does is done by Python, and so by one core. A kernel alone (`compiled.alone`) is an object file of
its own, which another process can make and keep on disk (`kernel_cache`); who calls it waits for that. If anything goes
wrong there, it is compiled here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from stiction.arrays.calls import UNKNOWN, kinds_of, name_of, named
from stiction.arrays.compiled import Kernel, Target
from stiction.arrays.sources import PACKAGE, unusual

if TYPE_CHECKING:
    from collections.abc import Hashable

_begun: dict[Hashable, subprocess.Popen[bytes] | None] = {}
OFTEN = 0.02  # s between two looks for a file


def ahead(*calls: tuple[Any, tuple[Any, ...]]) -> None:
    """Begin to compile kernels for arguments of these kinds, in order, as far as they are not yet and a core is free.

    calls: kernels with such arguments
    """
    keys = []
    for kernel, given in calls:
        if isinstance(kernel, Kernel):  # else it is plain Python
            key = name_of(kernel), kinds_of(given)
            if key not in _begun:
                _begun[key] = None
                if is_wanted(kernel, key[1]):
                    keys.append(key)
    if keys:
        path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [sys.executable, "-m", "stiction.arrays.ahead", *(word for key in keys for word in key)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _begun.update(dict.fromkeys(keys, process))


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
    from stiction.arrays.kernel_cache import is_kept

    process = _begun.get((name_of(kernel), kinds))
    while process is not None and process.poll() is None and not is_kept(kernel, kinds):
        time.sleep(OFTEN)


if __name__ == "__main__":
    for name, kinds in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        named(name).code(kinds)
