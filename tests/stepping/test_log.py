"""Logs: what they hold, and that they are whole whenever they are looked at."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.stepping import log as logs
from stiction.stepping.log import Log
from stiction.stepping.log_files import Record


def logged(path=None, steps=20, stepper=None, **parameters) -> Log:
    simulation = st.Simulation(st.Scene.named("box-on-plane", **parameters), stepper=stepper)
    log = Log(simulation, path)
    for _ in range(steps):
        log.add(simulation.step(), 0.25)
    return log


def same(one: Record, two: Record) -> bool:
    def equal(a, b) -> bool:
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f") if isinstance(a, np.ndarray) else a == b

    return all(equal(value, getattr(two, name)) for name, value in vars(one).items())


def test_what_a_log_holds():
    log = logged(steps=3)
    simulation, record = log.simulation, log.record()
    dt = simulation.model.opt.timestep
    np.testing.assert_allclose(record.time, dt * np.arange(1, 4))
    assert (record.seconds == 0.25).all()
    assert (record.residual <= 1e-8).all()
    assert record.geoms == ("ground", "box")
    touches = simulation.contacts
    last = slice(record.first[-2], record.first[-1])
    np.testing.assert_array_equal(record.contact_force[last], touches.force)
    np.testing.assert_array_equal(record.contact_gap[last], touches.gap)
    np.testing.assert_array_equal(record.contact_mode[last], touches.mode)
    np.testing.assert_array_equal(record.contact_geom[last], touches.geom)
    weight = 9.81 * float(simulation.model.body_mass.sum())
    carried = np.bincount(record.step_of_contact, record.contact_force[:, 0])
    np.testing.assert_allclose(carried, weight, rtol=1e-9)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_the_round_trip_is_exact(suffix, tmp_path):
    log = logged(tmp_path / f"run.{suffix}")
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == [f"run.{suffix}"]
    assert same(log.record(), Log.load(tmp_path / f"run.{suffix}"))


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_a_log_is_whole_at_every_moment_in_however_many_parts(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "EVERY", 0.0)
    monkeypatch.setattr(logs, "PART", 2000)
    path = tmp_path / f"run.{suffix}"
    simulation = st.Simulation(st.Scene.named("box-on-plane"))
    log = Log(simulation, path)
    for step in range(30):
        assert Log.load(path).steps == step
        log.add(simulation.step(), 1.0)
    assert len(list(tmp_path.iterdir())) > 2
    assert same(log.record(), Log.load(path)), "what a killed run leaves"
    log.close()
    assert list(tmp_path.iterdir()) == [path]
    assert same(log.record(), Log.load(path))


def test_parts_of_another_run_are_not_mixed_in(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "EVERY", 0.0)
    monkeypatch.setattr(logs, "PART", 2000)
    logged(tmp_path / "old.npz", steps=30)
    (tmp_path / "old.2.npz").rename(tmp_path / "new.2.npz")
    log = logged(None, steps=3)
    log.path, log.write = tmp_path / "new.npz", logs.writer(tmp_path / "new.npz")
    log._keep()
    assert Log.load(tmp_path / "new.npz").steps == 3
    logged(tmp_path / "new.npz", steps=2)
    assert not (tmp_path / "new.2.npz").exists(), "a new run of that name removes them"


def test_writing_waits_for_its_second(tmp_path):
    log = logged(tmp_path / "run.npz", steps=5)
    assert Log.load(tmp_path / "run.npz").steps == 0
    log.due = 0.0
    log.add(log.simulation.step(), 1.0)
    assert Log.load(tmp_path / "run.npz").steps == 6


def test_more_steps_than_there_was_room_for():
    log = logged(steps=1)
    report = log.simulation.report
    for _ in range(3000):
        log.add(report, 1.0)
    record = log.record()
    assert record.steps == 3001
    assert (np.diff(record.first) == record.contacts).all()
    np.testing.assert_array_equal(record.contact_force[:4], record.contact_force[-4:])


def test_slip_is_the_speed_of_what_slides_under_either_stepper():
    for stepper in (st.TimeStepping(), st.EventDriven()):
        simulation = st.Simulation(st.Scene.named("sliding-cube"), stepper=stepper)
        log = Log(simulation)
        for _ in range(5):
            log.add(simulation.step(), 1.0)
        speed = float(np.hypot(*simulation.data.qvel[:2]))
        assert speed > 0.1
        assert log.record().slip[-1] == pytest.approx(speed, rel=1e-6), stepper


def test_without_contacts():
    scene = st.Scene.from_xml("<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>")
    simulation = st.Simulation(scene)
    log = Log(simulation)
    log.add(simulation.step(), 1.0)
    record = log.record()
    assert (record.contacts[0], record.slip[0], len(record.contact_gap)) == (0, 0.0, 0)
    assert np.isnan(record.gap[0])


@pytest.mark.parametrize(
    ("name", "message"),
    [("run.csv", "must end in .npz or .parquet"), ("no/run.npz", "there is no folder"), (".", "must end in")],
)
def test_what_cannot_be_written_is_refused_at_once(name, message, tmp_path):
    with pytest.raises(st.InvalidProblem, match=message):
        logged(tmp_path / name, steps=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_what_is_no_log_is_refused(suffix, tmp_path):
    path = tmp_path / f"run.{suffix}"
    with pytest.raises(st.InvalidProblem, match="there is no file"):
        Log.load(path)
    logged(path, steps=2).close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(st.InvalidProblem, match="run"):
        Log.load(path)
    path.write_text("nothing")
    with pytest.raises(st.InvalidProblem, match="holds no log, or is damaged"):
        Log.load(path)
    st.LCP([[1.0]], [1.0]).save(tmp_path / "problem.npz")
    with pytest.raises(st.InvalidProblem, match="is not a log, but 'stiction problem'"):
        Log.load(tmp_path / "problem.npz")
