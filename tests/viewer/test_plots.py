"""Plots: that they show what they are given."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.stepping.log_files import Record
from stiction.viewer import plots
from stiction.viewer.palette import grey


def record(steps=40, pairs=((0, 1), (2, 0)), mode=1) -> Record:
    """Pairs of two contacts each: the first carries 1 N more in every step, the second 5 N; friction is 3-4-5."""
    t = 0.01 * np.arange(1, steps + 1)
    count = 2 * len(pairs)
    geoms = np.repeat(np.array(pairs, np.int32).reshape(-1, 2), 2, axis=0)
    force = np.zeros((steps, count, 3))
    for k in range(count):
        force[:, k, 0] = (np.arange(steps) if k < 2 else 5.0) * 0.5
        force[:, k, 1:] = 3.0, 4.0
    return Record(
        scene="a scene", law="Coulomb()", solver="Auto()", stepper="TimeStepping()", timestep=0.01,
        geoms=("floor", "box", "ball"), time=t, potential=1.0 - t, kinetic=t, residual=np.full(steps, 1e-13),
        contacts=np.full(steps, float(count)), slip=0.1 * t, gap=-1e-6 * t, seconds=np.full(steps, 1e-3),
        first=count * np.arange(steps + 1), contact_geom=np.tile(geoms, (steps, 1)),
        contact_gap=np.zeros(steps * count), contact_force=force.reshape(-1, 3),
        contact_mode=np.full(steps * count, mode, np.int32),
    )  # fmt: skip


def by_label(ax) -> dict:
    return {line.get_label(): line for line in ax.get_lines()}


def test_history_shows_forces_modes_energy_and_the_rest(tmp_path):
    figure = plots.history(record())
    axes = figure.axes
    labels = " ".join(ax.get_ylabel() for ax in axes)
    for what in ("normal force", "friction", "slip", "gap", "energy", "residual", "wall time"):
        assert what in labels
    normal, friction = by_label(axes[0]), by_label(axes[1])
    np.testing.assert_allclose(normal["floor – box"].get_ydata(), np.arange(40.0))
    np.testing.assert_allclose(normal["floor – ball"].get_ydata(), 5.0)
    np.testing.assert_allclose(friction["floor – box"].get_ydata(), 10.0)
    np.testing.assert_allclose(by_label(axes[5])["sum"].get_ydata(), 1.0)
    assert len({line.get_linestyle() for line in axes[0].get_lines()}) == 2, "told apart without colour"
    for suffix in plots.SUFFIXES:
        plots.save(figure, tmp_path / f"a{suffix}")
    assert len(list(tmp_path.iterdir())) == len(plots.SUFFIXES)


def test_modes_are_full_hatched_or_blank():
    def looks(mode):
        return [
            (tuple(bar.get_facecolor()[0][:3]), bar.get_hatch())
            for bar in plots.history(record(mode=mode)).axes[2].collections
        ]

    assert looks(0) == []
    (stick, *_), (slide, *_) = looks(1), looks(2)
    assert stick[1] is None
    assert slide[1]
    brightness = [grey(tuple(255.0 * part for part in look[0])) for look in (stick, slide)]
    assert brightness[1] - brightness[0] > 0.25, "told apart in print"


def test_rounding_is_drawn_as_the_flat_line_it_is():
    noisy = 10.0 + 1e-13 * np.sin(np.arange(50.0))
    assert np.ptp(plots.flat(noisy, 10.0)) == 0.0
    assert not plots.flat(1e-14 * np.sin(np.arange(50.0)), 1.0).any()
    kept = np.array([1.0, 1.0 + 1e-9, 1e-20])
    np.testing.assert_array_equal(plots.flat(kept, 1.0), [1.0, 1.0 + 1e-9, 0.0])
    given = record(pairs=((2, 0), (2, 1)))
    given.contact_force[:, 0] = 5.0 + 1e-11 * np.sin(np.arange(len(given.contact_force)))
    figure = plots.history(given)
    figure.canvas.draw()
    for ax in figure.axes:
        assert ax.yaxis.get_offset_text().get_text() == "", f"{ax.get_ylabel()} has an offset"
    low, high = figure.axes[0].get_ylim()
    assert high - low > 0.1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_axis_has_a_unit_and_figures_a_title(theme):
    figure = plots.history(record(), theme)
    assert "a scene" in figure.get_suptitle()
    labels = [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()]
    assert len(labels) == 7
    assert all("[" in label for label in labels)
    assert figure.axes[-1].get_xlabel() == "time [s]"
    from stiction.viewer.palette import THEMES

    assert figure.axes[0].xaxis.label.get_color() == THEMES[theme].ink
    drawn = plots.curves(np.arange(3.0), {"a": np.zeros(3), "b": np.ones(3)}, "t", "x [s]", "y [m]", 1e-12, theme)
    assert by_label(drawn.axes[0])["a"].get_ydata().tolist() == [1e-12] * 3


def test_a_long_run_is_thinned_without_losing_its_peaks():
    given = record(steps=10_000)
    given.contact_force[4 * 7777, 0] = 1e6
    figure = plots.history(given)
    line = by_label(figure.axes[0])["floor – box"]
    assert len(line.get_ydata()) <= 2 * plots.SCREEN
    assert max(line.get_ydata()) > 1e6


def test_a_run_without_contacts_or_steps():
    figure = plots.history(record(pairs=()))
    assert figure.axes[0].get_title() == "no contacts"
    with pytest.raises(st.InvalidProblem, match="no step was made"):
        plots.history(record(steps=0))


def ball(law=st.Coulomb()) -> st.ContactSolution:  # noqa: B008 (frozen)
    tangent = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    problem = st.ContactProblem(2.0 * np.eye(3), [3.0, 0.0, -1.0], [[0.0, 0.0, 1.0]], tangent, [0.5], law=law)
    return st.solve(problem)


def test_the_cone_of_a_contact_holds_its_impulse():
    side, top = plots.cone(ball(), 0).axes
    assert "slide" in side.get_title()
    point = next(line for line in side.get_lines() if line.get_marker() == "o")
    assert (point.get_xdata()[0], point.get_ydata()[0]) == pytest.approx((1.0, 2.0))
    outline = top.patches[0].get_xy()
    np.testing.assert_allclose(np.hypot(*outline.T), 1.0, atol=1e-9)


def test_an_open_contact_has_its_cone_and_no_friction():
    tangent = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    rising = st.ContactProblem(np.eye(3), [0.0, 0.0, 1.0], [[0.0, 0.0, 1.0]], tangent, [0.5])
    side, top = plots.cone(st.solve(rising), 0).axes
    assert "open" in side.get_title()
    assert side.get_ylim() == (0.0, 1.0)
    assert [text.get_text() for text in top.texts if text.get_text()] == ["no impulse, no friction"]


@pytest.mark.parametrize(("law", "corners"), [(st.Coulomb(facets=6), 6), (st.BoxFriction(), 4)])
def test_pyramids_and_boxes_have_corners(law, corners):
    posed = ball().require_problem().with_law(law)
    outline = plots.section(posed, 2.0)
    assert len(outline) == corners
    radius = 2.0 * (np.sqrt(2.0) if isinstance(law, st.BoxFriction) else 1.0)
    np.testing.assert_allclose(np.hypot(*outline.T), radius)


def test_sparsity_of_both_forms():
    left, right = plots.sparsity(ball().require_problem()).axes
    assert left.get_title() == "rows: 1 contacts, 0 bilateral"
    assert right.get_title() == "Delassus matrix: 33 % filled"
    (only,) = plots.sparsity(st.ContactProblem.from_delassus(np.eye(3), [-1.0, 0.0, 0.0], [0.5])).axes
    assert "Delassus" in only.get_title()


def test_large_matrices_are_drawn_coarser_and_lose_no_entry():
    from matplotlib.figure import Figure

    matrix = np.zeros((1001, 3))
    matrix[1000, 2] = 1.0
    ax = Figure().subplots()
    assert plots.show(ax, matrix) == pytest.approx(1.0 / 3003.0)
    image = np.asarray(ax.images[0].get_array())
    assert image.shape[0] <= plots.WIDE
    assert image.sum() == 1


def test_a_problem_is_drawn_whole(tmp_path):
    plots.save(plots.problem(ball()), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "a.png").mkdir()
    with pytest.raises(st.InvalidProblem, match="cannot write"):
        plots.save(plots.cone(ball(), 0), tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
