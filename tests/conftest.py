"""Kernels compiled for exactly these sources.

Numba's cache notices a change of a kernel's own file, not of a kernel it calls from another. So each state of the
layers that hold kernels gets a cache of its own, chosen before Numba is imported.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = (
    "compiled.py",
    "linear.py",
    "bodies/*.py",
    *(f"{layer}/**/*.py" for layer in ("contacts", "problems", "solutions", "solvers", "stepping")),
)
KEPT = 3  # caches; the others belong to older sources


def use_cache_of_these_sources() -> None:
    digest = hashlib.sha256()
    for layer in KERNELS:
        for source in sorted((ROOT / "src" / "stiction").glob(layer)):
            digest.update(source.relative_to(ROOT).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    caches = ROOT / ".cache" / "numba"
    cache = caches / digest.hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    cache.touch()
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
    newest_first = sorted(caches.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in newest_first[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


use_cache_of_these_sources()
