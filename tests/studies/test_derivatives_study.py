"""The study of derivatives comes out as documented."""

from __future__ import annotations

import numpy as np
import pytest
from every_study import EveryStudy

from stiction.studies import derivatives as study


@pytest.fixture(scope="module")
def results() -> study.Results:
    return study.run(quick=True)


class TestStudy(EveryStudy):
    study = study
    figures = ("kinks",)
    own = None


def test_smoothing_loses_what_one_sided_derivatives_keep(results):
    assert results.sides == pytest.approx([0.0, 1.0], abs=1e-9)
    assert np.abs(results.smoothed[:, None] - results.sides).min() >= 0.4


def test_every_step_with_contact_is_counted(results):
    assert (results.count.sum(axis=1) > 0).all()
    assert results.error.size >= 3
