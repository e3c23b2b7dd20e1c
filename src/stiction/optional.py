"""Packages that only some uses need, one function each: the only place where they are imported."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stiction.errors import MissingDependency

if TYPE_CHECKING:
    from types import ModuleType


def matplotlib() -> ModuleType:
    """Matplotlib, with `matplotlib.figure` loaded.

    `matplotlib().figure.Figure()` draws and saves without a display and keeps no global state, which pyplot would.
    """
    return _require("matplotlib", "figure", use="plots", extra="plots")


def h5py() -> ModuleType:
    """h5py, which reads and writes HDF5."""
    return _require("h5py", use="FCLIB files", extra="files")


def mujoco() -> ModuleType:
    """MuJoCo, which reads scenes and knows kinematics, inertia and collision."""
    package = _require("mujoco", use="scenes and simulation", extra="sim")
    if int(package.__version__.partition(".")[0]) < 4:
        raise MissingDependency(
            f"scenes and simulation need mujoco 4.0 or newer, not {package.__version__}: pip install 'stiction[sim]'"
        )
    return package


def _require(package: str, *modules: str, use: str, extra: str) -> ModuleType:
    """Import a package and the named modules in it, or say which extra installs it."""
    try:
        for module in modules:
            import_module(f"{package}.{module}")
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # the package is there, and broken
        raise MissingDependency(f"{use} need {package}: pip install 'stiction[{extra}]'") from error
