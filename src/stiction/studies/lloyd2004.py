"""Lemke's method on contact pyramids: standard, structural and reduced, by the number of contacts and bodies.

J. E. Lloyd, "Fast implementation of Lemke's algorithm for rigid body contact simulation", 2004, section 5.4, figures 5
to 8 and 10: a peg in a hole, ten situations of one body, ten stacks of blocks; pyramids of 8 facets, mu from 0.2 to
0.3, 20 random wrenches each, times averaged over them. The paper claims that the standard method grows with n³, the
structural with n² and the reduced nearly with n at a fixed number of bodies, and prints times: reduced is 87 times as
fast as standard on the peg with 32 contacts, 22 times with five blocks.

    tableau      Lemke as in textbooks, a dense tableau: a yardstick, not ours (`tableau_lemke`)
    standard     `Lemke` on the assembled LCP, of size 10 n
    structural   `StructuredLemke(reduced=False)`
    reduced      `StructuredLemke()`
    cells        `CellLemke()`, the default of this package, which the paper does not have

Times are those of the compiled kernels alone, on problems in normal form: neither the assembly of the LCP nor the
certificate is counted. Processor time, the least of some repeats, with the methods taking turns.

What departs. The printed ratios are about those to the tableau; our own standard method touches only what is basic (k
columns of 10 n entries a pivot, where the tableau has all 100 n²), which makes it two to three times faster, and the
ratio smaller. The paper's 400 ms for 320 variables, on a 1 GHz processor, is what a full update of the matrix at each
of some 300 pivots takes. And the reduced method grows more slowly than n at the sizes of the paper, because a pivot
has a part that does not depend on n; with hundreds of contacts it grows as claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction import optional
from stiction.problems.contact_classics import lloyd_contact_sets
from stiction.problems.contact_families import SINGLE_BODY, UP, face_points, peg, single_body, weights
from stiction.problems.laws import Coulomb
from stiction.problems.pyramid import pyramid_impulse, pyramid_lcp
from stiction.problems.rigid_bodies import Touch, block, posed
from stiction.solutions.contact import judged
from stiction.solutions.status import Status
from stiction.solvers.cell_lemke import cell_lemke
from stiction.solvers.lcp import lemke
from stiction.solvers.structured_lemke import structured_lemke
from stiction.studies.claims import Claim
from stiction.studies.environment import environment
from stiction.studies.results import Plate, Sheet, Stored
from stiction.studies.tableau_lemke import Tableau
from stiction.studies.timing import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

PYRAMID = Coulomb(facets=8)
METHODS = ("tableau", "standard", "structural", "reduced", "cells")
OURS = METHODS[1:]
TABLEAU_UP_TO, STANDARD_UP_TO, STRUCTURAL_UP_TO = 64, 128, 256  # contacts of the largest problems that each is given
TOLERANCE = 1e-8  # largest residual of the certificate that counts as solved
PEGS, MORE_PEGS, LONG_PEGS = (8, 12, 16, 20, 24, 28, 32), (48, 64, 96, 128), (256, 512, 1024)
# Blocks, and how many of them are turned by 45 degrees against the one below: 4 or 8 contacts between two.
STACKS = ((1, 0), (2, 0), (2, 1), (3, 0), (4, 0), (3, 2), (5, 0), (5, 1), (4, 3), (5, 3))
MORE_STACKS = ((10, 0), (15, 0), (20, 0))
CLOSE = 0.5  # an exponent is close to what rounds to it
PER_VELOCITY = 4.0  # pivots of the reduced method, on average, per velocity, up to 128 contacts: "O(m)"
HARDLY = 0.25  # exponent of n with which they may grow beyond


@dataclass(frozen=True, eq=False)
class Results(Stored):
    """Cases in the order in which they were run; NaN where a method was not asked.

    figure: (case,) "peg", "single", "published" or "stack"; case: (case,) its name; contacts, bodies: (case,)
    seconds, pivots, residual: (case, method of METHODS, wrench)
    """

    figure: NDArray[np.str_]
    case: NDArray[np.str_]
    contacts: NDArray[np.int64]
    bodies: NDArray[np.int64]
    seconds: NDArray[np.float64]
    pivots: NDArray[np.float64]
    residual: NDArray[np.float64]

    def mean(self, what: str, method: str, figure: str, least: int = 0, most: int = 10**9) -> Any:
        """(contacts, bodies, average over wrenches) of the cases of a figure with so many contacts, asked of a method.

        what: "seconds" or "pivots"
        """
        values = getattr(self, what)[:, METHODS.index(method)]
        asked = (self.figure == figure) & (self.contacts >= least) & (self.contacts <= most)
        asked &= ~np.isnan(values).all(axis=1)
        return self.contacts[asked], self.bodies[asked], np.nanmean(values[asked], axis=1)

    def ratio(self, case: str, over: str, under: str = "reduced") -> float:
        """Average time of a method over that of another, in one case."""
        k = int(np.flatnonzero(self.case == case)[0])
        seconds = np.nanmean(self.seconds[k], axis=1)
        return float(seconds[METHODS.index(over)] / seconds[METHODS.index(under)])


class Case(NamedTuple):
    figure: str
    name: str
    make: Callable[[int], ContactProblem]


def run(quick: bool = False, seed: int = 0) -> Results:
    """All experiments: two or three minutes, or some seconds (fewer wrenches and sizes) if quick."""
    cases = problem_set(quick)
    wrenches, repeats = (5, 3) if quick else (20, 5)
    shape = (len(cases), len(METHODS), wrenches)
    seconds, pivots, residual = np.full((3, *shape), np.nan)
    contacts, bodies = np.zeros((2, len(cases)), np.int64)
    compile_all()
    for k, case in enumerate(cases):
        for w in range(1 if case.figure == "published" else wrenches):
            problem = case.make(seed + w).with_law(PYRAMID)
            contacts[k], bodies[k] = problem.n, problem.m // 6
            methods = [s for s, method in enumerate(METHODS) if problem.n <= largest(method, quick)]
            attempts = {s: attempted(METHODS[s], problem) for s in methods}
            for s, found in attempts.items():
                pivots[k, s, w], residual[k, s, w] = found.pivots, certified(problem, found.impulse)
            seconds[k, methods, w] = side_by_side([attempts[s].again for s in methods], repeats)
    names = [case.name for case in cases]
    return Results(
        seed, environment(), np.array([case.figure for case in cases]), np.array(names),
        contacts, bodies, seconds, pivots, residual,
    )  # fmt: skip


def problem_set(quick: bool) -> list[Case]:
    pegs = (8, 16, 32, 64, 128, 256, 512) if quick else PEGS + MORE_PEGS + LONG_PEGS
    blocks = (*STACKS, (10, 0)) if quick else STACKS + MORE_STACKS
    return [
        *(Case("peg", f"peg {n}", partial(peg, n)) for n in pegs),
        *(Case("single", case, partial(single_body, case)) for case in SINGLE_BODY),
        *(Case("published", name, partial(given, problem)) for name, problem in lloyd_contact_sets().items()),
        *(Case("stack", f"{b} block{'s' * (b > 1)}, {t} turned", partial(stack_of, b, t)) for b, t in blocks),
    ]


def given(problem: ContactProblem, seed: int) -> ContactProblem:
    """A problem that comes with its wrench."""
    return problem


def stack_of(blocks: int, turned: int, seed: int) -> ContactProblem:
    """Cubes, the first `turned` ones above the lowest by 45 degrees against what they stand on [Lloyd2004, fig. 9]."""
    rng = np.random.default_rng(seed)
    bodies = [block((1.0, 1.0, 1.0), (0.0, 0.0, b + 0.5)) for b in range(blocks)]
    per = [8 if 1 <= b <= turned else 4 for b in range(blocks)]
    touches = [Touch((x, y, float(b)), UP, b - 1, b) for b in range(blocks) for x, y in face_points(per[b])]
    wrench = 2.0 * rng.normal(size=6)
    return posed(bodies, touches, weights(bodies, wrench), rng.uniform(0.2, 0.3, len(touches)))


def largest(method: str, quick: bool) -> float:
    """The most contacts of a problem that a method is given."""
    limits = {"tableau": TABLEAU_UP_TO, "standard": STANDARD_UP_TO, "structural": STRUCTURAL_UP_TO}
    return limits.get(method, np.inf) / (2.0 if quick else 1.0)


class Attempt(NamedTuple):
    """Pivots, impulses, and a function that does the compiled part of it again."""

    pivots: int
    impulse: NDArray[np.float64]
    again: Callable[[], Any]


def attempted(method: str, problem: ContactProblem) -> Attempt:
    if method in ("tableau", "standard"):
        lcp = pyramid_lcp(problem)
        if method == "tableau":
            tableau = Tableau(lcp)
            z, pivots = tableau.solve()
            return Attempt(pivots, pyramid_impulse(problem, z), tableau.solve)
        found, again = recorded(lemke, "lemke", lemke.Lemke(), lcp)
        return Attempt(found.iterations, pyramid_impulse(problem, found.z), again)
    if method == "cells":
        found, again = recorded(cell_lemke, "cell_lemke", cell_lemke.CellLemke(), problem)
    else:
        solver = structured_lemke.StructuredLemke(reduced=method == "reduced")
        found, again = recorded(structured_lemke, "structured_lemke", solver, problem)
    return Attempt(found.iterations, found.impulse, again)


def recorded(module: Any, name: str, solver: Any, problem: Any) -> tuple[Any, Callable[[], None]]:
    """What a solver proposes, and a function that repeats the calls of its kernel with the same arguments."""
    kernel, calls = getattr(module, name), []

    def note(*arguments: Any) -> Any:
        calls.append(arguments)
        return kernel(*arguments)

    def again() -> None:
        for arguments in calls:
            kernel(*arguments)

    setattr(module, name, note)
    try:
        return solver.propose(problem, None), again
    finally:
        setattr(module, name, kernel)


def compile_all() -> None:
    """Kernels are compiled, or loaded, before anything is timed."""
    for make in (partial(peg, 8), partial(stack_of, 2, 1)):
        for method in METHODS:
            attempted(method, make(0).with_law(PYRAMID)).again()


def certified(problem: ContactProblem, impulse: NDArray[np.float64]) -> float:
    return judged(problem, Status.SOLVED, impulse, 0, None, TOLERANCE).certificate.residual


def exponent(sizes: NDArray[np.int64], seconds: NDArray[np.float64]) -> float:
    """Of the power with which time grows, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def check(results: Results) -> list[Claim]:
    """The claims of the paper, and what was found."""
    about = (_growth, _ratios, _pivots, _singles, _stacks)
    return [_solved(results), *(claim for claims in about for claim in claims(results))]


