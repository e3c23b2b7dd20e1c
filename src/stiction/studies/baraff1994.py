"""Forces driven to zero one contact at a time: what that costs, how often it is done, and machines that run on it.

D. Baraff, "Fast contact force computation for nonpenetrating rigid bodies", SIGGRAPH 1994, section 7.

The paper claims: forces without friction cost two to three times a Gaussian elimination of the same size, and a fifth
to a tenth of a quadratic program, for up to 150 contacts; drive-to-zero is called about O(n) times with and without
friction; with static friction it was never seen to fail; a block feeder and a double-action jack run at 20 to 30 frames
a second; and where friction leaves no forces, the drive that nothing stops is the impulse to apply.

What is not as in the paper: its matrices, its QP packages (of 1984 to 1987; here quadprog, daqp and proxsuite where
they are installed) and the sizes of its mechanisms. The algorithm of its section 4, which is given A and b, is Cottle
and Dantzig's; `Baraff` does the same from bodies, without A. Elimination is LAPACK's, and once more a plain one that is
compiled as our own methods are. Quadratic programs get the form that suits them best, the nearest admissible velocity,
with the factor of A for free, and quadprog also A itself. Nothing is timed but the solution, by the processor's time.

In space the paper keeps the direction in which friction has reached its bound, which need not oppose the sliding, and
judges accordingly. Ours turns it until it does, for Coulomb's law; both are run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

import stiction as st
from stiction.arrays import dense
from stiction.problems.zoo.contact_families import heap, painleve_forces, stack, stack_in_plane, wall
from stiction.problems.zoo.heaps import GRAVITY
from stiction.solvers.contact.baraff.baraff import impulse_along
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import SERIES, plate, slope, ticks
from stiction.studies.methods import certified, on_contacts, on_package, on_program
from stiction.studies.programs import impulses, installed, program
from stiction.studies.results import Array, Findings, Plate, Sheet, swept, tabulated
from stiction.studies.timing import exponent, in_turn

TOLERANCE = 1e-8
LAPACK, PLAIN, BARAFF, DANTZIG = "elimination, LAPACK", "elimination, plain", "Baraff", "Cottle–Dantzig"
KINDS: dict[str, Sequence[Callable[[int], st.ContactProblem]]] = {
    "heap": [partial(heap, bodies) for bodies in (2, 3, 5, 8, 12, 19)],
    "wall": [partial(wall, *size) for size in ((2, 2), (3, 2), (3, 3), (4, 3), (4, 4), (5, 5))],
    "stack": [partial(stack, blocks) for blocks in (3, 5, 9, 15, 23, 37)],
}  # the last has 148 contacts
DRIVEN: dict[str, tuple[Any, Sequence[Callable[[int], st.ContactProblem]]]] = {
    **{f"{kind}, no friction": (st.Frictionless(), makes) for kind, makes in KINDS.items()},
    **{f"{kind}, friction": (st.Coulomb(), makes) for kind, makes in KINDS.items()},
    "stack in the plane, friction": (st.Coulomb(), [partial(stack_in_plane, b) for b in (6, 10, 18, 30, 46, 74)]),
}
WITH_FRICTION = [kind for kind in DRIVEN if "no friction" not in kind]
IN_SPACE = [kind for kind in WITH_FRICTION if "plane" not in kind]
MACHINES = ("block-feeder", "double-action-jack")
VARIANTS = ("as published", "friction turned against the sliding")
RIDES = ("time steps, Baraff", "time steps, Auto", "events")
FRAME = 1.0 / 30.0  # s
ANGLES, MUS = np.linspace(0.1, 1.5, 15), np.linspace(0.25, 5.0, 20)
ROD = """
<mujoco><option timestep="0.001"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="2 0 0"/>
  <body name="rod" pos="0 0 1"><freejoint/>
    <geom name="rod" type="capsule" size="0.01" fromto="-0.5 0 0 0.5 0 0" mass="1" friction="2 0 0"/></body>
