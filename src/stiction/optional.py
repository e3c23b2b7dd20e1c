"""Packages that only some uses need, one function each: the only place where they are imported."""

from __future__ import annotations

import os
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
    try:
        package = _require("mujoco", use="scenes and simulation", extra="sim")
    except MissingDependency:
        raise
    except (RuntimeError, ImportError, AttributeError, OSError) as error:  # of a MUJOCO_GL that is not there, say
        reason = " ".join(str(error).split())
        way = "MUJOCO_GL"
        advice = f"; unset {way}, or set it to egl, osmesa or glfw" if os.environ.get(way) else ""
        raise MissingDependency(f"mujoco cannot be loaded ({reason}){advice}") from error
    if int(package.__version__.partition(".")[0]) < 4:
        raise MissingDependency(
            f"scenes and simulation need mujoco 4.0 or newer, not {package.__version__}: pip install 'stiction[sim]'"
        )
    return package


def pyarrow() -> ModuleType:
    """pyarrow, with `pyarrow.parquet` loaded: tables as files that other tools read."""
    return _require("pyarrow", "parquet", use="tables and Parquet files", extra="parquet")


def ray() -> ModuleType:
    """Ray, which runs tasks on a cluster."""
    return _require("ray", "exceptions", use="sweeps on a cluster", extra="cluster")


def quadprog() -> ModuleType:
    """quadprog: Goldfarb and Idnani's active-set method for quadratic programs."""
    return _require("quadprog", use="comparisons with quadprog", extra="peers")


def daqp() -> ModuleType:
    """DAQP: a dual active-set method for quadratic programs."""
    return _require("daqp", use="comparisons with daqp", extra="peers")


def proxsuite() -> ModuleType:
    """ProxSuite: an augmented Lagrangian method for quadratic programs."""
    return _require("proxsuite", use="comparisons with proxsuite", extra="peers")


def quantecon() -> ModuleType:
    """QuantEcon, with `quantecon.optimize` loaded, which has Lemke's method."""
    return _require("quantecon", "optimize", use="comparisons with quantecon", extra="peers")


def viewer_of_mujoco() -> ModuleType:
    """MuJoCo's own viewer, in a window."""
    mujoco()
    return import_module("mujoco.viewer")


def viser() -> ModuleType:
    """viser, which shows scenes in a browser."""
    return _require("viser", use="the browser viewer and replays", extra="viewer")


def mjviser() -> ModuleType:
    """mjviser, which knows how a MuJoCo model looks in viser."""
    return _require("mjviser", use="the browser viewer and replays", extra="viewer")


def trimesh() -> ModuleType:
    """trimesh, with its shapes loaded; viser brings it."""
    return _require("trimesh", "creation", use="the browser viewer and replays", extra="viewer")


def imageio_ffmpeg() -> ModuleType:
    """An ffmpeg that needs no installation."""
    return _require("imageio_ffmpeg", use="videos", extra="viewer")


def pillow() -> ModuleType:
    """Pillow, with images, drawing and fonts loaded; viser brings it."""
    return _require("PIL", "Image", "ImageDraw", "ImageFont", use="words in films", extra="viewer")


def torch() -> ModuleType:
    """PyTorch: tensors with gradients."""
    return _require("torch", use="differentiable contact solves with tensors", extra="torch")


def jax() -> ModuleType:
    """JAX, with `jax.numpy` loaded: arrays with gradients."""
    return _require("jax", "numpy", use="differentiable contact solves with JAX", extra="jax")


def numba_cuda() -> ModuleType:
    """numba-cuda's `numba.cuda`, where there is a GPU, or its simulator."""
    _require("numba_cuda", use="solves on a GPU", extra="cuda")
    try:
        cuda = import_module("numba.cuda")
        if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "0":
            import_module("numba.cuda.np.arrayobj")  # fails where NumPy is newer than it knows
    except (AttributeError, ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        raise MissingDependency(f"numba-cuda cannot be loaded ({reason}): use on='cpu'") from error
    if not cuda.is_available():
        raise MissingDependency("solves on a GPU need an NVIDIA GPU and its driver, and none was found: use on='cpu'")
    return cuda


def gymnasium() -> ModuleType:
    """Gymnasium, with its MuJoCo environments loaded."""
    return _require("gymnasium", "envs.mujoco", use="reinforcement-learning environments", extra="gym")


def _require(package: str, *modules: str, use: str, extra: str) -> ModuleType:
    """Import a package and the named modules in it, or name the extra that installs it."""
    try:
        for module in modules:
            import_module(f"{package}.{module}")
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # the package is there, and broken
        raise MissingDependency(f"{use} need {package}: pip install 'stiction[{extra}]'") from error
