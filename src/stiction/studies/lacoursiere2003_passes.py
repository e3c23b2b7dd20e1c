"""Passes of the splitting: a block on a slope, the heap of logs, and passes made faster [Lacoursiere2003, fig. 7, 8].

A joint pass solves for normal and friction impulses at once, friction bounded by the normal impulses of the pass
before. The first pass takes friction as zero ("frictionless") or as unbounded ("sticky"). On the heap, whose impulses
are not unique, a pass is drawn to the last one by 1e-3 of the diagonal, the paper's own perturbation; at a fixed point
this vanishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

import stiction as st
from stiction.problems.box_friction import BoxForm, box_form
from stiction.solvers.contact.splitting.passes import Passes
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import plate
from stiction.studies.lacoursiere2003_heap import Fall
from stiction.studies.results import Array, Findings, Plate, Sheet

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


class Splittings(Findings):
    """Results; the axes are named in this order. Violations are those of box friction, in units of the normal form."""

    declared: ClassVar = {
        "tangents": "(tangent,) of the slope's angle",
        "ratios": "(block, first pass, tangent, pass) |sum of f_t| / sum of f_n",
        "pass_steps": "(problem,) steps of the heap",
        "moves": "(problem, pass) largest difference of one pass and the next",
        "pass_violation": "(problem, pass)",
        "anderson_violation": "(problem, pass) with Anderson's acceleration, NaN after its end",
        "newton_after": "(problem,) passes before Newton's method, 0 where it does not converge",
        "newton_steps": "(problem,) of Newton's method",
        "newton_violation": "(problem, step) of its last steps, the last one last, NaN where there are fewer",
    }

    def errors(self, block: str, first: str) -> Array:
        """(tangent, pass) distance of the ratio from min(tangent, mu)."""
        ratios = self.ratios[tuple(BLOCKS).index(block), FIRST.index(first)]
        return np.asarray(np.abs(ratios - np.minimum(self.tangents, FRICTION)[:, None]))

    def newton(self, problem: Any) -> Array:
        """Violations of the last steps of Newton's method."""
        history = self.newton_violation[problem]
        return np.asarray(history[np.isfinite(history)])


def run(fallen: Fall, quick: bool) -> dict[str, Any]:
    """The arrays of `Splittings`."""
    tangents = np.linspace(0.1, 2.0, 20 if quick else 58)
    steps = (16, 18, 20, 22) if quick else (15, 16, 17, 18, 19, 20, 22, 25, 30, 40, 60, 80)
    made = [_on_heap(fallen.steps[k].form, 20 if quick else 30) for k in steps]
    return {
        "tangents": tangents,
        "pass_steps": steps,
        "ratios": [[[_ratios(t, h, f) for t in tangents] for f in FIRST] for h in BLOCKS.values()],
        **{name: [each[name] for each in made] for name in made[0]},
    }


def block(tangent: float, height: float, step: float = 0.01) -> st.ContactProblem:
    """The first step of a block at rest on a slope: 1 kg, 0.4 m long, 0.3 m wide, `height` times its length high."""
    length, width, tall = 0.4, 0.3, 0.4 * height
    angle = np.arctan(tangent)
    inertia = (np.array([width, length, length]) ** 2 + np.array([tall, tall, width]) ** 2) / 12.0
    velocity = step * 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle), 0.0, 0.0, 0.0])
    corners = [(x, y, -0.5 * tall) for x in (-0.5 * length, 0.5 * length) for y in (-0.5 * width, 0.5 * width)]
    axes = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    rows = np.array([[np.concatenate([axis, np.cross(corner, axis)]) for axis in axes] for corner in corners])
    mass = np.diag([1.0, 1.0, 1.0, *inertia])
    return st.ContactProblem(mass, velocity, rows[:, 0], rows[:, 1:], np.full(4, FRICTION), law=st.BoxFriction())


def _ratios(tangent: float, height: float, first: str) -> list[float]:
    """(pass,) of a block on a slope."""
    form = box_form(block(tangent, height))
    passes = Passes(form, st.Keller(), joint=True, proximal=0.0, enough=0.0)
    p: Array | None = passes.sticky() if first == "sticky" else passes.once(np.zeros((form.n, 3)))
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
    passes = Passes(form, st.SmoothingNewton(), joint=True, proximal=DRAWN, enough=0.0)
    points, violation = [np.zeros((form.n, 3))], []
    for _ in range(count):
        p = passes.once(points[-1])
        if p is None:
            break
        points.append(p)
        violation.append(form.violation(p))
    accelerated = Passes(form, st.Keller(), joint=True, proximal=DRAWN, enough=NEWTON_ENOUGH)
    accelerated.run_accelerated(points[0], count)
    moves = [float(np.abs(b - a).max(initial=0.0)) for a, b in pairwise(points)]
    by_passes = {"moves": moves, "pass_violation": violation, "anderson_violation": accelerated.history}
    padded = {name: np.pad(each, (0, count - len(each)), constant_values=np.nan) for name, each in by_passes.items()}
    return padded | _after_passes(form, points)


