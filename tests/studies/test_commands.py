"""Results lie where they are said to, are used again, and bad names get a helpful answer."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from stiction.errors import InvalidProblem
from stiction.studies import STUDIES, commands
from stiction.studies.claims import Claim
from stiction.studies.results import PLACE, Findings, Place, Plate

PROTOCOL = ("run", "check", "figures", "Results")


class Fake:
    """A study that takes no time, and counts its runs."""

    __doc__ = "A fake.\n\nAbout it."

    class Results(Findings):
        pass

    def __init__(self):
        self.runs = []

    def run(self, quick=False, seed=0):
        self.runs.append(quick)
        return self.Results(seed, ("here",))

    def check(self, results):
        return [Claim("it is so", True, f"seed {results.seed}")]

    def figures(self, results):
        from stiction import optional

        figure = optional.matplotlib().figure.Figure(figsize=(1.0, 1.0))
        return [Plate("dot", "A dot.", figure)]


@pytest.fixture
def fake(monkeypatch):
    study = Fake()
    monkeypatch.setattr(commands, "STUDIES", ("fake",))
    monkeypatch.setattr(commands, "import_module", lambda name: study)
    return study


def test_every_study_has_a_headline_and_the_protocol():
    told = commands.available()
    assert tuple(told) == STUDIES
    for name, headline in told.items():
        assert headline.endswith("."), name
        study = import_module(f"stiction.studies.{name}")
        assert all(hasattr(study, attribute) for attribute in PROTOCOL), name


def test_a_study_runs_where_it_is_asked_to(fake, tmp_path, monkeypatch):
    """`--on cores` reaches the sweeps of a study, and nothing after it."""
    places = []
    monkeypatch.setattr(Fake, "run", lambda self, quick=False: places.append(PLACE.get()) or self.Results(0, ("here",)))
    commands.run("fake", out=tmp_path, on="cores", workers=2)
    commands.run("fake", out=tmp_path)
    assert places == [Place("cores", 2), Place()]
    with pytest.raises(InvalidProblem, match="on must be one of 'here', 'cores', 'ray', got 'moon'"):
        commands.run("fake", out=tmp_path, on="moon")
    assert PLACE.get() == Place()


def test_run_stores_and_check_uses_what_is_stored(fake, tmp_path):
    folder = tmp_path / "new" / "folder"
    path = commands.run("fake", quick=True, out=folder)
    assert path == folder / "fake-quick.npz"
    assert sorted(p.name for p in folder.iterdir()) == ["fake-quick.npz"]
    (claim,) = commands.check("fake", quick=True, out=folder)
    assert claim.found == "seed 0"
    assert fake.runs == [True]


def test_check_runs_what_is_not_stored(fake, tmp_path):
    commands.check("fake", quick=False, out=tmp_path)
    commands.check("fake", quick=False, out=tmp_path)
    assert fake.runs == [False]
    assert (tmp_path / "fake.npz").exists()


def test_run_runs_again(fake, tmp_path):
    commands.run("fake", out=tmp_path)
    commands.run("fake", out=tmp_path)
    assert fake.runs == [False, False]


def test_plot_writes_both_formats(fake, tmp_path):
    paths = commands.plot("fake", quick=True, out=tmp_path)
    assert [path.name for path in paths] == ["fake-quick-dot.svg", "fake-quick-dot.png"]
    assert all(path.stat().st_size > 0 for path in paths)


@pytest.mark.parametrize("action", [commands.run, commands.check, commands.plot])
def test_a_bad_name_gets_the_nearest_one(action, tmp_path):
    with pytest.raises(InvalidProblem, match="study: there is no study 'loyd2004'; did you mean 'lloyd2004'?"):
        action("loyd2004", out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_name_like_no_other_gets_all():
    with pytest.raises(InvalidProblem, match=f"'x'; there are: {', '.join(STUDIES)}"):
        commands.module("x")


def test_results_of_another_version_are_refused(fake, tmp_path):
    np.savez(tmp_path / "fake.npz", something=np.zeros(2))
    with pytest.raises(InvalidProblem, match=r"fake\.npz does not hold results of this version"):
        commands.check("fake", out=tmp_path)
    (tmp_path / "fake.npz").write_bytes(b"no archive at all")
    with pytest.raises(InvalidProblem, match="run it again"):
        commands.check("fake", out=tmp_path)


def test_a_failed_save_leaves_the_old_results(fake, tmp_path, monkeypatch):
    path = commands.run("fake", out=tmp_path)
    before = path.read_bytes()

    def fails(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fails)
    with pytest.raises(InvalidProblem, match=r"study: cannot write .*fake\.npz \(disk full\)"):
        commands.run("fake", out=tmp_path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_solves_are_timed_in_turn():
    from stiction.studies.timing import side_by_side

    asked = []
    short, long = side_by_side([lambda: asked.append("a"), lambda: asked.append(sum(range(20_000)))], 3)
    assert [str(what)[0] == "a" for what in asked] == [True, False] * 3
    assert 0.0 <= short < long
