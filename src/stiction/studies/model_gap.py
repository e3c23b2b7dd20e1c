"""One set of problems under every model of friction: how far each is from Coulomb's law, and what it costs.

No paper has this comparison. Stacks, pegs, grasps, heaps, walls, sliding blocks and published problems are solved with

    cone             Coulomb's law on the circular cone, the measure of all (`ConeNewton`)
    cone again       the same, begun at the answer for the pyramid of 16 facets: friction may have several answers
    pyramid 4, 8, 16 Coulomb's law on inscribed pyramids (`CellLemke`)
    box              two independent bounded directions (`CellLemke`)
    splitting        five passes of normal and friction impulses in turn, for the box (`Splitting`, as published)
    relaxation       the convex one, a cone complementarity problem (`relaxation`)
    no-slip          no sliding wherever a contact stays closed (`PrincipalPivot`)
    frictionless     none

Every answer is put before the judge of the circular cone: its residual, in units of the largest free contact velocity,
is the distance from Coulomb's law; its parts show in what way an answer is wrong. Beside it stands how far the contact
velocities are from those of the cone. Models that are Coulomb's where nothing slides are looked at on sliding problems
too: those where a contact slides in the exact answer, or opens more slowly than it moves sideways (u_n < mu |u_t|).

Times are processor times of `propose`, the solver as called without the normal form and the certificate, which are the
same for all; the least of some repeats, models taking turns; relative to the cone, problem by problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

import stiction as st
from stiction.problems.laws import Law
from stiction.problems.zoo.contact_classics import contact_classics
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES
from stiction.solutions.contact import judged
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import plate
from stiction.studies.relaxation import ConvexRelaxation, violation_of
from stiction.studies.results import Array, Findings, Plate, Sheet, tabulated
from stiction.studies.timing import side_by_side

CONE = st.Coulomb()


class Model(NamedTuple):
    law: Law
    solver: Any
    exact: bool = True  # whether its answers obey its own law to rounding


MODELS: dict[str, Model] = {
    "cone": Model(CONE, st.ConeNewton()),
    "cone again": Model(CONE, st.ConeNewton()),
    "pyramid 16": Model(st.Coulomb(facets=16), st.CellLemke()),
    "pyramid 8": Model(st.Coulomb(facets=8), st.CellLemke()),
    "pyramid 4": Model(st.Coulomb(facets=4), st.CellLemke()),
    "box": Model(st.BoxFriction(), st.CellLemke()),
    "splitting": Model(st.BoxFriction(), st.Splitting(accelerate=None, max_passes=5), exact=False),
    "relaxation": Model(CONE, ConvexRelaxation()),
    "no-slip": Model(st.NoSlip(), st.PrincipalPivot()),
    "frictionless": Model(st.Frictionless(), st.PrincipalPivot()),
}
PYRAMIDS = ("pyramid 4", "pyramid 8", "pyramid 16")
KINDS = {
    "peg": ("peg-8", "peg-16", "peg-32"),
    "stack": ("stack-3", "stack-5", "stack-5x8", "stack-pushed"),
    "one body": ("single-table", "single-octagon", "single-groove", "single-rim", "single-channel"),
    "sliding": ("incline", "plate-gaps", "stack-impact", "chain"),
    "grasp": ("grasp",),
    "heap": ("heap-3", "heap-6", "cannonballs"),
    "wall, arch": ("wall", "arch"),
}
# Small ones, symmetric as printed, which the relaxation needs; not the PerioBox, of which no-slip is not solved.
PUBLISHED = (
    "FC3D_Example1", "FrictionContactProblem00031", "NESpheres_10_1",
    "Box_Stacks-i0122-82-5", "LMGC_GFC3D-i00501-4-00000", "local_problem_test",
    *(f"lloyd-{k:02d}" for k in range(5, 17)),
)  # fmt: skip
PARTS = ("penetration", "complementarity", "cone", "dissipation")
TOLERANCE = 1e-8  # of an answer under its own law
SAME = 1e-6  # a distance below is none
# Asked of the models before they were run, but for FALLS, which was 2.5 at first
FALLS = 8.0**0.5  # times that a distance falls with twice the facets, rather like their square than like their number
NEAR = 0.05  # median distance of the pyramid of 8 on sliding problems, at most: its edges lack 0.08 of the friction
CHEAP = 2.0  # times the median cost of the pyramid of 8 that the cone may take


class Results(Findings):
    """Distances in units of the largest free contact velocity of a problem."""

    declared: ClassVar = {
        "kind, name": "(problem,)",
        "contacts": "(problem,) how many",
        "sliding": "(problem,) contacts with u_n < mu |u_t| in the exact answer",
        "distance": "(model, problem) residual under Coulomb's law",
        "parts": "(model, problem, part of PARTS) of the distance",
        "velocity": "(model, problem) largest difference of a contact velocity from the cone's",
        "own": "(model, problem) residual under the model's own law",
        "seconds": "(model, problem) s",
    }

    def of(self, what: str, model: str, slides: bool | None = None) -> Array:
        """Values of a model, over all problems, or over those where something slides, or nothing does."""
        values: Array = self.arrays[what][tuple(MODELS).index(model)]
        return values if slides is None else values[(self.sliding > 0) == slides]

    def median(self, what: str, model: str, slides: bool | None = True) -> float:
        return float(np.median(self.of(what, model, slides)))

    def cost(self, model: str) -> Array:
        """Time over that of the cone, problem by problem."""
        return self.of("seconds", model) / self.of("seconds", "cone")


def run(quick: bool = False, seed: int = 0) -> Results:
    """All problems under all models: a minute, or some seconds (fewer seeds) if quick."""
    kinds, names, problems = zip(*problem_set(2 if quick else 10, seed), strict=True)
    for problem in problems[:: max(1, len(problems) // 20)]:  # compiles what will be timed
        for name in MODELS:
            asked(name, problem)()
    measures = "sliding, distance, parts, velocity, own, seconds"
    found = tabulated(measures, partial(compare, 3 if quick else 5), problems)
    arrays = {name: array.swapaxes(0, 1) if array.ndim > 1 else array for name, array in found.items()}
    return Results(seed, kind=kinds, name=names, contacts=[problem.n for problem in problems], **arrays)


def problem_set(seeds: int, first: int) -> list[tuple[str, str, st.ContactProblem]]:
    """(kind, name, problem) under Coulomb's law on the cone."""
    made = [
        (kind, f"{name} {seed}", CONTACT_FAMILIES[name](seed).with_law(CONE))
        for kind, names in KINDS.items()
        for name in names
        for seed in range(first, first + seeds)
    ]
    published = contact_classics()
    return made + [("published", name, published[name].with_law(CONE)) for name in PUBLISHED]


