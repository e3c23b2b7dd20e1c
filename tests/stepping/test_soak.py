"""Scenes pushed and driven at random under both steppers, shortly here and long in `make test-all`; see `soak.py`."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config
from soak import STEPPERS, Ledger, main, plan, soak

import stiction as st
from stiction.scenes import SCENES

# In a few seconds, also where kernels are not compiled: those that cost little, and one of each kind of machine.
SHORT = {
    "time-stepping": (
        "peg-in-hole", "block-on-table", "ball-in-rim", "block-in-groove", "force-closure-grasp", "quadruped",
        "sliding-ball", "pinched-capsule", "mass-ratio",
    ),
    "event-driven": ("block-on-table", "sliding-ball", "force-closure-grasp"),
}  # fmt: skip
FEW = {"time-stepping": 10, "event-driven": 3} if config.DISABLE_JIT else {"time-stepping": 300, "event-driven": 60}
STEPS = 500_000


@pytest.mark.parametrize(("stepper", "name"), [(stepper, name) for stepper in SHORT for name in SHORT[stepper]])
def test_nothing_goes_wrong_shortly(stepper, name):
    result = soak(name, stepper, FEW[stepper], seed=1)
    assert result.faults == []
    assert result.steps == FEW[stepper]
    assert len(result.unsolved) <= 0.01 * result.steps


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stepper"), [(name, stepper) for name in SCENES for stepper in STEPPERS])
def test_nothing_goes_wrong_for_long(name, stepper, tmp_path, record_property):
    result = soak(name, stepper, plan(STEPS)[name, stepper], seed=0, folder=tmp_path)
    record_property("soak", result.line())
    assert result.faults == []


def test_the_plan_shares_all_steps():
    assert sum(plan(STEPS).values()) == STEPS
    assert min(plan(STEPS).values()) >= 100
    assert sum(plan(10, ["quadruped"]).values()) == 10


@pytest.mark.parametrize("stepper", STEPPERS)
def test_energy_that_nobody_gave_is_noticed(stepper, monkeypatch):
    """A step that ends a tenth faster than it should, which is more than friction takes, or is thrown."""
    made = STEPPERS[stepper]
    step = made.step
    for factor in (1.1, 2400.0):

        def faster(self, engine, law, solver, factor=factor):
            report = step(self, engine, law, solver)
            engine.data.qvel[:] *= factor
            return report

        monkeypatch.setattr(made, "step", faster)
        result = soak("sliding-cube", stepper, 20, seed=0)
        assert any("times the energy that may be gained" in fault for fault in result.faults)


def test_work_of_a_push_is_counted():
    """A free ball pulled for a while gains what the force did."""
    xml = """<mujoco><option gravity="0 0 0"/><worldbody><body><freejoint/><geom size="0.1" mass="2"/></body>
        </worldbody></mujoco>"""
    scene = st.Scene.from_xml(xml)
    ledger = Ledger(scene.model, st.TimeStepping())

    def control(model, data):
        data.xfrc_applied[1] = [3.0, 0.0, 0.0, 0.0, 0.1, 0.0]
        ledger.open(data)

    sim = st.Simulation(st.Scene(scene.model, control=control))
    for _ in range(100):
        sim.step()
        assert ledger.share(sim.data) < 1.0
    assert sim.data.qvel[0] == pytest.approx(1.5 * sim.time)


def test_what_is_not_solved_is_kept(tmp_path, monkeypatch):
    """The problem and the simulation before the step can be loaded again, and a wedged run begins anew."""
    step, problem = st.TimeStepping.step, st.ContactProblem(np.eye(3), np.zeros(3), [], [], [])

    def failing(self, engine, law, solver):
        if 5 <= round(engine.data.time / engine.model.opt.timestep) < 7:
            engine.problem = problem
            raise st.SolveFailed(st.solve(problem))
        return step(self, engine, law, solver)

    monkeypatch.setattr(st.TimeStepping, "step", failing)
    result = soak("sliding-cube", "time-stepping", 12, seed=0, folder=tmp_path)
    assert result.unsolved == [5, 6, 7]
    assert (result.wedged, result.resets, result.faults) == (1, 1, [])
    assert len(result.dumps) == 3
    assert isinstance(st.load(tmp_path / f"{result.dumps[0]}.problem.npz"), st.ContactProblem)
    assert st.Simulation.restore(tmp_path / f"{result.dumps[0]}.simulation.npz").time == pytest.approx(0.05)


def test_a_soak_that_was_stopped_goes_on(tmp_path, monkeypatch, capsys):
    words = ["soak.py", str(tmp_path), "--steps", "20", "--scene", "sliding-ball", "--stepper", "time-stepping"]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 0
    first = capsys.readouterr().out
    assert "20 steps: 0 not solved, 0 times wedged, 0 faults" in first
    monkeypatch.setattr("soak.soak", None)  # nothing is run again
    assert main() == 0
    assert capsys.readouterr().out == first
    assert (tmp_path / "soak.log").read_text(encoding="utf-8") == 2 * first