def _after_passes(form: BoxForm, points: Sequence[Array]) -> dict[str, Any]:
    """Newton's method from the earliest of the points that lets it converge."""
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
    return {"newton_after": after, "newton_steps": steps, "newton_violation": history}


def _newton(form: BoxForm, p: Array, most: int) -> tuple[int, Array]:
    """Steps of `splitting.newton` from p, so many at most, and where they lead."""
    p, steps = st.Splitting(max_steps=most)._newton(form, p, np.ones(form.n), SOFTNESS, NEWTON_ENOUGH)
    return steps, p


def orders(history: Array) -> Array:
    """Orders of convergence of the errors e: log(e₂ / e₁) / log(e₁ / e₀), while they fall."""
    e = history[np.isfinite(history) & (history > 0.0)]
    falls = np.log(e[1:] / e[:-1])
    both = (falls[1:] < 0.0) & (falls[:-1] < 0.0)
    return np.asarray(falls[1:][both] / falls[:-1][both])


def check(results: Splittings) -> list[Claim]:
    return [*_figure_7(results), *_figure_8(results), *_faster(results)]


WHY_FLAT = (
    "A flat block would not tip if it stuck, so that the sticky pass bears the right weight already, and the "
    "second pass is right. The paper does not tell the shape of its block; with one that would tip it is as "
    "printed."
)
WHY_FALLS = (
    "Each pass is solved to rounding here, so that moves fall to rounding; how exactly the paper's are is not told."
)


def _figure_7(results: Splittings) -> Iterator[Claim]:
    worst = max(results.errors(name, "frictionless")[:, 1].max() for name in BLOCKS)
    claim = Statement("slope: two passes from no friction give Coulomb's relation", "the correct Coulomb relation")
    yield claim.found(worst <= RIGHT, f"ratio off by {worst:.0e} at most, both blocks")
    for name in BLOCKS:
        errors, why = results.errors(name, "sticky"), "" if name == "tall block" else WHY_FLAT
        worst, needed = errors[:, 1].max(), (errors > RIGHT).sum(axis=1).max() + 1
        claim = Statement(f"slope, {name}: two passes from sticking are wrong", "does not behave correctly", why)
        yield claim.found(worst > 0.01, f"ratio off by {worst:.2g} after two passes")
        claim = Statement(f"slope, {name}: about five passes from sticking are right", "about 5", why)
        yield claim.found(4 <= needed <= 6, f"{needed} passes, the sticky one included, at the worst slope")


def _figure_8(results: Splittings) -> Iterator[Claim]:
    moves, count = results.moves, results.moves.shape[1]
    reached = np.array([_first_below(row, CONVERGED) for row in moves])
    converged = np.isfinite(reached)
    passes = [f"{each:.0f}" if each <= count else f"not in {count}" for each in reached]
    text = "; ".join(f"step {k}: {each}" for k, each in zip(results.pass_steps, passes, strict=True))
    name = f"heap: passes can converge to {CONVERGED:.0e} in less than ten, but not in all cases"
    claim = Statement(name, "less than 10 iterations, but not in all cases")
    yield claim.found((reached < 10).any() and not (reached < 10).all(), f"passes: {text}")

    ended = [row[: int(each)] for row, each in zip(moves[converged], reached[converged], strict=True)]
    order, rate, text = np.nan, np.nan, "none converged"
    if ended:
        order, rate = np.median([_order(row) for row in ended]), np.median([_rate(row) for row in ended])
        text = f"median order {order:.2f}, each pass multiplies the move by {rate:.2g}"
    yield Statement("heap: passes converge linearly", "linear").found(abs(order - 1.0) < 0.25, text)

    least = np.nanmin(moves, axis=1)[converged]
    claim = Statement("heap: the moves stagnate at about 1e-7", "10E-8", WHY_FALLS)
    if ended:
        text = f"where they converge, the least is {least.min():.0e} to {least.max():.0e}"
    yield claim.found(ended and (least > 1e-9).all(), text)


def _first_below(moves: Array, limit: float) -> float:
    below = np.flatnonzero(moves <= limit)
    return float(below[0] + 1) if len(below) else np.inf


def _order(moves: Array) -> float:
    """Slope of log(next move) over log(move): one if convergence is linear, two if it is quadratic."""
    logs = np.log(moves[moves > 0.0])
    return float(np.polyfit(logs[:-1], logs[1:], 1)[0]) if len(logs) > 2 else np.nan


def _rate(moves: Array) -> float:
    moves = moves[moves > 0.0]
    return float((moves[-1] / moves[0]) ** (1.0 / max(len(moves) - 1, 1)))