def _solved(results: Results) -> Claim:
    ours = results.residual[:, 1:]
    solved, asked = int((ours <= TOLERANCE).sum()), int((~np.isnan(ours)).sum())
    plain = results.residual[:, 0]
    tableau = f"{(plain <= TOLERANCE).sum()} of {(~np.isnan(plain)).sum()}"
    return Claim(
        "standard, structural, reduced and cells solve every problem",
        solved == asked,
        f"{solved} of {asked} certified to {TOLERANCE:.0e}, worst residual {np.nanmax(ours):.0e}; tableau {tableau}",
        printed="not told",
    )


def _growth(results: Results) -> list[Claim]:
    """Of the time on the peg with its contacts. Printed times give exponents from 8 to 32 contacts."""
    printed = {"standard": (6.18, 400.75), "structural": (2.55, 26.63), "reduced": (1.08, 4.58)}
    claims = []
    for method, power, least in (("standard", 3, 16), ("structural", 2, 16), ("reduced", 1, 128)):
        n, _, seconds = results.mean("seconds", method, "peg", least)
        grows = exponent(n, seconds)
        few, _, at_first = results.mean("seconds", method, "peg", 8, 32)
        first, last = printed[method]
        claims.append(
            Claim(
                f"peg: {method} grows with {('n', 'n²', 'n³')[power - 1]}, for {n[0]} to {n[-1]} contacts",
                abs(grows - power) < CLOSE,
                f"exponent {grows:.2f}; {exponent(few, at_first):.2f} from 8 to 32 contacts",
                printed=f"{np.log(last / first) / np.log(4.0):.2f} from 8 to 32 contacts",
                timed=True,
            )
        )
        if method == "reduced":
            few_grows = exponent(few, at_first)
            name = "peg: reduced grows no faster than n for 8 to 32 contacts"
            claims.append(Claim(name, few_grows < 1.0 + 0.25, f"exponent {few_grows:.2f}", printed="1.04", timed=True))
    return claims


