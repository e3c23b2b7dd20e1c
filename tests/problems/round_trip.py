"""What is written to a file and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stiction import load

if TYPE_CHECKING:
    from pathlib import Path

    from stiction import ContactProblem


def assert_comes_back(problem: ContactProblem, path: Path) -> None:
    """Matrices and coefficients to the bit."""
    problem.save(path)
    again = load(path)
    np.testing.assert_array_equal(again.dense_rows(), problem.dense_rows())
    np.testing.assert_array_equal(again.friction, problem.friction)
    if problem.mass is None:
        np.testing.assert_array_equal(again.delassus, problem.delassus)
    else:
        np.testing.assert_array_equal(again.mass, problem.mass)
