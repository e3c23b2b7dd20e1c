"""Forty logs fall on each other: the box LCPs of their steps, counted and swept [Lacoursiere2003, fig. 3–6].

A box LCP is that of eq. 8: all impulses of a step, friction between bounds that are known before. The bounds are
"fixed", friction times a quarter of a log's weight, or "scaled", friction times what each contact bore in the step
before (nothing if it is new). The heap itself is simulated with box friction solved to its end, so that it does not
depend on any of the solvers that are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stiction import optional
from stiction.problems.box_friction import BoxForm, box_form
from stiction.problems.laws import BoxFriction
from stiction.problems.lcp import BoxLCP
from stiction.solvers.auto import Auto
from stiction.solvers.contract import ContactProposal, Contract
from stiction.solvers.lcp.block_pivot import BlockPivot
from stiction.solvers.lcp.cottle_dantzig import CottleDantzig
from stiction.solvers.lcp.gauss_seidel import GaussSeidel
from stiction.solvers.lcp.keller import Keller
from stiction.solvers.lcp.lemke import Lemke
from stiction.solvers.lcp.smoothing_newton import SmoothingNewton
from stiction.solvers.solve import solve
from stiction.studies.claims import Claim
from stiction.studies.results import Plate, Sheet, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.solvers.contract import Solver

LOGS, STEPS = 40, 81  # of 10 ms; the heap lies still after about 60
FRAMES = (0, 25, 80)  # steps before which a picture is taken
FIRST_STEP = 14  # before it hardly anything touches
BOUNDS = ("fixed", "scaled")
PERTURBATIONS = (0.0, 1e-3)  # parts of the diagonal
MOST_PIVOTS = 12  # a variable, of each attempt that a method makes
NOTHING = 1e-8  # part of the largest normal impulse that is an error of the simulation, and bounds no friction
SOLVERS: dict[str, Solver] = {
    "Lemke": Lemke(),
    "Keller": Keller(),
    "Cottle–Dantzig": CottleDantzig(in_order=True),
    "block pivot": BlockPivot(max_iterations=100),
    "smoothing Newton": SmoothingNewton(),
}
PIVOTING, NEWTON = tuple(SOLVERS)[:3], tuple(SOLVERS)[3:]
TOLERANCE = 1e-8
SHOWN_SWEEPS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1400, 2000, 2800, 4000)


class Step(NamedTuple):
    """A step of the simulation.

    problem: its contact problem
    form: the same as boxes
    bound: normal impulses that bound friction, in units of the form, by the name in BOUNDS
    """

    number: int
    problem: ContactProblem
    form: BoxForm
    bound: dict[str, NDArray[np.float64]]


class Fall(NamedTuple):
    """A simulation: its steps, and where the axes of all capsules lay at FRAMES."""

    steps: list[Step]
    residual: float  # worst certificate
    frames: NDArray[np.float64]  # (frame, capsule, end, 3) m
    radius: NDArray[np.float64]  # (capsule,) m


@dataclass(frozen=True, eq=False)
class Heap(Stored):
    """Results; the axes are named in this order.

    heap_residual: worst certificate of the simulation's steps
    frames: (frame, capsule, end, 3) ends of axes in m; radius: (capsule,) m
    heap_steps: (problem,) numbers of the steps whose box LCPs are counted; heap_sizes, heap_ranks: (problem,) of them
    heap_iterations, heap_residuals: (perturbation, bounds, solver, problem)
    sweep_steps: (step,); shown_sweeps: (count,)
    sweep_violation: (bounds, step, count) largest |z - mid(lo, hi, z - w)|
    """

    heap_residual: float
    frames: NDArray[np.float64]
    radius: NDArray[np.float64]
    heap_steps: NDArray[np.int64]
    heap_sizes: NDArray[np.int64]
    heap_ranks: NDArray[np.int64]
    heap_iterations: NDArray[np.int64]
    heap_residuals: NDArray[np.float64]
    sweep_steps: NDArray[np.int64]
    shown_sweeps: NDArray[np.int64]
    sweep_violation: NDArray[np.float64]

    def counts(self, solver: str, bounds: str, perturbation: float) -> NDArray[np.float64]:
        """(problem,) iterations, those of pivoting methods in units of the size; infinite where not solved."""
        at = PERTURBATIONS.index(perturbation), BOUNDS.index(bounds), tuple(SOLVERS).index(solver)
        counts = self.heap_iterations[at] / (self.heap_sizes if solver in PIVOTING else 1.0)
        return np.where(self.heap_residuals[at] <= TOLERANCE, counts, np.inf)


class Recorder:
    """A solver that keeps every problem and every start it is given, and lets another one solve."""

    contract: ClassVar[Contract] = replace(Auto.contract, warm=True)

    def __init__(self) -> None:
        self.kept: list[tuple[ContactProblem, NDArray[np.float64] | None]] = []

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        found = solve(problem, Auto(aim=1e-10), start=start, throw=False)
        self.kept.append((problem, start))
        return ContactProposal(found.status, found.iterations, found.impulse)


def fall(seed: int, logs: int = LOGS, steps: int = STEPS) -> Fall:
    """Logs that fall, under box friction inside the cone."""
    from stiction.bodies.named.parts import CAPSULE, GRAVITY
    from stiction.bodies.scene import Scene
    from stiction.stepping.simulation import Simulation

    scene = Scene.named("log-heap", logs=logs, seed=seed)
    recorder = Recorder()
    simulation = Simulation(scene, BoxFriction(scaled=True), recorder)
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
    made = [_step(k, *kept, quarter) for k, kept in enumerate(recorder.kept)]
    return Fall(made, worst, np.array(frames), np.array(model.geom_size[capsules, 0]))


def _step(number: int, problem: ContactProblem, start: NDArray[np.float64] | None, quarter: float) -> Step:
    form = box_form(problem)
    impulse = np.zeros((form.n, 3))
    impulse[:, 0] = quarter
    scaled = np.zeros(form.n) if start is None else np.maximum(form.scaled(start)[:, 0], 0.0)
    scaled[scaled <= NOTHING * scaled.max(initial=0.0)] = 0.0
    return Step(number, problem, form, {"fixed": form.scaled(impulse)[:, 0], "scaled": scaled})


def run(fallen: Fall, quick: bool) -> dict[str, Any]:
    """The fields of `Heap`."""
    chosen = range(FIRST_STEP + 2, STEPS, 16) if quick else range(FIRST_STEP, STEPS, 3)
    swept = (80,) if quick else (25, 40, 60, 80)
    sweeps = [s for s in SHOWN_SWEEPS if s <= (2000 if quick else 4000)]
    steps = [fallen.steps[k] for k in chosen]
    iterations, residuals = _count(steps)
    return {
        "heap_residual": fallen.residual,
        "frames": fallen.frames,
        "radius": fallen.radius,
        "heap_steps": np.array(chosen),
        "heap_sizes": np.array([int(step.form.hears.sum()) for step in steps]),
        "heap_ranks": np.array([np.linalg.matrix_rank(step.form.response) for step in steps]),
        "heap_iterations": iterations,
        "heap_residuals": residuals,
        "sweep_steps": np.array(swept),
        "shown_sweeps": np.array(sweeps),
        "sweep_violation": np.array([[_sweep(fallen.steps[k], b, sweeps) for k in swept] for b in BOUNDS]),
    }


def _count(steps: Sequence[Step]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(perturbation, bounds, solver, problem) iterations and residuals, from the lower bounds as in the paper."""
    shape = (len(PERTURBATIONS), len(BOUNDS), len(SOLVERS), len(steps))
    iterations, residuals = np.zeros(shape, np.int64), np.full(shape, np.inf)
    for k, step in enumerate(steps):
        for b, bounds in enumerate(BOUNDS):
            plain = step.form.joint_problem(step.bound[bounds])
            for e, perturbation in enumerate(PERTURBATIONS):
                H = plain.H + perturbation * np.diag(plain.H.diagonal())
                problem = BoxLCP(H, plain.q, plain.lo, plain.hi)
                for s, solver in enumerate(SOLVERS.values()):
                    if hasattr(solver, "max_pivots"):
                        solver = replace(solver, max_pivots=MOST_PIVOTS * problem.n)  # type: ignore[type-var]
                    start = problem.lo if solver.contract.warm else None
                    found = solve(problem, solver, start=start, throw=False)
                    iterations[e, b, s, k], residuals[e, b, s, k] = found.iterations, found.certificate.residual
    return iterations, np.where(np.isnan(residuals), np.inf, residuals)


