"""The window, where there is none."""

from __future__ import annotations

import pytest

import stiction as st
from stiction.viewer import desktop


def test_without_a_display_the_message_says_what_to_do_instead(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(st.MissingDependency, match="no display for a window.*look in a browser"):
        desktop.view(st.Simulation(st.Scene.named("box-on-plane")))


def test_the_window_is_stepped_until_it_is_closed(monkeypatch):
    """With a window that counts instead of one that shows."""

    class Window:
        synced = 0

        class opt:  # noqa: N801 (as MuJoCo names it)
            flags = [False] * 64

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def lock(self):
            return self

        def is_running(self):
            return self.synced < 5

        def sync(self):
            Window.synced += 1

    class Launcher:
        launch_passive = staticmethod(lambda model, data: Window())

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(desktop, "viewer_of_mujoco", lambda: Launcher)
    simulation = st.Simulation(st.Scene.named("box-on-plane"))
    desktop.view(simulation)
    assert simulation.time == pytest.approx(5 * simulation.model.opt.timestep)
    assert sum(Window.opt.flags) == 2