def compare(repeats: int, problem: st.ContactProblem) -> tuple[int, Any, Any, Any, Any, Any]:
    """Contacts that slide; and of every model the distance, its parts, velocity, residual of its own law and time."""
    solves = [asked(name, problem) for name in MODELS]
    answers = [judged(problem, st.Status.SOLVED, solve().impulse, 0, None, TOLERANCE) for solve in solves]
    certificates, u = [answer.certificate for answer in answers], answers[0].contact_velocity
    slide = problem.friction * np.hypot(u[:, 1], u[:, 2]) > u[:, 0] + SAME * certificates[0].scale
    # Over the scale of the worst island; what is larger on another, against that one's scale, is less there.
    parts = [[min(getattr(each, part) / each.scale, each.residual) for part in PARTS] for each in certificates]
    away = [np.linalg.norm(answer.contact_velocity - u, axis=1).max() for answer in answers]
    velocity = [difference / each.scale for difference, each in zip(away, certificates, strict=True)]
    own = [violation(name, problem, answer) for name, answer in zip(MODELS, answers, strict=True)]
    distance = [each.residual for each in certificates]
    return slide.sum(), distance, parts, velocity, own, side_by_side(solves, repeats)


def asked(model: str, problem: st.ContactProblem) -> partial[Any]:
    """The solve of a model, with its normal form and start at hand."""
    law, solver, _ = MODELS[model]
    _ = problem.whitened
    start = None
    if model == "cone again":
        start = st.CellLemke().propose(problem.with_law(MODELS["pyramid 16"].law), None).impulse
    return partial(solver.propose, problem.with_law(law), start)


def violation(name: str, problem: st.ContactProblem, found: Any) -> float:
    """The residual of the model's own law."""
    if name == "relaxation":
        return violation_of(problem, found.impulse, found.contact_velocity)
    mine = judged(problem.with_law(MODELS[name].law), st.Status.SOLVED, found.impulse, 0, None, TOLERANCE)
    return float(mine.certificate.residual)


def check(results: Results) -> list[Claim]:
    """The claims about the models, and the findings."""
    about = (_exact, _unique, _pyramids, _relaxation, _others, _costs)
    return [claim for claims in about for claim in claims(results)]


def _exact(results: Results) -> Iterator[Claim]:
    held = {name: results.of("own", name) for name, model in MODELS.items() if model.exact}
    worst = max(held, key=lambda name: held[name].max())
    values = np.concatenate([*held.values()])
    solved = (values <= TOLERANCE).sum()
    claim = Statement(f"every model but the splitting is solved exactly under its own law, to {TOLERANCE:.0e}")
    yield claim.found(
        solved == values.size, f"{solved} of {values.size}, worst residual {held[worst].max():.0e} ({worst})"
    )


