"""Packages that only some uses need, one function each: the only place where they are imported."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from stiction.errors import MissingDependency

if TYPE_CHECKING:
    from types import ModuleType


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


# `matplotlib().figure.Figure()` draws and saves without a display and keeps no global state, which pyplot would.
matplotlib = partial(_require, "matplotlib", "figure", use="plots", extra="plots")
h5py = partial(_require, "h5py", use="FCLIB files", extra="files")
pyarrow = partial(_require, "pyarrow", "parquet", use="tables and Parquet files", extra="parquet")
ray = partial(_require, "ray", "exceptions", use="sweeps on a cluster", extra="cluster")
gymnasium = partial(_require, "gymnasium", "envs.mujoco", use="reinforcement-learning environments", extra="gym")

# Methods for quadratic programs, and Lemke's, to compare ours with.
quadprog = partial(_require, "quadprog", use="comparisons with quadprog", extra="peers")
daqp = partial(_require, "daqp", use="comparisons with daqp", extra="peers")
proxsuite = partial(_require, "proxsuite", use="comparisons with proxsuite", extra="peers")
quantecon = partial(_require, "quantecon", "optimize", use="comparisons with quantecon", extra="peers")

# What the viewer stands on; viser brings trimesh and Pillow.
viser = partial(_require, "viser", use="the browser viewer and replays", extra="viewer")
mjviser = partial(_require, "mjviser", use="the browser viewer and replays", extra="viewer")
trimesh = partial(_require, "trimesh", "creation", use="the browser viewer and replays", extra="viewer")
imageio_ffmpeg = partial(_require, "imageio_ffmpeg", use="videos", extra="viewer")
pillow = partial(_require, "PIL", "Image", "ImageDraw", "ImageFont", use="words in films", extra="viewer")

# Arrays with gradients.
torch = partial(_require, "torch", use="differentiable contact solves with tensors", extra="torch")
jax = partial(_require, "jax", "numpy", use="differentiable contact solves with JAX", extra="jax")


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


def viewer_of_mujoco() -> ModuleType:
    """MuJoCo's own viewer, in a window."""
    mujoco()
    return import_module("mujoco.viewer")


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
