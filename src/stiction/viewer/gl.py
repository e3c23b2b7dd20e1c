"""How to draw without a display: EGL, else OSMesa.

MuJoCo reads MUJOCO_GL when it is imported, long before anybody wants a picture, and then means to open a window.
PyOpenGL settles with the first platform that is asked for. So what works is found out without either.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stiction.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterator

ADVICE = (
    "videos need OpenGL without a display: install EGL (apt-get install libegl1 libgl1-mesa-dri) or OSMesa"
    " (apt-get install libosmesa6), or set MUJOCO_GL; an .html replay needs neither"
)


@contextlib.contextmanager
def headless() -> Iterator[None]:
    """Renderers made within draw without a display, unless MUJOCO_GL chooses how."""
    wanted = platform()
    if wanted is None:
        yield
        return
    place: Any = import_module("mujoco.rendering.classic.gl_context")
    given = place.GLContext
    place.GLContext = import_module(f"mujoco.{wanted}").GLContext
    try:
        yield
    finally:
        place.GLContext = given


def platform() -> str | None:
    """The backend that works here; None for MuJoCo's own choice."""
    if sys.platform != "linux" or os.environ.get("MUJOCO_GL"):
        return None
    if egl_works():
        return "egl"
    if library("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so") is not None:
        return "osmesa"
    if os.environ.get("DISPLAY"):
        return None
    raise MissingDependency(ADVICE)


def egl_works() -> bool:
    """Whether there is a device that EGL draws on, be it a GPU or Mesa's software."""
    egl = library("libEGL.so.1", "libEGL.so")
    if egl is None or library("libGL.so.1", "libOpenGL.so.0") is None:
        return False
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    address = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    if not address:
        return False
    query = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(address)
    count = ctypes.c_int(0)
    return bool(query(0, None, ctypes.byref(count)) and count.value > 0)


def library(*names: str) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