def _sweep(step: Step, bounds: str, sweeps: Sequence[int]) -> list[float]:
    """The violation after so many sweeps of block Gauss–Seidel, a block a contact."""
    form, plain = step.form, step.form.joint_problem(step.bound[bounds])
    by_contact = np.argsort(np.tile(np.arange(form.n), 3)[form.hears], kind="stable")
    blocks = [int(size) for size in form.hears.reshape(3, form.n).sum(axis=0) if size]
    problem = BoxLCP(
        plain.H[np.ix_(by_contact, by_contact)], plain.q[by_contact], plain.lo[by_contact], plain.hi[by_contact]
    )
    z, done, violations = problem.lo, 0, []
    for count in sweeps:
        if count > done:
            z = solve(problem, GaussSeidel(blocks, max_sweeps=count - done, target=0.0), start=z, throw=False).z
            done = count
        w = problem.H @ z + problem.q
        violations.append(float(np.abs(z - np.clip(z - w, problem.lo, problem.hi)).max(initial=0.0)))
    return violations


def check(results: Heap) -> list[Claim]:
    """What the paper says of the heap."""
    full, size = results.heap_ranks, results.heap_sizes
    degenerate = f"rank {full.min()} to {full.max()} of {size.min()} to {size.max()} impulses, {len(size)} steps"
    certified = bool(results.heap_residual <= TOLERANCE)
    claims = [
        Claim(
            f"every step of {LOGS} falling logs is certified", certified, f"worst residual {results.heap_residual:.0e}"
        ),
        Claim("logs make degenerate problems", bool((full < size).all()), degenerate, printed="degenerate systems"),
    ]
    for bounds in BOUNDS:
        claims.append(_stagnation(results, bounds))
    for perturbation in PERTURBATIONS:
        claims += _figure_5(results, perturbation)
    return claims + _figure_6(results)


