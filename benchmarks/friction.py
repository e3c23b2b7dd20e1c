"""Friction: pyramids against the assembled LCP, the cone against pyramids, boxes, and heaps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import peers
import siconos_peer
from kernels import kernel
from measure import Aim, Contestant, Table, aims_of, at_least, at_most, duration, faster, ours, race, with_aims

import stiction as st
from stiction.problems.pyramid import pyramid_lcp
from stiction.problems.zoo.contact_families import grasp, heap, peg, stack

PYRAMID, CONE = st.Coulomb(facets=8), st.Coulomb()
SCENES: dict[str, Callable[[int], st.ContactProblem]] = {
    "peg, 8 contacts": partial(peg, 8),
    "peg, 16 contacts": partial(peg, 16),
    "peg, 32 contacts": partial(peg, 32),
    "five blocks, 20 contacts": partial(stack, 5),
    "grasp, 36 contacts": grasp,
}
CONE_SCENES = SCENES | {"peg, 64 contacts": partial(peg, 64), "ten blocks, 40 contacts": partial(stack, 10)}
AGAINST_QUANTECON = {"peg, 32 contacts": 250, "five blocks, 20 contacts": 10, "grasp, 36 contacts": 60}
AGAINST_STANDARD = {"peg, 32 contacts": 87, "five blocks, 20 contacts": 20}  # about [Lloyd2004, fig. 5 and 10]
QUANTECON, STANDARD = "quantecon lcp_lemke", "Lemke, kernel"
STRUCTURAL, REDUCED = "StructuredLemke(reduced=False), kernel", "StructuredLemke, kernel"
CELLS = "CellLemke, kernel"

WHY_STRUCTURED = (
    "*Structured Lemke.* The ratios wanted are those of Lloyd (2004, figures 5 and 10), whose standard method "
    "took 400 ms on the peg with 32 contacts. Our own standard method takes a tenth to a half of the time of "
    "quantecon's and fails nowhere here, so that less is left to gain; and with five blocks the reduced system, "
    "of up to 30 velocities, is not much smaller than what the standard method has in its basis. A ratio to "
    "quantecon is counted on the problems that it solves, or on all if it solves none."
)
WHY_CONE = (
    "*Cone against pyramid.* On small pegs and on the grasp Lemke's path is short, 10 to 35 pivots of a few "
    "operations, and Newton's method has to set up its systems two to five times. On blocks it is the other way "
    "round."
)
ON_HEAPS = (
    "Large heaps are where Newton's method is at its worst: some need hundreds of steps, or pyramids to begin at. "
    "Of 100 bodies, seed 1, not in the table, is not solved in minutes."
)


def assembled(contestant: Contestant) -> Contestant:
    """A solver of LCPs on the pyramid's, whose assembly is not timed."""
    return Contestant(contestant.name, lambda problem: contestant.prepare(pyramid_lcp(problem)))


def lemkes() -> list[Contestant]:
    """Those of other packages, on the assembled LCP."""
    found = [assembled(peers.quantecon())] if peers.available("quantecon") else []
    if peers.available("pydrake"):
        found += [assembled(peers.drake(name)) for name in ("MobyLcpSolver", "UnrevisedLemkeSolver")]
    return [*found, siconos_peer.lemke()] if siconos_peer.worker() else found


def pyramids(quick: bool) -> list[Table]:
    contestants = [
        kernel(st.Lemke()),
        kernel(st.StructuredLemke(reduced=False), STRUCTURAL),
        kernel(st.StructuredLemke()),
        kernel(st.CellLemke()),
        ours(st.CellLemke(), "CellLemke, solve"),
    ]
    reference = QUANTECON if peers.available("quantecon") else STANDARD
    contestants = [*lemkes(), *contestants]
    tables = []
    for scene, make in SCENES.items():
        problems = [make(seed).with_law(PYRAMID) for seed in range(2 if quick else 20)]
        title = f"Friction pyramid of 8 facets, {len(problems)} problems: {scene}"
        table = race(title, problems, contestants, reference, 7)
        tables.append(with_aims(table, *pyramid_aims(scene, table, reference)))
    return [*tables, aims_of(tables, WHY_STRUCTURED)]


def pyramid_aims(scene: str, table: Table, reference: str) -> list[Aim]:
    found = []
    if scene in AGAINST_QUANTECON and reference == QUANTECON:
        what = f"{scene}: CellLemke, times faster than {QUANTECON}"
        found.append(at_least(what, AGAINST_QUANTECON[scene], faster(table, CELLS, QUANTECON)))
    if scene in AGAINST_STANDARD:
        what = f"{scene}: StructuredLemke, times faster than our own Lemke"
        found.append(at_least(what, AGAINST_STANDARD[scene], faster(table, REDUCED, STANDARD)))
        if reference == QUANTECON:
            what = f"{scene}: StructuredLemke, times faster than {QUANTECON}"
            found.append(Aim(what, "", faster(table, REDUCED, QUANTECON), True))
    return found


