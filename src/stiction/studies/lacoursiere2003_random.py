"""Random box LCPs: how many pivots, Newton steps and sweeps solvers take [Lacoursiere2003, fig. 1, 2 and remarks].

500 box LCPs of size 100, condition number 1e4, q within ±1e2, started at the lower bounds; bounds are those of
`positive_definite_box`, and there are two spectra, from 1/condition to 1. A pivot is one change of the set of variables
between their bounds, or one jump from bound to bound; Cottle–Dantzig drives violated rows in the order of their
indices, as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction import optional
from stiction.problems.families import positive_definite_box
from stiction.problems.ingredients import orthogonal
from stiction.problems.lcp import LCP, BoxLCP
from stiction.solvers.lcp.block_pivot import BlockPivot
from stiction.solvers.lcp.cottle_dantzig import CottleDantzig
from stiction.solvers.lcp.gauss_seidel import GaussSeidel
from stiction.solvers.lcp.keller import Keller
from stiction.solvers.lcp.lemke import Lemke
from stiction.solvers.lcp.murty import Murty
from stiction.solvers.lcp.smoothing_newton import SmoothingNewton
from stiction.solvers.solve import solve
from stiction.studies.claims import Claim
from stiction.studies.results import Plate, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stiction.solvers.contract import Solver

CONDITION, Q_RANGE = 1e4, 1e2
SPECTRA = ("uniform", "logarithmic")
SOLVERS: dict[str, Solver] = {
    "Lemke": Lemke(),
    "Keller": Keller(),
    "Cottle–Dantzig": CottleDantzig(in_order=True),
    "Murty": Murty(),
    "block pivot": BlockPivot(),
    "smoothing Newton": SmoothingNewton(),
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


@dataclass(frozen=True, eq=False)
class Random(Stored):
    """Counts and residuals; the axes are named in this order.

    iterations, residual: (spectrum, solver, problem) of figures 1 and 2, size 100
    sizes: (size,); size_iterations, size_residual: (size, spectrum, solver, problem)
    conditions: (condition,); sweeps, sweep_residual: (kind of SWEPT, condition, problem), stopped at TOLERANCE
    """

    iterations: NDArray[np.int64]
    residual: NDArray[np.float64]
    sizes: NDArray[np.int64]
    size_iterations: NDArray[np.int64]
    size_residual: NDArray[np.float64]
    conditions: NDArray[np.float64]
    sweeps: NDArray[np.int64]
    sweep_residual: NDArray[np.float64]

    def pivots(self, solver: str, spectrum: str) -> NDArray[np.float64]:
        """Counts of figures 1 and 2; those of pivoting methods in units of n = 100."""
        counts = self.iterations[SPECTRA.index(spectrum), tuple(SOLVERS).index(solver)]
        return np.asarray(counts / (100.0 if solver in PIVOTING else 1.0))

    def by_size(self, solver: str, spectrum: str) -> NDArray[np.float64]:
        """(size, problem) counts; those of pivoting methods in units of n."""
        counts = self.size_iterations[:, SPECTRA.index(spectrum), tuple(SOLVERS).index(solver)]
        return np.asarray(counts / (self.sizes[:, None] if solver in PIVOTING else 1.0))


def run(quick: bool, seed: int) -> dict[str, Any]:
    """The fields of `Random`; fewer problems, and sizes to 200, if quick."""
    sizes = (50, 100, 200) if quick else (50, 100, 200, 400)
    conditions = np.array([10.0**e for e in range(1, 9)])
    figures = _count(100, range(seed, seed + (40 if quick else 500)))
    by_size = [_count(n, range(seed, seed + (10 if quick else 40))) for n in sizes]
    swept = _sweep(conditions, range(seed, seed + (6 if quick else 40)))
    return {
        "iterations": figures[0],
        "residual": figures[1],
        "sizes": np.array(sizes),
        "size_iterations": np.array([counts for counts, _ in by_size]),
        "size_residual": np.array([residual for _, residual in by_size]),
        "conditions": conditions,
        "sweeps": swept[0],
        "sweep_residual": swept[1],
    }


def box_problem(n: int, seed: int, spectrum: str, condition: float = CONDITION) -> BoxLCP:
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
    return BoxLCP(H, q, -reach * rng.uniform(0.0, 1.0, n), reach * rng.uniform(0.0, 1.0, n))


def _count(n: int, seeds: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(spectrum, solver, problem) iterations and residuals."""
    shape = (len(SPECTRA), len(SOLVERS), len(seeds))
    iterations, residual = np.zeros(shape, np.int64), np.full(shape, np.inf)
    for s, spectrum in enumerate(SPECTRA):
        for p, seed in enumerate(seeds):
            problem = box_problem(n, seed, spectrum)
            for k, solver in enumerate(SOLVERS.values()):
                start = problem.lo if solver.contract.warm else None  # the others start there anyway
                found = solve(problem, solver, start=start, throw=False)
                iterations[s, k, p], residual[s, k, p] = found.iterations, found.certificate.residual
    return iterations, residual


