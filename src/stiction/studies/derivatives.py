"""Derivatives of contact: how often there are none, what one-sided and smoothed gradients say there, and the cost.

No paper's claims but our own. Named scenes are stepped, and contact problems of their steps are differentiated: each is
smooth, at a kink (a contact about to open or to slide), or its motion is not determined (contacts share a load in ways
that move the body differently). Where it is smooth, a random direction is compared with central differences of solves.

At a kink, a point at its friction bound, the velocity has slope 0 to one side and 1 to the other. `one_sided` is
compared with both, and with gradients smoothed as learning smooths them: the mean over disturbed problems of a width.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stiction.bodies.scene import Scene
from stiction.derivatives.differentiate import differentiate
from stiction.problems.contact import ContactProblem
from stiction.solvers.solve import solve
from stiction.stepping.simulation import Simulation
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import plate
from stiction.studies.results import Findings, Plate, Sheet

Array = NDArray[np.float64]

SCENES = (
    "box-on-plane", "sliding-cube", "sliding-ball", "block-stack", "inclined-plane", "force-closure-grasp", "quadruped",
    "block-feeder", "double-action-jack", "pinched-capsule", "mass-ratio", "card-house", "masonry-arch", "dominoes",
)  # fmt: skip
EVERY = 4  # steps between two that are differentiated
SMOOTH, KINK, UNDETERMINED = range(3)
WIDTHS = (1e-1, 1e-2, 1e-3, 1e-4)  # of smoothing, over the velocity at the bound
SAMPLES = 64
AWAY = 1e-3  # margin, over the island's pace, from which differences are compared
MU = 0.5

EXACT = Statement("away from kinks, derivatives are those of central differences to 1e-6")
ONE_SIDED = Statement("one-sided derivatives at a kink are exact")
HALFWAY = Statement("a gradient smoothed at a kink lies half-way between both sides, however little it is smoothed")
MOST = Statement("most steps of the named scenes have a derivative")
CHEAP = Statement("a derivative and a gradient cost no more than the solve", timed=True)


class Results(Findings):
    """What was found."""

    declared: ClassVar[dict[str, str]] = {
        "scene": "(scenes,) names",
        "count": "(scenes, 3) steps that are smooth, at a kink, not determined",
        "error": "(compared,) relative errors against central differences",
        "solved, spent": "(timed,) CPU time of solves and of derivatives with a gradient, s",
        "width": "(widths,) of smoothing",
        "smoothed": "(widths,) slopes of gradients smoothed at the kink",
        "sides": "(2,) slopes by `one_sided`, pulled less and more",
    }


def run(quick: bool = False, seed: int = 0) -> Results:
    """Step the scenes, then look at the kink."""
    rng = np.random.default_rng(seed)
    counts, errors, solved, spent = [], [], [], []
    for name in SCENES:
        count = np.zeros(3, np.int64)
        simulation = Simulation(Scene.named(name))
        for k in range(40 if quick else 400):
            solution = simulation.step().solution
            problem = solution.problem
            if k % EVERY or problem is None or not problem.n:
                continue
            found = differentiate(solution, strict=False)
            count[SMOOTH if found.smooth else KINK if found.kinks else UNDETERMINED] += 1
            if k % (5 * EVERY) == 0:
                one, two = timed(problem)
                solved.append(one)
                spent.append(two)
                if found.smooth and (found.margin > AWAY * problem.whitened.pace).all():
                    errors.append(error(problem, found, rng))
        counts.append(count)
    sides = [
        way * float(differentiate(solve(at_bound())).one_sided({"free": [way, 0.0, 0.0]}).velocity[0])
        for way in (-1.0, 1.0)
    ]
    return Results(
        seed, scene=list(SCENES), count=counts, error=errors, solved=solved, spent=spent, width=WIDTHS,
        smoothed=[smoothed(width) for width in WIDTHS], sides=sides,
    )  # fmt: skip


def at_bound(pull: float = 0.0) -> ContactProblem:
    """A point of 1 kg, pressed by 1 N s, pulled by its friction and a little more or less."""
    eye = np.eye(3)
    return ContactProblem(eye, [MU + pull, 0.0, -1.0], eye[2:], eye[None, :2], [MU])


def smoothed(width: float) -> float:
    """The mean slope over disturbed pulls, evenly spread on both sides of the kink."""
    pulls = MU * width * (np.arange(SAMPLES) + 0.5 - SAMPLES / 2) / SAMPLES
    return float(np.mean([differentiate(solve(at_bound(pull))).by_free[0, 0] for pull in pulls]))


def error(problem: ContactProblem, found: Any, rng: np.random.Generator) -> float:
    """Against central differences, the best of a few step lengths."""
    way = np.abs(problem.velocity).max() * rng.normal(size=problem.m)
    derivative, best = found.jvp({"free": way}).velocity, np.inf
    for eps in (1e-5, 1e-4, 1e-6, 1e-3):
        ends = [solve(problem.replace(velocity=problem.velocity + t * way), throw=False) for t in (eps, -eps)]
        if all(end.ok for end in ends):
            difference = (ends[0].velocity - ends[1].velocity) / (2.0 * eps)
            size = max(np.abs(way).max(), np.abs(difference).max())
            best = min(best, float(np.abs(difference - derivative).max() / size))
    return best


def timed(problem: ContactProblem) -> tuple[float, float]:
    """CPU seconds of a cold solve, and of its derivative with one gradient."""
    begin = time.process_time()
    solution = solve(problem.replace(velocity=problem.velocity))
    middle = time.process_time()
    differentiate(solution, strict=False).vjp(np.ones(problem.m))
    return middle - begin, time.process_time() - middle


def check(results: Results) -> list[Claim]:
    """The claims, and what was found."""
    count, total = results.count.sum(axis=0), results.count.sum()
    ratio = np.median(results.spent / np.maximum(results.solved, 1e-9))
    off = np.abs(results.sides - [0.0, 1.0]).max()
    return [
        EXACT.found(results.error.max() <= 1e-6, f"at most {results.error.max():.0e} in {results.error.size} problems"),
        ONE_SIDED.found(off <= 1e-9, f"0 and 1 to {off:.0e}"),
        HALFWAY.found(
            np.abs(results.smoothed - 0.5).max() <= 0.1, f"slopes {', '.join(f'{s:.2f}' for s in results.smoothed)}"
        ),
        MOST.found(2 * count[SMOOTH] > total, f"{count[SMOOTH]} of {total}; {count[KINK]} at kinks"),
        CHEAP.found(ratio <= 1.0, f"{ratio:.1f} times the solve"),
    ]


def figures(results: Results) -> list[Plate]:
    """How often there is no derivative, scene by scene."""
    return [_plot_counts(results)]


@plate("kinks", 7.0, 3.0)
def _plot_counts(figure: Any, results: Results) -> str:
    ax = figure.subplots()
    share = results.count / np.maximum(results.count.sum(axis=1, keepdims=True), 1)
    left = np.zeros(len(share))
    for kind, (label, shade) in enumerate((("smooth", "0.85"), ("at a kink", "0.5"), ("not determined", "0.2"))):
        ax.barh(results.scene, share[:, kind], left=left, color=shade, label=label)
        left = left + share[:, kind]
    ax.set_xlabel("part of the steps")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)  # bars fill the axes
    return "Steps of named scenes that have a derivative, are at a kink, or whose motion is not determined."


def tables(results: Results) -> list[Sheet]:
    """The same in numbers."""
    rows = [
        (str(name), *(str(number) for number in count))
        for name, count in zip(results.scene, results.count, strict=True)
    ]
    return [Sheet("Steps with contact", ("scene", "smooth", "at a kink", "not determined"), rows)]
