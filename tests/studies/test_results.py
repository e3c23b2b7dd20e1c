"""Results are what was declared, and what all studies share does what it says."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from stiction.studies import results
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import STYLE, grid, plate, ticks
from stiction.studies.results import Findings, tabulated
from stiction.studies.timing import exponent


class First(Findings):
    declared: ClassVar = {"sizes": "(size,)", "seconds, residual": "(size, problem)"}


class Both(First):
    declared: ClassVar = {"names": "(method,) words"}


ARRAYS = {"sizes": [1, 2], "seconds": np.ones((2, 3)), "residual": np.zeros((2, 3))}


def test_declared_arrays_are_attributes_those_of_base_classes_too():
    assert Both.names() == ["sizes", "seconds", "residual", "names"]
    found = Both(3, **ARRAYS, names=["a", "b"])
    assert found.seed == 3
    assert found.environment[0].startswith("Python ")
    assert found.sizes.tolist() == [1, 2]
    assert found.at("names", "b") == 1
    assert found.replaced(sizes=[5]).sizes.tolist() == [5]


def test_arrays_that_were_not_declared_or_not_given_are_refused():
    with pytest.raises(TypeError, match="not declared: widths"):
        First(0, **ARRAYS, widths=[1.0])
    with pytest.raises(KeyError, match="sizes"):
        First(0)
    with pytest.raises(AttributeError, match="First has no array 'widths'"):
        _ = First(0, **ARRAYS).widths


def test_a_file_is_an_archive_of_the_arrays_by_name(tmp_path):
    First(7, ("here",), **ARRAYS).save(tmp_path / "first.npz")
    with np.load(tmp_path / "first.npz") as data:
        assert sorted(data.files) == ["environment", "residual", "seconds", "seed", "sizes"]
    again = First.load(tmp_path / "first.npz")
    assert (again.seed, again.environment) == (7, ("here",))


def test_what_is_measured_lies_along_the_axes():
    found = tabulated("total, both", lambda a, b: (a + b, [a, b]), (10, 20), (1, 2, 3))
    assert found["total"].tolist() == [[11, 12, 13], [21, 22, 23]]
    assert found["both"].shape == (2, 3, 2)
    assert found["both"][1, 2].tolist() == [20, 3]


def test_exponent_of_known_powers():
    sizes = np.array([1, 2, 4, 8])
    assert exponent(sizes, 3.0 * sizes**2.5) == pytest.approx(2.5)
    assert exponent(sizes, np.column_stack([sizes, 7 * sizes, 100 * sizes])) == pytest.approx(1.0)


def test_a_reason_makes_a_statement_a_documented_departure():
    assert Statement("a", "1").found(np.True_, "2") == Claim("a", True, "2", True, "1")
    claim = Statement("a", "1", "because", timed=True).found(np.False_, "2")
    assert claim == Claim("a", False, "2", documented=False, printed="1", why="because", timed=True)
    assert claim.holds is False
    assert not claim.surprising


@plate("panels", 4.0, 3.0)
def panels(figure, results) -> str:
    for row, column, ax in grid(figure, ("a", "b"), (1, 2), ("n", "time")):
        ax.plot([1, 10], [column, 2 * column], label=row)
        ax.set_xscale("log")
        ticks(ax, x=(1, 2.5, 10))
    return f"Of {results}."


def test_a_plate_has_its_caption_labels_at_the_edges_and_the_style_of_all():
    name, caption, figure = panels("all")
    assert (name, caption) == ("panels", "Of all.")
    upper, _, left, right = figure.get_axes()
    assert [ax.get_xlabel() for ax in (upper, left, right)] == ["", "n", "n"]
    assert [ax.get_ylabel() for ax in (upper, left, right)] == ["time", "time", ""]
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["1", "2.5", "10"]
    assert not right.spines["top"].get_visible()
    assert right.title.get_fontsize() == STYLE["axes.titlesize"]


def product_of(a, b):
    return a * b, [a, b]


def refuse(a, b):
    raise ValueError(f"{a} is not {b}")


@pytest.mark.parametrize("arrow", [True, False])
def test_cases_of_many_seeds_are_a_sweep(arrow, monkeypatch):
    """The same arrays as one after the other, and without pyarrow."""
    if not arrow:
        monkeypatch.setattr(results, "find_spec", lambda _: None)
    found = results.swept("product, both", product_of, a=(2, 3), b=range(4))
    expected = results.tabulated("product, both", product_of, (2, 3), range(4))
    for name, array in expected.items():
        assert np.array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_a_case_that_fails_ends_the_study():
    with pytest.raises(RuntimeError, match="a case of refuse failed: ValueError: 1 is not 2"):
        results.columns("product", refuse, [{"a": 1, "b": 2}])
