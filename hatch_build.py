"""What building adds: compiled kernels in wheels, and a README whose links work on a package index.

With kernels an installed package needs no compilation (`stiction.building`). Wheels carry them where they are built on
Linux with an x86-64 processor; elsewhere, in editable installations and with `STICTION_PREBUILT=0`, the wheel holds the
sources alone, and kernels are compiled at their first call.

An index shows the README away from its files. There, links lead to the files of this version at the code host that
`[project.urls]` names as `Source`; as long as it names none, words take the place of links and pictures.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = Path("src", "stiction", "__init__.py")
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


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


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        package = Path(self.root, PACKAGE).read_text(encoding="utf-8")
        version = re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)
        assert version is not None
        shown = for_an_index(text, metadata.get("urls", {}).get("Source"), version[1])
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}


def for_an_index(text: str, source: str | None, version: str) -> str:
    """A README with links that work away from its files; without any that would not."""

    def elsewhere(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if source is None:
            return f"*{words}*" if picture else words
        return f"{picture}[{words}]({source.rstrip('/')}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return LINK.sub(elsewhere, text)