def _ratios(results: Results) -> list[Claim]:
    """Against our standard method; and on the peg against a tableau, half as many times as printed at least."""
    claims = []
    for case, where, wanted in (
        ("peg 32", "peg, 32 contacts", 400.75 / 4.58),
        ("5 blocks, 3 turned", "five blocks, 32 contacts", 2136.0 / 96.0),
    ):
        ratio, plain = results.ratio(case, "standard"), results.ratio(case, "tableau")
        name = f"{where}: reduced is faster than standard as many times as printed"
        found, printed = f"{ratio:.1f} times ({plain:.1f} against the tableau)", f"{wanted:.1f} times"
        claims.append(
            Claim(name, ratio >= wanted, found, documented=False, printed=printed, why=WHY_RATIO[case], timed=True)
        )
        if case == "peg 32":
            name = f"{where}: reduced is faster than a dense tableau about as many times as printed"
            claims.append(Claim(name, plain >= 0.5 * wanted, f"{plain:.1f} times", printed=printed, timed=True))
    return claims


WHY_RATIO = {
    "peg 32": "Our standard method keeps the inverse of what is basic only and looks at the rest once a pivot, so it "
    "is itself two to three times faster than one that changes a whole matrix of 10 n by 10 n, which the printed "
    "400 ms suggest; against such a one the ratio is about as printed.",
    "5 blocks, 3 turned": "The same; and with five blocks the reduced system, of up to 30 velocities, is hardly "
    "smaller than the standard method's basis, while vector units are kinder to the long rows of the one than to the "
    "short rows of the other.",
}


