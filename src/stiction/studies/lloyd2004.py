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

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

import stiction as st
from stiction.problems.pyramid import pyramid_impulse, pyramid_lcp
from stiction.problems.zoo.contact_classics import lloyd_contact_sets
from stiction.problems.zoo.contact_families import SINGLE_BODY, UP, face_points, peg, single_body, weights
from stiction.problems.zoo.rigid_bodies import Touch, block, posed
from stiction.solvers.contact.cell_lemke import cell_lemke
from stiction.solvers.contact.structured_lemke import structured_lemke
from stiction.solvers.lcp import lemke
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import plate, ticks
from stiction.studies.methods import certified
from stiction.studies.results import Array, Findings, Plate, Sheet
from stiction.studies.tableau_lemke import Tableau
from stiction.studies.timing import exponent, side_by_side

PYRAMID = st.Coulomb(facets=8)
METHODS = ("tableau", "standard", "structural", "reduced", "cells")
LIMITS = {"tableau": 64, "standard": 128, "structural": 256}  # contacts of the largest problems that each is given
TOLERANCE = 1e-8  # largest residual of the certificate that counts as solved
PEGS, MORE_PEGS, LONG_PEGS = (8, 12, 16, 20, 24, 28, 32), (48, 64, 96, 128), (256, 512, 1024)
# Blocks, and how many of them are turned by 45 degrees against the one below: 4 or 8 contacts between two.
STACKS = ((1, 0), (2, 0), (2, 1), (3, 0), (4, 0), (3, 2), (5, 0), (5, 1), (4, 3), (5, 3))
MORE_STACKS = ((10, 0), (15, 0), (20, 0))
CLOSE = 0.5  # an exponent is close to what rounds to it
PER_VELOCITY = 4.0  # pivots of the reduced method, on average, per velocity, up to 128 contacts: "O(m)"
HARDLY = 0.25  # exponent of n with which they may grow beyond


class Results(Findings):
    """Cases in the order in which they were run; NaN where a method was not asked."""

    declared: ClassVar = {
        "figure": "(case,) peg, single, published or stack",
        "case": "(case,) its name",
        "contacts, bodies": "(case,) how many",
        "seconds": "(case, method of METHODS, wrench) s",
        "pivots": "(case, method, wrench)",
        "residual": "(case, method, wrench) of the certificate",
    }

    def mean(self, what: str, method: str, figure: str, least: int = 0, most: int = 10**9) -> Any:
        """(contacts, bodies, average over wrenches) of the cases of a figure with so many contacts, asked of a method.

        what: "seconds" or "pivots"
        """
        values = self.arrays[what][:, METHODS.index(method)]
        asked = (self.figure == figure) & (self.contacts >= least) & (self.contacts <= most)
        asked &= ~np.isnan(values).all(axis=1)
        return self.contacts[asked], self.bodies[asked], np.nanmean(values[asked], axis=1)

    def time(self, case: str, method: str) -> float:
        """Average time of a method in one case, in s."""
        return float(np.nanmean(self.seconds[self.case == case, METHODS.index(method)]))

    def ratio(self, case: str, over: str, under: str = "reduced") -> float:
        """Average time of a method over that of another, in one case."""
        return self.time(case, over) / self.time(case, under)


class Case(NamedTuple):
    figure: str
    name: str
    make: Callable[[int], st.ContactProblem]


