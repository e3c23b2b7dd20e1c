"""`stiction doctor`: what of a scene is used, whether its contacts are sound, and what to do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from stiction.cli.output import BAD_INPUT, FAILED, MANY, in_options, plain, say, tell
from stiction.cli.run import Scene, check_seconds
from stiction.cli.source import Reading, Stepping
from stiction.errors import SolveFailed, first_few

if TYPE_CHECKING:
    from collections.abc import Iterator

OVERLAP = 1e-4  # of the smaller geom's radius
WRONG = 1e-3  # of the smaller geom's radius: error of a distance that is reported
TILT = 5.0  # degrees by which a normal may differ from the direction of the nearest points
HEAVY = 1e4  # ratio of masses that is reported
MOST = 8  # pairs that are named
LOOSE = 1e-4  # m or rad: error of an equality constraint that is reported


def doctor(
    scene: Scene,
    /,
    *,
    seconds: Annotated[float, cyclopts.Parameter(help="Time to simulate before looking at contacts.")] = 0.0,
    stepping: Stepping = Stepping(),  # noqa: B008 (frozen)
    reading: Reading = Reading(),  # noqa: B008 (frozen)
) -> int:
    """Examine a scene: what is used, ignored and refused; masses, margins, contacts, which forces are determined.

    Exit status 0 if it can be stepped, 2 if something in it is refused, 1 if its contact problem is not solved.

    **Examples**

        stiction doctor robot.xml
        stiction doctor card-house --set levels=3 --seconds 1
    """
    check_seconds(seconds)
    simulation, report = examined(scene, stepping, reading)
    say(in_options(str(report)))
    if simulation is None:
        tell("the scene cannot be stepped: change what is refused")
        return BAD_INPUT
    advice: list[str] = []
    section("masses and margins", masses(simulation, advice))
    try:
        for _ in simulation.run(seconds):
            pass
        simulation.step()
    except SolveFailed as error:
        say(f"step at {simulation.time:g} s:\n  {error}")
        section("contacts", geometry(simulation, advice))
        advice.append("the contact problem is not solved: mend what is told above first, or try --law pyramid:8")
        section("what to do", iter(advice))
        return FAILED
    if simulation.model.neq:
        section(f"equality constraints at {simulation.time:g} s", loops(simulation, advice))
    section(f"contacts at {simulation.time:g} s", contacts(simulation, advice))
    section("what to do", iter(advice or ["nothing"]))
    return 0


def section(title: str, lines: Iterator[str]) -> None:
    say(f"{title}:")
    for line in lines:
        say(f"  {line}")


def examined(scene: str, stepping: Stepping, reading: Reading) -> tuple[Any, Any]:
    """A simulation, None if the scene is refused, and the scene's report."""
    simulation = stepping.checked()
    loaded = reading.scene(scene)
    report = loaded.report()
    return None if report.refused else simulation(loaded), report


def masses(simulation: Any, advice: list[str]) -> Iterator[str]:
    from stiction.bodies.structs import HFIELD

    model = simulation.model
    moving = [b for b in range(1, model.nbody) if model.body_treeid[b] >= 0]
    heavy = [(float(model.body_mass[b]), model.body(b).name or f"body {b}") for b in moving if model.body_mass[b] > 0.0]
    if heavy:
        least, most = min(heavy), max(heavy)
        ratio = most[0] / least[0]
        yield f"mass {least[0]:.3g} kg ({least[1]}) to {most[0]:.3g} kg ({most[1]}): ratio {ratio:.3g}"
        if ratio > HEAVY:
            advice.append(f"masses differ by {ratio:.1g}: exact solvers bear it; check that the units are kg")
    yield f"time step {model.opt.timestep:g} s"
    simulation.engine.look()
    found = simulation.engine.shadow.margins["geom_margin"].tolist()
    geoms = [g for g in range(model.ngeom) if found[g] > 0.0]
    if geoms:
        margins = [found[g] for g in geoms]
        kind = "follow the motion" if simulation.scene.margin is None else "fixed"
        yield f"margins at the start {min(margins):.2g} to {max(margins):.2g} m ({kind})"
        thick = min(thickness(model, g) for g in geoms)
        if max(margins) > thick:
            advice.append(
                f"contact is looked for up to {max(margins):.2g} m away, but the thinnest geom measures {thick:.2g} m: "
                "a smaller time step (--dt) finds fewer contacts that do not matter"
            )
    for g in range(model.ngeom):
        if model.geom_type[g] == HFIELD:
            advice.append(f"normals of heightfield {name_of(model, g)} may tilt: terrain of boxes or meshes is better")


