"""Compile kernels in a second process while this one compiles their callers.

Numba is mostly Python, so it uses one core. A kernel marked `@alone` becomes an object file of its own, which another
process can compile and keep on disk (`kernel_cache`); its callers wait for the file. If that process fails, the kernel
is compiled here.
"""

from __future__ import annotations

import gc
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
    """Start compiling kernels that are not compiled yet, in this order, if there is a second core.

    calls: kernels, each with sample arguments
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
    """Whether a kernel still has to be compiled, and a second process can do it."""
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
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def awaited(kernel: Kernel, kinds: str) -> None:
    """Wait for a kernel that the other process was asked to compile."""
    from stiction.arrays.kernel_cache import is_kept

    process = _begun.get((name_of(kernel), kinds))
    while process is not None and process.poll() is None and not is_kept(kernel, kinds):
        time.sleep(OFTEN)


if __name__ == "__main__":
    # What this process makes lasts as long as it does: nothing is collected, nor freed at its end.
    gc.disable()
    for name, kinds in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        named(name).code(kinds)
    os._exit(0)