def _stagnation(results: Heap, bounds: str) -> Claim:
    """Stagnation: after the thousandth sweep less than a factor of ten is gained, and the problem is not solved."""
    violation, sweeps = results.sweep_violation[BOUNDS.index(bounds)], results.shown_sweeps
    thousand = int(np.flatnonzero(sweeps == 1000)[0])
    gained = violation[:, thousand] / violation[:, -1]
    stagnates = (gained < 10.0) & (violation[:, -1] > TOLERANCE)
    found = "; ".join(
        f"step {k}: {row[thousand]:.0e} after 1000 sweeps, {row[-1]:.0e} after {sweeps[-1]}"
        for k, row in zip(results.sweep_steps, violation, strict=True)
    )
    name = f"Gauss–Seidel stagnates on {LOGS} logs, {bounds} bounds"
    printed = "stagnates for thousands of iterations"
    return Claim(name, bool(stagnates.all()), found, printed=printed)


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


def _figure_5(results: Heap, perturbation: float) -> list[Claim]:
    claims = []
    how = "definite" if perturbation else "singular"
    for solver in PIVOTING:
        counts = np.concatenate([results.counts(solver, bounds, perturbation) for bounds in BOUNDS])
        limit, printed = PRINTED[solver]
        found = f"{_spread(counts, ' n')}, {_solved(counts)}"
        claims.append(
            Claim(
                f"logs, {how} matrices: {solver} takes {printed} pivots",
                bool(counts.max() <= limit),
                found,
                False,
                printed,
                (LONGER + (SMALL if solver == "Cottle–Dantzig" else "")) if perturbation else TIES,
            )
        )
    return [*claims, _order(results, perturbation, how)]


def _order(results: Heap, perturbation: float, how: str) -> Claim:
    """Long tail: the most pivots, of problems solved, are more than twice those of the others."""
    counts = {
        solver: np.concatenate([results.counts(solver, bounds, perturbation) for bounds in BOUNDS])
        for solver in PIVOTING
    }
    most = {solver: each[np.isfinite(each)].max(initial=0.0) for solver, each in counts.items()}
    tail = most["Cottle–Dantzig"] > 2.0 * max(most["Lemke"], most["Keller"])
    found = "; ".join(f"{solver} {_spread(each, ' n')}, {_solved(each)}" for solver, each in counts.items())
    name = f"logs, {how} matrices: Cottle–Dantzig has a long tail, the others have not"
    return Claim(name, bool(tail), found, perturbation > 0.0, "1 n, 1.2 n and 4 n", "" if perturbation else TIES)