def thickness(model: Any, geom: int) -> float:
    sizes = [float(size) for size in model.geom_size[geom] if size > 0.0]
    return 2.0 * min([float(model.geom_rbound[geom]), *sizes])


def loops(simulation: Any, advice: list[str]) -> Iterator[str]:
    """Bilateral rows, how many of them are independent, and how well they hold."""
    from stiction.bodies.report import EQUALITIES, counted

    model, data, found = simulation.model, simulation.data, simulation.engine.gathered
    number = len(found.joint_gap)
    if not number:
        yield "none of them is active"
        return
    numbers = [int(each) for each in dict.fromkeys(data.efc_id[:number].tolist())]
    kinds = [EQUALITIES[int(model.eq_type[each])] for each in numbers]
    yield ", ".join(counted(kinds.count(kind), kind) for kind in dict.fromkeys(kinds))
    problem = simulation.report.solution.problem
    if problem is not None:
        rank, moved = len(problem.whitened.kept), int(problem.joints.any(axis=1).sum())
        yield f"{counted(number, 'row')} of rank {rank}"
        if moved < number:
            yield f"{number - moved} of them move nothing: loops in a plane have such, across it"
        if rank < moved:
            yield f"{moved - rank} of them depend on others: they are held as well, and forces are shared among them"
    errors = abs(found.joint_gap)
    worst = int(errors.argmax())
    name = model.equality(int(data.efc_id[worst])).name or f"equality {int(data.efc_id[worst])}"
    yield f"errors up to {errors[worst]:.2g} ({name})"
    if errors[worst] > LOOSE:
        advice.append(
            f"{name} is {errors[worst]:.2g} m or rad off: it is put right as fast as its solref asks, at 0.1 m/s at "
            "least; a keyframe in which it fits begins without that"
        )


def condims(model: Any) -> str:
    """How many geoms that collide have which friction."""
    from stiction.bodies.report import colliding, counted

    geoms = colliding(model)
    dims = {1: "none", 3: "sliding", 4: "sliding and torsion", 6: "sliding, torsion and rolling"}
    found = [
        f"condim {dim} ({what}) of {counted(many, 'geom')}"
        for dim, what in dims.items()
        if (many := int((geoms & (model.geom_condim == dim)).sum()))
    ]
    return f"friction: {', '.join(found)}" if found else "no geom collides"