def _sweep(conditions: NDArray[np.float64], seeds: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(kind, condition, problem) Gauss–Seidel sweeps and residuals."""
    shape = (len(SWEPT), len(conditions), len(seeds))
    sweeps, residual = np.zeros(shape, np.int64), np.full(shape, np.inf)
    solver = GaussSeidel(max_sweeps=MOST_SWEEPS, target=TOLERANCE)
    for k, kind in enumerate(SWEPT):
        bounds, spectrum = kind.split(", ")
        for c, condition in enumerate(conditions):
            for p, seed in enumerate(seeds):
                problem = box_problem(100, seed, spectrum, condition)
                if bounds == "LCP":
                    problem = LCP(problem.H, problem.q)
                found = solve(problem, solver, start=problem.lo, throw=False)
                sweeps[k, c, p], residual[k, c, p] = found.iterations, found.certificate.residual
    return sweeps, residual


def check(results: Random) -> list[Claim]:
    """What the paper says of random problems."""
    claims = [_certified(results)]
    for spectrum in SPECTRA:
        claims += _figure_1(results, spectrum) + _larger(results, spectrum) + _figure_2(results, spectrum)
    return claims + _gauss_seidel(results)


def _certified(results: Random) -> Claim:
    worst = max(results.residual.max(), results.size_residual.max())
    solves = results.residual.size + results.size_residual.size
    name = f"every solve of figures 1 and 2 is certified to {TOLERANCE:.0e}"
    return Claim(name, bool(worst <= TOLERANCE), f"worst residual {worst:.1e} of {solves} solves")


def _figure_1(results: Random, spectrum: str) -> list[Claim]:
    pivots = {solver: results.pivots(solver, spectrum) for solver in PIVOTING}
    width = {solver: _width(counts) for solver, counts in pivots.items()}
    middle = {solver: float(np.median(counts)) for solver, counts in pivots.items()}
    found = {solver: f"median {middle[solver]:.2f} n, 90 % within {width[solver]:.2f} n" for solver in PIVOTING}
    printed = spectrum == "uniform"
    why = "" if printed else SPECTRUM
    broad, murty = "Cottle–Dantzig", middle["Murty"] / middle["Cottle–Dantzig"]
    near_2n, is_broad = abs(middle[broad] - 2.0) < 0.4, width[broad] > 2.0 * width["Lemke"]
    return [
        *(
            Claim(
                f"{spectrum} spectrum: {solver} peaks sharply near n",
                abs(middle[solver] - 1.0) < 0.25 and width[solver] < 0.5,
                found[solver],
                printed="a sharp peak near n",
            )
            for solver in ("Lemke", "Keller")
        ),
        Claim(f"{spectrum} spectrum: {broad} peaks near 2 n", near_2n, found[broad], printed, "near 2 n", why),
        Claim(
            f"{spectrum} spectrum: {broad}'s peak is broad",
            is_broad,
            f"{found[broad]}; Lemke {width['Lemke']:.2f} n",
            printed="a broad peak",
        ),
        Claim(
            f"{spectrum} spectrum: Murty is slightly worse than {broad}",
            1.0 < murty < 1.5,
            f"{found['Murty']}; {murty:.1f} times {broad}'s median",
            printed,
            "slightly worse",
            why,
        ),
    ]


def _larger(results: Random, spectrum: str) -> list[Claim]:
    """What becomes of figure 1 at the largest size, against size 100."""
    hundred = int(np.flatnonzero(results.sizes == 100)[0])
    claims = []
    for solver in PIVOTING:
        counts = results.by_size(solver, spectrum)
        middle, width = np.median(counts, axis=1), np.array([_width(row) for row in counts])
        growth, broader = middle[-1] / middle[hundred], width[-1] / width[hundred]
        text = (
            f"n = 100 to {results.sizes[-1]}: median {middle[hundred]:.2f} n to {middle[-1]:.2f} n, "
            f"90 % within {width[hundred]:.2f} n to {width[-1]:.2f} n"
        )
        if solver in ("Lemke", "Keller"):
            steady = abs(growth - 1.0) < 0.2 and broader < 1.2
            sharp = f"{spectrum} spectrum: {solver}'s peak stays sharp for larger n"
            claims.append(Claim(sharp, bool(steady), text, printed="remains sharp"))
        else:
            longer = f"{spectrum} spectrum: {solver} stretches to higher multiples of n for larger n"
            claims.append(Claim(longer, bool(growth > 1.2), text, printed="stretches to higher counts"))
            wider = f"{spectrum} spectrum: {solver} becomes much broader, in units of n, for larger n"
            claims.append(Claim(wider, bool(broader > 1.5), text, False, "much broader", IN_UNITS))
    return claims


def _figure_2(results: Random, spectrum: str) -> list[Claim]:
    claims = []
    for solver in NEWTON:
        middle = np.median(results.by_size(solver, spectrum), axis=1)
        text = f"medians {', '.join(f'{m:.0f}' for m in middle)} for n = {', '.join(map(str, results.sizes))}"
        steady = middle.max() <= 1.5 * middle.min()
        name = f"{spectrum} spectrum: {solver} hardly depends on n"
        claims.append(Claim(name, bool(steady), text, printed="nearly independent of size"))
    counts = results.pivots("block pivot", spectrum)
    skewness = float(np.mean((counts - counts.mean()) ** 3) / counts.std() ** 3)
    text = f"skewness {skewness:.1f}, from {counts.min():.0f} to {counts.max():.0f}, median {np.median(counts):.0f}"
    name = f"{spectrum} spectrum: block pivot is skewed towards higher counts"
    return [*claims, Claim(name, skewness > 0.2, text, printed="slightly skewed")]


def _gauss_seidel(results: Random) -> list[Claim]:
    """Usable: most problems reach the tolerance in the sweeps allowed."""
    claims = []
    for kind, sweeps, residual in zip(SWEPT, results.sweeps, results.sweep_residual, strict=True):
        solved = (residual <= TOLERANCE).mean(axis=1)
        beyond, within = results.conditions > 1e7, results.conditions < 1e7
        unusable = bool((solved[beyond] < 0.5).all() and (solved[within] >= 0.5).all())
        text = ", ".join(
            f"{condition:.0e}: {np.median(row):.0f} sweeps, {100 * share:.0f} % solved"
            for condition, row, share in zip(results.conditions, sweeps, solved, strict=True)
            if condition in (1e4, 1e7, 1e8)
        )
        name = f"Gauss–Seidel is unusable beyond condition 1e7 ({kind})"
        claims.append(Claim(name, unusable, text, kind not in FELT, "not usable beyond 1e7", FELT.get(kind, "")))
    return claims


def _width(counts: NDArray[np.float64]) -> float:
    """Distance of the 5th and 95th percentiles."""
    low, high = np.percentile(counts, [5, 95])
    return float(high - low)


def figures(results: Random) -> list[Plate]:
    """Histograms like figures 1 and 2 for both spectra, medians by size, Gauss–Seidel."""
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 11.0), layout="constrained")
    upper, middle, lower = figure.subfigures(3, 1, height_ratios=(4.2, 2.6, 3.2))
    _histograms(upper, results, PIVOTING, np.geomspace(0.4, 80.0, 81), "pivots / n")
    _histograms(middle, results, NEWTON, np.arange(2.5, 36.5), "iterations")
    left, right = lower.subplots(1, 2)
    _plot_sizes(left, results)
    _plot_sweeps(right, results)
    caption = "Random box LCPs: counts as in figures 1 and 2, medians by size, and sweeps of Gauss–Seidel."
    return [Plate("random", caption, figure)]


def _histograms(figure: Any, results: Random, solvers: Sequence[str], bins: NDArray[np.float64], unit: str) -> None:
    """A column a spectrum, a row a solver, one scale for all."""
    axes = figure.subplots(len(solvers), len(SPECTRA), sharex=True, sharey="row", squeeze=False)
    for row, solver in enumerate(solvers):
        for column, spectrum in enumerate(SPECTRA):
            ax, counts = axes[row, column], results.pivots(solver, spectrum)
            share = np.full(len(counts), 100.0 / len(counts))
            ax.hist(np.clip(counts, bins[0], bins[-1]), bins, weights=share, color="0.55", edgecolor="0.2", lw=0.5)
            ax.axvline(np.median(counts), color="k", lw=1.0, ls="--")
            ax.text(
                0.98, 0.9, f"{solver}\nmedian {np.median(counts):.3g}", transform=ax.transAxes, ha="right", va="top"
            )
            ax.spines[["top", "right"]].set_visible(False)
            if row == 0:
                ax.set_title(f"{spectrum} spectrum, {len(counts)} box LCPs, n = 100", fontsize=10)
            if column == 0:
                ax.set_ylabel("% of problems", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel(unit)
    if solvers == PIVOTING:
        axes[0, 0].set_xscale("log")
        axes[0, 0].set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
        axes[0, 0].minorticks_off()


def _plot_sizes(ax: Any, results: Random) -> None:
    """Medians of pivots / n against n, logarithmic spectrum dashed."""
    markers = dict(zip(PIVOTING, "osv^", strict=True))
    for spectrum, line in zip(SPECTRA, ("-", "--"), strict=True):
        for solver in PIVOTING:
            middle = np.median(results.by_size(solver, spectrum), axis=1)
            face = "0.35" if line == "-" else "white"
            ax.plot(results.sizes, middle, line, color="0.35", marker=markers[solver], mfc=face, lw=1.0)
            if line == "-" or solver not in ("Lemke", "Keller"):  # those two coincide nearly
                end = (results.sizes[-1], middle[-1])
                ax.annotate(solver, end, (7, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set(xscale="log", yscale="log", xlabel="n", ylabel="median pivots / n")
    ax.set_xlim(0.9 * results.sizes[0], 2.2 * results.sizes[-1])
    ax.set_xticks(results.sizes, [str(n) for n in results.sizes])
    ax.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    ax.minorticks_off()
    ax.set_title("solid: uniform spectrum, dashed: logarithmic", fontsize=10)


def _plot_sweeps(ax: Any, results: Random) -> None:
    """Median sweeps against the condition number, from the 5th to the 95th percentile."""
    for kind, sweeps, marker, line in zip(SWEPT, results.sweeps, "osv", ("-", "--", ":"), strict=True):
        low, middle, high = np.percentile(sweeps, [5, 50, 95], axis=1)
        spread = [middle - low, high - middle]
        ax.errorbar(results.conditions, middle, spread, ls=line, color="0.35", marker=marker, lw=1.0, capsize=2)
        at, place = {"o": (3, (-8, 6)), "s": (-1, (0, 24)), "v": (-1, (0, -22))}[marker]
        ax.annotate(
            kind, (results.conditions[at], middle[at]), place, textcoords="offset points", ha="right", fontsize=8
        )
    ax.axhline(MOST_SWEEPS, color="k", lw=0.8)
    ax.text(results.conditions[0], 1.1 * MOST_SWEEPS, "stopped here", fontsize=8, va="bottom")
    ax.set(xscale="log", yscale="log", xlabel="condition number", ylabel=f"sweeps to a residual of {TOLERANCE:.0e}")
    ax.set_ylim(5, 3 * MOST_SWEEPS)
    ax.set_title("Gauss–Seidel, n = 100: median, 5 to 95 %", fontsize=10)
