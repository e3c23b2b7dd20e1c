"""Passes of the splitting: a block on a slope, the heap of logs, and passes made faster [Lacoursiere2003, fig. 7, 8].

A joint pass solves for normal and friction impulses at once, friction bounded by the normal impulses of the pass
before. The first pass takes friction as zero ("frictionless") or as unbounded ("sticky"). On the heap, whose impulses
are not unique, a pass is drawn to the last one by 1e-3 of the diagonal, the paper's own perturbation; at a fixed point
this vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction import optional
from stiction.problems.box_friction import BoxForm, box_form
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import BoxFriction
from stiction.solvers.lcp.keller import Keller
from stiction.solvers.lcp.smoothing_newton import SmoothingNewton
from stiction.solvers.splitting.passes import Passes
from stiction.solvers.splitting.splitting import Splitting
from stiction.studies.claims import Claim
from stiction.studies.results import Plate, Sheet, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stiction.studies.lacoursiere2003_heap import Fall

FRICTION = 0.5
BLOCKS = {"flat block": 0.5, "tall block": 1.9}  # height over length; either stays upright when it slides
FIRST = ("frictionless", "sticky")
SLOPE_PASSES = 6
RIGHT = 1e-5  # error of the ratio that counts as none; a sticky pass is drawn to zero by 1e-6 of its diagonal
DRAWN = 1e-3  # proximal term on the heap
CONVERGED = 1e-8
BEFORE_NEWTON = (3, 6, 12, 24)  # passes after which Newton's method is tried, until it succeeds
NEWTON_STEPS, SHOWN_STEPS = 60, 8  # at most; the last ones, which are kept
NEWTON_ENOUGH, SOFTNESS = 1e-12, 0.01


@dataclass(frozen=True, eq=False)
class Splittings(Stored):
    """Results; the axes are named in this order. Violations are those of box friction, in units of the normal form.

    tangents: (tangent,) of the slope's angle; ratios: (block, first pass, tangent, pass) |sum of f_t| / sum of f_n
    pass_steps: (problem,) steps of the heap; moves: (problem, pass) largest difference of one pass and the next
    pass_violation, anderson_violation: (problem, pass), the latter with Anderson's acceleration, NaN after its end
    newton_after: (problem,) passes before Newton's method, 0 where it does not converge; newton_steps: (problem,)
    newton_violation: (problem, step) of its last steps, the last one last, NaN where there are fewer
    """

    tangents: NDArray[np.float64]
    ratios: NDArray[np.float64]
    pass_steps: NDArray[np.int64]
    moves: NDArray[np.float64]
    pass_violation: NDArray[np.float64]
    anderson_violation: NDArray[np.float64]
    newton_after: NDArray[np.int64]
    newton_steps: NDArray[np.int64]
    newton_violation: NDArray[np.float64]

    def errors(self, block: str, first: str) -> NDArray[np.float64]:
        """(tangent, pass) distance of the ratio from min(tangent, mu)."""
        ratios = self.ratios[tuple(BLOCKS).index(block), FIRST.index(first)]
        return np.asarray(np.abs(ratios - np.minimum(self.tangents, FRICTION)[:, None]))


def run(fallen: Fall, quick: bool) -> dict[str, Any]:
    """The fields of `Splittings`."""
    tangents = np.linspace(0.1, 2.0, 20 if quick else 58)
    steps = (16, 18, 20, 22) if quick else (15, 16, 17, 18, 19, 20, 22, 25, 30, 40, 60, 80)
    count = 20 if quick else 30
    made = [_on_heap(fallen.steps[k].form, count) for k in steps]
    return {
        "tangents": tangents,
        "ratios": np.array([[[_ratios(t, h, f) for t in tangents] for f in FIRST] for h in BLOCKS.values()]),
        "pass_steps": np.array(steps),
        **{name: np.array([each[name] for each in made]) for name in made[0]},
    }


def block(tangent: float, height: float, step: float = 0.01) -> ContactProblem:
    """The first step of a block at rest on a slope: 1 kg, 0.4 m long, 0.3 m wide, `height` times its length high."""
    length, width, tall = 0.4, 0.3, 0.4 * height
    angle = np.arctan(tangent)
    mass = np.diag(
        [1.0, 1.0, 1.0, *(np.array([width, length, length]) ** 2 + np.array([tall, tall, width]) ** 2) / 12.0]
    )
    velocity = step * 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle), 0.0, 0.0, 0.0])
    corners = [
        np.array([x, y, -0.5 * tall]) for x in (-0.5 * length, 0.5 * length) for y in (-0.5 * width, 0.5 * width)
    ]
    axes = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    rows = np.array([[np.concatenate([axis, np.cross(corner, axis)]) for axis in axes] for corner in corners])
    return ContactProblem(mass, velocity, rows[:, 0], rows[:, 1:], np.full(4, FRICTION), law=BoxFriction())


def _ratios(tangent: float, height: float, first: str) -> list[float]:
    """(pass,) of a block on a slope."""
    form = box_form(block(tangent, height))
    passes = Passes(form, Keller(), joint=True, proximal=0.0, enough=0.0)
    p: NDArray[np.float64] | None = passes.sticky() if first == "sticky" else passes.once(np.zeros((form.n, 3)))
    ratios: list[float] = []
    for _ in range(SLOPE_PASSES):
        if p is None:
            return [*ratios, *[np.nan] * (SLOPE_PASSES - len(ratios))]
        impulse = form.impulse(p).sum(axis=0)
        ratios.append(float(np.hypot(impulse[1], impulse[2]) / impulse[0]))
        p = passes.once(p)
    return ratios


def _on_heap(form: BoxForm, count: int) -> dict[str, Any]:
    """Passes as published, accelerated, and Newton's method after some of them."""
    passes = Passes(form, SmoothingNewton(), joint=True, proximal=DRAWN, enough=0.0)
    points, violation = [np.zeros((form.n, 3))], []
    for _ in range(count):
        p = passes.once(points[-1])
        if p is None:
            break
        points.append(p)
        violation.append(form.violation(p))
    accelerated = Passes(form, Keller(), joint=True, proximal=DRAWN, enough=NEWTON_ENOUGH)
    accelerated.run_accelerated(points[0], count)
    moves = [float(np.abs(b - a).max(initial=0.0)) for a, b in pairwise(points)]
    after, steps, history = 0, 0, np.full(SHOWN_STEPS, np.nan)
    for before in BEFORE_NEWTON:
        if before >= len(points):
            break
        steps, p = _newton(form, points[before], NEWTON_STEPS)
        if form.violation(p) <= 10.0 * NEWTON_ENOUGH:
            after = before
            last = [form.violation(_newton(form, points[before], k)[1]) for k in range(steps + 1)[-SHOWN_STEPS:]]
            history[-len(last) :] = last
            break
    return {
        "moves": _padded(moves, count),
        "pass_violation": _padded(violation, count),
        "anderson_violation": _padded(accelerated.history, count),
        "newton_after": after,
        "newton_steps": steps,
        "newton_violation": history,
    }