</worldbody></mujoco>
"""  # mu = 2; at an angle of 1 rad there are no forces above (1 + 3 cos²) / (3 sin cos) = 1.37


class Results(Findings):
    """Times in s; the axes are named in this order."""

    declared: ClassVar = {
        "solvers": "(solver,) names",
        "sizes": "(kind of KINDS, size) contacts",
        "seconds, residual": "(kind, size, solver, problem) without friction",
        "driven_sizes": "(kind of DRIVEN, size) contacts",
        "drives, given_up, tries": "(variant of VARIANTS, kind, size, problem)",
        "driven_residual": "(3, kind, size, problem) of the paper's algorithm by the paper's conditions and by "
        "Coulomb's law, and of ours by Coulomb's law",
        "frames": "(machine, ride, frame) s of a frame of FRAME",
        "failures": "(machine, ride) steps that Baraff's method left to others",
        "machine_residual": "(machine, ride)",
        "machine_contacts": "(machine, ride) the most",
        "coefficient": "(angle, mu) A of Painlevé's rod",
        "outcome": "(angle, mu) 0 forces, 1 a ray, 2 neither",
        "force_error": "(angle, mu) of A f = m g",
        "stopped": "(angle, mu) m/s of sliding after the impulse along the ray, from 1 m/s; NaN where there are forces",
        "lost": "(angle, mu) part of the energy after the impact that follows; NaN where there are forces",
        "rod_time, rod_energy": "(step,) of the rod that jams, in a simulation",
        "rod_noted": "(step,) impulses reported, N s",
        "rod_residual": "(step,)",
    }

    def ratio(self, solver: str, other: str) -> Array:
        """(kind, size) median over problems of (time of the one) / (time of the other)."""
        one, two = (self.seconds[:, :, self.at("solvers", name)] for name in (solver, other))
        return np.asarray(np.median(one / two, axis=2))


def run(quick: bool = False, seed: int = 0) -> Results:
    """All experiments: some minutes, or half a minute if quick."""
    return Results(seed, **frictionless(quick, seed), **driving(quick, seed), **running(quick), **jamming(quick))


# Without friction: against elimination and quadratic programs


def frictionless(quick: bool, seed: int) -> dict[str, Any]:
    contestants: dict[str, Callable[[st.ContactProblem], Callable[[], Any]]] = {
        LAPACK: by_lapack,
        PLAIN: by_elimination,
        DANTZIG: partial(on_program, st.CottleDantzig()),
        BARAFF: partial(on_contacts, st.Baraff()),
        **{name: partial(on_package, prepare) for name, prepare in installed().items()},
    }
    places, seeds = (1, 3, 5) if quick else range(6), range(seed, seed + (3 if quick else 10))

    def measure(kind: str, place: int, each: int) -> tuple[int, Any, Any]:
        problem = KINDS[kind][place](each).with_law(st.Frictionless())
        ready = [partial(prepare, problem) for prepare in contestants.values()]
        answers = [prepare()() for prepare in ready]  # compiles, too
        residual = [np.nan, np.nan, *(judged(problem, answer) for answer in answers[2:])]
        return problem.n, in_turn(ready, 3 if quick else 9), residual

    found = tabulated("sizes, seconds, residual", measure, KINDS, places, seeds)
    seconds, residual = (found[name].swapaxes(2, 3) for name in ("seconds", "residual"))
    return {"solvers": list(contestants), "sizes": found["sizes"][:, :, 0], "seconds": seconds, "residual": residual}


def judged(problem: st.ContactProblem, found: Any) -> float:
    """Residual of normal impulses z, or of (n, 3) impulses."""
    return certified(problem, found if np.ndim(found) == 2 else impulses(problem, found))


def definite(problem: st.ContactProblem) -> tuple[Array, Array]:
    """A and b; A is made definite, without zeros that elimination could skip: its time depends on n alone."""
    lcp = program(problem).lcp()
    return lcp.M + 1e-3 * np.eye(lcp.n) + 1e-6, lcp.q.copy()


def by_lapack(problem: st.ContactProblem) -> Callable[[], Any]:
    A, b = definite(problem)
    return lambda: np.linalg.solve(A, b)


def by_elimination(problem: st.ContactProblem) -> Callable[[], Any]:
    A, b = definite(problem)
    factor, substitute, pivots = cast("Any", dense.lu), cast("Any", dense.lu_solve), np.zeros(len(b), np.int64)

    def eliminate() -> Any:
        U, x = A.copy(), b.copy()
        factor(U, pivots, len(b))
        substitute(U, pivots, len(b), x)
        return x

    return eliminate


# Drives


def driving(quick: bool, seed: int) -> dict[str, Any]:
    names = "drives, given_up, tries, driven_residual, driven_sizes"
    seeds = range(seed, seed + (4 if quick else 20))
    found = swept(names, drive, kind=DRIVEN, place=range(6), seed=seeds)
    sizes = found.pop("driven_sizes")[:, :, -1]
    return {name: np.moveaxis(array, -1, 0) for name, array in found.items()} | {"driven_sizes": sizes}


def drive(kind: str, place: int, seed: int) -> tuple[Any, ...]:
    """Drives, contacts given up and tries, of both variants; residuals as in `driven_residual`; contacts."""
    law, makes = DRIVEN[kind]
    problem = makes[place](seed).with_law(law)
    published = st.solve(problem, st.Baraff(realign=False), throw=False)
    residual = [violation(problem, published), published.certificate.residual]
    turned = st.solve(problem, st.Baraff(), throw=False)
    counts = zip(counted(published.trace[0]), counted(turned.trace[0]), strict=True)
    return *counts, [*residual, turned.certificate.residual], problem.n


def counted(trace: str) -> tuple[int, int, int]:
    """Drives, contacts given up and tries, from the solver's trace."""
    drives, given_up, _, tries = map(int, re.findall(r"\d+", trace))
    return drives, given_up, tries


