"""Rollouts: the bits of a loop of `st.step`, whatever the number of threads, and as many as the arrays say."""

from __future__ import annotations

import _thread
import io
import re
import threading
import time

import mujoco
import mujoco.rollout
import numpy as np
import pytest

import stiction as st
from meanwhile import counts_of_another_thread
from stiction.arrays.compiled import is_compiled
from stiction.stepping import rollout as module

PHYSICS = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
# Three boxes that fall on each other and on a floor, a hinged arm with a motor among them, and sensors of all stages.
XML = """<mujoco><option timestep="0.004"/>{size}<worldbody><geom type="plane" size="3 3 1"/>
  <body name="a" pos="0 0 0.12"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body>
  <body pos="0.02 0 0.35"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body>
  <body pos="0.01 0.03 0.6"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body>
  <body pos="0.5 0 0.3"><joint name="arm" axis="0 1 0" range="-1.5 1.5" limited="true"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 -0.3 0 0" mass="1"/></body>
</worldbody><actuator><motor joint="arm" gear="3"/></actuator>
<sensor><jointpos joint="arm"/><framelinacc objtype="body" objname="a"/><jointactuatorfrc joint="arm"/></sensor>
</mujoco>"""


def model_of(size=""):
    return mujoco.MjModel.from_xml_string(XML.replace("{size}", size))


def start_of(model, batch=1, push=0.0, seed=0):
    data = mujoco.MjData(model)
    state = np.empty(mujoco.mj_stateSize(model, PHYSICS))
    mujoco.mj_getState(model, data, state, PHYSICS)
    states = np.tile(state, (batch, 1))
    rng = np.random.default_rng(seed)
    states[:, 1 + model.nq : 1 + model.nq + model.nv] += push * rng.normal(size=(batch, model.nv))
    return states


def looped(model, states, control, steps, **options):
    """The same by `st.step`: states, sensors and residuals."""
    rows = ([], [], [])
    for k, state in enumerate(states):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, state, PHYSICS)
        for t in range(steps):
            if control is not None:
                mujoco.mj_setState(model, data, control[k, t], CONTROL)
            report = st.step(model, data, **options)
            now = np.empty(len(state))
            mujoco.mj_getState(model, data, now, PHYSICS)
            for kept, value in zip(rows, (now, data.sensordata.copy(), report.certificate.residual), strict=True):
                kept.append(value)
    return [np.array(kept).reshape(len(states), steps, *np.shape(kept[0])) for kept in rows]


def same(found, expected):
    for one, other in zip(found[:3], expected, strict=True):
        assert np.array_equal(one, other)
    assert (found.failed == -1).all()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_bits_of_a_loop_of_steps_whatever_the_number_of_workers(workers):
    model = model_of()
    states = start_of(model, 5, push=0.3)
    control = np.random.default_rng(1).uniform(-1.0, 1.0, (5, 150, model.nu))
    found = st.rollout(model, mujoco.MjData(model), states, control, workers=workers)
    assert found.state.shape == (5, 150, states.shape[1])
    assert found.sensordata.shape == (5, 150, model.nsensordata)
    same(found, looped(model, states, control, 150))
    assert found.residual.max() <= 1e-8


@pytest.mark.parametrize(
    "name", ["quadruped", "double-action-jack", "pinched-capsule", "log-heap", "peg-in-hole", "mass-ratio"]
)
def test_named_scenes_have_the_bits_of_a_loop(name):
    """Joints, servos, equalities and sensors; logs are cylinders, whose contacts are mended in Python."""
    model = st.Scene.named(name).model
    states = start_of(model, 2, push=0.05)
    control = None if not model.nu else np.zeros((2, 40, model.nu))
    found = st.rollout(model, mujoco.MjData(model), states, control, nstep=40, workers=2)
    same(found, looped(model, states, control, 40))


