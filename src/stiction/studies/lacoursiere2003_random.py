"""Random box LCPs: how many pivots, Newton steps and sweeps solvers take [Lacoursiere2003, fig. 1, 2 and remarks].

500 box LCPs of size 100, condition number 1e4, q within ±1e2, started at the lower bounds; bounds are those of
`positive_definite_box`, and there are two spectra, from 1/condition to 1. A pivot is one change of the set of variables
between their bounds, or one jump from bound to bound; Cottle–Dantzig drives violated rows in the order of their
indices, as published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

import stiction as st
from stiction.problems.zoo.families import positive_definite_box
from stiction.problems.zoo.ingredients import orthogonal
from stiction.solvers.contract import Solver
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import corner, grid, plate, ticks
from stiction.studies.results import Array, Findings, Plate, swept

CONDITION, Q_RANGE = 1e4, 1e2
SPECTRA = ("uniform", "logarithmic")
SOLVERS: dict[str, Solver] = {
    "Lemke": st.Lemke(),
    "Keller": st.Keller(),
    "Cottle–Dantzig": st.CottleDantzig(in_order=True),
    "Murty": st.Murty(),
    "block pivot": st.BlockPivot(),
    "smoothing Newton": st.SmoothingNewton(),
}
PIVOTING, NEWTON = tuple(SOLVERS)[:4], tuple(SOLVERS)[4:]
SWEPT = ("LCP, logarithmic", "box, logarithmic", "LCP, uniform")
SPECTRUM = (
    "The paper does not tell its spectrum. If the logarithms of the eigenvalues are uniform, half of them are below "
    "1e-2 and methods that may violate many rows at once suffer, Murty's most; with uniform eigenvalues it is as "
    "printed."
)
IN_UNITS = "The counts themselves spread as n grows; in units of n, the axis of figure 1, they do not."
FELT = {
    "box, logarithmic": "Bounds hold three variables of four, and the block of the others is far better conditioned.",
    "LCP, uniform": "The only small eigenvalue is never felt: it takes many of them to make sweeps slow.",
}
MOST_SWEEPS = 10_000  # a sweep costs as much as a pivot: the cost of 100 n pivots at n = 100
TOLERANCE = 1e-9


class Random(Findings):
    """Counts and residuals; the axes are named in this order."""

    declared: ClassVar = {
        "iterations, residual": "(spectrum, solver, problem) of figures 1 and 2, size 100",
        "sizes": "(size,)",
        "size_iterations, size_residual": "(size, spectrum, solver, problem)",
        "conditions": "(condition,)",
        "sweeps, sweep_residual": "(kind of SWEPT, condition, problem), stopped at TOLERANCE",
    }

    def pivots(self, solver: str, spectrum: str) -> Array:
        """Counts of figures 1 and 2; those of pivoting methods in units of n = 100."""
        counts = self.iterations[SPECTRA.index(spectrum), tuple(SOLVERS).index(solver)]
        return np.asarray(counts / (100.0 if solver in PIVOTING else 1.0))

    def by_size(self, solver: str, spectrum: str) -> Array:
        """(size, problem) counts; those of pivoting methods in units of n."""
        counts = self.size_iterations[:, SPECTRA.index(spectrum), tuple(SOLVERS).index(solver)]
        return np.asarray(counts / (self.sizes[:, None] if solver in PIVOTING else 1.0))


def run(quick: bool, seed: int) -> dict[str, Any]:
    """The arrays of `Random`; fewer problems, and sizes to 200, if quick."""
    sizes = (50, 100, 200) if quick else (50, 100, 200, 400)
    conditions = [10.0**e for e in range(1, 9)]
    iterations, residual = _count((100,), range(seed, seed + (40 if quick else 500)))
    size_iterations, size_residual = _count(sizes, range(seed, seed + (10 if quick else 40)))
    seeds = range(seed, seed + (6 if quick else 40))
    sweeps = swept("sweeps, sweep_residual", _sweep, kind=SWEPT, condition=conditions, seed=seeds)
    counted = {"iterations": iterations[0], "residual": residual[0], "sizes": sizes, "conditions": conditions}
    return {**counted, "size_iterations": size_iterations, "size_residual": size_residual, **sweeps}


def box_problem(n: int, seed: int, spectrum: str, condition: float = CONDITION) -> st.BoxLCP:
    """`positive_definite_box`, or the same with eigenvalues uniform between 1/condition and 1."""
    if spectrum == "logarithmic":
        return positive_definite_box(n, seed, condition, Q_RANGE)
    rng = np.random.default_rng(seed)
    Q = orthogonal(n, rng)
    eigenvalues = rng.uniform(1.0 / condition, 1.0, n)
    eigenvalues[:2] = 1.0, 1.0 / condition
    H = (Q * eigenvalues) @ Q.T
    H = 0.5 * (H + H.T)
    reach = Q_RANGE / H.diagonal().mean()
    q = rng.uniform(-Q_RANGE, Q_RANGE, n)
    return st.BoxLCP(H, q, -reach * rng.uniform(0.0, 1.0, n), reach * rng.uniform(0.0, 1.0, n))


def tally(problem: Any, solver: Solver) -> tuple[int, float]:
    """Iterations and residual of a solve that starts at the lower bounds, as in the paper."""
    start = problem.lo if solver.contract.warm else None  # the others start there anyway
    found = st.solve(problem, solver, start=start, throw=False)
    return found.iterations, found.certificate.residual


def _count(sizes: Sequence[int], seeds: Sequence[int]) -> tuple[Array, Array]:
    """(size, spectrum, solver, problem) iterations and residuals."""
    found = swept("iterations, residual", _tallies, n=sizes, spectrum=SPECTRA, seed=seeds)
    return found["iterations"].swapaxes(2, 3), found["residual"].swapaxes(2, 3)


def _tallies(n: int, spectrum: str, seed: int) -> tuple[list[int], list[float]]:
    """Iterations and residuals of every solver."""
    problem = box_problem(n, seed, spectrum)
    iterations, residual = zip(*(tally(problem, solver) for solver in SOLVERS.values()), strict=True)
    return list(iterations), list(residual)


def _sweep(kind: str, condition: float, seed: int) -> tuple[int, float]:
    """Gauss–Seidel sweeps and residual."""
    bounds, spectrum = kind.split(", ")
    problem = box_problem(100, seed, spectrum, condition)
    solver = st.GaussSeidel(max_sweeps=MOST_SWEEPS, target=TOLERANCE)
    return tally(st.LCP(problem.H, problem.q) if bounds == "LCP" else problem, solver)


def check(results: Random) -> list[Claim]:
    """The claims of the paper about random problems."""
    claims = [*_certified(results)]
    for spectrum in SPECTRA:
        claims += [*_figure_1(results, spectrum), *_larger(results, spectrum), *_figure_2(results, spectrum)]
    return [*claims, *_gauss_seidel(results)]


def _certified(results: Random) -> Iterator[Claim]:
    worst = max(results.residual.max(), results.size_residual.max())
    solves = results.residual.size + results.size_residual.size
    claim = Statement(f"every solve of figures 1 and 2 is certified to {TOLERANCE:.0e}")
    yield claim.found(worst <= TOLERANCE, f"worst residual {worst:.1e} of {solves} solves")


def _figure_1(results: Random, spectrum: str) -> Iterator[Claim]:
    pivots = {solver: results.pivots(solver, spectrum) for solver in PIVOTING}
    width = {solver: _width(counts) for solver, counts in pivots.items()}
    middle = {solver: float(np.median(counts)) for solver, counts in pivots.items()}
    found = {solver: f"median {middle[solver]:.2f} n, 90 % within {width[solver]:.2f} n" for solver in PIVOTING}
    start, why = f"{spectrum} spectrum:", "" if spectrum == "uniform" else SPECTRUM
    for solver in ("Lemke", "Keller"):
        claim = Statement(f"{start} {solver} peaks sharply near n", "a sharp peak near n")
        yield claim.found(abs(middle[solver] - 1.0) < 0.25 and width[solver] < 0.5, found[solver])
    broad, murty = "Cottle–Dantzig", middle["Murty"] / middle["Cottle–Dantzig"]
    claim = Statement(f"{start} {broad} peaks near 2 n", "near 2 n", why)
    yield claim.found(abs(middle[broad] - 2.0) < 0.4, found[broad])
    claim = Statement(f"{start} {broad}'s peak is broad", "a broad peak")
    yield claim.found(width[broad] > 2.0 * width["Lemke"], f"{found[broad]}; Lemke {width['Lemke']:.2f} n")
    claim = Statement(f"{start} Murty is slightly worse than {broad}", "slightly worse", why)
    yield claim.found(1.0 < murty < 1.5, f"{found['Murty']}; {murty:.1f} times {broad}'s median")


def _larger(results: Random, spectrum: str) -> Iterator[Claim]:
    """Figure 1 at the largest size, against size 100."""
    compared = [int(np.flatnonzero(results.sizes == 100)[0]), -1]
    for solver in PIVOTING:
        counts = results.by_size(solver, spectrum)[compared]
        (low, high), (narrow, wide) = np.median(counts, axis=1), [_width(row) for row in counts]
        growth, broader = high / low, wide / narrow
        text = f"n = 100 to {results.sizes[-1]}: median {low:.2f} n to {high:.2f} n, "
        text += f"90 % within {narrow:.2f} n to {wide:.2f} n"
        about = f"{spectrum} spectrum: {solver}"
        if solver in ("Lemke", "Keller"):
            claim = Statement(f"{about}'s peak stays sharp for larger n", "remains sharp")
            yield claim.found(abs(growth - 1.0) < 0.2 and broader < 1.2, text)
        else:
            claim = Statement(f"{about} stretches to higher multiples of n for larger n", "stretches to higher counts")
            yield claim.found(growth > 1.2, text)
            claim = Statement(f"{about} becomes much broader, in units of n, for larger n", "much broader", IN_UNITS)
            yield claim.found(broader > 1.5, text)


def _figure_2(results: Random, spectrum: str) -> Iterator[Claim]:
    for solver in NEWTON:
        middle = np.median(results.by_size(solver, spectrum), axis=1)
        text = f"medians {', '.join(f'{m:.0f}' for m in middle)} for n = {', '.join(map(str, results.sizes))}"
        claim = Statement(f"{spectrum} spectrum: {solver} hardly depends on n", "nearly independent of size")
        yield claim.found(middle.max() <= 1.5 * middle.min(), text)
    counts = results.pivots("block pivot", spectrum)
    skewness = np.mean((counts - counts.mean()) ** 3) / counts.std() ** 3
    text = f"skewness {skewness:.1f}, from {counts.min():.0f} to {counts.max():.0f}, median {np.median(counts):.0f}"
    claim = Statement(f"{spectrum} spectrum: block pivot is skewed towards higher counts", "slightly skewed")
    yield claim.found(skewness > 0.2, text)


def _gauss_seidel(results: Random) -> Iterator[Claim]:
    """Usable: most problems reach the tolerance in the sweeps allowed."""
    beyond = results.conditions > 1e7
    within = results.conditions < 1e7
    for kind, sweeps, residual in zip(SWEPT, results.sweeps, results.sweep_residual, strict=True):
        solved = (residual <= TOLERANCE).mean(axis=1)
        text = ", ".join(
            f"{condition:.0e}: {np.median(row):.0f} sweeps, {100 * share:.0f} % solved"
            for condition, row, share in zip(results.conditions, sweeps, solved, strict=True)
            if condition in (1e4, 1e7, 1e8)
        )
        name = f"Gauss–Seidel is unusable beyond condition 1e7 ({kind})"
        claim = Statement(name, "not usable beyond 1e7", FELT.get(kind, ""))
        yield claim.found((solved[beyond] < 0.5).all() and (solved[within] >= 0.5).all(), text)


def _width(counts: Array) -> float:
    """Distance of the 5th and 95th percentiles."""
    low, high = np.percentile(counts, [5, 95])
    return float(high - low)


def figures(results: Random) -> list[Plate]:
    return [_plot(results)]


@plate("random", 9.0, 11.0)
def _plot(figure: Any, results: Random) -> str:
    """Histograms like figures 1 and 2 for both spectra, medians by size, Gauss–Seidel."""
    upper, middle, lower = figure.subfigures(3, 1, height_ratios=(4.2, 2.6, 3.2))
    _histograms(upper, results, PIVOTING, np.geomspace(0.4, 80.0, 81), "pivots / n")
    _histograms(middle, results, NEWTON, np.arange(2.5, 36.5), "iterations")
    left, right = lower.subplots(1, 2)
    _plot_sizes(left, results)
    _plot_sweeps(right, results)
    return "Random box LCPs: counts as in figures 1 and 2, medians by size, and sweeps of Gauss–Seidel."


def _histograms(figure: Any, results: Random, solvers: Sequence[str], bins: Array, unit: str) -> None:
    """A column a spectrum, a row a solver, one scale for all."""
    for solver, spectrum, ax in grid(figure, solvers, SPECTRA, (unit, "% of problems"), sharey="row"):
        counts = results.pivots(solver, spectrum)
        share = np.full(len(counts), 100.0 / len(counts))
        ax.hist(np.clip(counts, bins[0], bins[-1]), bins, weights=share, color="0.55", edgecolor="0.2", lw=0.5)
        ax.axvline(np.median(counts), color="k", lw=1.0, ls="--")
        corner(ax, f"{solver}\nmedian {np.median(counts):.3g}")
        if solver == solvers[0]:
            ax.set_title(f"{spectrum} spectrum, {len(counts)} box LCPs, n = 100")
    if solvers == PIVOTING:
        ax.set_xscale("log")
        ticks(ax, [0.5, 1, 2, 5, 10, 20])


def _plot_sizes(ax: Any, results: Random) -> None:
    """Medians of pivots / n against n, logarithmic spectrum dashed."""
    for spectrum, line, face in zip(SPECTRA, ("-", "--"), ("0.35", "white"), strict=True):
        for solver, marker in zip(PIVOTING, "osv^", strict=True):
            middle = np.median(results.by_size(solver, spectrum), axis=1)
            ax.plot(results.sizes, middle, line, color="0.35", marker=marker, mfc=face, lw=1.0)
            if line == "-" or solver not in ("Lemke", "Keller"):  # those two coincide nearly
                end = (results.sizes[-1], middle[-1])
                ax.annotate(solver, end, (7, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set(xscale="log", yscale="log", xlabel="n", ylabel="median pivots / n")
    ax.set(xlim=(0.9 * results.sizes[0], 2.2 * results.sizes[-1]), title="solid: uniform spectrum, dashed: logarithmic")
    ticks(ax, results.sizes, [0.5, 1, 2, 5, 10, 20])


def _plot_sweeps(ax: Any, results: Random) -> None:
    """Median sweeps against the condition number, from the 5th to the 95th percentile."""
    x, places = results.conditions, ((3, (-8, 6)), (-1, (0, 24)), (-1, (0, -22)))  # of labels
    for kind, sweeps, marker, line, (at, place) in zip(
        SWEPT, results.sweeps, "osv", ("-", "--", ":"), places, strict=True
    ):
        low, middle, high = np.percentile(sweeps, [5, 50, 95], axis=1)
        ax.errorbar(x, middle, [middle - low, high - middle], ls=line, color="0.35", marker=marker, lw=1.0, capsize=2)
        ax.annotate(kind, (x[at], middle[at]), place, textcoords="offset points", ha="right", fontsize=8)
    ax.axhline(MOST_SWEEPS, color="k", lw=0.8)
    ax.text(x[0], 1.1 * MOST_SWEEPS, "stopped here", fontsize=8, va="bottom")
    ax.set(xscale="log", yscale="log", xlabel="condition number", ylabel=f"sweeps to a residual of {TOLERANCE:.0e}")
    ax.set(ylim=(5, 3 * MOST_SWEEPS), title="Gauss–Seidel, n = 100: median, 5 to 95 %")
