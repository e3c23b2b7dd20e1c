"""What a reader needs to repeat a study: versions and the kind of machine, nothing that tells whose it is."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("stiction", "numpy", "scipy", "numba", "mujoco", "matplotlib")


def environment() -> tuple[str, ...]:
    packages = []
    for name in PACKAGES:
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue  # optional, and not used here
    cores = f"{os.cpu_count()} {platform.machine()} cores"
    return (f"Python {platform.python_version()}", *packages, cores, platform.system())