def violation(problem: st.ContactProblem, found: Any) -> float:
    """By how much the paper's own conditions fail [Baraff1994, eq. 15, 16, 21], in units of the certificate's scale.

    They ask friction to oppose the sliding partially, p_t·u_t <= 0; Coulomb's law asks for the opposite direction.
    """
    W = 1.0 / problem.whitened.scale**2  # turns an impulse into a velocity
    p, u, bound = found.impulse, found.contact_velocity, problem.friction * found.impulse[:, 0]
    if isinstance(problem.law, st.Frictionless):
        bound = np.zeros(problem.n)
    size, sliding = np.hypot(p[:, 1], p[:, 2]), np.hypot(u[:, 1], u[:, 2])
    along = (p[:, 1:] * u[:, 1:]).sum(axis=1) / np.where(size > 0.0, size, 1.0)
    free = np.minimum(sliding, np.abs(W * (bound - size)))
    parts = [np.abs(np.minimum(u[:, 0], W * p[:, 0])), W * np.maximum(size - bound, 0.0), np.maximum(along, 0.0), free]
    if isinstance(problem.law, st.Frictionless):
        parts = parts[:2]
    return float(np.max(parts, initial=0.0) / found.certificate.scale)


# Machines


def running(quick: bool) -> dict[str, Any]:
    names = "frames, failures, machine_residual, machine_contacts"
    return tabulated(names, partial(drive_machine, 30 if quick else 300), MACHINES, RIDES)


def drive_machine(count: int, machine: str, ride: str) -> tuple[Array, int, float, int]:
    """Seconds of each frame, steps that were left to `Auto`, the worst residual, and the most contacts."""
    from stiction.stepping.time_stepping import DEFAULT

    solver: Any = st.Baraff() if ride == RIDES[0] else DEFAULT
    stepper: Any = st.EventDriven() if ride == "events" else st.TimeStepping()
    sim = st.Simulation(st.Scene.named(machine), st.Coulomb(), solver, stepper)
    with suppress(st.SolveFailed):
        list(sim.run(1.0))  # compiles, what impacts need too
    sim.reset()
    frames, failures, worst, most = np.zeros(count), 0, 0.0, 0
    for frame in range(count):
        begin = time.process_time()
        while sim.time < (frame + 1) * FRAME:
            try:
                report = sim.step()
            except st.SolveFailed:
                failures += 1
                report = sim.stepper.step(sim.engine, sim.law, DEFAULT)
            worst = max(worst, report.certificate.residual)
        frames[frame] = time.process_time() - begin
        most = max(most, len(report.solution.impulse))
    return frames, failures, worst, most


