"""The sources that compiled kernels belong to: machine code of other sources is not theirs."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
# Settings of Numba's by which kernels become other code than what is kept and shipped.
UNUSUAL = (
    "BOUNDSCHECK", "OPT", "CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO",
    "FASTMATH",
)  # fmt: skip
LAYERS = ("arrays", "bodies", "contacts", "problems", "solutions", "solvers", "derivatives", "stepping")  # of kernels


@cache
def sources() -> str:
    """Hash of every source that holds a kernel, or a number that is compiled into one."""
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(f"{path}\0".encode() + hashlib.sha256((PACKAGE / path).read_bytes()).digest())
    return digest.hexdigest()[:16]


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