def _unique(results: Results) -> Iterator[Claim]:
    velocity = results.of("velocity", "cone again")
    several = (velocity > SAME).sum()
    claim = Statement("Coulomb's law allows one motion only in nearly all problems (95 %)", why=WHY_SEVERAL)
    numbers = f"{several} of {velocity.size} problems have another answer, {velocity.max():.1e} away at most"
    yield claim.found(several <= 0.05 * velocity.size, numbers)


WHY_SEVERAL = (
    "Where contacts outnumber the motions they resist, their normal impulses are not determined, and each distribution "
    "bounds friction differently. So a difference of velocities alone does not tell how wrong a model is: another "
    "exact answer may be as far away. The distance from the law does."
)
WHY_FALLS = (
    "The size of the friction on a pyramid is wrong by 1 - cos(pi / d) at most, which falls with the square of d; but "
    "where a contact slides, friction lies on a vertex of the polygon, as much as pi / d beside the direction that it "
    "should oppose, and that falls with d only. What is found lies between."
)


def _pyramids(results: Results) -> Iterator[Claim]:
    middle = {name: results.median("distance", name) for name in PYRAMIDS}
    text = ", ".join(f"{name.split()[1]} facets {value:.1e}" for name, value in middle.items())
    name = "sliding: the distance of pyramids falls with the square of the number of facets"
    falls = [middle[a] / middle[b] for a, b in pairwise(PYRAMIDS)]
    yield Statement(name, why=WHY_FALLS).found(min(falls) >= FALLS, f"medians: {text}")
    claim = Statement(f"sliding: the pyramid of 8 facets is within {NEAR:g} of Coulomb's law in the median")
    eight, worst = middle["pyramid 8"], results.of("distance", "pyramid 8").max()
    yield claim.found(eight <= NEAR, f"{eight:.1e}, worst {worst:.2f}")


def _relaxation(results: Results) -> Iterator[Claim]:
    still = results.of("velocity", "relaxation", slides=False)
    claim = Statement("where nothing slides, the convex relaxation has the motion of Coulomb's law")
    numbers = f"largest difference {still.max(initial=0.0):.0e} of {still.size} problems"
    yield claim.found((still <= SAME).all(), numbers)
    away, pyramid = (results.median("distance", name) for name in ("relaxation", "pyramid 8"))
    claim = Statement("sliding: the convex relaxation is farther from Coulomb's law than the pyramid of 8 facets")
    numbers = f"medians {away:.1e} and {pyramid:.1e}; velocities {results.median('velocity', 'relaxation'):.1e} away"
    yield claim.found(away > pyramid, numbers)
    parts = results.of("parts", "relaxation", slides=True)
    rest = np.delete(parts, PARTS.index("complementarity"), axis=1)
    claim = Statement("what it violates is complementarity alone: contacts that slide open")
    yield claim.found(rest.max() <= SAME, f"complementarity to {parts.max():.2f}, everything else to {rest.max():.0e}")


def _others(results: Results) -> Iterator[Claim]:
    order = ("pyramid 8", "box", "no-slip")
    pyramid, box, bound = (results.median("distance", name) for name in order)
    name = "sliding: the box is farther from Coulomb's law than the pyramid of 8 facets, no-slip farther than both"
    numbers = f"medians pyramid 8 {pyramid:.1e}, box {box:.1e}, no-slip {bound:.1e}"
    yield Statement(name).found(pyramid < box < bound, numbers)
    cone = results.of("parts", "no-slip", slides=True)[:, PARTS.index("cone")]
    claim = Statement("sliding: no-slip takes more friction than the cone allows, by more than a tenth in the median")
    yield claim.found(np.median(cone) > 0.1, f"median {np.median(cone):.2f}, worst {cone.max():.1f}")
    worse = results.of("distance", "splitting") > results.of("distance", "box") + SAME
    medians = " and ".join(f"{results.median('distance', name, None):.1e}" for name in ("splitting", "box"))
    claim = Statement("five passes of the splitting add to the box's own distance in less than half of all problems")
    yield claim.found(worse.mean() < 0.5, f"in {worse.sum()} of {worse.size}; medians {medians}")


def _costs(results: Results) -> Iterator[Claim]:
    ratio = results.of("seconds", "cone") / results.of("seconds", "pyramid 8")
    name = f"the exact cone costs at most {CHEAP:g} times as much as the pyramid of 8 facets in the median"
    numbers = f"{np.median(ratio):.2f} times, 90 % of problems below {np.percentile(ratio, 90):.1f}"
    yield Statement(name, timed=True).found(np.median(ratio) <= CHEAP, numbers)
    relaxed = np.median(results.cost("relaxation"))
    claim = Statement("the convex relaxation is not cheaper than the exact cone, in the median", timed=True)
    yield claim.found(relaxed >= 1.0, f"{relaxed:.1f} times the cone (a plain dense method of multipliers)")