# Painlevé


def jamming(quick: bool) -> dict[str, Any]:
    names = "coefficient, outcome, force_error, stopped, lost"
    return tabulated(names, lean, ANGLES, MUS) | jam(0.1 if quick else 0.6)


def lean(angle: float, mu: float) -> tuple[float, int, float, float, float]:
    """A of Painlevé's rod, what comes of it, the error of its force; what an impulse along the ray stops and loses."""
    coefficient = 1.0 + 3.0 * np.cos(angle) * (np.cos(angle) - mu * np.sin(angle))
    problem = painleve_forces(angle, mu)
    found = st.Baraff().propose(problem, None)
    if found.status == st.Status.SOLVED:
        return coefficient, 0, abs(coefficient * found.impulse[0, 0] / GRAVITY - 1.0), np.nan, np.nan
    if found.status == st.Status.RAY:
        return coefficient, 1, 0.0, *struck(problem, found.ray)
    return coefficient, 2, 0.0, np.nan, np.nan


def struck(problem: st.ContactProblem, ray: Any) -> tuple[float, float]:
    """Sliding (m/s) after the impulse along the ray, from 1 m/s, and the part of the energy that is gone in the end."""
    assert problem.mass is not None
    before = np.array([-1.0, 0.0, 0.0])
    blow = impulse_along(problem, ray, before)
    after = st.ContactProblem(problem.mass, blow.velocity, problem.normal, problem.tangent, problem.friction)
    v = st.solve(after, st.Baraff()).velocity
    kept = (v @ problem.mass @ v) / (before @ problem.mass @ before)
    return abs(float(problem.tangent[0, 0] @ blow.velocity)), float(1.0 - kept)


def jam(seconds: float) -> dict[str, Any]:
    """The rod in space, from event to event: it leans by 1 rad and slides on its leading end at 3 m/s."""
    sim = st.Simulation(st.Scene.from_xml(ROD), st.Coulomb(), None, st.EventDriven())
    sim.data.qpos[:] = 0.0, 0.0, 0.5 * np.sin(1.0) + 0.01, np.cos(0.5), 0.0, np.sin(0.5), 0.0
    sim.data.qvel[0] = 3.0
    reports = list(sim.run(seconds))
    noted = [re.findall(r"an impulse of (\S+) N s", " ".join(report.solution.trace)) for report in reports]
    return {
        "rod_time": [report.time for report in reports],
        "rod_energy": [report.energy for report in reports],
        "rod_noted": [sum(map(float, each)) for each in noted],
        "rod_residual": [report.certificate.residual for report in reports],
    }


# Claims


def check(results: Results) -> list[Claim]:
    """The claims of the paper, and what was found."""
    about = (_speed, _programs, _drives, _reliable, _machines, _painleve)
    return [claim for claims in about for claim in claims(results)]


def _speed(results: Results) -> Iterator[Claim]:
    """At the largest size; the worst kind decides."""
    for solver, given, why in ((DANTZIG, "given A and b", ""), (BARAFF, "from bodies", WHY_BODIES)):
        ratio, plain = (results.ratio(solver, other)[:, -1] for other in (LAPACK, PLAIN))
        name = f"forces without friction take at most three eliminations ({solver}, {given})"
        claim = Statement(name, "two to three times, to n = 150", why, timed=True)
        numbers = f"{by_kind(ratio)} times LAPACK's, {by_kind(plain)} times a plain one"
        yield claim.found(ratio.max() <= 3.0, f"n = {results.sizes[0, -1]}: {numbers}")


