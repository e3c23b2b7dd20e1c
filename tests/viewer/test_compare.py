"""Engines side by side: the numbers are right, and film, replay, plot and table show them."""

from __future__ import annotations

from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from opengl import needs_opengl

import stiction as st
from stiction.viewer import plots
from stiction.viewer.compare import Comparison, ComparisonRecorder
from stiction.viewer.rivals import SETTINGS, Ours, Rival, in_units, runs_of

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SMALL = {"width": 160, "height": 120}


def comparison(name="pinched-capsule", *names: str) -> Comparison:
    def make() -> st.Scene:
        return st.Scene.named(name)

    return Comparison(runs_of(make, st.Simulation(make()), [(each, None) for each in names or ("mujoco",)]))


def test_ours_holds_what_soft_contact_lets_slip():
    compared = comparison("pinched-capsule", "mujoco", "mujoco-elliptic", "mujoco-noslip")
    compared.advance(1.0)
    compared.look()
    ours, soft, elliptic, noslip = (kept[-1] for kept in compared.history)
    assert {round(each.time, 9) for each in (ours, soft, elliptic, noslip)} == {1.0}
    assert ours.slip < 1e-10
    assert ours.moved < 1e-11
    assert ours.residual <= 1e-8
    for each in (soft, elliptic):
        assert each.slip > 1e-3
        assert each.moved > 1e-3
        assert each.residual > 1e-4
    assert noslip.slip < 1e-9


@pytest.mark.parametrize(("name", "setting"), [
    ("pinched-capsule", "mujoco"), ("pinched-capsule", "mujoco-elliptic"), ("mass-ratio", "mujoco"),
    ("block-stack", "mujoco-elliptic"),
])  # fmt: skip
def test_mujoco_is_judged_as_the_benchmarks_judge_it(name, setting, monkeypatch):
    """Two ways to pose the problem of a step: body by body there, by MuJoCo's own Jacobians here."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import engine_judge
    import engine_peers

    rival = Rival(st.Scene.named(name), setting)
    scene = st.Scene.named(name)
    scene.restore()
    peer = engine_peers.MuJoCo(scene.model, scene.control, **SETTINGS[setting].options)
    dt, gravity = scene.model.opt.timestep, scene.model.opt.gravity
    for _ in range(30):
        rival.step()
        verdict = engine_judge.judged(peer, gravity, dt)
    slip, residual = rival._judged()
    assert np.array_equal(rival.data.qpos, peer.data.qpos), "the same steps"
    assert slip == pytest.approx(verdict.slip, rel=1e-3, abs=1e-12)
    assert residual == pytest.approx(verdict.residual, rel=1e-3, abs=1e-12)


def test_a_fast_slide_is_measured():
    simulation = st.Simulation(st.Scene.named("sliding-cube", speed=2.0, mu=0.3))
    ours = Ours(simulation)
    for _ in range(10):
        ours.step()
    numbers = ours.numbers()
    expected = 2.0 - 0.3 * 9.81 * numbers.time
    assert numbers.slip == pytest.approx(expected, rel=1e-6)
    begun = numbers.time - simulation.model.opt.timestep
    assert numbers.moved == pytest.approx(2.0 * begun - 0.5 * 0.3 * 9.81 * begun**2, rel=0.01)


def test_settings_take_a_value_where_they_have_one():
    assert Rival(st.Scene.named("box-on-plane"), "mujoco-impratio", 10.0).model.opt.impratio == 10.0
    assert Rival(st.Scene.named("box-on-plane"), "mujoco-noslip", 3.0).engine_words.endswith("noslip 3")
    with pytest.raises(st.InvalidScene, match="mujoco takes no value"):
        Rival(st.Scene.named("box-on-plane"), "mujoco", 3.0)


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0 m/s"), (2.65e-3, "2.65 mm/s"), (5.4e-5, "54 µm/s"), (1.5, "1.5 m/s"), (3e-15, "3e-15 m/s"),
    (2e-9, "2 nm/s"),
])  # fmt: skip
def test_numbers_are_told_in_units(value, text):
    assert in_units(value, "m/s") == text


@needs_opengl
def test_one_film_of_all_engines(tmp_path):
    compared = comparison("mass-ratio", "mujoco", "mujoco-elliptic")
    with ComparisonRecorder(compared, tmp_path / "a.mp4", fps=10, **SMALL) as film:
        for k in range(1, 11):
            compared.advance(0.05 * k)
            compared.look()
            film.frame()
    assert film.frames == 5
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "a.mp4"))
    assert next(reader)["size"] == (3 * 160, 120)
    assert compared.lines(0)[0] == "stiction, Coulomb"
    assert compared.lines(1)[0] == "MuJoCo, pyramid (default)"
    assert "residual" in compared.lines(1)[1]
    reader.close()


def test_one_replay_of_all_engines(tmp_path, capfd):
    compared = comparison("pinched-capsule", "mujoco")
    with ComparisonRecorder(compared, tmp_path / "a.html", fps=10) as film:
        for k in range(1, 4):
            compared.advance(0.1 * k)
            compared.look()
            film.frame()
        places = [stage.root.position for stage in film._film.stages]
        labels = [stage._caption.text for stage in film._film.stages]
    assert np.linalg.norm(places[0] - places[1]) > 0.02, "next to each other"
    assert labels[0].startswith("stiction, Coulomb\nslip ")
    assert "\nresidual " in labels[1]
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<title>A capsule pinched with 10 N a pad, compared – stiction</title>" in page
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_plot_of_all_engines(theme, tmp_path):
    compared = comparison("pinched-capsule", "mujoco", "mujoco-noslip")
    with pytest.raises(st.InvalidProblem, match="nothing to draw"):
        plots.compared(compared)
    for k in range(1, 6):
        compared.advance(0.02 * k)
        compared.look()
    figure = plots.compared(compared, theme)
    moved, slip, residual = figure.axes
    assert [ax.get_ylabel() for ax in figure.axes] == ["furthest moved [m]", "largest slip [m/s]", "residual [1]"]
    assert residual.get_xlabel() == "time [s]"
    lines = {line.get_label(): line for line in moved.get_lines()}
    assert set(lines) >= {"stiction", "MuJoCo, pyramid (default)", "MuJoCo, elliptic, noslip 10"}
    assert np.all(np.array(lines["stiction"].get_ydata()) == plots.ROUNDING), "rounding is flat"
    ours = next(line for line in residual.get_lines() if line.get_label() == "stiction")
    assert np.ptp(np.array(ours.get_ydata())) < 1e-11, "so is that of the residual"
    styles = {(line.get_linestyle(), line.get_marker()) for line in slip.get_lines()[:3]}
    assert len(styles) == 3, "told apart without colour"
    plots.save(figure, tmp_path / "a.png")
    with pytest.raises(st.InvalidProblem, match="theme must be one of light, dark"):
        plots.compared(compared, "pink")