def run(quick: bool = False, seed: int = 0) -> Results:
    """All experiments: two or three minutes, or some seconds (fewer wrenches and sizes) if quick."""
    cases = problem_set(quick)
    wrenches, repeats = (5, 3) if quick else (20, 5)
    seconds, pivots, residual = np.full((3, len(cases), len(METHODS), wrenches), np.nan)
    contacts, bodies = np.zeros((2, len(cases)), np.int64)
    for make, method in product((partial(peg, 8), partial(stack_of, 2, 1)), METHODS):  # compiles what will be timed
        attempted(method, make(0).with_law(PYRAMID)).again()
    for k, case in enumerate(cases):
        for w in range(1 if case.figure == "published" else wrenches):
            problem = case.make(seed + w).with_law(PYRAMID)
            contacts[k], bodies[k] = problem.n, problem.m // 6
            largest = [LIMITS.get(method, np.inf) / (2.0 if quick else 1.0) for method in METHODS]
            methods = np.flatnonzero(problem.n <= np.array(largest))
            attempts = {s: attempted(METHODS[s], problem) for s in methods}
            for s, found in attempts.items():
                pivots[k, s, w], residual[k, s, w] = found.pivots, certified(problem, found.impulse)
            seconds[k, methods, w] = side_by_side([attempts[s].again for s in methods], repeats)
    figure, names, _ = zip(*cases, strict=True)
    return Results(
        seed, figure=figure, case=names, contacts=contacts, bodies=bodies, seconds=seconds, pivots=pivots,
        residual=residual,
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


def given(problem: st.ContactProblem, seed: int) -> st.ContactProblem:
    """A problem that comes with its wrench."""
    return problem


def stack_of(blocks: int, turned: int, seed: int) -> st.ContactProblem:
    """Cubes, the first `turned` ones above the lowest by 45 degrees against what they stand on [Lloyd2004, fig. 9]."""
    rng = np.random.default_rng(seed)
    bodies = [block((1.0, 1.0, 1.0), (0.0, 0.0, b + 0.5)) for b in range(blocks)]
    per = [8 if 1 <= b <= turned else 4 for b in range(blocks)]
    touches = [Touch((x, y, float(b)), UP, b - 1, b) for b in range(blocks) for x, y in face_points(per[b])]
    wrench = 2.0 * rng.normal(size=6)
    return posed(bodies, touches, weights(bodies, wrench), rng.uniform(0.2, 0.3, len(touches)))


class Attempt(NamedTuple):
    """Pivots, impulses, and a function that does the compiled part of it again."""

    pivots: int
    impulse: Array
    again: Callable[[], Any]


def attempted(method: str, problem: st.ContactProblem) -> Attempt:
    if method == "tableau":
        tableau = Tableau(pyramid_lcp(problem))
        z, pivots = tableau.solve()
        return Attempt(pivots, pyramid_impulse(problem, z), tableau.solve)
    if method == "standard":
        found, again = recorded(lemke, st.Lemke(), pyramid_lcp(problem))
        return Attempt(found.iterations, pyramid_impulse(problem, found.z), again)
    if method == "cells":
        found, again = recorded(cell_lemke, st.CellLemke(), problem)
    else:
        found, again = recorded(structured_lemke, st.StructuredLemke(reduced=method == "reduced"), problem)
    return Attempt(found.iterations, found.impulse, again)


def recorded(module: Any, solver: Any, problem: Any) -> tuple[Any, Callable[[], None]]:
    """A solver's proposal, and a function that repeats the calls of its kernel, named as its module is."""
    name = module.__name__.rpartition(".")[2]
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


def check(results: Results) -> list[Claim]:
    """The claims of the paper, and what was found."""
    about = (_solved, _growth, _ratios, _pivots, _singles, _stacks)
    return [claim for claims in about for claim in claims(results)]


def _solved(results: Results) -> Iterator[Claim]:
    plain, ours = results.residual[:, 0], results.residual[:, 1:]
    (solved, asked), tableau = (((r <= TOLERANCE).sum(), (~np.isnan(r)).sum()) for r in (ours, plain))
    claim = Statement("standard, structural, reduced and cells solve every problem", "not told")
    numbers = f"{solved} of {asked} certified to {TOLERANCE:.0e}, worst residual {np.nanmax(ours):.0e}"
    yield claim.found(solved == asked, f"{numbers}; tableau {tableau[0]} of {tableau[1]}")


def _growth(results: Results) -> Iterator[Claim]:
    """Exponents of the time on the peg with its contacts. Printed times give exponents from 8 to 32 contacts."""
    printed = {"standard": (6.18, 400.75), "structural": (2.55, 26.63), "reduced": (1.08, 4.58)}
    for method, power, least in (("standard", 3, 16), ("structural", 2, 16), ("reduced", 1, 128)):
        n, _, seconds = results.mean("seconds", method, "peg", least)
        few, _, at_first = results.mean("seconds", method, "peg", 8, 32)
        grows, first_grows = exponent(n, seconds), exponent(few, at_first)
        name = f"peg: {method} grows with {('n', 'n²', 'n³')[power - 1]}, for {n[0]} to {n[-1]} contacts"
        theirs = np.log(printed[method][1] / printed[method][0]) / np.log(4.0)
        claim = Statement(name, f"{theirs:.2f} from 8 to 32 contacts", timed=True)
        yield claim.found(abs(grows - power) < CLOSE, f"exponent {grows:.2f}; {first_grows:.2f} from 8 to 32 contacts")
        if method == "reduced":
            claim = Statement("peg: reduced grows no faster than n for 8 to 32 contacts", "1.04", timed=True)
            yield claim.found(first_grows < 1.0 + 0.25, f"exponent {first_grows:.2f}")


def _ratios(results: Results) -> Iterator[Claim]:
    """Against our standard method; and on the peg against a tableau, half as many times as printed at least."""
    for case, where, wanted in (
        ("peg 32", "peg, 32 contacts", 400.75 / 4.58),
        ("5 blocks, 3 turned", "five blocks, 32 contacts", 2136.0 / 96.0),
    ):
        ratio, plain = results.ratio(case, "standard"), results.ratio(case, "tableau")
        printed = f"{wanted:.1f} times"
        name = f"{where}: reduced is faster than standard as many times as printed"
        claim = Statement(name, printed, WHY_RATIO[case], timed=True)
        yield claim.found(ratio >= wanted, f"{ratio:.1f} times ({plain:.1f} against the tableau)")
        if case == "peg 32":
            name = f"{where}: reduced is faster than a dense tableau about as many times as printed"
            yield Statement(name, printed, timed=True).found(plain >= 0.5 * wanted, f"{plain:.1f} times")


WHY_RATIO = {
    "peg 32": "Our standard method keeps the inverse of what is basic only and looks at the rest once a pivot, so it "
    "is itself two to three times faster than one that changes a whole matrix of 10 n by 10 n, which the printed "
    "400 ms suggest; against such a one the ratio is about as printed.",
    "5 blocks, 3 turned": "The same; and with five blocks the reduced system, of up to 30 velocities, is hardly "
    "smaller than the standard method's basis, while vector units are kinder to the long rows of the one than to the "
    "short rows of the other.",
}


def _pivots(results: Results) -> Iterator[Claim]:
    reduced = results.pivots[:, METHODS.index("reduced")] / (6.0 * results.bodies[:, None])
    asked = reduced[results.contacts <= 128]
    average = np.nanmean(asked, axis=1).max()
    claim = Statement("pivots of reduced are bounded by O(m), to 128 contacts", "O(m) in the best case")
    numbers = f"at most {average:.1f} per velocity on average, {np.nanmax(asked):.1f} in the worst problem"
    yield claim.found(average <= PER_VELOCITY, numbers)
    n, _, few = results.mean("pivots", "reduced", "peg")
    m, _, many = results.mean("pivots", "standard", "peg")
    grow, standard = exponent(n, few), exponent(m, many)
    name = f"peg: pivots of reduced hardly grow with n, to {n[-1]} contacts"
    numbers = f"n to the power of {grow:.2f}, {few[0]:.0f} to {few[-1]:.0f}; standard {standard:.2f}, "
    numbers += f"{many[0]:.0f} to {many[-1]:.0f} with {m[-1]} contacts"
    yield Statement(name, "O(m) in the best case").found(grow <= HARDLY, numbers)


def _singles(results: Results) -> Iterator[Claim]:
    """Figure 7: from 8 to 16 contacts, averaged over the cases that have as many."""
    for method, first, last in (("standard", 5.2, 50.9), ("structural", 2.1, 12.5), ("reduced", 0.57, 1.34)):
        low, high = (results.mean("seconds", method, "single", n, n)[2].mean() for n in (8, 16))
        name = f"one body: from 8 to 16 contacts {method} grows no more than printed"
        claim = Statement(name, f"{last / first:.1f} times", timed=True)
        numbers = f"{high / low:.1f} times, {1e6 * low:.0f} to {1e6 * high:.0f} µs"
        yield claim.found(high / low <= 1.25 * last / first, numbers)


def _stacks(results: Results) -> Iterator[Claim]:
    """Figure 10: from one block on 4 contacts to five on 32, and beyond."""
    for method, first, last in (("standard", 2.1, 2136.0), ("structural", 1.45, 224.0), ("reduced", 1.32, 96.0)):
        low, high = (results.time(case, method) for case in ("1 block, 0 turned", "5 blocks, 3 turned"))
        name = f"stacks: from one block on 4 contacts to five on 32 {method} grows no more than printed"
        claim = Statement(name, f"{last / first:.0f} times", timed=True)
        numbers = f"{high / low:.0f} times, {1e6 * low:.0f} to {1e6 * high:.0f} µs"
        yield claim.found(high / low <= last / first, numbers)
    n, blocks, seconds = results.mean("seconds", "reduced", "stack")
    tall = (n == 4 * blocks) & (blocks >= 4)
    grows = exponent(blocks[tall], seconds[tall])
    name = f"stacks: reduced grows with the number of blocks m at most as n m + m³, to {blocks.max()} blocks"
    claim = Statement(name, "O(n m + m³)", timed=True)
    yield claim.found(grows < 3.0 + 0.25, f"m to the power of {grows:.2f} (n = 4 m)")


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
    return [Sheet(captions[each], head, [*_rows(results, each)]) for each in captions]


def _rows(results: Results, figure: str) -> Iterator[list[str]]:
    standard, reduced = METHODS.index("standard"), METHODS.index("reduced")
    for k in np.flatnonzero(results.figure == figure):
        wrenches = ~np.isnan(results.seconds[k]).all(axis=0)
        seconds, pivots = (a[k][:, wrenches].mean(axis=1) for a in (results.seconds, results.pivots))
        numbers = (*1e6 * seconds, seconds[standard] / seconds[reduced], pivots[standard], pivots[reduced])
        yield [str(results.case[k]), str(results.contacts[k]), *map(_number, numbers)]


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


@plate("peg", 9.0, 4.4)
def _plot_pegs(figure: Any, results: Results) -> str:
    left, right = figure.subplots(1, 2)
    for ax, what, scale in ((left, "seconds", 1e6), (right, "pivots", 1.0)):
        for method in METHODS:
            n, _, values = results.mean(what, method, "peg")
            _line(ax, method, n, scale * values)
        ax.set(xscale="log", yscale="log", xlabel="contacts n")
        ticks(ax, [n for n in (8, 32, 128, 512) if n <= results.contacts.max()])
        ax.axvspan(8, 32, color="0.93", zorder=0)
    left.legend(handlelength=3.5, loc="upper right")
    left.set(ylabel="average time, µs", title="peg in a hole (shaded: the paper's range)")
    right.set(ylabel="average pivots", title="the pivots behind it")
    return "Figures 5 and 6: average times for the peg in a hole, and pivots, by the number of contacts."


def _line(ax: Any, method: str, x: Any, y: Any, **changes: Any) -> None:
    ax.plot(x, y, color="0.35", lw=1.1, mec="0.2", **{"ms": 4.5, "label": method} | STYLES[method] | changes)


@plate("single", 9.0, 4.4)
def _plot_singles(figure: Any, results: Results) -> str:
    left, right = figure.subplots(1, 2)
    for method in METHODS:
        n, _, seconds = results.mean("seconds", method, "single")
        _line(left, method, n, 1e6 * seconds, ls="", ms=5.0)
        n, _, seconds = results.mean("seconds", method, "published")
        _line(left, method, n, 1e6 * seconds, ls="", ms=2.5, mfc="none", label=None)
    title = "ten single bodies; small marks: Lloyd's own sets"
    left.set(yscale="log", xlabel="contacts n", ylabel="average time, µs", title=title)
    left.legend()
    single = results.figure == "single"
    reduced = 1e6 * results.seconds[single, METHODS.index("reduced")]
    right.plot(results.contacts[single], reduced, "o", color="0.35", ms=3.0, mfc="none")
    right.set(xlabel="contacts n", ylabel="time, µs", ylim=(0.0, None), title="reduced, every problem")
    return "Figures 7 and 8: average times of ten single-body cases, and the reduced method close up."


@plate("stacks", 9.0, 4.4)
def _plot_stacks(figure: Any, results: Results) -> str:
    left, right = figure.subplots(1, 2)
    for method in METHODS:
        n, blocks, seconds = results.mean("seconds", method, "stack")
        few, tall = blocks <= 5, n == 4 * blocks
        _line(left, method, n[few], 1e6 * seconds[few], ls="")
        _line(right, method, blocks[tall], 1e6 * seconds[tall])
    left.set(yscale="log", xlabel="contacts n", ylabel="average time, µs", title="ten stacks of 1 to 5 blocks")
    right.set(xscale="log", yscale="log", xlabel="blocks, four contacts each", ylabel="average time, µs")
    right.set_title("higher stacks")
    right.legend(handlelength=3.5)
    ticks(right, [b for b in (1, 2, 5, 10, 20) if b <= results.bodies.max()])
    return "Figure 10: average times of ten stacks of blocks, and of higher ones."