WHY_BODIES = (
    "It holds for heaps and walls. In a tower of 37 blocks 111 contacts become members, in 111 steps as with A and b; "
    "but each step takes two and a half times as long, with a full inverse, which friction needs, and rows made from "
    "bodies."
)


WHY_PROGRAMS = (
    "Active-set methods of today are pivoting methods themselves, with updated factors: daqp takes two to "
    "four times as long. And where nearly every contact carries force, as in stacks, quadprog on A itself "
    "begins at the unconstrained optimum and is nearly there; in heaps it takes tens of times as long."
)


def _programs(results: Results) -> Iterator[Claim]:
    packages = [name for name in results.solvers.tolist() if name not in (LAPACK, PLAIN, BARAFF, DANTZIG)]
    if packages:
        ratios = {name: results.ratio(name, DANTZIG)[:, -1] for name in packages}
        name = "forces without friction are found five times as fast as by the best quadratic programs"
        claim = Statement(name, "five to ten times, to n = 150", WHY_PROGRAMS, timed=True)
        text = "; ".join(f"{name} {by_kind(ratio)}" for name, ratio in ratios.items())
        fastest = np.min(list(ratios.values()))
        yield claim.found(fastest >= 5.0, f"n = {results.sizes[0, -1]}, time over Cottle–Dantzig's: {text}")


def _drives(results: Results) -> Iterator[Claim]:
    for k, kind in enumerate(DRIVEN):
        n, (counts, ours) = results.driven_sizes[k], np.median(results.drives[:, k], axis=2)
        power, last, most = exponent(n, counts), counts[-1] / n[-1], results.drives[0, k, -1].max() / n[-1]
        numbers = f"n^{power:.2f} for n = {n[0]} to {n[-1]}, {last:.2f} n at last, most {most:.1f} n"
        if kind in IN_SPACE:
            numbers += f"; turned, {ours[-1] / n[-1]:.1f} n"
        claim = Statement(f"drive-to-zero is called about O(n) times ({kind})", "about O(n)")
        yield claim.found(power <= 1.25, numbers)


def _reliable(results: Results) -> Iterator[Claim]:
    friction = [k for k, kind in enumerate(DRIVEN) if kind in WITH_FRICTION]
    space = [k for k, kind in enumerate(DRIVEN) if kind in IN_SPACE]
    published, ours = results.driven_residual[0][friction], results.driven_residual[2][friction]
    given_up, tries = results.given_up[0][friction].sum(), results.tries[0][friction]
    claim = Statement("static friction in the plane and in space is never seen to fail", "no failure seen")
    met = f"{np.mean(published <= TOLERANCE):.1%} of {published.size} meet the paper's conditions"
    orders = f"{given_up} contacts given up; {np.mean(tries > 1):.1%} needed another order"
    yield claim.found((published <= TOLERANCE).all(), f"{met}, worst {published.max():.0e}; {orders}")
    exact = results.driven_residual[1][space]
    why = "The paper fixes the direction of friction where it reaches its bound; the sliding then turns away."
    claim = Statement("and in space obeys Coulomb's law", "at least partially opposed", why)
    numbers = f"{np.mean(exact <= TOLERANCE):.0%} as published, median residual {np.median(exact):.0e}"
    yield claim.found((exact <= TOLERANCE).all(), f"{numbers}; turned, {np.mean(ours <= TOLERANCE):.1%}")


def _machines(results: Results) -> Iterator[Claim]:
    for r, ride in enumerate(RIDES):
        typical, slowest = 1.0 / np.median(results.frames[:, r], axis=1), 1.0 / results.frames[:, r].max(axis=1)
        contacts = results.machine_contacts[:, r]
        text = ", ".join(
            f"{machine} {typical[k]:.0f} Hz, slowest frame {slowest[k]:.0f} Hz, {contacts[k]} contacts"
            for k, machine in enumerate(MACHINES)
        )
        left = f"; {results.failures[:, r].sum()} steps left to others" if r == 0 else ""
        name = f"block feeder and jack run at more than 30 frames a second, never below 20 ({ride})"
        claim = Statement(name, "consistently 20 to 30 Hz", WHY_EVENTS if ride == "events" else "", timed=True)
        yield claim.found(typical.min() > 30.0 and slowest.min() > 20.0, text + left)