def contacts(simulation: Any, advice: list[str]) -> Iterator[str]:
    from stiction.bodies.report import counted
    from stiction.solutions.contact import Mode

    report = simulation.report
    solution = report.solution
    found = simulation.engine.gathered
    yield condims(simulation.model)
    counts = {mode: int((solution.mode == mode).sum()) for mode in Mode}
    modes = ", ".join(f"{count} {mode.name.lower()}" for mode, count in counts.items() if count or mode <= Mode.SLIDE)
    limits = int((found.kind != 0).sum())
    joints = f" and {counted(limits, 'limit or dry friction', 'limits or dry frictions')} of joints" if limits else ""
    yield f"{counted(found.n - limits, 'contact')}{joints}: {modes}"
    yield f"residual {plain(report.certificate.residual)}, {solution.iterations} iterations"
    if report.contradictions:
        yield f"contradictions: {listed(list(report.contradictions))} cannot all be put right"
        advice.append(
            "what contradicts each other is put right as far as it agrees: move it apart, or drop one of them"
        )
    yield from geometry(simulation, advice)
    if (solution.mode == Mode.OPEN).all():
        advice.append("nothing touches yet: look later with --seconds")
    elif found.n > MANY:
        yield f"more than {MANY} contacts: not asked which forces are determined"
    elif solution.problem is not None:
        unique = solution.uniqueness()
        yield str(unique)
        if not unique.unique:
            shared = [
                pair(simulation.model, found, i) for i in range(found.n) if not (unique.determined[i] or found.kind[i])
            ]
            if shared:
                yield f"shared in many ways: {listed(shared)}"
            if len(unique.redundant_joints):
                yield f"{len(unique.redundant_joints)} bilateral rows depend on others"
            advice.append(
                "forces of single redundant contacts are one choice of many: trust their sums (in Python, "
                "sim.net_force), or the smallest (solution.least_norm)"
            )


def geometry(simulation: Any, advice: list[str]) -> Iterator[str]:
    """Gaps and normals of the contacts, beside the true distances."""
    from stiction.bodies.collision.distance import nearest

    model, data = simulation.model, simulation.data
    simulation.engine.look()
    found = simulation.engine.gather()
    near = [i for i in range(found.n) if found.kind[i] == 0]
    if not near:
        return
    gaps = {i: float(found.gap[i]) for i in near}
    yield f"gaps {min(gaps.values()):.2g} to {max(gaps.values()):.2g} m"
    overlapping, held, wrong = [], [], []
    lowest: dict[tuple[int, int], int] = {}
    for i in near:
        one, two = (int(g) for g in found.pair[i])
        if (one, two) not in lowest or gaps[i] < gaps[lowest[one, two]]:
            lowest[one, two] = i
    for (one, two), i in lowest.items():
        size = min(float(r) for r in model.geom_rbound[[one, two]] if r > 0.0)
        trees = model.body_treeid[model.geom_bodyid[[one, two]]]
        text = pair(model, found, i)
        if gaps[i] < -OVERLAP * size:
            overlapping.append(f"{text} by {-gaps[i]:.2g} m")
            if trees[0] == trees[1] and trees[0] >= 0:
                held.append(text)
        true = nearest(model, data, one, two, gaps[i] + size)
        if true is None:
            continue
        distance, direction = true
        normal = data.contact.frame[found.source[i]][:3]
        tilt = 0.0 if direction is None else math.degrees(math.acos(min(1.0, abs(float(direction @ normal)))))
        if abs(distance - gaps[i]) > WRONG * size or (distance > 0.0 and tilt > TILT):
            wrong.append(f"{text}: {gaps[i]:.2g} m, truly {distance:.2g} m, normal off by {tilt:.0f}°")
    if overlapping:
        yield f"overlaps: {listed(overlapping)}"
        advice.append("overlaps are taken back at 0.1 m/s (option recovery of the stepper): move those geoms apart")
    if held:
        advice.append(f"geoms of one mechanism overlap; exclude such pairs (<contact><exclude .../>): {listed(held)}")
    if wrong:
        yield f"contacts that differ from the nearest points: {listed(wrong)}"
        advice.append(
            "collision is MuJoCo's, and doubtful at those pairs: use capsules or spheres there, a finer mesh, or a "
            "smaller time step, which looks ahead less"
        )
    elif not overlapping:
        yield "every pair agrees with the distance of its nearest points"


def pair(model: Any, found: Any, i: int) -> str:
    return " – ".join(name_of(model, geom) for geom in found.pair[i])


def name_of(model: Any, geom: int) -> str:
    return str(model.geom(int(geom)).name or f"geom {geom}")


def listed(names: list[str]) -> str:
    """Each once, with how often, not too many."""
    counted = {name: names.count(name) for name in names}
    return first_few([name if number == 1 else f"{name} ({number})" for name, number in counted.items()], MOST, "; ")