def _pivots(results: Results) -> list[Claim]:
    reduced = results.pivots[:, METHODS.index("reduced")] / (6.0 * results.bodies[:, None])
    asked = reduced[results.contacts <= 128]
    average = float(np.nanmean(asked, axis=1).max())
    n, _, few = results.mean("pivots", "reduced", "peg")
    m, _, many = results.mean("pivots", "standard", "peg")
    grow, standard = exponent(n, few), exponent(m, many)
    return [
        Claim(
            "pivots of reduced are bounded by O(m), to 128 contacts",
            average <= PER_VELOCITY,
            f"at most {average:.1f} per velocity on average, {np.nanmax(asked):.1f} in the worst problem",
            printed="O(m) in the best case",
        ),
        Claim(
            f"peg: pivots of reduced hardly grow with n, to {n[-1]} contacts",
            grow <= HARDLY,
            f"n to the power of {grow:.2f}, {few[0]:.0f} to {few[-1]:.0f}; standard {standard:.2f}, {many[0]:.0f} to "
            f"{many[-1]:.0f} with {m[-1]} contacts",
            printed="O(m) in the best case",
        ),
    ]


def _singles(results: Results) -> list[Claim]:
    """Figure 7: from 8 to 16 contacts, averaged over the cases that have as many."""
    claims = []
    for method, first, last in (("standard", 5.2, 50.9), ("structural", 2.1, 12.5), ("reduced", 0.57, 1.34)):
        grew = [results.mean("seconds", method, "single", n, n)[2].mean() for n in (8, 16)]
        factor = grew[1] / grew[0]
        claims.append(
            Claim(
                f"one body: from 8 to 16 contacts {method} grows no more than printed",
                bool(factor <= 1.25 * last / first),
                f"{factor:.1f} times, {1e6 * grew[0]:.0f} to {1e6 * grew[1]:.0f} µs",
                printed=f"{last / first:.1f} times",
                timed=True,
            )
        )
    return claims


