"""The study, in its quick setting, comes out as its docstring says: claims that hold, and departures that do not."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from stiction.studies import lacoursiere2003 as study
from stiction.studies.__main__ import main


@pytest.fixture(scope="module")
def results() -> study.Results:
    return study.run(quick=True)


def test_every_claim_comes_out_as_documented(results):
    claims = study.check(results)
    assert [str(claim) for claim in claims if claim.holds != claim.documented] == []


def test_figures_of_the_paper_are_reproduced_with_uniform_eigenvalues(results):
    held = {claim.name for claim in study.check(results) if claim.holds}
    assert "uniform spectrum: Lemke peaks sharply near n" in held
    assert "uniform spectrum: Cottle–Dantzig peaks near 2 n" in held
    assert "uniform spectrum: Murty is slightly worse than Cottle–Dantzig" in held


def test_every_direct_solve_is_certified(results):
    assert results.residual.max() <= 1e-9
    assert results.size_residual.max() <= 1e-9


def test_results_survive_a_file(results, tmp_path):
    results.save(tmp_path / "results.npz")
    again = study.Results.load(tmp_path / "results.npz")
    for field in fields(study.Results):
        assert np.array_equal(getattr(again, field.name), getattr(results, field.name)), field.name


def test_same_seed_same_counts(results):
    iterations, _ = study._count(100, range(2))
    assert np.array_equal(iterations, results.iterations[:, :, :2])


def test_both_spectra_have_the_condition_number():
    for spectrum in study.SPECTRA:
        assert np.linalg.cond(study.box_problem(60, 3, spectrum).H) == pytest.approx(1e4, rel=1e-6)


def test_a_failed_solve_fails_the_claim(results):
    broken = {f.name: getattr(results, f.name) for f in fields(study.Results)}
    broken["residual"] = np.full_like(results.residual, np.nan)
    assert not study.check(study.Results(**broken))[0].holds


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plot_is_written(results, tmp_path, suffix):
    (plate,) = study.figures(results)
    plate.figure.savefig(tmp_path / f"figure.{suffix}")
    assert (tmp_path / f"figure.{suffix}").stat().st_size > 10_000


def test_list_names_the_study(capsys):
    assert main(["list"]) == 0
    assert capsys.readouterr().out.startswith("lacoursiere2003  Random box LCPs")


def test_command_line_checks_stored_results(results, tmp_path, capsys):
    results.save(tmp_path / "lacoursiere2003-quick.npz")
    assert main(["check", "lacoursiere2003", "--quick", "--out", str(tmp_path)]) == 0
    assert "holds          uniform spectrum: Lemke peaks sharply near n: median" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "baraff"], "stiction.studies: no study 'baraff'; there are: lacoursiere2003\n"),
        (["run"], "stiction.studies: no study named; there are: lacoursiere2003\n"),
    ],
)
def test_a_bad_name_is_one_line_and_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    assert capsys.readouterr().err == message


@pytest.mark.slow
def test_full_study_comes_out_as_documented():
    claims = study.check(study.run())
    assert [str(claim) for claim in claims if claim.holds != claim.documented] == []