@pytest.mark.parametrize(
    "options",
    [
        {"law": st.Coulomb(facets=8)},
        {"stepper": st.TimeStepping(restitution=0.5)},
        {"stepper": st.TimeStepping(warm=False)},
        {"stepper": st.TimeStepping(recovery=0.5, tolerance=1e-7)},
        {"stepper": st.EventDriven()},
    ],
)
def test_other_laws_and_steppers(options):
    model = model_of()
    states = start_of(model, 2)
    found = st.rollout(model, mujoco.MjData(model), states, nstep=30, workers=2, **options)
    same(found, looped(model, states, None, 30, **options))


@pytest.mark.skipif(not is_compiled(), reason="kernels are not compiled")
def test_python_makes_few_of_the_steps(monkeypatch):
    """The first of a data, and those that the compiled loop hands back."""
    calls, one = [], module.Roller.one
    monkeypatch.setattr(module.Roller, "one", lambda *given: calls.append(given[1]) or one(*given))
    model = model_of()
    st.rollout(model, mujoco.MjData(model), start_of(model, 4), nstep=300, workers=1)
    assert calls[0] == 0
    assert len(calls) < 20


@pytest.mark.skipif(not is_compiled(), reason="kernels are not compiled")
def test_other_threads_run_meanwhile():
    model = model_of()
    states = start_of(model)
    st.rollout(model, mujoco.MjData(model), states, nstep=10, workers=1)
    data, steps = mujoco.MjData(model), module.SHARE
    assert counts_of_another_thread(lambda: st.rollout(model, data, states, nstep=steps, workers=1)) >= 3


def test_steps_without_warm_starts_and_far_apart_sizes():
    """Contacts come and go, so that records grow and shrink: nothing of one trajectory is seen in the next."""
    model = model_of()
    states = start_of(model, 4)
    states[1::2, 3] += 5.0  # far above the floor: no contact at all
    for warm in (True, False):
        stepper = st.TimeStepping(warm=warm)
        found = st.rollout(model, mujoco.MjData(model), states, nstep=80, workers=1, stepper=stepper)
        same(found, looped(model, states, None, 80, stepper=stepper))


# Shapes


def test_shapes_are_those_of_mujoco_s_rollout():
    model = model_of()
    state, nu = start_of(model)[0], model.nu
    for states, control, nstep in (
        (state, None, 3),
        (state, np.zeros(nu), 3),
        (state, np.zeros((4, nu)), None),
        (np.tile(state, (3, 1)), np.zeros((4, nu)), None),
        (state[None], np.zeros((3, 4, nu)), None),
        (np.tile(state, (3, 1)), np.zeros((3, 1, nu)), 2),
        (state, None, None),
    ):
        data = mujoco.MjData(model)
        theirs = mujoco.rollout.rollout(model, data, states, control, nstep=nstep)
        ours = st.rollout(model, data, states, control, nstep=nstep, workers=1)
        assert (ours.state.shape, ours.sensordata.shape) == (theirs[0].shape, theirs[1].shape)
        assert ours.residual.shape == ours.state.shape[:2]


def test_arrays_that_are_handed_in_are_written_to():
    model = model_of()
    states = start_of(model, 2)
    expected = st.rollout(model, mujoco.MjData(model), states, nstep=20)
    state, sensordata = np.zeros_like(expected.state), np.zeros_like(expected.sensordata)
    for skip in (False, True):
        state[:], sensordata[:] = 0.0, 0.0
        found = st.rollout(
            model, [mujoco.MjData(model)] * 1, states, nstep=20, state=state, sensordata=sensordata, skip_checks=skip
        )
        assert found.state is state
        assert found.sensordata is sensordata
        assert np.array_equal(state, expected.state)
        assert np.array_equal(sensordata, expected.sensordata)