def _stacks(results: Results) -> list[Claim]:
    """Figure 10: from one block on 4 contacts to five on 32, and beyond."""
    claims = []
    for method, first, last in (("standard", 2.1, 2136.0), ("structural", 1.45, 224.0), ("reduced", 1.32, 96.0)):
        low, high = (
            float(np.nanmean(results.seconds[results.case == case, METHODS.index(method)]))
            for case in ("1 block, 0 turned", "5 blocks, 3 turned")
        )
        claims.append(
            Claim(
                f"stacks: from one block on 4 contacts to five on 32 {method} grows no more than printed",
                high / low <= last / first,
                f"{high / low:.0f} times, {1e6 * low:.0f} to {1e6 * high:.0f} µs",
                printed=f"{last / first:.0f} times",
                timed=True,
            )
        )
    n, blocks, seconds = results.mean("seconds", "reduced", "stack")
    tall = (n == 4 * blocks) & (blocks >= 4)
    grows = exponent(blocks[tall], seconds[tall])
    name = f"stacks: reduced grows with the number of blocks m at most as n m + m³, to {blocks.max()} blocks"
    return [
        *claims,
        Claim(name, grows < 3.0 + 0.25, f"m to the power of {grows:.2f} (n = 4 m)", printed="O(n m + m³)", timed=True),
    ]


def tables(results: Results) -> list[Sheet]:
    """Average times of each case, and what the paper prints."""
    captions = {
        "peg": "Peg in a hole (figures 5 and 6): average times in µs. Printed, in ms: standard 6.18 and 400.75, "
        "structural 2.55 and 26.63, reduced 1.08 and 4.58, with 8 and 32 contacts.",
        "single": "Ten single bodies (figures 7 and 8): average times in µs. Printed, in ms, with 8 and 16 contacts: "
        "standard 5.2 and 50.9, structural 2.1 and 12.5, reduced 0.57 and 1.34.",
        "published": "The sixteen contact sets of Lloyd's test file: times in µs.",
        "stack": "Stacks of blocks (figure 10): average times in µs. Printed, in ms, for the smallest and the largest "
        "of ten: standard 2.1 and 2136, structural 1.45 and 224, reduced 1.32 and 96.",
    }
    head = ("case", "contacts", *METHODS, "standard / reduced", "pivots, standard", "pivots, reduced")
    sheets = []
    for figure, caption in captions.items():
        rows = []
        for k in np.flatnonzero(results.figure == figure):
            wrenches = ~np.isnan(results.seconds[k]).all(axis=0)
            seconds, pivots = (a[k][:, wrenches].mean(axis=1) for a in (results.seconds, results.pivots))
            times = [_number(1e6 * s) for s in seconds]
            ratio = _number(seconds[METHODS.index("standard")] / seconds[METHODS.index("reduced")])
            counts = [_number(pivots[METHODS.index(method)]) for method in ("standard", "reduced")]
            rows.append((str(results.case[k]), str(results.contacts[k]), *times, ratio, *counts))
        sheets.append(Sheet(caption, head, rows))
    return sheets


def _number(value: float) -> str:
    """Three digits; a dash for what was not measured."""
    return "–" if np.isnan(value) else f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


STYLES: dict[str, dict[str, Any]] = {
    "tableau": {"ls": ":", "marker": "x", "mfc": "none"},
    "standard": {"ls": "-", "marker": "s", "mfc": "0.35"},
    "structural": {"ls": "--", "marker": "^", "mfc": "white"},
    "reduced": {"ls": "-", "marker": "o", "mfc": "0.35"},
    "cells": {"ls": "-.", "marker": "D", "mfc": "white"},
}


