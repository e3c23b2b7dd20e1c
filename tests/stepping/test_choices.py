"""What a simulation is given: one dial for accuracy, mistakes refused at construction, one line to show it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import stiction as st
from stiction.errors import InvalidScene
from stiction.solvers.auto import Auto


@pytest.mark.parametrize("stepper", [st.TimeStepping(), st.TimeStepping(restitution=0.3), st.EventDriven()])
def test_the_default_solver_is_auto_to_the_bit(stepper):
    ends = []
    for solver in (None, st.Auto()):
        sim = st.Simulation(st.Scene.named("dominoes", count=4), solver=solver, stepper=stepper)
        for _ in range(60):
            sim.step()
        ends.append((sim.data.qpos.copy(), sim.data.qvel.copy()))
    model = st.Scene.named("dominoes", count=4).model
    for given in ({}, {"solver": st.Auto()}):
        scene = st.Scene.named("dominoes", count=4)
        data = scene.data()
        for _ in range(60):
            st.step(scene.model, data, stepper=stepper, **given)
        ends.append((data.qpos.copy(), data.qvel.copy()))
    assert model.nv
    for one in ends[1:]:
        assert np.array_equal(one[0], ends[0][0])
        assert np.array_equal(one[1], ends[0][1])


def test_the_aim_follows_from_the_tolerance():
    assert Auto().aim is None
    assert Auto().aim_of(1e-8) == 1e-12
    assert Auto().aim_of(1e-6) == pytest.approx(1e-10)
    assert Auto().aim_of(0.0) == 1e-15
    assert Auto(aim=1e-7).aim_of(1e-8) == 1e-7
    problem = st.Simulation(st.Scene.named("dominoes", count=2)).step().solution.problem
    assert problem is not None
    for tolerance, aim in ((1e-8, 1e-12), (1e-5, 1e-9)):
        assert st.solve(problem, tolerance=tolerance).solver.tolerance == pytest.approx(aim)
        assert st.solve(problem, st.Auto(), tolerance=tolerance).solver.tolerance == pytest.approx(aim)
    assert st.Auto(aim=1e-7).order(problem)[0].solver.tolerance == 1e-7
    sim = st.Simulation(st.Scene.named("dominoes", count=2), stepper=st.TimeStepping(tolerance=1e-5))
    assert sim.step().solution.solver.tolerance == pytest.approx(1e-9)


def test_what_is_no_law_solver_or_stepper_is_refused_at_construction():
    scene = st.Scene.named("dominoes", count=2)
    model = scene.model
    with pytest.raises(InvalidScene, match=r"Simulation: solver must be a solver such as st\.Auto\(\).*got 'auto'"):
        st.Simulation(scene, solver="auto")
    with pytest.raises(InvalidScene, match=r"solver must be an object, but Auto is a class; pass st\.Auto\(\)"):
        st.Simulation(scene, solver=st.Auto)
    told = r"stepper must be st\.TimeStepping\(\), st\.EventDriven\(\) or st\.FirstOrder\(\), got 'euler'"
    with pytest.raises(InvalidScene, match=told):
        st.Simulation(scene, stepper="euler")
    with pytest.raises(InvalidScene, match=r"stepper must be an object, but EventDriven is a class"):
        st.Simulation(scene, stepper=st.EventDriven)
    with pytest.raises(InvalidScene, match="law must be a law"):
        st.Simulation(scene, "coulomb")
    with pytest.raises(InvalidScene, match=r"step: solver must be a solver such as st\.Auto\(\)"):
        st.step(model, mujoco.MjData(model), solver="auto")
    with pytest.raises(InvalidScene, match="step: stepper must be"):
        st.step(model, mujoco.MjData(model), stepper=3)


def test_a_simulation_shows_itself_in_one_line():
    sim = st.Simulation(st.Scene.named("dominoes", count=2))
    sim.step()
    text = repr(sim)
    assert "\n" not in text
    for part in ("bodies", "t = ", "Coulomb", "Auto", "TimeStepping", sim.scene.description):
        assert part in text