def _newton(form: BoxForm, p: NDArray[np.float64], most: int) -> tuple[int, NDArray[np.float64]]:
    """Steps of `splitting.newton` from p, so many at most, and where they lead."""
    p, steps = Splitting(max_steps=most)._newton(form, p, np.ones(form.n), SOFTNESS, NEWTON_ENOUGH)
    return steps, p


def _padded(values: Sequence[float], length: int) -> NDArray[np.float64]:
    return np.concatenate([values, np.full(length - len(values), np.nan)])


def orders(history: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orders of convergence of the errors e: log(e₂ / e₁) / log(e₁ / e₀), while they fall."""
    e = history[np.isfinite(history) & (history > 0.0)]
    falls = np.log(e[1:] / e[:-1])
    both = (falls[1:] < 0.0) & (falls[:-1] < 0.0)
    return np.asarray(falls[1:][both] / falls[:-1][both])


def check(results: Splittings) -> list[Claim]:
    return _figure_7(results) + _figure_8(results) + _faster(results)


def _figure_7(results: Splittings) -> list[Claim]:
    worst = max(float(results.errors(name, "frictionless")[:, 1].max()) for name in BLOCKS)
    claims = [
        Claim(
            "slope: two passes from no friction give Coulomb's relation",
            worst <= RIGHT,
            f"ratio off by {worst:.0e} at most, both blocks",
            printed="the correct Coulomb relation",
        )
    ]
    for name in BLOCKS:
        errors = results.errors(name, "sticky")
        needed = int((errors > RIGHT).sum(axis=1).max()) + 1
        tall = name == "tall block"
        why = (
            "A flat block would not tip if it stuck, so that the sticky pass bears the right weight already, and the "
            "second pass is right. The paper does not tell the shape of its block; with one that would tip it is as "
            "printed."
        )
        claims += [
            Claim(
                f"slope, {name}: two passes from sticking are wrong",
                bool(errors[:, 1].max() > 0.01),
                f"ratio off by {errors[:, 1].max():.2g} after two passes",
                tall,
                "does not behave correctly",
                "" if tall else why,
            ),
            Claim(
                f"slope, {name}: about five passes from sticking are right",
                4 <= needed <= 6,
                f"{needed} passes, the sticky one included, at the worst slope",
                tall,
                "about 5",
                "" if tall else why,
            ),
        ]
    return claims


def _figure_8(results: Splittings) -> list[Claim]:
    moves = results.moves
    reached = np.array([_first_below(row, CONVERGED) for row in moves])
    quickly, all_reach = bool((reached < 10).any()), bool((reached < 10).all())
    found = "; ".join(
        f"step {k}: {'not in ' + str(moves.shape[1]) if passes > moves.shape[1] else f'{passes:.0f}'}"
        for k, passes in zip(results.pass_steps, reached, strict=True)
    )
    slopes = [
        _order(row[: int(passes)]) for row, passes in zip(moves, reached, strict=True) if passes <= moves.shape[1]
    ]
    rates = [_rate(row[: int(passes)]) for row, passes in zip(moves, reached, strict=True) if passes <= moves.shape[1]]
    linear = len(slopes) > 0 and abs(float(np.median(slopes)) - 1.0) < 0.25
    least = np.nanmin(moves, axis=1)[np.isfinite(reached)]
    stagnates = len(least) > 0 and bool((least > 1e-9).all())
    why = (
        "Each pass is solved to rounding here, so that moves fall to rounding; how exactly the paper's are is not told."
    )
    ended = (
        f"where they converge, the least is {least.min():.0e} to {least.max():.0e}" if len(least) else "none converged"
    )
    return [
        Claim(
            f"heap: passes can converge to {CONVERGED:.0e} in less than ten, but not in all cases",
            quickly and not all_reach,
            f"passes: {found}",
            printed="less than 10 iterations, but not in all cases",
        ),
        Claim(
            "heap: passes converge linearly",
            linear,
            f"median order {np.median(slopes):.2f}, each pass multiplies the move by {np.median(rates):.2g}"
            if slopes
            else "none converged",
            printed="linear",
        ),
        Claim("heap: the moves stagnate at about 1e-7", stagnates, ended, False, "10E-8", why),
    ]


def _first_below(moves: NDArray[np.float64], limit: float) -> float:
    below = np.flatnonzero(moves <= limit)
    return float(below[0] + 1) if len(below) else np.inf


def _order(moves: NDArray[np.float64]) -> float:
    """Slope of log(next move) over log(move): one if convergence is linear, two if it is quadratic."""
    logs = np.log(moves[moves > 0.0])
    return float(np.polyfit(logs[:-1], logs[1:], 1)[0]) if len(logs) > 2 else np.nan


def _rate(moves: NDArray[np.float64]) -> float:
    moves = moves[moves > 0.0]
    return float((moves[-1] / moves[0]) ** (1.0 / max(len(moves) - 1, 1)))


def _faster(results: Splittings) -> list[Claim]:
    solved = results.newton_after > 0
    last = [row[np.isfinite(row)] for row in results.newton_violation[solved]]
    found = [float(np.median(orders(row))) for row in last if len(orders(row))]
    least = results.pass_violation.shape[1]
    by_passes = (np.nanmin(results.pass_violation, axis=1) <= 10.0 * NEWTON_ENOUGH).sum()
    by_anderson = (np.nanmin(results.anderson_violation, axis=1) <= 10.0 * NEWTON_ENOUGH).sum()
    text = "none converged"
    if found:
        before, after = (np.median([row[k] for row in last if len(row) > 1]) for k in (-2, -1))
        text = (
            f"median order {np.median(found):.2f} of {len(found)} problems; last step from {before:.0e} to {after:.0e}"
        )
    return [
        Claim(
            "heap: Newton's method after some passes converges faster than linearly",
            bool(found) and float(np.median(found)) > 1.2,
            text,
            printed="perhaps quadratic, it is hoped",
        ),
        Claim(
            "heap: Newton's method solves to 1e-11 more problems than passes do",
            bool(solved.sum() > by_passes),
            f"of {len(solved)} problems: {solved.sum()} by Newton's method from at most {max(BEFORE_NEWTON)} passes, "
            f"{by_anderson} by {least} accelerated passes, {by_passes} by {least} passes",
            printed="perhaps quadratic, it is hoped",
        ),
    ]


def figures(results: Splittings) -> list[Plate]:
    """Figures 7 and 8, and what is faster."""
    return [_plot_slope(results), _plot_passes(results)]


def _plot_slope(results: Splittings) -> Plate:
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 3.6), layout="constrained")
    for b, (name, ax) in enumerate(zip(BLOCKS, figure.subplots(1, 2, sharey=True), strict=True)):
        free, sticky = results.ratios[b]
        t = results.tangents
        ax.plot(t, np.minimum(t, FRICTION), color="0.75", lw=5.0, label="Coulomb", solid_capstyle="butt")
        ax.plot(t, free[:, 1], color="k", lw=1.0, label="frictionless, 2 passes")
        for k, line in ((0, ":"), (1, "--"), (2, "-."), (4, (0, (1, 3)))):
            marker = "o" if k == 4 else ""
            label = f"sticky, {k + 1} pass{'es' if k else ''}"
            every = max(1, len(t) // 15)
            ax.plot(t, sticky[:, k], ls=line, color="k", lw=1.2, marker=marker, ms=3.5, markevery=every, label=label)
        ax.set(xlabel="tangent of the slope's angle", ylim=(0.0, 1.2))
        ax.set_title(f"{name}: height {BLOCKS[name]:g} of its length", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        if b == 0:
            ax.set_ylabel("friction over normal force")
            ax.legend(frameon=False, fontsize=8, loc="lower right")
    caption = f"Figure 7: a block on a slope, mu = {FRICTION:g}, after so many passes of the splitting."
    return Plate("slope", caption, figure)


def _plot_passes(results: Splittings) -> Plate:
    figure = optional.matplotlib().figure.Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    count = np.arange(1, results.moves.shape[1] + 1)
    floor = 1e-16
    for row in results.moves:
        left.plot(count, np.maximum(row, floor), color="0.3", lw=1.0)
    ends = np.log10(np.maximum(results.moves[:, -1], floor))
    height = -np.inf
    for k in np.argsort(ends):  # labels from below, none on another
        height = max(ends[k], height + 0.55)
        left.text(count[-1] + 0.4, 10.0**height, str(results.pass_steps[k]), fontsize=7, va="center")
    left.set(yscale="log", xlabel="pass", ylabel="largest difference from the pass before", ylim=(floor, 1e4))
    left.set_title("figure 8: passes; the number is the step", fontsize=10)
    for k in range(len(results.pass_steps)):
        right.plot(count, np.maximum(results.pass_violation[k], floor), color="0.75", lw=1.0)
        right.plot(count, np.maximum(results.anderson_violation[k], floor), color="0.45", lw=0.9, ls="--")
        after, steps = results.newton_after[k], results.newton_steps[k]
        if after:
            history = results.newton_violation[k][np.isfinite(results.newton_violation[k])]
            at = after + steps - np.arange(len(history))[::-1]
            right.plot(at, np.maximum(history, floor), color="k", lw=1.2, marker="o", ms=3)
    for line, marker, colour, label in (
        ("-", "", "0.75", "passes"),
        ("--", "", "0.45", "Anderson"),
        ("-", "o", "k", "Newton, after passes"),
    ):
        right.plot([], [], ls=line, marker=marker, ms=3, color=colour, label=label)
    right.legend(frameon=False, fontsize=8, loc="upper right")
    right.set(yscale="log", xlabel="passes and Newton steps", ylabel="violation", ylim=(floor, 1e4))
    right.set_title("the same, made faster", fontsize=10)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    caption = (
        "Figure 8: convergence of the splitting on the heap, and with Anderson's acceleration and Newton's method."
    )
    return Plate("splitting", caption, figure)


def tables(results: Splittings) -> list[Sheet]:
    """Passes and steps on the heap."""
    rows = []
    for k, step in enumerate(results.pass_steps):
        passes = _first_below(results.moves[k], CONVERGED)
        accelerated = _first_below(results.anderson_violation[k], CONVERGED)
        newton = f"{results.newton_after[k]} + {results.newton_steps[k]}" if results.newton_after[k] else "–"
        last = results.newton_violation[k][np.isfinite(results.newton_violation[k])]
        rows.append(
            (
                str(step), *("–" if np.isinf(c) else f"{c:.0f}" for c in (passes, accelerated)), newton,
                ", ".join(f"{v:.0e}" for v in last[-4:]),
            )
        )  # fmt: skip
    head = ("step", f"passes to {CONVERGED:.0e}", "accelerated passes", "passes + Newton steps", "its last violations")
    return [Sheet("Convergence of the splitting on the heap of logs (figure 8); –: not reached.", head, rows)]
