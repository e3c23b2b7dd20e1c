"""Derivatives: their error against differences, their cost beside the solve, and `linearize` beside MuJoCo's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Table, aims_of, at_least, at_most, duration, unseen

import stiction as st
from stiction.problems import CONTACT_FAMILIES

COSTS = ("stack-1", "stack-3", "stack-5", "stack-10", "stack-20", "grasp", "grasp-tripled", "wall", "heap-6", "peg-16")
LAWS = (st.Coulomb(), st.Coulomb(facets=8), st.BoxFriction(), st.NoSlip(), st.Viscous(), st.Frictionless())
AWAY = 1e-3  # margin, over the velocity scale, from which a problem is away from kinks
STEPS = (1e-5, 1e-4, 1e-6, 1e-3, 1e-7, 1e-8)
BADLY_CONDITIONED = {"stack-mass-1e6", "stack-lengths", "nearly-duplicated"}  # rounding outweighs the differences

WHY = (
    "*Linearize.* Both difference MuJoCo's stages on both sides of every entry; ours saves the constraint solver, and "
    "the stages that an entry does not enter. By a profile on this machine, a bit less than half of its time is that "
    "loop, mostly MuJoCo's own C functions beside each position; the rest is Python around one solve, one "
    "factorization and their kernels: about a dozen calls of kernels with records of arrays, whose types are looked "
    "up at each call, which is what is left to be saved."
)


def tables(quick: bool) -> list[Table]:
    made = [errors(quick), costs(quick), linear(quick)]
    return [*made, aims_of(made, WHY)]


def errors(quick: bool) -> Table:
    """Of directional derivatives by v_free, against central differences of whole solves."""
    rng, found = np.random.default_rng(0), []
    counts = {"compared": 0, "kinks": 0, "near a kink": 0, "not determined": 0, "not solved": 0}
    for name in sorted(set(CONTACT_FAMILIES) - BADLY_CONDITIONED):
        for law in LAWS:
            for seed in range(1 if quick else 8):
                problem = CONTACT_FAMILIES[name](seed)
                if problem.mass is None or (law.viscous and problem.viscosity is None):
                    continue
                problem = problem.with_law(law)
                solution = st.solve(problem, throw=False)
                if not solution.ok:
                    counts["not solved"] += 1
                    continue
                derivatives = st.differentiate(solution)
                if not derivatives.smooth:
                    counts["kinks" if derivatives.kinks else "not determined"] += 1
                elif not is_away(derivatives):
                    counts["near a kink"] += 1
                else:
                    way = np.abs(problem.velocity).max() * rng.normal(size=problem.m)
                    found.append(error(problem, solution, derivatives.jvp({"free": way}).velocity, way))
                    counts["compared"] += 1
    worst = max(found)
    rows = [(what, str(count)) for what, count in counts.items()]
    rows += [("median error", f"{np.median(found):.0e}"), ("largest error", f"{worst:.0e}")]
    aims = [at_most("largest relative error of derivatives by v_free, away from kinks", 1e-6, worst)]
    notes = [
        "Contact families under six laws, errors relative to the change of v_free; of each, the best of "
        "central differences with steps of 1e-8 to 1e-3. Left out: three badly conditioned families (stack-"
        "mass-1e6, stack-lengths, nearly-duplicated), where rounding of the solves outweighs the differences,"
        " and problems with a margin below 1e-3, whose modes a step may change."
    ]
    return Table("Error against central differences", ("problems", "number"), rows, notes, aims=aims)


def is_away(found: st.Derivatives) -> bool:
    """Whether some way of sharing the load leaves every contact a margin of AWAY."""
    further = st.differentiate(found.solution, within=AWAY)
    return further.smooth and np.array_equal(further.modes.mode, found.modes.mode)


def error(problem: Any, solution: Any, derivative: Any, way: Any) -> float:
    best, start = np.inf, solution if solution.solver.contract.warm else None
    for eps in STEPS:
        moved = [
            st.solve(problem.replace(velocity=problem.velocity + t * way), start=start, throw=False)
            for t in (eps, -eps)
        ]
        if all(each.ok for each in moved):
            difference = (moved[0].velocity - moved[1].velocity) / (2.0 * eps)
            size = max(np.abs(way).max(), np.abs(difference).max())
            best = min(best, float(np.abs(difference - derivative).max() / size))
        if best <= 1e-8:
            break
    return best


def costs(quick: bool) -> Table:
    """`differentiate` with one `vjp`, beside a cold `st.solve` of the same problem."""
    rows, aims = [], []
    for name in COSTS[:3] if quick else COSTS:
        ratios, solved, spent = [], [], []
        for seed in range(2 if quick else 10):
            problem = CONTACT_FAMILIES[name](seed)
            weights = np.ones(problem.m)
            solution = st.solve(problem)

            def whole(solution: Any = solution, weights: Any = weights) -> None:
                st.differentiate(solution, strict=False).vjp(weights)

            whole()
            one = least(lambda problem=problem: st.solve(problem), lambda problem=problem: unseen(problem), quick)
            two = least(lambda _: whole(), lambda: None, quick)
            ratios.append(two / one)
            solved.append(one)
            spent.append(two)
        rows.append((name, duration(np.median(solved)), duration(np.median(spent)), f"{np.median(ratios):.2f}"))
        if name.startswith(("stack", "grasp")):
            aims.append(at_most(f"{name}: differentiate and vjp over the solve", 1.0, float(np.median(ratios))))
    columns = ("family", "solve", "differentiate + vjp", "ratio")
    return Table("Cost", columns, rows, ["Medians over problems of CPU time, least of five."], aims=aims)


def least(action: Callable[..., Any], fresh: Callable[[], Any], quick: bool) -> float:
    """Least CPU seconds of an action on something made anew each time."""
    best = np.inf
    for _ in range(1 if quick else 5):
        made = fresh()
        begin = time.process_time()
        action(made)
        best = min(best, time.process_time() - begin)
    return best


def linear(quick: bool) -> Table:
    """`linearize` and `mjd_transitionFD` of Gymnasium's humanoid, lying on the ground."""
    import gymnasium
    import mujoco as mj

    path = os.path.join(os.path.dirname(gymnasium.__file__), "envs", "mujoco", "assets", "humanoid.xml")  # noqa: PTH118, PTH120
    model = mj.MjModel.from_xml_path(path)
    model.opt.integrator = 0  # mjd_transitionFD takes no Runge–Kutta
    data, rng = mj.MjData(model), np.random.default_rng(0)
    for _ in range(400):
        data.ctrl[:] = 0.1 * rng.normal(size=model.nu)
        st.step(model, data)
    A, B = np.zeros((2 * model.nv, 2 * model.nv)), np.zeros((2 * model.nv, model.nu))
    found = st.linearize(model, data)
    ours, theirs = np.inf, np.inf
    for _ in range(1 if quick else 20):  # in turns
        ours = min(ours, least(lambda _: st.linearize(model, data), lambda: None, quick))
        both = least(lambda _: mj.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None), lambda: None, quick)
        theirs = min(theirs, both)
    rows = [
        ("st.linearize", duration(ours), found.reason or "smooth"),
        ("mjd_transitionFD", duration(theirs), "soft contact"),
    ]
    aims = [at_least("humanoid: time of mjd_transitionFD over that of linearize", 3.0, theirs / ours)]
    contacts = f"{model.nv} velocities, {model.nu} controls, {found.derivatives.problem.n} contacts and limits."
    return Table("One step as a linear map", ("", "time", "contact"), rows, [contacts], aims=aims)