WHY_EVENTS = (
    "Where blocks land or pawls catch, a step has up to ten pieces of motion, of half a millisecond and more each; a "
    "frame of the jack has 17 steps."
)


def _painleve(results: Results) -> Iterator[Claim]:
    known, rays = np.abs(results.coefficient) > 1e-9, results.outcome == 1
    right, error = (results.outcome == (results.coefficient < 0.0))[known], results.force_error.max()
    name = "a drive that nothing stops is found exactly where no forces exist (Painlevé's rod)"
    numbers = f"{right.sum()} of {right.size} rods as the formula says; forces within {error:.0e}"
    claim = Statement(name, "infinite steps only with dynamic friction")
    yield claim.found(right.all() and error < 1e-9, numbers)

    sliding, least, most = np.nanmax(results.stopped), np.nanmin(results.lost), np.nanmax(results.lost)
    claim = Statement("an impulse along it stops the sliding, and energy is lost", "suitable for impulsive forces")
    numbers = f"left with at most {sliding:.0e} m/s of 1 m/s; {least:.0%} to {most:.0%} of the energy lost"
    yield claim.found(sliding < 1e-9 and least > 0.0, f"{rays.sum()} rods, {numbers}")

    first, step = MUS[rays.any(axis=0)].min(), MUS[1] - MUS[0]
    claim = Statement("that needs unrealistically large friction", "mostly where mu is unrealistically large")
    yield claim.found(first > 1.0, f"from mu = {first:g} on (a step of {step:g}; 4/3 in theory)")

    noted, energy = np.flatnonzero(results.rod_noted > 0.0), results.rod_energy
    text = "no impulse"
    if len(noted):
        impulse, at = results.rod_noted[noted[0]], 1e3 * results.rod_time[noted[0]]
        text = f"an impulse of {impulse:.2g} N s at {at:.0f} ms, {len(noted)} in all; "
        text += f"energy {energy[0]:.2f} J, in the end {energy[-1]:.2f} J"
    name = "a rod that jams goes on after the impulse (simulated)"
    claim = Statement(name, "regular and impulsive forces in one algorithm")
    yield claim.found(len(noted) > 0 and (results.rod_residual <= TOLERANCE).all(), text)


def by_kind(ratio: Array) -> str:
    return ", ".join(f"{value:.1f} ({kind})" for kind, value in zip(KINDS, ratio, strict=True))


# Figures and tables


def figures(results: Results) -> list[Plate]:
    return [_draw_speed(results), _draw_drives(results), _draw_machines(results), _draw_rod(results)]


@plate("speed", 9.5, 3.6)
def _draw_speed(figure: Any, results: Results) -> str:
    axes = figure.subplots(1, len(KINDS), sharey=True)
    names = [name for name in results.solvers.tolist() if name != LAPACK]
    for k, (ax, kind) in enumerate(zip(axes, KINDS, strict=True)):
        for name, style in zip(names, SERIES, strict=False):
            ax.plot(results.sizes[k], results.ratio(name, LAPACK)[k], **style, label=name, ms=5)
        ax.axhspan(2.0, 3.0, color="0.9")
        ax.set(xscale="log", yscale="log", xlabel="contacts n", title=kind)
        ticks(ax, results.sizes[k])
    axes[0].set_ylabel("time over one elimination (LAPACK)\ngrey: the paper's two to three")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
    return "Forces without friction against one elimination and against quadratic programs."


