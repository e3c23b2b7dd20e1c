"""Forty logs fall on each other: the box LCPs of their steps, counted and swept [Lacoursiere2003, fig. 3–6].

A box LCP is that of eq. 8: all impulses of a step, friction between bounds that are known before. The bounds are
"fixed", friction times a quarter of a log's weight, or "scaled", friction times what each contact bore in the step
before (nothing if it is new). The heap itself is simulated with box friction solved to its end, so that it does not
depend on any of the solvers that are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

import stiction as st
from stiction.problems.box_friction import BoxForm, box_form
from stiction.solvers.contract import ContactProposal, Contract
from stiction.studies import lacoursiere2003_random as random
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import corner, grid, plate
from stiction.studies.results import Array, Findings, Plate, Sheet, tabulated

LOGS, STEPS = 40, 81  # of 10 ms; the heap lies still after about 60
FRAMES = (0, 25, 80)  # steps before which a picture is taken
FIRST_STEP = 14  # before it hardly anything touches
BOUNDS = ("fixed", "scaled")
PERTURBATIONS = (0.0, 1e-3)  # parts of the diagonal
MOST_PIVOTS = 12  # a variable, of each attempt that a method makes
NOTHING = 1e-8  # part of the largest normal impulse that is an error of the simulation, and bounds no friction
SOLVERS = {name: solver for name, solver in random.SOLVERS.items() if name != "Murty"}
SOLVERS["block pivot"] = st.BlockPivot(max_iterations=100)
PIVOTING, NEWTON = tuple(SOLVERS)[:3], tuple(SOLVERS)[3:]
TOLERANCE = 1e-8
SHOWN_SWEEPS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1400, 2000, 2800, 4000)


class Step(NamedTuple):
    """A step of the simulation: its contact problem as boxes, and by the name in BOUNDS what bounds friction."""

    form: BoxForm
    bound: dict[str, Array]  # (contact,) normal impulses in units of the form


class Fall(NamedTuple):
    """A simulation: its steps, and where the axes of all capsules lay at FRAMES."""

    steps: list[Step]
    residual: float  # worst certificate
    frames: Array  # (frame, capsule, end, 3) m
    radius: Array  # (capsule,) m


class Heap(Findings):
    """Results; the axes are named in this order."""

    declared: ClassVar = {
        "heap_residual": "worst certificate of the simulation's steps",
        "frames": "(frame, capsule, end, 3) ends of axes in m",
        "radius": "(capsule,) m",
        "heap_steps": "(problem,) numbers of the steps whose box LCPs are counted",
        "heap_sizes, heap_ranks": "(problem,) of these LCPs",
        "heap_iterations, heap_residuals": "(perturbation, bounds, solver, problem)",
        "sweep_steps": "(step,) numbers of the steps whose box LCPs are swept",
        "shown_sweeps": "(count,)",
        "sweep_violation": "(bounds, step, count) largest |z - mid(lo, hi, z - w)|",
    }

    def counts(self, solver: str, bounds: str, perturbation: float) -> Array:
        """(problem,) iterations, those of pivoting methods in units of the size; infinite where not solved."""
        at = PERTURBATIONS.index(perturbation), BOUNDS.index(bounds), tuple(SOLVERS).index(solver)
        counts = self.heap_iterations[at] / (self.heap_sizes if solver in PIVOTING else 1.0)
        return np.where(self.heap_residuals[at] <= TOLERANCE, counts, np.inf)

    def all_counts(self, solver: str, perturbation: float) -> Array:
        """The same for both bounds, one after the other."""
        return np.concatenate([self.counts(solver, bounds, perturbation) for bounds in BOUNDS])


class Recorder:
    """A solver that keeps every problem and every start it is given, and lets another one solve."""

    contract: ClassVar[Contract] = replace(st.Auto.contract, warm=True)

    def __init__(self) -> None:
        self.kept: list[tuple[st.ContactProblem, Array | None]] = []

    def propose(self, problem: st.ContactProblem, start: Array | None) -> ContactProposal:
        found = st.solve(problem, st.Auto(aim=1e-10), start=start, throw=False)
        self.kept.append((problem, start))
        return ContactProposal(found.status, found.iterations, found.impulse)


def fall(seed: int, logs: int = LOGS, steps: int = STEPS) -> Fall:
    """Logs that fall, under box friction inside the cone."""
    from stiction.scenes.parts import CAPSULE, GRAVITY

    scene = st.Scene.named("log-heap", logs=logs, seed=seed)
    recorder = Recorder()
    simulation = st.Simulation(scene, st.BoxFriction(scaled=True), recorder)
    model, data = simulation.model, simulation.data
    capsules = np.flatnonzero(model.geom_type == int(CAPSULE))
    half = model.geom_size[capsules, 1]
    frames, worst = [], 0.0
    for k in range(steps):
        if k in FRAMES:
            axis = data.geom_xmat[capsules].reshape(-1, 3, 3)[:, :, 2] * half[:, None]
            frames.append(np.stack([data.geom_xpos[capsules] - axis, data.geom_xpos[capsules] + axis], axis=1))
        worst = max(worst, simulation.step().certificate.residual)
    quarter = 0.25 * float(model.body_mass[-1]) * GRAVITY * model.opt.timestep
    made = [_step(*kept, quarter) for kept in recorder.kept]
    return Fall(made, worst, np.array(frames), np.array(model.geom_size[capsules, 0]))


def _step(problem: st.ContactProblem, start: Array | None, quarter: float) -> Step:
    form = box_form(problem)
    impulse = np.zeros((form.n, 3))
    impulse[:, 0] = quarter
    scaled = np.zeros(form.n) if start is None else np.maximum(form.scaled(start)[:, 0], 0.0)
    scaled[scaled <= NOTHING * scaled.max(initial=0.0)] = 0.0
    return Step(form, {"fixed": form.scaled(impulse)[:, 0], "scaled": scaled})


def run(fallen: Fall, quick: bool) -> dict[str, Any]:
    """The arrays of `Heap`."""
    chosen = range(FIRST_STEP + 2, STEPS, 16) if quick else range(FIRST_STEP, STEPS, 3)
    swept = (80,) if quick else (25, 40, 60, 80)
    sweeps = [s for s in SHOWN_SWEEPS if s <= (2000 if quick else 4000)]
    steps = [fallen.steps[k] for k in chosen]
    return {
        "heap_residual": fallen.residual,
        "frames": fallen.frames,
        "radius": fallen.radius,
        "heap_steps": chosen,
        "heap_sizes": [int(step.form.responsive.sum()) for step in steps],
        "heap_ranks": [np.linalg.matrix_rank(step.form.response) for step in steps],
        **tabulated("heap_iterations, heap_residuals", _count, PERTURBATIONS, BOUNDS, SOLVERS, steps),
        "sweep_steps": swept,
        "shown_sweeps": sweeps,
        "sweep_violation": [[_sweep(fallen.steps[k], bounds, sweeps) for k in swept] for bounds in BOUNDS],
    }


def _count(perturbation: float, bounds: str, name: str, step: Step) -> tuple[int, float]:
    """Iterations and residual of a solver."""
    plain, solver = step.form.joint_problem(step.bound[bounds]), SOLVERS[name]
    problem = st.BoxLCP(plain.H + perturbation * np.diag(plain.H.diagonal()), plain.q, plain.lo, plain.hi)
    if hasattr(solver, "max_pivots"):
        solver = replace(solver, max_pivots=MOST_PIVOTS * problem.n)  # type: ignore[type-var]
    iterations, residual = random.tally(problem, solver)
    return iterations, np.inf if np.isnan(residual) else residual


def _sweep(step: Step, bounds: str, sweeps: Sequence[int]) -> list[float]:
    """The violation after so many sweeps of block Gauss–Seidel, a block a contact."""
    form, plain = step.form, step.form.joint_problem(step.bound[bounds])
    by_contact = np.argsort(np.tile(np.arange(form.n), 3)[form.responsive], kind="stable")
    blocks = [int(size) for size in form.responsive.reshape(3, form.n).sum(axis=0) if size]
    problem = st.BoxLCP(
        plain.H[np.ix_(by_contact, by_contact)], plain.q[by_contact], plain.lo[by_contact], plain.hi[by_contact]
    )
    z, done, violations = problem.lo, 0, []
    for count in sweeps:
        if count > done:
            z = st.solve(problem, st.GaussSeidel(blocks, max_sweeps=count - done, target=0.0), start=z, throw=False).z
            done = count
        w = problem.H @ z + problem.q
        violations.append(float(np.abs(z - np.clip(z - w, problem.lo, problem.hi)).max(initial=0.0)))
    return violations


def check(results: Heap) -> list[Claim]:
    """The claims of the paper about the heap."""
    claims = [*_degenerate(results), *(claim for bounds in BOUNDS for claim in _stagnation(results, bounds))]
    for perturbation in PERTURBATIONS:
        claims += _figure_5(results, perturbation)
    return [*claims, *_figure_6(results)]


def _degenerate(results: Heap) -> Iterator[Claim]:
    claim, worst = Statement(f"every step of {LOGS} falling logs is certified"), results.heap_residual
    yield claim.found(worst <= TOLERANCE, f"worst residual {worst:.0e}")
    full, size = results.heap_ranks, results.heap_sizes
    text = f"rank {full.min()} to {full.max()} of {size.min()} to {size.max()} impulses, {len(size)} steps"
    yield Statement("logs make degenerate problems", "degenerate systems").found((full < size).all(), text)


def _stagnation(results: Heap, bounds: str) -> Iterator[Claim]:
    """Stagnation: after the thousandth sweep less than a factor of ten is gained, and the problem is not solved."""
    violation, sweeps = results.sweep_violation[BOUNDS.index(bounds)], results.shown_sweeps
    early, late = violation[:, np.flatnonzero(sweeps == 1000)[0]], violation[:, -1]
    text = "; ".join(
        f"step {k}: {one:.0e} after 1000 sweeps, {two:.0e} after {sweeps[-1]}"
        for k, one, two in zip(results.sweep_steps, early, late, strict=True)
    )
    name = f"Gauss–Seidel stagnates on {LOGS} logs, {bounds} bounds"
    claim = Statement(name, "stagnates for thousands of iterations")
    yield claim.found(((early / late < 10.0) & (late > TOLERANCE)).all(), text)


PRINTED = {"Lemke": (1.0, "never more than n"), "Keller": (1.2, "at most 1.2 n"), "Cottle–Dantzig": (4.0, "up to 4 n")}
LONGER = (
    "The paper tells neither its contacts nor its bounds; here ranks are about half of the sizes, which it does not "
    "say of its own. Made definite, problems are solved in the order of the paper: Keller and Lemke below 2 n, "
    "Cottle–Dantzig several times as many."
)
SMALL = (
    " Where it counts as not solved, it leaves an error of 1e-12 in a row along the logs, where hardly anything moves; "
    "the judge measures it against the terms of that row, and finds 5e-8 to 4e-7."
)
TIES = (
    "Without a perturbation ties are everywhere, and what decides them is rounding. Keller's method comes within 1e-11"
    " of an answer after n to 2 n pivots and then finds rows that it can neither accept nor mend; methods that fail "
    "begin again by other rules, and these pivots are counted too. Whether the paper's engine made its matrices "
    "regular is not told."
)


def _figure_5(results: Heap, perturbation: float) -> Iterator[Claim]:
    """Long tail: the most pivots, of problems solved, are more than twice those of the others."""
    start = f"logs, {'definite' if perturbation else 'singular'} matrices:"
    text, most = {}, {}
    for solver in PIVOTING:
        counts = results.all_counts(solver, perturbation)
        text[solver] = f"{_spread(counts, ' n')}, {_solved(counts)}"
        most[solver] = counts[np.isfinite(counts)].max(initial=0.0)
        limit, printed = PRINTED[solver]
        why = LONGER + (SMALL if solver == "Cottle–Dantzig" else "") if perturbation else TIES
        claim = Statement(f"{start} {solver} takes {printed} pivots", printed, why)
        yield claim.found(counts.max() <= limit, text[solver])
    name = f"{start} Cottle–Dantzig has a long tail, the others have not"
    tail = most["Cottle–Dantzig"] > 2.0 * max(most["Lemke"], most["Keller"])
    claim = Statement(name, "1 n, 1.2 n and 4 n", "" if perturbation else TIES)
    yield claim.found(tail, "; ".join(f"{solver} {each}" for solver, each in text.items()))


WHY_NOT_ROBUST = {
    "block pivot": "On a quarter of the problems changing all sides at once cycles, and the single changes that take "
    "over, Murty's, are thousands; where they are more than 10,000, the problem counts as not solved.",
    "smoothing Newton": "It ends near bounds, not at them: by componentwise backward error, which measures a bound by "
    "what moving there changes and by the width of the box, half of its answers are off by more than 1e-8.",
}


def _figure_6(results: Heap) -> Iterator[Claim]:
    for solver in NEWTON:
        counts, plain = (results.all_counts(solver, perturbation) for perturbation in (1e-3, 0.0))
        name = f"logs, perturbation 1e-3: {solver} is robust (all solved, in 100 steps)"
        claim = Statement(name, "appear to be robust", WHY_NOT_ROBUST[solver])
        text = f"{_spread(counts)}, {_solved(counts)}; without perturbation {_solved(plain)}"
        yield claim.found(np.isfinite(counts).all() and counts.max() <= 100, text)


def _spread(counts: Array, unit: str = "") -> str:
    """Of those that were solved."""
    solved = counts[np.isfinite(counts)]
    return f"median {np.median(solved):.3g}{unit}, at most {solved.max():.3g}{unit}" if len(solved) else "none"


def _solved(counts: Array) -> str:
    return f"{int(np.isfinite(counts).sum())} of {len(counts)} solved"


def figures(results: Heap) -> list[Plate]:
    """Figures 3 to 6."""
    return [_picture(results), _plot_sweeps(results), _plot_counts(results)]


@plate("heap", 9.0, 3.6)
def _picture(figure: Any, results: Heap) -> str:
    """Figure 4. Seen from afar a capsule is a strip with round ends; the farthest is drawn first."""
    turn, tilt = np.radians(24.0), np.radians(14.0)  # of the view
    right = np.array([np.cos(turn), np.sin(turn), 0.0])
    away = np.array([-np.sin(turn) * np.cos(tilt), np.cos(turn) * np.cos(tilt), -np.sin(tilt)])
    view = np.stack([right, np.cross(right, away)], axis=1)
    ground = np.array([[-1.3, -1.3, 0.0], [1.3, -1.3, 0.0], [1.3, 1.3, 0.0], [-1.3, 1.3, 0.0]])
    stakes = results.radius < results.radius.max()
    # Logs hide the stakes on their far side and are hidden by those on the near side, however far they reach.
    side = np.sign(results.frames[0, :, 0, 0] * away[0]) * np.where(stakes, 1e3, 0.0)
    for k, ax in enumerate(figure.subplots(1, len(results.frames), sharex=True, sharey=True)):
        ends, depth = results.frames[k] @ view, results.frames[k] @ away
        ax.fill(*(ground @ view).T, color="0.93", lw=0)
        for c in np.argsort(-(depth.mean(axis=1) + side)):
            near = None if stakes[c] else ends[c, depth[c].argmin()]
            _draw_capsule(ax, ends[c], results.radius[c], near)
        ax.set_aspect("equal")
        ax.axis("off")
        ax.set_title(f"{0.01 * FRAMES[k]:.2f} s")
    return f"Figure 4: {(~stakes).sum()} identical logs that fall between four stakes."


def _draw_capsule(ax: Any, ends: Array, radius: float, near: Array | None) -> None:
    """A log, whose near end is a disc, or a stake, which shows none."""
    arc = np.linspace(0.5 * np.pi, 1.5 * np.pi, 20)
    along = arc + np.arctan2(*(ends[1] - ends[0])[::-1])
    cap = radius * np.stack([np.cos(along), np.sin(along)], axis=1)
    outline = np.concatenate([ends[0] + cap, ends[1] - cap])
    ax.fill(*outline.T, fc="0.45" if near is None else "0.8", ec="0.1", lw=0.6)
    if near is not None:
        disc = near + radius * np.stack([np.cos(2 * arc), np.sin(2 * arc)], axis=1)
        ax.fill(*disc.T, fc="0.95", ec="0.1", lw=0.6)


@plate("gauss-seidel", 9.0, 3.4)
def _plot_sweeps(figure: Any, results: Heap) -> str:
    """Figure 3."""
    axes = figure.subplots(1, 2, sharey=True)
    for ax, bounds, violation in zip(axes, BOUNDS, results.sweep_violation, strict=True):
        for row, k, line in zip(violation, results.sweep_steps, ("-", "--", ":", "-."), strict=False):
            ax.plot(results.shown_sweeps, np.maximum(row, 1e-16), line, color="0.2", lw=1.2, label=f"step {k}")
        ax.set(yscale="log", xlabel="sweeps", ylim=(1e-16, 10.0), title=f"{bounds} bounds")
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(0, results.shown_sweeps[-1])
        ax.legend()
    axes[0].set_ylabel("violation |z - mid(lo, hi, z - w)|")
    return f"Figure 3: block Gauss–Seidel on problems of {LOGS} logs, violation after each sweep over all contacts."


@plate("heap-counts", 9.0, 8.5)
def _plot_counts(figure: Any, results: Heap) -> str:
    """Figures 5 and 6: a row a solver; without a perturbation on the left, with 1e-3 on the right."""
    upper, lower = figure.subfigures(2, 1, height_ratios=(3.0, 2.1))
    _histograms(upper, results, PIVOTING, np.geomspace(0.1, 80.0, 41), "pivots / n")
    _histograms(lower, results, NEWTON, np.geomspace(1.0, 40_000.0, 41), "iterations")
    return (
        f"Figures 5 and 6: box LCPs of {len(results.heap_steps)} steps of the heap, fixed (dark) and scaled (light) "
        "bounds, without and with a perturbation of 1e-3 of the diagonal. What is not solved is not in the bars."
    )


def _histograms(figure: Any, results: Heap, solvers: Sequence[str], bins: Array, unit: str) -> None:
    for solver, perturbation, ax in grid(figure, solvers, PERTURBATIONS, (unit, "problems"), sharey=True):
        both = [results.counts(solver, bounds, perturbation) for bounds in BOUNDS]
        shown = [np.clip(counts[np.isfinite(counts)], bins[0], bins[-1]) for counts in both]
        ax.hist(shown, bins, stacked=True, color=["0.35", "0.8"], edgecolor="0.15", lw=0.5)
        every = np.concatenate(both)
        corner(ax, f"{solver}\n{_spread(every)}\n{_solved(every)}")
        if solver == solvers[0]:
            how = f"perturbation {perturbation:.0e}" if perturbation else "no perturbation"
            ax.set_title(f"{how}, {len(every)} box LCPs")
    ax.set_xscale("log")


def tables(results: Heap) -> list[Sheet]:
    """Counts by solver, bounds and perturbation."""
    rows = []
    for perturbation, solver, bounds in product(PERTURBATIONS, SOLVERS, BOUNDS):
        counts = results.counts(solver, bounds, perturbation)
        solved = counts[np.isfinite(counts)]
        unit, how = " n" if solver in PIVOTING else "", f"{perturbation:.0e}" if perturbation else "none"
        spread = np.percentile(solved, [0, 50, 100]) if len(solved) else np.full(3, np.nan)
        rows.append((solver, bounds, how, _solved(counts), *(f"{count:.3g}{unit}" for count in spread)))
    head = ("solver", "bounds", "perturbation", "solved", "least", "median of the solved", "most of the solved")
    caption = (
        f"Box LCPs of {LOGS} falling logs (figures 5 and 6). Printed: Lemke never more than n, Keller at most 1.2 n, "
        "Cottle–Dantzig up to 4 n."
    )
    return [Sheet(caption, head, rows)]
