"""Copies and pickles of simulations: they go on with the same bits, apart from each other, in any process."""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle

import numpy as np
import pytest

import stiction as st
from stiction.bodies.state import state
from stiction.scenes import SCENES

# Driven scenes, joints, heightfields and cylinders among them; few steps, as each runs twice.
SOME = ("block-stack", "double-action-jack", "block-feeder", "dominoes", "quadruped", "log-heap")


def course(simulation, steps):
    """State and residual after each step."""
    rows = []
    for _ in range(steps):
        report = simulation.step()
        rows.append(np.append(state(simulation.model, simulation.data), report.certificate.residual))
    return np.array(rows)


def copied(simulation):
    return simulation.copy()


def pickled(simulation):
    return pickle.loads(pickle.dumps(simulation))


@pytest.mark.parametrize("how", [copied, copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("name", SOME)
def test_a_copy_goes_on_with_the_same_bits_and_by_itself(name, how):
    simulation = st.Simulation(st.Scene.named(name))
    course(simulation, 20)
    other = how(simulation)
    there = course(other, 15)
    here = course(simulation, 15)
    assert np.array_equal(there, here)
    assert other.data is not simulation.data


@pytest.mark.parametrize(
    ("law", "stepper"),
    [(st.Coulomb(facets=8), st.TimeStepping(restitution=0.4)), (st.NoSlip(), st.EventDriven())],
)
def test_copies_under_other_laws_and_steppers(law, stepper):
    simulation = st.Simulation(st.Scene.named("block-stack"), law, stepper=stepper)
    course(simulation, 5)
    other = pickled(simulation)
    assert (other.law, other.solver, other.stepper) == (simulation.law, simulation.solver, simulation.stepper)
    assert np.array_equal(course(other, 5), course(simulation, 5))


def test_a_copy_shows_what_the_original_shows():
    simulation = st.Simulation(st.Scene.named("block-stack"))
    assert pickled(simulation).report is None
    course(simulation, 3)
    for other in (simulation.copy(), pickled(simulation)):
        assert repr(other) == repr(simulation)
        assert [touch.force.tolist() for touch in other.contacts] == [t.force.tolist() for t in simulation.contacts]
        assert other.report.certificate == simulation.report.certificate
        assert np.array_equal(other.data.xpos, simulation.data.xpos)


def test_which_model_a_copy_has():
    simulation = st.Simulation(st.Scene.named("block-stack"))
    assert simulation.copy().model is simulation.model
    other = pickled(simulation)
    assert other.model is not simulation.model
    assert other.data.model is other.model
    other.model.geom_friction[:] = 0.0
    assert simulation.model.geom_friction.any()


def test_changes_of_one_are_not_seen_by_the_other():
    simulation = st.Simulation(st.Scene.named("block-stack"))
    course(simulation, 3)
    other = simulation.copy()
    before = simulation.data.qpos.copy()
    other.data.qpos[2] += 1.0
    other.reset()
    assert np.array_equal(simulation.data.qpos, before)
    assert simulation.time > other.time == 0.0


def sleepy(model, data, seen=None):
    """Tries to copy a simulation in the middle of its step."""
    if seen is not None:
        with pytest.raises(st.StictionError, match="this data is being stepped already"):
            seen[0].copy()
        seen.append("tried")


def test_a_simulation_is_not_copied_in_the_middle_of_a_step():
    seen = []
    scene = st.Scene.named("block-stack")
    scene = st.Scene(scene.model, control=functools.partial(sleepy, seen=seen))
    simulation = st.Simulation(scene)
    seen.append(simulation)
    simulation.step()
    assert seen[1:] == ["tried"]


def test_a_control_that_cannot_be_pickled_says_so():
    scene = st.Scene(st.Scene.named("block-stack").model, control=lambda model, data: None)
    simulation = st.Simulation(scene)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(simulation)
    assert np.array_equal(course(simulation.copy(), 3), course(simulation, 3))


def run_there(simulation, pipe):
    pipe.send(course(simulation, 10))
    pipe.close()


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_another_process_goes_on_with_the_same_bits(method, monkeypatch):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    simulation = st.Simulation(st.Scene.named("block-feeder"))
    course(simulation, 10)
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=run_there, args=(simulation, there))
    process.start()
    there.close()
    found = here.recv()
    process.join(30)
    assert process.exitcode == 0
    assert np.array_equal(found, course(simulation, 10))


@pytest.mark.parametrize("name", sorted(SCENES))
def test_every_named_scene_can_be_pickled(name):
    scene = st.Scene.named(name)
    assert (scene.control is None) == (pickle.loads(pickle.dumps(scene.control)) is None)
