"""What a reader needs to repeat a study: versions and the kind of machine, nothing that tells whose it is."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version


def environment() -> tuple[str, ...]:
    packages = (f"{name} {version(name)}" for name in ("numpy", "numba"))
    return (f"Python {platform.python_version()}", *packages, f"{os.cpu_count()} {platform.machine()} cores")