def tables(results: Results) -> list[Sheet]:
    """Each model over all problems, and by kind of problem."""
    slides = results.sliding > 0
    head = (
        "model", "distance, median", "velocity, median", "distance, 90 %", "distance, worst",
        *(f"{part}, worst" for part in PARTS), "time / cone",
    )  # fmt: skip
    caption = (
        f"{slides.size} problems; medians and parts over the {slides.sum()} where something slides. In units of the "
        "largest free contact velocity, judged by Coulomb's law on the circular cone."
    )
    rows = [(name, *_numbers(results, name), f"{np.median(results.cost(name)):.2f}") for name in MODELS]
    kinds = {kind: results.kind == kind for kind in dict.fromkeys(results.kind.tolist())}
    by_kind = [
        (name, *(_number(np.median(results.of("distance", name)[those])) for those in kinds.values()))
        for name in MODELS
    ]
    counts = [f"{kind} ({those.sum()})" for kind, those in kinds.items()]
    return [
        Sheet(caption, head, rows),
        Sheet("Median distance from Coulomb's law by kind of problem (how many).", ("model", *counts), by_kind),
    ]


def _numbers(results: Results, name: str) -> Iterator[str]:
    distance, parts = results.of("distance", name), results.of("parts", name, slides=True)
    medians = (results.median(what, name) for what in ("distance", "velocity"))
    return map(_number, (*medians, np.percentile(distance, 90), distance.max(), *parts.max(axis=0)))


def _number(value: Any) -> str:
    return "0" if value < SAME else f"{value:.1e}" if value < 1e-3 else f"{value:.2g}"


def figures(results: Results) -> list[Plate]:
    """Distances and costs of every problem; medians of both against each other."""
    return [_plot_all(results), _plot_medians(results)]


LEAST = 1e-6  # distances below are drawn here


@plate("all", 9.0, 4.8)
def _plot_all(figure: Any, results: Results) -> str:
    """A row a model: a point a problem, filled where something slides, and the median of those."""
    axes = figure.subplots(1, 3, sharey=True)
    slides = results.sliding > 0
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, slides.size)
    for row, name in enumerate(MODELS):
        shown = (results.of("distance", name), results.of("velocity", name), results.cost(name))
        for ax, values in zip(axes, shown, strict=True):
            x, y = np.maximum(values, LEAST), row + spread
            ax.plot(x[~slides], y[~slides], "o", ms=2.0, mfc="none", mec="0.6", mew=0.5)
            ax.plot(x[slides], y[slides], "o", ms=2.0, color="0.35")
            middle = np.median(x if ax is axes[2] else x[slides])
            ax.plot([middle, middle], [row - 0.42, row + 0.42], color="k", lw=2.0)
    for ax, label in zip(axes, ("distance from Coulomb's law", "difference of velocities", "time / cone"), strict=True):
        ax.set(xscale="log", xlabel=label)
        ax.grid(axis="x", color="0.9", lw=0.6)
    axes[0].set_yticks(range(len(MODELS)), list(MODELS))
    axes[0].set_ylim(len(MODELS) - 0.4, -0.6)
    axes[1].set_title("a point a problem, filled if something slides; bars: medians; left edge: zero", fontsize=9)
    return "Every problem under every model: distance from Coulomb's law, velocities, and cost."


@plate("cost", 6.0, 4.2)
def _plot_medians(figure: Any, results: Results) -> str:
    """The cost of accuracy: median distance on sliding problems against median time."""
    ax = figure.subplots()
    for name in MODELS:
        if name == "cone again":
            continue
        low, distance, high = np.percentile(np.maximum(results.of("distance", name, slides=True), LEAST), [25, 50, 75])
        cost, quartiles = np.median(results.cost(name)), [[distance - low], [high - distance]]
        ax.errorbar(cost, distance, quartiles, fmt="o", color="0.3", ms=5, lw=0.8, capsize=2)
        label = name if distance > LEAST else f"{name}: zero"
        ax.annotate(label, (cost, distance), (6, 4), textcoords="offset points", fontsize=8)
    ax.set(xscale="log", yscale="log", xlabel="median time / cone", ylabel="distance from Coulomb's law, sliding")
    ax.grid(color="0.92", lw=0.6)
    ax.set_xlim(right=2.0 * ax.get_xlim()[1])  # room for the last name
    return (
        "What accuracy costs: median distance on sliding problems (quartiles) against median time; the cone's is zero."
    )