def test_a_model_for_each_trajectory():
    models = [model_of() for _ in range(3)]
    for k, model in enumerate(models):
        model.geom_friction[:, 0] = 0.1 + 0.4 * k
    states = start_of(models[0], push=0.3)
    data_list = [mujoco.MjData(models[0]) for _ in range(2)]
    found = st.rollout(models, data_list, states, nstep=60)
    for k, model in enumerate(models):
        expected = looped(model, states, None, 60)
        assert np.array_equal(found.state[k], expected[0][0])
    assert not np.array_equal(found.state[0], found.state[2])


def test_no_steps_and_no_trajectories():
    model = model_of()
    assert st.rollout(model, mujoco.MjData(model), start_of(model), nstep=0).state.shape[:2] == (1, 0)
    assert st.rollout(model, mujoco.MjData(model), start_of(model)[:0], nstep=5).state.shape[:2] == (0, 5)


def test_the_model_is_not_changed():
    model = model_of()
    before = model.__getstate__()
    st.rollout(model, mujoco.MjData(model), start_of(model), nstep=20)
    assert model.__getstate__() == before


BAD = {
    "model": ({"model": 3}, "rollout: model must be an MjModel, got int"),
    "data": ({"data": [3]}, "rollout: data[0] must be an MjData, got int"),
    "none": ({"data": []}, "rollout: data is an empty list"),
    "state": ({"initial_state": np.zeros(3)}, "rollout: initial_state must have shape ([nbatch or 1], 42), got (3,)"),
    "control": ({"control": np.zeros((2, 2))}, "control must have shape ([nbatch or 1], [nstep or 1], 1), got (2, 2)"),
    "words": ({"control": "much"}, "rollout: control must be an array of numbers"),
    "lengths": ({"control": np.zeros((4, 1)), "nstep": 3}, "disagree about nstep: control 4, nstep 3"),
    "batches": (
        {"control": np.zeros((4, 2, 1)), "initial_state": np.zeros((3, 42))},
        "disagree about nbatch: initial_state 3, control 4",
    ),
    "nstep": ({"nstep": 1.5}, "rollout: nstep must be a whole number of at least 0, got 1.5"),
    "negative": ({"nstep": -1}, "rollout: nstep must be a whole number of at least 0, got -1"),
    "workers": ({"workers": 0}, "rollout: workers must be a whole number of at least 1, got 0"),
    "failure": ({"on_failure": "ignore"}, "rollout: on_failure must be one of 'raise', 'stop', 'best', got 'ignore'"),
    "best": ({"on_failure": "best", "stepper": st.EventDriven()}, "on_failure='best' is for TimeStepping"),
    "spec": ({"control_spec": 1}, "control_spec must consist of bits of mjSTATE_USER, got 1"),
    "law": ({"law": 3}, "rollout: law must be a law such as Coulomb(), got 3"),
    "stepper": ({"stepper": st.TimeStepping}, "rollout: stepper must be an object, but TimeStepping is a class"),
    "skipping": ({"skip_checks": True}, "rollout: skip_checks needs nstep, state and sensordata"),
    "output": (
        {"state": np.zeros((1, 2, 3))}, "state must be a contiguous array of float64 of shape (nbatch, nstep, 42)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_input_is_named(name):
    model = model_of()
    options, message = BAD[name]
    given = {"model": model, "data": mujoco.MjData(model), "initial_state": start_of(model), **options}
    with pytest.raises(st.InvalidScene, match=re.escape(message)):
        st.rollout(**given)


def test_a_data_of_another_model_and_models_of_other_sizes_are_refused():
    model, other = model_of(), mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(st.InvalidScene, match="this data belongs to another model"):
        st.rollout(model, mujoco.MjData(other), start_of(model))
    with pytest.raises(st.InvalidScene, match=re.escape("model[1] has other sizes than model[0]")):
        st.rollout([model, other], mujoco.MjData(model), start_of(model))
    with pytest.raises(st.InvalidScene, match="disagree about nbatch: initial_state 3, model 2"):
        st.rollout([model, model_of()], mujoco.MjData(model), start_of(model, 3))


# Failures

# A wheel that is welded where it is: in the ground no velocity takes it out.
STUCK = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="wheel" pos="0 0 0.1"><freejoint/><geom size="0.1" mass="2"/></body>
</worldbody><equality><weld body1="wheel" active="{active}"/></equality></mujoco>"""


@pytest.fixture
def no_way_out(monkeypatch):
    """Overlaps and joints that contradict each other make steps fail, as nothing else does reliably."""
    monkeypatch.setattr("stiction.stepping.time_stepping.asks", lambda problem: False)
    monkeypatch.setattr("stiction.stepping.time_stepping.contradict", lambda problem: False)
    monkeypatch.setattr(
        st.TimeStepping, "step_still", lambda self, engine, made: self.step_apart(engine, st.Coulomb(), st.Auto(), None)
    )


def sunk(active="true"):
    """A model, and three states of which the second is in the ground."""
    model = mujoco.MjModel.from_xml_string(STUCK.format(active=active))
    states = start_of(model, 3)
    states[:, 3] = 0.5
    states[1, 3] = 0.05
    model.eq_data[:, 3:6] = 0.0, 0.0, 0.05
    return model, states


def test_a_failed_trajectory_raises_and_says_which(no_way_out):
    model, states = sunk()
    with pytest.raises(st.SolveFailed) as raised:
        st.rollout(model, mujoco.MjData(model), states, nstep=200, workers=1)
    note = raised.value.__notes__[0]
    assert re.fullmatch(r"in trajectory \d, at step \d+", note)


def test_a_failed_trajectory_stops_alone(no_way_out):
    model, states = sunk()
    # The weld pulls all of them down; how soon each is stuck differs.
    found = st.rollout(model, mujoco.MjData(model), states, nstep=200, workers=2, on_failure="stop")
    assert found.failed[1] >= 0
    at = found.failed[1]
    assert np.isnan(found.residual[1, at:]).all()
    assert (found.residual[1, :at] <= 1e-8).all()
    assert np.array_equal(found.state[1, at:], np.tile(found.state[1, at], (200 - at, 1)))
    again = st.rollout(model, mujoco.MjData(model), states, nstep=200, workers=1, on_failure="stop")
    assert np.array_equal(found.state, again.state)
    assert np.array_equal(found.failed, again.failed)


def test_a_failed_trajectory_goes_on_with_the_best_answer(no_way_out):
    model, states = sunk()
    found = st.rollout(model, mujoco.MjData(model), states, nstep=20, on_failure="best")
    assert found.failed[1] >= 0
    assert found.residual[1].max() > 1e-8
    assert np.isfinite(found.state).all()
    same_bits = looped(model, states, None, 20, stepper=st.TimeStepping(on_failure="best"))
    assert np.array_equal(found.state, same_bits[0])
    assert np.array_equal(found.residual, same_bits[2])


def test_controls_that_are_not_numbers_end_their_trajectory():
    model = model_of()
    control = np.zeros((3, 30, model.nu))
    control[1, 12, 0] = np.nan
    with pytest.raises(st.InvalidScene, match=r"data.ctrl\[0\] = nan must be") as raised:
        st.rollout(model, mujoco.MjData(model), start_of(model), control)
    assert raised.value.__notes__ == ["in trajectory 1, at step 12"]
    found = st.rollout(model, mujoco.MjData(model), start_of(model), control, on_failure="stop")
    assert found.failed.tolist() == [-1, 12, -1]
    assert np.array_equal(found.state[0], found.state[2])
    assert np.array_equal(found.state[1, :12], found.state[0, :12])


def test_a_full_arena_is_an_error_and_not_the_end_of_the_process(tmp_path, monkeypatch):
    """Called by its address, MuJoCo would end the process: where room is short, steps go through Python.

    The boxes are in the air at first, so that the need for memory comes all at once.
    """
    monkeypatch.chdir(tmp_path)  # for MuJoCo's log
    calls, one = [], module.Roller.one
    monkeypatch.setattr(module.Roller, "one", lambda *given: calls.append(given[1]) or one(*given))
    states = start_of(model_of())
    expected = looped(model_of(), states, None, 60)
    tight = model_of('<size memory="1M"/>')
    found = st.rollout(tight, mujoco.MjData(tight), states, nstep=60, workers=1)
    assert np.array_equal(found.state, expected[0])
    assert calls == list(range(60))
    tiny = model_of('<size memory="4000"/>')
    with pytest.raises(mujoco.FatalError, match="mj_stackAlloc: out of memory"):
        st.rollout(tiny, mujoco.MjData(tiny), states, nstep=60, workers=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_soon_and_cleanly(workers):
    model = model_of()
    data, states = mujoco.MjData(model), start_of(model, 2)
    st.rollout(model, data, states, nstep=5, workers=workers)
    threads = threading.active_count()
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        st.rollout(model, data, states, nstep=200_000, workers=workers)
    assert time.monotonic() - begin < 10.0
    timer.join()
    assert threading.active_count() <= threads
    same(st.rollout(model, data, states, nstep=5, workers=1), looped(model, states, None, 5))


def test_a_data_that_is_being_stepped_is_refused():
    model = model_of()
    data = mujoco.MjData(model)
    with module.alone(data), pytest.raises(st.StictionError, match="this data is being stepped already"):
        st.rollout(model, data, start_of(model), nstep=5, workers=1)


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(module.sys, "stderr", stream)
        progress = module.Progress(1000)
        progress.begin -= 10.0
        progress.add(250)
        progress.close()
        assert ("25 % of 1000 steps, 31 s left" in stream.getvalue()) == shown
        assert stream.getvalue() == "" or stream.getvalue().endswith("\r\033[K")


# Of simulations


@pytest.mark.parametrize("name", ["quadruped", "block-feeder", "block-stack"])
def test_a_simulation_s_rollout_is_what_it_would_do(name):
    """Its own control, if it has one, acts in each step; the simulation itself does not move."""
    simulation = st.Simulation(st.Scene.named(name))
    for _ in range(10):
        simulation.step()
    before = simulation.data.qpos.copy()
    found = simulation.rollout(nstep=25, workers=2)
    assert np.array_equal(simulation.data.qpos, before)
    copies = simulation.copy()
    for t in range(25):
        report = copies.step()
        now = np.empty(found.state.shape[2])
        mujoco.mj_getState(copies.model, copies.data, now, PHYSICS)
        assert np.array_equal(found.state[0, t], now)
        assert found.residual[0, t] == report.certificate.residual


def test_a_simulation_under_many_controls():
    scene = st.Scene.of(model_of())
    simulation = st.Simulation(scene)
    for _ in range(5):
        simulation.step()
    control = np.random.default_rng(2).uniform(-1.0, 1.0, (3, 40, 1))
    found = simulation.rollout(control, workers=2)
    for k in range(3):
        other = simulation.copy()
        for t in range(40):
            other.data.ctrl[:] = control[k, t]
            other.step()
        assert np.array_equal(found.state[k, -1, 1 : 1 + scene.model.nq], other.data.qpos)
    with pytest.raises(st.InvalidScene, match="rollout: on_failure must be one of"):
        simulation.rollout(on_failure="ignore")


@pytest.mark.skipif(not is_compiled(), reason="nothing is loaded")
def test_other_data_load_no_machine_code_again(monkeypatch):
    """It stays in memory as long as the process lives."""
    model = model_of()
    start = start_of(model)

    def made():
        st.step(model, mujoco.MjData(model))
        st.rollout(model, mujoco.MjData(model), start, nstep=3)

    made()
    monkeypatch.setattr("stiction.arrays.kernel_cache.loaded", lambda _: pytest.fail("loaded again"))
    made()
