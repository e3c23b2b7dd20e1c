"""Lloyd's blocks with constant friction limits: what he expects of them is what box LCPs give."""

import numpy as np
import pytest

from stiction.problems.zoo.classics import lloyd_blocks
from stiction.solutions import certify
from stiction.solvers import Keller, Lemke, solve

BLOCKS = lloyd_blocks()


def test_all_are_read():
    assert len(BLOCKS) == 13
    assert [block.problem.n for block in BLOCKS.values()] == [2, 4, 4, 2, 4, 4, 8, 3, 9, 9, 10, 12, 12]
    assert [len(block.mass) for block in BLOCKS.values()] == [3] * 3 + [6] * 10
    with pytest.raises(TypeError):
        BLOCKS["new"] = None


def test_one_read_by_hand():
    block = BLOCKS["2D stacked blocks, no base, sticking friction"]
    np.testing.assert_array_equal(np.diag(block.mass), [1000.0, 1000.0, 500.0 / 3.0] * 2)
    np.testing.assert_array_equal(block.rows[1], [0.0, 1.0, -0.5, 0.0, -1.0, 0.5])
    np.testing.assert_array_equal(block.rows[2], [1.0, 0.0, 0.5, -1.0, 0.0, 0.5])
    np.testing.assert_array_equal(block.problem.lo, [0.0, 0.0, -9.0, -9.0])
    np.testing.assert_array_equal(block.problem.hi, [np.inf, np.inf, 9.0, 9.0])
    assert block.friction is None
    # H = rows M⁻¹ rowsᵀ, an entry of it: normals of the two contacts of two blocks.
    assert block.problem.H[0, 1] == pytest.approx(2 * (1 / 1000 - 0.25 * 3 / 500))


@pytest.mark.parametrize("solver", [Keller(), Lemke()], ids=str)
@pytest.mark.parametrize("name", BLOCKS)
def test_velocities_and_normal_forces_are_his(name, solver):
    block = BLOCKS[name]
    z = solve(block.problem, solver).z
    velocity = np.linalg.solve(block.mass, block.force + block.rows.T @ z)
    np.testing.assert_allclose(velocity, block.velocity, atol=1e-12)
    if block.normal is not None:
        np.testing.assert_allclose(z[: len(block.normal)], block.normal, atol=1e-9)


def test_his_forces_are_solutions():
    whole = {name: block for name, block in BLOCKS.items() if block.normal is not None and block.friction is not None}
    assert len(whole) == 3
    for block in whole.values():
        assert certify(block.problem, np.concatenate([block.normal, block.friction])).residual <= 1e-14