def _figure_6(results: Heap) -> list[Claim]:
    claims = []
    for solver in NEWTON:
        counts = np.concatenate([results.counts(solver, bounds, 1e-3) for bounds in BOUNDS])
        plain = np.concatenate([results.counts(solver, bounds, 0.0) for bounds in BOUNDS])
        found = f"{_spread(counts)}, {_solved(counts)}; "
        found += f"without perturbation {_solved(plain)}"
        smoothing = solver == "smoothing Newton"
        why = (
            "On a quarter of the problems changing all sides at once cycles, and the single changes that take over, "
            "Murty's, are thousands; where they are more than 10,000, the problem counts as not solved."
        )
        sure = bool(np.isfinite(counts).all() and counts.max() <= 100)
        name = f"logs, perturbation 1e-3: {solver} is robust (all solved, in 100 steps)"
        if smoothing:
            why = (
                "It ends near bounds, not at them: by componentwise backward error, which measures a bound by what "
                "moving there changes and by the width of the box, half of its answers are off by more than 1e-8."
            )
        claims.append(Claim(name, sure, found, False, "appear to be robust", why))
    return claims


def _spread(counts: NDArray[np.float64], unit: str = "") -> str:
    """Of those that were solved."""
    solved = counts[np.isfinite(counts)]
    return f"median {np.median(solved):.3g}{unit}, at most {solved.max():.3g}{unit}" if len(solved) else "none"


def _solved(counts: NDArray[np.float64]) -> str:
    return f"{int(np.isfinite(counts).sum())} of {len(counts)} solved"


def figures(results: Heap) -> list[Plate]:
    """Figures 3 to 6."""
    return [_picture(results), _plot_sweeps(results), _plot_counts(results)]


def _picture(results: Heap) -> Plate:
    """Figure 4. Seen from afar a capsule is a strip with round ends; the farthest is drawn first."""
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 3.6), layout="constrained")
    turn, tilt = np.radians(24.0), np.radians(14.0)  # of the view
    right = np.array([np.cos(turn), np.sin(turn), 0.0])
    away = np.array([-np.sin(turn) * np.cos(tilt), np.cos(turn) * np.cos(tilt), -np.sin(tilt)])
    up = np.cross(right, away)
    shown = results.frames @ np.stack([right, up], axis=1)
    stakes = results.radius < results.radius.max()
    # Logs hide the stakes on their far side and are hidden by those on the near side, however far they reach.
    side = np.sign(results.frames[0, :, 0, 0] * away[0]) * np.where(stakes, 1e3, 0.0)
    depth = (results.frames @ away).mean(axis=2) + side
    arc = np.linspace(0.5 * np.pi, 1.5 * np.pi, 20)
    for k, ax in enumerate(figure.subplots(1, len(shown), sharex=True, sharey=True)):
        ground = np.array([[x, y, 0.0] for x, y in ((-1.3, -1.3), (1.3, -1.3), (1.3, 1.3), (-1.3, 1.3))])
        ax.fill(*(ground @ np.stack([right, up], axis=1)).T, color="0.93", lw=0)
        for c in np.argsort(-depth[k]):
            first, second = shown[k, c]
            r = results.radius[c]
            along = np.arctan2(*(second - first)[::-1])
            ends = [
                first + r * np.stack([np.cos(along + arc), np.sin(along + arc)], axis=1),
                second - r * np.stack([np.cos(along + arc), np.sin(along + arc)], axis=1),
            ]
            ax.fill(*np.concatenate(ends).T, fc="0.45" if stakes[c] else "0.8", ec="0.1", lw=0.6)
            if not stakes[c]:  # the near end of a log, which is round
                near = first if results.frames[k, c, 0] @ away < results.frames[k, c, 1] @ away else second
                ax.fill(
                    *(near + r * np.stack([np.cos(2 * arc), np.sin(2 * arc)], axis=1)).T, fc="0.95", ec="0.1", lw=0.6
                )
        ax.set_aspect("equal")
        ax.axis("off")
        ax.set_title(f"{0.01 * FRAMES[k]:.2f} s", fontsize=10)
    logs = int((results.radius == results.radius.max()).sum())
    caption = f"Figure 4: {logs} identical logs that fall between four stakes."
    return Plate("heap", caption, figure)


