"""Films and pictures are drawn with OpenGL; tests that need it are marked."""

from __future__ import annotations

import pytest

import stiction as st
from stiction.viewer import gl


def has_opengl() -> bool:
    try:
        gl.platform()
    except st.MissingDependency:
        return False
    return True


needs_opengl = pytest.mark.skipif(not has_opengl(), reason="neither EGL nor OSMesa is installed (libegl1, libosmesa6)")
