"""Islands of a step on threads: the bits of one thread, whatever their number."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.errors import InvalidProblem
from stiction.stepping import crew


def course(model, workers, steps, **options):
    """State, forces and residuals after some steps."""
    data, stepper = mujoco.MjData(model), st.TimeStepping(workers=workers, **options)
    residuals = [st.step(model, data, stepper=stepper).certificate.residual for _ in range(steps)]
    return data.qpos.copy(), data.qvel.copy(), data.qfrc_constraint.copy(), np.array(residuals)


@pytest.fixture
def shared(monkeypatch):
    """Counts the islands of steps whose islands were shared out."""
    counts, before = [], crew.shares_of

    def counted(names, loads, count):
        counts.append(len(names))
        return before(names, loads, count)

    monkeypatch.setattr(crew, "shares_of", counted)
    return counts


@pytest.mark.parametrize(("name", "size", "steps"), [("humanoids", {"count": 30}, 80), ("heap", {"bodies": 100}, 160)])
def test_threads_change_no_bit(name, size, steps, shared):
    model = st.Scene.named(name, **size).model
    alone = course(model, 1, steps)
    assert not shared
    for workers in (2, 3):
        together = course(model, workers, steps)
        assert max(shared) > 10
        assert all(np.array_equal(one, two) for one, two in zip(alone, together, strict=True))
    assert max(alone[3]) <= 1e-8


def test_one_island_and_few_contacts_are_left_to_one_thread(shared):
    for scene in (st.Scene.named("block-stack", blocks=40), st.Scene.named("box-on-plane")):
        alone, together = course(scene.model, 1, 5), course(scene.model, 2, 5)
        assert all(np.array_equal(one, two) for one, two in zip(alone, together, strict=True))
    assert not shared


def test_a_step_that_contradicts_itself_is_made_as_by_one_thread(shared):
    """Boxes that lie still, of which one is put between walls that are too close for it."""
    boxes = "".join(f'<body pos="{i} 0 0.1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>' for i in range(40))
    walls = "".join(f'<geom type="box" size=".1 .3 .3" pos="{x} 0 0"/>' for x in (-1.199, -0.801))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="50 3 1"/>{walls}{boxes}</worldbody></mujoco>'
    )

    def squeezed(workers):
        data, stepper = mujoco.MjData(model), st.TimeStepping(workers=workers)
        reports = [st.step(model, data, stepper=stepper) for _ in range(5)]
        data.qpos[0] = -1.0
        reports += [st.step(model, data, stepper=stepper) for _ in range(10)]
        assert any(report.contradictions for report in reports)
        return data.qpos.copy(), data.qvel.copy()

    alone, together = squeezed(1), squeezed(2)
    assert all(np.array_equal(one, two) for one, two in zip(alone, together, strict=True))
    assert shared


def test_a_simulation_that_is_saved_keeps_its_workers(tmp_path):
    simulation = st.Simulation(st.Scene.named("box-on-plane"), stepper=st.TimeStepping(workers=2))
    simulation.step()
    simulation.save(tmp_path / "box.npz")
    assert st.Simulation.restore(tmp_path / "box.npz").stepper.workers == 2


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "two"])
def test_a_number_of_threads_that_is_none_is_refused(workers):
    with pytest.raises(InvalidProblem, match="TimeStepping: workers must be 1 or more threads"):
        st.TimeStepping(workers=workers)


def test_shares_hold_every_island_once_and_the_largest_first():
    names, loads = np.arange(50) * 3, np.array([1] * 30 + [100] + [7] * 19)
    shares = crew.shares_of(names, loads, 8)
    assert shares[0].tolist() == [90]
    assert sorted(name for share in shares for name in share.tolist()) == names.tolist()
    assert len(shares) <= 9
