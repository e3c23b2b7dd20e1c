"""The sources that compiled kernels belong to: machine code of other sources is not theirs."""

from __future__ import annotations

import hashlib
import os
import time
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
# Settings of Numba's by which kernels become other code than what is kept and shipped.
UNUSUAL = (
    "BOUNDSCHECK", "OPT", "CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO",
    "FASTMATH",
)  # fmt: skip
IMPORTED = time.time()  # when the first module with kernels was
CLOCK = 0.02  # s by which the times of files may lag behind
LAYERS = ("arrays", "bodies", "contacts", "problems", "solutions", "solvers", "derivatives", "stepping")  # of kernels


@cache
def sources() -> str:
    """Hash of every source that holds a kernel, or a number that is compiled into one."""
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(f"{path}\0".encode() + hashlib.sha256((PACKAGE / path).read_bytes()).digest())
    return digest.hexdigest()[:16]


def unchanged() -> bool:
    """Whether no source was written since they were imported: if one was, which code is in memory is not known.

    A process that runs while its sources are edited must neither keep its kernels as those of the new sources, nor
    load those that another process has kept for them.
    """
    try:
        return all(os.stat(f"{PACKAGE}/{path}").st_mtime < IMPORTED - CLOCK for path in source_files())  # noqa: PTH116
    except OSError:  # one is gone
        return False


@cache
def source_files() -> list[str]:
    """Relative to the package, in order."""
    found = []
    for layer in LAYERS:
        for folder, _, names in os.walk(PACKAGE / layer):
            found += [os.path.relpath(os.path.join(folder, name), PACKAGE) for name in names if name.endswith(".py")]  # noqa: PTH118
    return sorted(found)


def unusual() -> list[str]:
    """Those of these settings that are set."""
    return [name for name in UNUSUAL if os.environ.get(f"NUMBA_{name}")]