def _faster(results: Splittings) -> Iterator[Claim]:
    solved = np.flatnonzero(results.newton_after)
    last = [results.newton(k) for k in solved]
    found = [np.median(orders(row)) for row in last if len(orders(row))]
    text = "none converged"
    if found:
        before, after = (np.median([row[k] for row in last if len(row) > 1]) for k in (-2, -1))
        text = f"median order {np.median(found):.2f} of {len(found)} problems; "
        text += f"last step from {before:.0e} to {after:.0e}"
    hoped = "perhaps quadratic, it is hoped"
    claim = Statement("heap: Newton's method after some passes converges faster than linearly", hoped)
    yield claim.found(found and np.median(found) > 1.2, text)
    count, many = results.pass_violation.shape
    by_passes, by_anderson = (
        (np.nanmin(violation, axis=1) <= 10.0 * NEWTON_ENOUGH).sum()
        for violation in (results.pass_violation, results.anderson_violation)
    )
    text = f"of {count} problems: {len(solved)} by Newton's method from at most {max(BEFORE_NEWTON)} passes, "
    text += f"{by_anderson} by {many} accelerated passes, {by_passes} by {many} passes"
    claim = Statement("heap: Newton's method solves to 1e-11 more problems than passes do", hoped)
    yield claim.found(len(solved) > by_passes, text)


def figures(results: Splittings) -> list[Plate]:
    """Figures 7 and 8, and what is faster."""
    return [_plot_slope(results), _plot_passes(results)]


@plate("slope", 9.0, 3.6)
def _plot_slope(figure: Any, results: Splittings) -> str:
    axes, t = figure.subplots(1, 2, sharey=True), results.tangents
    for ax, (name, height), (free, sticky) in zip(axes, BLOCKS.items(), results.ratios, strict=True):
        ax.plot(t, np.minimum(t, FRICTION), color="0.75", lw=5.0, label="Coulomb", solid_capstyle="butt")
        ax.plot(t, free[:, 1], color="k", lw=1.0, label="frictionless, 2 passes")
        for k, line, marker in ((0, ":", ""), (1, "--", ""), (2, "-.", ""), (4, (0, (1, 3)), "o")):
            style = {"ls": line, "marker": marker, "ms": 3.5, "markevery": max(1, len(t) // 15)}
            ax.plot(t, sticky[:, k], color="k", lw=1.2, **style, label=f"sticky, {k + 1} pass{'es' if k else ''}")
        title = f"{name}: height {height:g} of its length"
        ax.set(xlabel="tangent of the slope's angle", ylim=(0.0, 1.2), title=title)
    axes[0].set_ylabel("friction over normal force")
    axes[0].legend(loc="lower right")
    return f"Figure 7: a block on a slope, mu = {FRICTION:g}, after so many passes of the splitting."


FLOOR = 1e-16  # differences and violations below are drawn here


@plate("splitting", 9.0, 4.0)
def _plot_passes(figure: Any, results: Splittings) -> str:
    left, right = figure.subplots(1, 2)
    count, moves = np.arange(1, results.moves.shape[1] + 1), np.maximum(results.moves, FLOOR)
    left.plot(count, moves.T, color="0.3", lw=1.0)
    ends, height = np.log10(moves[:, -1]), -np.inf
    for k in np.argsort(ends):  # labels from below, none on another
        height = max(ends[k], height + 0.55)
        left.text(count[-1] + 0.4, 10.0**height, str(results.pass_steps[k]), fontsize=7, va="center")
    left.set(yscale="log", xlabel="pass", ylabel="largest difference from the pass before", ylim=(FLOOR, 1e4))
    left.set_title("figure 8: passes; the number is the step")
    plain, faster = {"color": "0.75", "lw": 1.0}, {"color": "0.45", "lw": 0.9, "ls": "--"}
    newton: dict[str, Any] = {"color": "k", "lw": 1.2, "marker": "o", "ms": 3}
    right.plot(count, np.maximum(results.pass_violation, FLOOR).T, **plain)
    right.plot(count, np.maximum(results.anderson_violation, FLOOR).T, **faster)
    for k in np.flatnonzero(results.newton_after):
        history = results.newton(k)
        at = results.newton_after[k] + results.newton_steps[k] - np.arange(len(history))[::-1]
        right.plot(at, np.maximum(history, FLOOR), **newton)
    for style, label in ((plain, "passes"), (faster, "Anderson"), (newton, "Newton, after passes")):
        right.plot([], [], **style, label=label)
    right.legend(loc="upper right")
    right.set(yscale="log", xlabel="passes and Newton steps", ylabel="violation", ylim=(FLOOR, 1e4))
    right.set_title("the same, made faster")
    return "Figure 8: convergence of the splitting on the heap, and with Anderson's acceleration and Newton's method."


def tables(results: Splittings) -> list[Sheet]:
    """Passes and steps on the heap."""
    rows = []
    for k, step in enumerate(results.pass_steps):
        reached = (_first_below(row[k], CONVERGED) for row in (results.moves, results.anderson_violation))
        newton = f"{results.newton_after[k]} + {results.newton_steps[k]}" if results.newton_after[k] else "–"
        last = ", ".join(f"{v:.0e}" for v in results.newton(k)[-4:])
        rows.append((str(step), *("–" if np.isinf(c) else f"{c:.0f}" for c in reached), newton, last))
    head = ("step", f"passes to {CONVERGED:.0e}", "accelerated passes", "passes + Newton steps", "its last violations")
    return [Sheet("Convergence of the splitting on the heap of logs (figure 8); –: not reached.", head, rows)]
