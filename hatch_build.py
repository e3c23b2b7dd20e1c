"""Puts compiled kernels into wheels, so that an installed package needs no compilation (`stiction.building`).

Wheels carry them where they are built on Linux with an x86-64 processor; elsewhere, in editable installations and with
`STICTION_PREBUILT=0`, the wheel holds the sources alone, and kernels are compiled at their first call.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not wanted():
            return
        self.folder = tempfile.TemporaryDirectory()
        sources, made = Path(self.folder.name, "sources"), Path(self.folder.name, "made")
        # A copy, whose path no installation in place has taken already.
        unwanted = shutil.ignore_patterns("__pycache__", "prebuilt")
        shutil.copytree(Path(self.root, "src", "stiction"), sources / "stiction", ignore=unwanted)
        paths = [str(sources), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.app.display_info("compiling kernels (minutes; STICTION_PREBUILT=0 leaves them out)")
        subprocess.run([sys.executable, "-m", "stiction.building", str(made)], check=True, env=environment)
        for path in made.iterdir():
            build_data["force_include"][str(path)] = f"stiction/prebuilt/{path.name}"
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{system}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def dependencies(self) -> list[str]:
        """What compiling needs, besides what building needs."""
        return (
            ["numpy>=2.0", "scipy>=1.13", "numba>=0.61", "mujoco>=4.0,<5", "cyclopts>=5.0", "h5py>=3.12"]
            if wanted()
            else []
        )


def wanted() -> bool:
    here = sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")
    return here and os.environ.get("STICTION_PREBUILT", "1") != "0"