def figures(results: Results) -> list[Plate]:
    """Figures 5 and 6 in one, on logarithmic scales; 7 and 8; 10; and the pivots behind them."""
    return [_plot_pegs(results), _plot_singles(results), _plot_stacks(results)]


def _plot_pegs(results: Results) -> Plate:
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, what, scale in ((left, "seconds", 1e6), (right, "pivots", 1.0)):
        for method in METHODS:
            n, _, values = results.mean(what, method, "peg")
            _line(ax, method, n, scale * values)
        ax.set(xscale="log", yscale="log", xlabel="contacts n")
        marks = [n for n in (8, 32, 128, 512) if n <= results.contacts.max()]
        ax.set_xticks(marks, [str(n) for n in marks])
        ax.minorticks_off()
        ax.axvspan(8, 32, color="0.93", zorder=0)
    left.set_ylabel("average time, µs")
    right.set_ylabel("average pivots")
    left.legend(fontsize=8, frameon=False, handlelength=3.5, loc="upper right")
    left.set_title("peg in a hole (shaded: the paper's range)", fontsize=10)
    right.set_title("the pivots behind it", fontsize=10)
    caption = "Figures 5 and 6: average times for the peg in a hole, and pivots, by the number of contacts."
    return Plate("peg", caption, figure)


def _line(ax: Any, method: str, x: Any, y: Any, **changes: Any) -> None:
    ax.plot(x, y, color="0.35", lw=1.1, ms=4.5, mec="0.2", label=method, **STYLES[method] | changes)


def _plot_singles(results: Results) -> Plate:
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for method in METHODS:
        for source, fill in (("single", True), ("published", False)):
            n, _, seconds = results.mean("seconds", method, source)
            style = STYLES[method] | {"ls": "", "mfc": STYLES[method]["mfc"] if fill else "none"}
            label = method if fill else None
            left.plot(n, 1e6 * seconds, color="0.35", mec="0.2", ms=5.0 if fill else 2.5, label=label, **style)
    left.set(yscale="log", xlabel="contacts n", ylabel="average time, µs")
    left.legend(fontsize=8, frameon=False)
    left.set_title("ten single bodies; small marks: Lloyd's own sets", fontsize=10)
    reduced = results.seconds[:, METHODS.index("reduced")]
    for k in np.flatnonzero(results.figure == "single"):
        seconds = reduced[k]
        right.plot(np.full(seconds.size, results.contacts[k]), 1e6 * seconds, "o", color="0.35", ms=3.0, mfc="none")
    right.set(xlabel="contacts n", ylabel="time, µs", ylim=(0.0, None))
    right.set_title("reduced, every problem", fontsize=10)
    caption = "Figures 7 and 8: average times of ten single-body cases, and the reduced method close up."
    return Plate("single", caption, figure)


def _plot_stacks(results: Results) -> Plate:
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for method in METHODS:
        n, blocks, seconds = results.mean("seconds", method, "stack")
        few = blocks <= 5
        _line(left, method, n[few], 1e6 * seconds[few], ls="")
        tall = n == 4 * blocks
        _line(right, method, blocks[tall], 1e6 * seconds[tall])
    left.set(yscale="log", xlabel="contacts n", ylabel="average time, µs")
    right.legend(fontsize=8, frameon=False, handlelength=3.5)
    left.set_title("ten stacks of 1 to 5 blocks", fontsize=10)
    right.set(xscale="log", yscale="log", xlabel="blocks, four contacts each", ylabel="average time, µs")
    marks = [b for b in (1, 2, 5, 10, 20) if b <= results.bodies.max()]
    right.set_xticks(marks, [str(b) for b in marks])
    right.minorticks_off()
    right.set_title("higher stacks", fontsize=10)
    return Plate("stacks", "Figure 10: average times of ten stacks of blocks, and of higher ones.", figure)
