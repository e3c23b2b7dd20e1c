"""What is asked of every study: its test file derives from this, and has a fixture `results` of the quick setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


class EveryStudy:
    study: Any  # the module
    figures: tuple[str, ...]  # names of its plates
    own: frozenset[str] | None = frozenset()  # claims that are no paper's; None: all of them

    def test_claims_come_out_as_documented_but_for_the_clock(self, results):
        claims = [claim for claim in self.study.check(results) if not claim.timed]
        assert len(claims) >= 3
        assert [str(claim) for claim in claims if claim.surprising] == []

    def test_claims_have_a_name_each_the_printed_number_and_a_reason_where_they_fail(self, results):
        claims = self.study.check(results)
        assert len({claim.name for claim in claims}) == len(claims)
        assert [claim.name for claim in claims if not claim.documented and not claim.why] == []
        if self.own is not None:
            assert {claim.name for claim in claims if not claim.printed} == self.own

    def test_results_survive_a_file(self, results, tmp_path):
        results.save(tmp_path / "results.npz")
        again = self.study.Results.load(tmp_path / "results.npz")
        assert (again.seed, again.environment) == (results.seed, results.environment)
        for name, one in again.arrays.items():
            assert np.array_equal(one, results.arrays[name], equal_nan=one.dtype.kind == "f"), name
        assert [str(claim) for claim in self.study.check(again)] == [str(claim) for claim in self.study.check(results)]

    def test_no_figure_is_empty(self, results, tmp_path):
        plates = self.study.figures(results)
        assert tuple(plate.name for plate in plates) == self.figures
        for plate in plates:
            for suffix in ("png", "svg"):
                path = tmp_path / f"{plate.name}.{suffix}"
                plate.figure.savefig(path)
                assert path.stat().st_size > 10_000, path.name
            for ax in plate.figure.get_axes():
                assert ax.lines or ax.patches or ax.collections, plate.name

    def test_tables_have_a_cell_for_every_head(self, results):
        for sheet in self.study.tables(results):
            assert sheet.rows
            assert {len(row) for row in sheet.rows} == {len(sheet.head)}

    @pytest.mark.slow
    def test_full_study_comes_out_as_documented(self):
        claims = self.study.check(self.study.run())
        assert [str(claim) for claim in claims if claim.surprising] == []