def _plot_sweeps(results: Heap) -> Plate:
    """Figure 3."""
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 3.4), layout="constrained")
    for b, (bounds, ax) in enumerate(zip(BOUNDS, figure.subplots(1, 2, sharey=True), strict=True)):
        for row, k, line in zip(results.sweep_violation[b], results.sweep_steps, ("-", "--", ":", "-."), strict=False):
            ax.plot(results.shown_sweeps, np.maximum(row, 1e-16), line, color="0.2", lw=1.2, label=f"step {k}")
        ax.set(yscale="log", xlabel="sweeps", ylim=(1e-16, 10.0))
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(0, results.shown_sweeps[-1])
        ax.set_title(f"{bounds} bounds", fontsize=10)
        ax.legend(frameon=False, fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        if b == 0:
            ax.set_ylabel("violation |z - mid(lo, hi, z - w)|")
    caption = f"Figure 3: block Gauss–Seidel on problems of {LOGS} logs, violation after each sweep over all contacts."
    return Plate("gauss-seidel", caption, figure)


def _plot_counts(results: Heap) -> Plate:
    """Figures 5 and 6: a row a solver; without a perturbation on the left, with 1e-3 on the right."""
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 8.5), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(3.0, 2.1))
    _histograms(upper, results, PIVOTING, np.geomspace(0.1, 80.0, 41), "pivots / n")
    _histograms(lower, results, NEWTON, np.geomspace(1.0, 40_000.0, 41), "iterations")
    caption = (
        f"Figures 5 and 6: box LCPs of {len(results.heap_steps)} steps of the heap, fixed (dark) and scaled (light) "
        "bounds, without and with a perturbation of 1e-3 of the diagonal. What is not solved is not in the bars."
    )
    return Plate("heap-counts", caption, figure)


def _histograms(figure: Any, results: Heap, solvers: Sequence[str], bins: NDArray[np.float64], unit: str) -> None:
    axes = figure.subplots(len(solvers), 2, sharex=True, sharey=True, squeeze=False)
    for row, solver in enumerate(solvers):
        for ax, perturbation in zip(axes[row], PERTURBATIONS, strict=True):
            both = [results.counts(solver, bounds, perturbation) for bounds in BOUNDS]
            ax.hist(
                [np.clip(counts[np.isfinite(counts)], bins[0], bins[-1]) for counts in both], bins, stacked=True,
                color=["0.35", "0.8"], edgecolor="0.15", lw=0.5,
            )  # fmt: skip
            every = np.concatenate(both)
            text = f"{solver}\n{_spread(every)}\n{_solved(every)}"
            ax.text(0.98, 0.95, text, transform=ax.transAxes, ha="right", va="top", fontsize=8)
            ax.spines[["top", "right"]].set_visible(False)
            if row == 0:
                how = f"perturbation {perturbation:.0e}" if perturbation else "no perturbation"
                ax.set_title(f"{how}, {len(every)} box LCPs", fontsize=10)
        axes[row, 0].set_ylabel("problems", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel(unit)
    axes[0, 0].set_xscale("log")


def tables(results: Heap) -> list[Sheet]:
    """Counts by solver, bounds and perturbation."""
    rows = []
    for perturbation in PERTURBATIONS:
        for solver in SOLVERS:
            for bounds in BOUNDS:
                counts = results.counts(solver, bounds, perturbation)
                solved = counts[np.isfinite(counts)]
                unit = " n" if solver in PIVOTING else ""
                low, middle, high = np.percentile(solved, [0, 50, 100]) if len(solved) else (np.nan,) * 3
                rows.append(
                    (
                        solver, bounds, f"{perturbation:.0e}" if perturbation else "none",
                        _solved(counts), *(f"{count:.3g}{unit}" for count in (low, middle, high)),
                    )
                )  # fmt: skip
    head = ("solver", "bounds", "perturbation", "solved", "least", "median of the solved", "most of the solved")
    caption = (
        f"Box LCPs of {LOGS} falling logs (figures 5 and 6). Printed: Lemke never more than n, Keller at most 1.2 n, "
        "Cottle–Dantzig up to 4 n."
    )
    return [Sheet(caption, head, rows)]