def cones(quick: bool) -> list[Table]:
    """The circular cone against the pyramid; each is judged by its own law."""
    contestants = [
        kernel(st.CellLemke(), law=PYRAMID),
        kernel(st.ConeNewton(), law=CONE),
        ours(st.CellLemke(), "CellLemke, solve", PYRAMID),
        ours(st.ConeNewton(), "ConeNewton, solve", CONE),
        ours(st.Auto(), "Auto on the cone, solve", CONE),
    ]
    if siconos_peer.worker():
        contestants.append(replace(siconos_peer.on_the_cone("NSGS"), law=CONE))
    tables = []
    for scene, make in CONE_SCENES.items():
        problems = [make(seed) for seed in range(2 if quick else 20)]
        title = f"Circular cone against pyramid of 8 facets, {len(problems)} problems: {scene}"
        tables.append(race(title, problems, contestants, CELLS, 15))
    tables[-1] = with_aims(tables[-1], *cone_aims(dict(zip(CONE_SCENES, tables, strict=True))))
    return [*tables, aims_of(tables, WHY_CONE)]


def cone_aims(tables: dict[str, Table]) -> list[Aim]:
    """The worst scene of a kind."""
    found = []
    for kind, wanted in (("peg", 1.5), ("blocks", 1.0), ("grasp", 1.0)):
        for part in ("kernel", "solve"):
            ratios = {
                scene: 1.0 / faster(table, f"ConeNewton, {part}", f"CellLemke, {part}")
                for scene, table in tables.items()
                if kind in scene
            }
            worst = max(ratios, key=lambda scene: ratios[scene])
            found.append(at_most(f"{worst}: cone over pyramid, {part}", wanted, ratios[worst]))
    return found


def boxes(quick: bool) -> list[Table]:
    """Splitting [Lacoursiere2003] against the cells of a pyramid with four facets, which is the same law."""
    contestants = [
        ours(st.CellLemke(), law=st.BoxFriction()),
        ours(st.Splitting(), "Splitting, finished by Newton", st.BoxFriction()),
        ours(st.Splitting(accelerate="anderson"), "Splitting, Anderson", st.BoxFriction()),
        ours(st.Splitting(accelerate=None), "Splitting, 100 passes", st.BoxFriction()),
    ]
    return [
        race(
            f"Box friction: {scene}", [SCENES[scene](s) for s in range(2 if quick else 10)], contestants, "CellLemke", 3
        )
        for scene in ("peg, 16 contacts", "five blocks, 20 contacts", "grasp, 36 contacts")
    ]


def heaps(quick: bool) -> list[Table]:
    """Problem by problem and once each, since they differ so much: the hardest take a thousand times the easiest."""
    rows, numbers = [], []
    for law, solver in ((PYRAMID, st.CellLemke()), (CONE, st.ConeNewton())):
        attempted(heap(3, 0), law, solver)  # compiles
    for bodies, seeds in ((12, 4), (40, 0 if quick else 4), (100, 0 if quick else 1)):
        for seed in range(seeds):
            problem = heap(bodies, seed)
            cells, newton = attempted(problem, PYRAMID, st.CellLemke()), attempted(problem, CONE, st.ConeNewton())
            numbers.append({"bodies": bodies, "seed": seed, "CellLemke": cells[1:], "ConeNewton": newton[1:]})
            rows.append((f"{bodies} bodies, seed {seed}", str(problem.n), *told(*cells), *told(*newton)))
    cells_columns, newton_columns = ("CellLemke", "pivots", "residual"), ("ConeNewton", "steps", "residual")
    columns = ("heap", "contacts", *cells_columns, *newton_columns)
    return [Table("Heaps: pyramid of 8 facets, and cone", columns, rows, [ON_HEAPS], {"heaps": numbers})]


def attempted(problem: st.ContactProblem, law: Any, solver: Any) -> tuple[bool, float, int, float]:
    """Whether it is solved, seconds of `st.solve`, iterations, residual."""
    fresh = problem.with_law(law)
    begin = time.perf_counter()
    found = st.solve(fresh, solver, throw=False)
    return found.ok, time.perf_counter() - begin, found.iterations, found.certificate.residual


def told(solved: bool, seconds: float, iterations: int, residual: float) -> tuple[str, str, str]:
    return duration(seconds), str(iterations), f"{residual:.0e}" + ("" if solved else ", not solved")