@plate("drives", 6.5, 4.0)
def _draw_drives(figure: Any, results: Results) -> str:
    ax = figure.subplots()
    for k, (kind, style) in enumerate(zip(DRIVEN, SERIES, strict=False)):
        ax.plot(results.driven_sizes[k], np.median(results.drives[0, k], axis=1), **style, label=kind)
    slope(ax, (20, 148), 148, 1, "n")
    ax.set(xscale="log", yscale="log", xlabel="contacts n", ylabel="calls of drive-to-zero, median")
    ticks(ax, (12, 20, 36, 60, 92, 148), (5, 10, 20, 50, 100, 200))
    ax.legend()
    return "Calls of drive-to-zero, without and with friction."


@plate("machines", 8.5, 3.4)
def _draw_machines(figure: Any, results: Results) -> str:
    axes = figure.subplots(1, len(MACHINES), sharey=True)
    for ax, machine, frames in zip(axes, MACHINES, results.frames, strict=True):
        at = FRAME * np.arange(1, frames.shape[1] + 1)
        for ride, spent, line, colour in zip(RIDES, frames, ("-", ":", "-"), ("0.1", "0.1", "0.6"), strict=True):
            ax.plot(at, 1.0 / spent, line, color=colour, lw=1.0, label=ride)
        ax.axhspan(20.0, 30.0, color="0.9")
        ax.set(yscale="log", xlabel="s of motion", title=machine)
    axes[0].set_ylabel("frames a second\ngrey: the paper's 20 to 30")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return "Time of each frame of the block feeder and of the jack."


@plate("rod", 8.5, 3.4)
def _draw_rod(figure: Any, results: Results) -> str:
    left, right = figure.subplots(1, 2)
    angle, mu = np.meshgrid(ANGLES, MUS, indexing="ij")
    for outcome, marker, label in ((0, "o", "forces"), (1, "x", "a ray: an impulse")):
        chosen = results.outcome == outcome
        left.plot(angle[chosen], mu[chosen], marker, color="0.3", mfc="white", ms=4, label=label)
    fine = np.linspace(0.1, 1.5, 200)
    left.plot(fine, (1.0 + 3.0 * np.cos(fine) ** 2) / (3.0 * np.sin(fine) * np.cos(fine)), "k", lw=1.0)
    left.set(xlabel="angle of the rod, rad", ylabel="mu", ylim=(-0.9, 5.4), title="line: forces cease to exist above")
    left.legend(loc="lower center", ncols=2)
    right.plot(results.rod_time, results.rod_energy, "k", lw=1.0)
    for at in results.rod_time[results.rod_noted > 0.0]:
        right.axvline(at, color="0.5", lw=0.8, ls="--")
    right.set(xlabel="s", ylabel="energy, J", title="a rod that jams; dashed: impulse")
    return "Painlevé's rod: where no forces exist, and the energy of one that jams."


def tables(results: Results) -> list[Sheet]:
    """Times over one elimination at the largest size, and how often forces are found."""
    speed = [
        (name, *(f"{r:.2f}" for r in results.ratio(name, LAPACK)[:, -1]), *residuals(results.residual[:, -1, k]))
        for k, name in enumerate(results.solvers.tolist())
    ]
    driven = [
        (
            kind,
            f"{results.driven_sizes[k, -1]}",
            *(f"{np.median(counts):.0f}, at most {counts.max()}" for counts in results.drives[:, k, -1]),
            *(f"{np.mean(residual <= TOLERANCE):.0%}" for residual in results.driven_residual[:, k]),
        )
        for k, kind in enumerate(DRIVEN)
    ]
    caption = f"Without friction, n = {results.sizes[0, -1]}: time over one elimination by LAPACK"
    judges = ("as published, paper's conditions", "as published, Coulomb", "turned, Coulomb")
    head = ("problems", "n", *(f"drives, {variant}" for variant in VARIANTS), *judges)
    return [
        Sheet(caption, ("solver", *KINDS, "solved", "worst residual"), speed),
        Sheet("Drives at the largest size, and problems solved of all sizes", head, driven),
    ]


def residuals(residual: Array) -> tuple[str, str]:
    if np.isnan(residual).all():
        return "", ""
    return f"{np.mean(residual <= TOLERANCE):.0%}", f"{np.nanmax(residual):.0e}"
