"""Grasping and walking without slip: pivoting on 36 variables against Lemke's method on 216.

E. Drumwright, "Rapidly computable viscous friction and no-slip rigid contact models", 2013, section VII: tables I to
III, and the growth with contacts and freedoms that section V derives.

A grasp of two boxes by two grippers (36 contacts, steps of 0.01 s) is stepped under Stewart and Trinkle's model (mu =
100, four directions, 216 variables) with Lemke's method, and without slip (36 variables) with an active-set method for
quadratic programs and with modified principal pivoting. A robot walks for ten seconds over terrain, without slip
against Coulomb's friction with mu = 100, and with viscous friction (0.1 N s/m), by Lemke's method against modified
pivoting. The paper times whole simulations; here the methods are also timed alone, on problems ready to be solved.

What is not as in the paper: its simulators, robot, terrain and controller. Its active-set method is MATLAB's; here it
is Cottle and Dantzig's on the same 36 variables, and quadprog and daqp where they are installed. Its Coulomb model for
the walk minimizes kinetic energy; here it is Stewart and Trinkle's, and Newton's method on the circular cone. Contacts
of the grasp are those of our scene, and two more sets: around the rims of the faces, and at the corners, each with the
three normals that the paper's simulator took.

Times are the processor's; of repeated solutions the least counts. "Several times" is half of the printed ratio.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction import optional
from stiction.errors import SolveFailed
from stiction.problems.contact_families import (
    CONTACT_FAMILIES,
    CUBE,
    UP,
    grasp,
    grasp_tripled,
    polygon,
    weights,
    with_friction,
)
from stiction.problems.laws import Coulomb, NoSlip, Viscous
from stiction.problems.pyramid import pyramid_impulse, pyramid_lcp
from stiction.problems.rigid_bodies import Touch, block, posed
from stiction.solvers.cell_lemke.cell_lemke import CellLemke
from stiction.solvers.cone_newton.cone_newton import ConeNewton
from stiction.solvers.lcp.cottle_dantzig import CottleDantzig
from stiction.solvers.lcp.lemke import Lemke
from stiction.solvers.principal_pivot import PrincipalPivot
from stiction.studies.claims import Claim
from stiction.studies.environment import environment
from stiction.studies.methods import Method, on_package, on_program, on_pyramid, ours, race, with_quantecon
from stiction.studies.programs import impulses, installed, present, program
from stiction.studies.results import Plate, Sheet, Stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

    Array = NDArray[np.float64]

MU = 100.0
PYRAMID, CONE, BOUND, WET = Coulomb(facets=4), Coulomb(), NoSlip(), Viscous()
VISCOSITY = 0.1  # N / (m/s)
TOLERANCE = 1e-8
LOST = 0.01  # m, by which a box has moved when it counts as lost
STANDARD, PIVOTING, DANTZIG = "Stewart–Trinkle, Lemke", "no slip, PrincipalPivot", "no slip, Cottle–Dantzig"
ASSEMBLED = "no slip, PrincipalPivot on the LCP"
CELLS, QUANTECON = "Stewart–Trinkle, CellLemke", "Stewart–Trinkle, quantecon"
CIRCULAR, WET_LEMKE, WET_PIVOTING = "cone, ConeNewton", "viscous, Lemke", "viscous, PrincipalPivot"
SETS = ("scene", "rims", "corners")
WALKS = (STANDARD, CIRCULAR, PIVOTING, WET_LEMKE, WET_PIVOTING)
GROWN = (PIVOTING, WET_PIVOTING)
ASKED = 100  # steps of the grasp
STEP = 0.001  # s, of the walk; five times that if quick
WARM_UP = 100  # steps of the walk that are not timed
SAMPLES = 100  # problems taken from a walk
FIXED_CONTACTS, FIXED_BLOCKS = 480, 5
LARGEST = 40  # contacts, of problems tried for ease: the pyramid's LCP has six times as many variables


# Methods


METHODS: dict[str, Method] = {
    STANDARD: Method(PYRAMID, partial(on_pyramid, Lemke()), pyramid_impulse),
    CELLS: ours(PYRAMID, CellLemke()),
    CIRCULAR: ours(CONE, ConeNewton(tolerance=1e-12)),
    DANTZIG: Method(BOUND, partial(on_program, CottleDantzig()), impulses),
    ASSEMBLED: Method(BOUND, partial(on_program, PrincipalPivot()), impulses),
    PIVOTING: ours(BOUND, PrincipalPivot()),
    WET_LEMKE: Method(WET, partial(on_program, Lemke()), impulses),
    WET_PIVOTING: ours(WET, PrincipalPivot()),
}


def methods() -> dict[str, Method]:
    """Ours, and packages that are installed."""
    found = dict(METHODS)
    if present(optional.quantecon):
        found[QUANTECON] = Method(PYRAMID, with_quantecon, pyramid_impulse)
    for name, prepare in installed().items():
        if name in ("quadprog", "daqp"):
            found[f"no slip, {name}"] = Method(BOUND, partial(on_package, prepare), impulses)
    return found


# Experiments


@dataclass(frozen=True, eq=False)
class Results(Stored):
    """Times in s; the axes are named in this order.

    held: names of the methods of table I; grasp_seconds, grasp_residual: (set of SETS, method, problem), methods alone
    grasp_pivots: (set, problem) of principal pivoting; variables: (2,) of the LCPs with and without friction
    trial_seconds: (method, trial) of ten steps, all included; NaN where they were not made
    survived: (method,) steps of ASKED until a box is lost; drift, speed, held_residual: (method,) see `Held`
    walked: names of the walks; walk_seconds, walk_steps, walk_distance (m), walk_residual: (walk,)
    walk_contacts: (walk, 4) least, mean, standard deviation, most
    taken: names of the methods timed on problems of the walks; taken_seconds, taken_residual: (method, problem),
        NaN where there is none
    contacts: (size,) n at m = 6 FIXED_BLOCKS; contact_seconds, contact_pivots: (method of GROWN, size, problem)
    freedoms: (size,) m at n = FIXED_CONTACTS; freedom_seconds: (method of GROWN, size, problem)
    standard_contacts: (size,); standard_seconds: (size, problem) of Lemke's method on the pyramid
    tried: names of the methods tried on all families; ease_residual: (method, problem)
    """

    held: NDArray[np.str_]
    grasp_seconds: Array
    grasp_residual: Array
    grasp_pivots: NDArray[np.int64]
    variables: NDArray[np.int64]
    trial_seconds: Array
    survived: NDArray[np.int64]
    drift: Array
    speed: Array
    held_residual: Array
    walked: NDArray[np.str_]
    walk_seconds: Array
    walk_steps: NDArray[np.int64]
    walk_distance: Array
    walk_residual: Array
    walk_contacts: Array
    taken: NDArray[np.str_]
    taken_seconds: Array
    taken_residual: Array
    contacts: NDArray[np.int64]
    contact_seconds: Array
    contact_pivots: NDArray[np.int64]
    freedoms: NDArray[np.int64]
    freedom_seconds: Array
    standard_contacts: NDArray[np.int64]
    standard_seconds: Array
    tried: NDArray[np.str_]
    ease_residual: Array

    def alone(self, method: str) -> Array:
        """(set,) median time of a method on the problems of the grasp."""
        return np.asarray(np.median(self.grasp_seconds[:, self.held.tolist().index(method)], axis=1))

    def ratio(self, method: str, other: str) -> float:
        """Median over all problems of the grasp of (time of a method) / (time of the other)."""
        one, two = (self.grasp_seconds[:, self.held.tolist().index(name)] for name in (method, other))
        return float(np.median(one / two))

    def whole(self, method: str) -> float:
        """Least time of ten steps of the grasp, all included."""
        return float(self.trial_seconds[self.held.tolist().index(method)].min())

    def walk(self, name: str) -> float:
        return float(self.walk_seconds[self.walked.tolist().index(name)])

    def on_walk(self, method: str) -> float:
        return float(np.nanmedian(self.taken_seconds[self.taken.tolist().index(method)]))

    def eased(self, method: str) -> float:
        """Share of the problems of all families that a method solves."""
        return float(np.mean(self.ease_residual[self.tried.tolist().index(method)] <= TOLERANCE))


def run(quick: bool = False, seed: int = 0) -> Results:
    """All experiments: some minutes, or half a minute if quick."""
    ways = methods()
    return Results(
        **grasping(ways, seed),
        **walking(ways, quick, seed),
        **growing(ways, quick, seed),
        **easing(ways, quick, seed),
        seed=seed,
        environment=environment(),
    )


# The grasp: table I


def grasping(ways: dict[str, Method], seed: int) -> dict[str, Any]:
    order = (STANDARD, QUANTECON, CELLS, DANTZIG, "no slip, quadprog", "no slip, daqp", ASSEMBLED, PIVOTING)
    held = [name for name in order if name in ways]
    seeds = range(seed, seed + 10)
    sets = [on_stage(len(seeds)), [grasp(s, MU) for s in seeds], [grasp_tripled(s, MU) for s in seeds]]
    raced = [race(problems, [ways[name] for name in held], 15) for problems in sets]
    kept = [hold(ways[name], ASKED) for name in held]
    trials = [[hold(ways[name], 10).seconds for name in held] for _ in seeds]
    bound = sets[0][0].with_law(BOUND)
    return {
        "held": np.array(held),
        "grasp_seconds": np.array([seconds for seconds, _ in raced]),
        "grasp_residual": np.array([residual for _, residual in raced]),
        "grasp_pivots": np.array([[pivots(p.with_law(BOUND)) for p in problems] for problems in sets]),
        "variables": np.array([pyramid_lcp(bound.with_law(PYRAMID)).n, program(bound).lcp().n]),
        "trial_seconds": np.array(trials).T,
        "survived": np.array([each.steps for each in kept]),
        "drift": np.array([each.drift for each in kept]),
        "speed": np.array([each.speed for each in kept]),
        "held_residual": np.array([each.residual for each in kept]),
    }


def held_scene(way: Method) -> Any:
    """The grasp, stepped by 0.01 s; every solve begins anew, as in the paper."""
    from stiction.bodies.scene import Scene
    from stiction.stepping.simulation import Simulation
    from stiction.stepping.time_stepping import TimeStepping

    sim = Simulation(Scene.named("force-closure-grasp", mu=MU), way.law, way.solver, TimeStepping(warm=False))
    sim.model.opt.timestep = 0.01
    return sim


def on_stage(count: int) -> list[ContactProblem]:
    """The problems of the first steps of the grasp."""
    sim = held_scene(METHODS[PIVOTING])
    return [sim.step().solution.whose() for _ in range(count)]


class Held(NamedTuple):
    steps: int  # until a box is lost or a problem is not solved
    drift: float  # m, or half an angle in rad, of what has moved most
    speed: float  # m/s or rad/s, the largest of all steps
    residual: float  # the worst
    seconds: float  # NaN if not all steps were made


def hold(way: Method, steps: int) -> Held:
    sim = held_scene(way)
    start, drift, speed, residual, made = sim.data.qpos.copy(), 0.0, 0.0, 0.0, 0
    begin = time.process_time()
    while made < steps and drift <= LOST:
        try:
            report = sim.step()
        except SolveFailed:
            break
        made += 1
        drift = float(np.abs(sim.data.qpos - start).max())
        speed = max(speed, float(np.abs(sim.data.qvel).max()))
        residual = max(residual, report.certificate.residual)
    return Held(made, drift, speed, residual, time.process_time() - begin if made == steps else np.nan)


def pivots(problem: ContactProblem) -> int:
    return int(PrincipalPivot().propose(problem, None).iterations)


# The walk: tables II and III


def walking(ways: dict[str, Method], quick: bool, seed: int) -> dict[str, Any]:
    seconds = 0.5 if quick else 10.0
    step, repeats = (5.0 * STEP, 2) if quick else (STEP, 1)
    walks = [
        min((walk(ways[name], seconds, step, seed) for _ in range(repeats)), key=lambda found: found.seconds)
        for name in WALKS
    ]
    dry, wet = walks[WALKS.index(PIVOTING)].problems, walks[WALKS.index(WET_PIVOTING)].problems
    taken = ([STANDARD, CELLS, CIRCULAR, PIVOTING], [WET_LEMKE, WET_PIVOTING])
    raced = [
        race(problems, [ways[name] for name in names], 5) for problems, names in zip((dry, wet), taken, strict=True)
    ]
    return {
        "walked": np.array(WALKS),
        "walk_seconds": np.array([w.seconds for w in walks]),
        "walk_steps": np.array([w.steps for w in walks]),
        "walk_distance": np.array([w.distance for w in walks]),
        "walk_residual": np.array([w.residual for w in walks]),
        "walk_contacts": np.array([w.contacts for w in walks]),
        "taken": np.array([name for names in taken for name in names]),
        "taken_seconds": np.concatenate([padded(seconds) for seconds, _ in raced]),
        "taken_residual": np.concatenate([padded(residual) for _, residual in raced]),
    }


def padded(found: Array) -> Array:
    """(method, SAMPLES) with NaN where there was no problem."""
    return np.hstack([found, np.full((len(found), SAMPLES - found.shape[1]), np.nan)])


class Walk(NamedTuple):
    seconds: float  # all included
    steps: int  # made, of those wanted, before anything failed
    distance: float  # m, along x
    residual: float  # the worst
    contacts: tuple[float, float, float, float]  # least, mean, standard deviation, most
    problems: list[ContactProblem]  # SAMPLES of them, evenly over the walk


def walk(way: Method, seconds: float, step: float, seed: int) -> Walk:
    """The robot on boxes; without slip and dry by time steps, with viscous friction by events, Runge–Kutta."""
    from stiction.bodies.scene import Scene
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.simulation import Simulation
    from stiction.stepping.time_stepping import TimeStepping

    wet = isinstance(way.law, Viscous)
    stepper: Any = EventDriven(method="rk4", viscosity=VISCOSITY) if wet else TimeStepping(warm=False)
    sim = Simulation(Scene.named("quadruped", terrain="boxes", mu=MU, seed=seed), way.law, way.solver, stepper)
    for _ in range(WARM_UP):  # compiles
        sim.step()
    sim.reset()
    sim.model.opt.timestep = step
    wanted = round(seconds / sim.model.opt.timestep)
    counts, worst, problems = [], 0.0, []
    every = max(1, wanted // SAMPLES)
    begin, start = time.process_time(), float(sim.data.qpos[0])
    for made in range(wanted):
        try:
            report = sim.step()
        except SolveFailed:
            break
        counts.append(len(report.solution.impulse))
        worst = max(worst, report.certificate.residual)
        if made % every == 0 and counts[-1]:
            problems.append(report.solution.whose())
    spent = time.process_time() - begin
    n = np.array(counts or [0])
    spread = (float(n.min()), float(n.mean()), float(n.std()), float(n.max()))
    return Walk(spent, len(counts), float(sim.data.qpos[0]) - start, worst, spread, problems[:SAMPLES])


# Growth


def growing(ways: dict[str, Method], quick: bool, seed: int) -> dict[str, Any]:
    seeds = range(seed, seed + (2 if quick else 5))
    contacts = (100, 1000, 3000) if quick else (100, 300, 1000, 3000, 10_000)
    freedoms = (6, 12, 24, 48, 96) if quick else (6, 12, 24, 48, 96, 192)
    standard = (20, 40, 80) if quick else (20, 40, 80, 160)
    by_contacts = [[tower(FIXED_BLOCKS, n, s) for s in seeds] for n in contacts]
    by_freedoms = [[tower(m // 6, FIXED_CONTACTS, s) for s in seeds] for m in freedoms]
    few = [[tower(FIXED_BLOCKS, n, s) for s in seeds] for n in standard]
    laws = [ways[name].law for name in GROWN]
    return {
        "contacts": np.array(contacts),
        "contact_seconds": np.array([race_sizes(by_contacts, ways[name]) for name in GROWN]),
        "contact_pivots": np.array([[[pivots(p.with_law(law)) for p in row] for row in by_contacts] for law in laws]),
        "freedoms": np.array(freedoms),
        "freedom_seconds": np.array([race_sizes(by_freedoms, ways[name]) for name in GROWN]),
        "standard_contacts": np.array(standard),
        "standard_seconds": race_sizes(few, ways[STANDARD]),
    }


def race_sizes(problems: Sequence[Sequence[ContactProblem]], way: Method) -> Array:
    """(size, problem) the least of several times."""
    return np.array([race(of_size, [way], 5)[0][0] for of_size in problems])


def tower(blocks: int, contacts: int, seed: int) -> ContactProblem:
    """Cubes on each other under gravity, as many contacts in all whatever their number, on circles; mu = 100.

    Like `contact_families.stack`, but with a random wrench on the top that is too weak to open a contact.
    """
    rng = np.random.default_rng(seed)
    bodies = [block(CUBE, (0.0, 0.0, b + 0.5)) for b in range(blocks)]
    touches = [Touch((x, y, float(b)), UP, b - 1, b) for b in range(blocks) for x, y in polygon(contacts // blocks)]
    return posed(bodies, touches, weights(bodies, 0.5 * rng.normal(size=6)), np.full(len(touches), MU))


# Ease


def easing(ways: dict[str, Method], quick: bool, seed: int) -> dict[str, Any]:
    """Every family of contact problems, with mu = 100, under each model."""
    tried = [name for name in (QUANTECON, STANDARD, DANTZIG, PIVOTING, WET_LEMKE, WET_PIVOTING) if name in ways]
    made = [make(s) for make in CONTACT_FAMILIES.values() for s in range(seed, seed + (1 if quick else 5))]
    problems = [with_friction(p, MU) for p in made if p.n <= LARGEST and p.viscosity is not None]
    residual = [[ways[name].residual(p.with_law(ways[name].law)) for p in problems] for name in tried]
    return {"tried": np.array(tried), "ease_residual": np.array(residual)}


# Claims


def check(results: Results) -> list[Claim]:
    """The claims of the paper, and what was found."""
    return [
        *_table_1(results),
        *_holding(results),
        *_table_2(results),
        _table_3(results),
        *_growth(results),
        *_ease(results),
    ]


def _table_1(results: Results) -> list[Claim]:
    sets = dict(zip(SETS, results.grasp_pivots, strict=True))
    active = [name for name in results.held.tolist() if name.startswith("no slip") and "Principal" not in name]
    best = min(active, key=lambda name: results.ratio(name, STANDARD))
    quick, slow = results.ratio(STANDARD, PIVOTING), results.ratio(STANDARD, best)
    ahead = results.ratio(best, ASSEMBLED)
    whole = {name: results.whole(STANDARD) / results.whole(name) for name in (PIVOTING, best)}
    rough, bound = results.variables.tolist()
    named = best.partition(", ")[2]
    return [
        Claim(
            "grasp: friction takes 216 variables, no slip 36",
            (rough, bound) == (216, 36),
            f"{rough} and {bound}",
            printed="216 and 36",
        ),
        Claim(
            "grasp, methods alone: no slip by principal pivoting is several times as fast as Stewart–Trinkle by Lemke",
            quick >= 6.6 / 2.0,
            f"{quick:.1f} times",
            printed="10.97 s against 1.67 s: 6.6 (whole simulation)",
            timed=True,
        ),
        Claim(
            "grasp, methods alone: no slip by an active-set method is several times as fast as that, too",
            slow >= 5.5 / 2.0,
            f"{slow:.1f} times, by {named}",
            printed="10.97 s against 1.99 s: 5.5 (whole simulation)",
            timed=True,
        ),
        Claim(
            "grasp, whole steps: principal pivoting is several times as fast",
            whole[PIVOTING] >= 6.6 / 2.0,
            f"{whole[PIVOTING]:.1f} times",
            printed="6.6",
            timed=True,
        ),
        Claim(
            "grasp, whole steps: an active-set method is several times as fast",
            whole[best] >= 5.5 / 2.0,
            f"{whole[best]:.1f} times, by {named}",
            documented=False,
            printed="5.5",
            why="Posing the quadratic program, which NumPy does here, takes ten times as long as solving it.",
            timed=True,
        ),
        Claim(
            "grasp: principal pivoting is no slower than the active-set method on the same 36 variables",
            ahead >= 1.0,
            f"{ahead:.2f} times as fast as {named}, the best of {len(active)}",
            documented=False,
            printed="1.99 s against 1.67 s: 1.19 times as fast",
            why="The paper's active-set method is MATLAB's. daqp is a compiled one of today, and neither is clearly "
            "ahead: 0.8 to 1.05 times from run to run.",
            timed=True,
        ),
        Claim(
            "grasp: 5.5 pivots in the mean, 7 at most",
            bool(sets["scene"].mean() <= 5.5 and sets["scene"].max() <= 7),
            ", ".join(f"{counts.mean():.1f} and {counts.max()} ({name})" for name, counts in sets.items()),
            printed="5.5 and 7",
        ),
    ]


def _holding(results: Results) -> list[Claim]:
    steps, drift = (
        dict(zip(results.held.tolist(), values, strict=True)) for values in (results.survived, results.drift)
    )
    speed = dict(zip(results.held.tolist(), results.speed, strict=True))
    rest = dict(zip(results.held.tolist(), results.held_residual, strict=True))
    bound = [name for name in steps if name.startswith("no slip")]
    plain = f"; quantecon's stops at step {steps[QUANTECON] + 1} without an answer" if QUANTECON in steps else ""
    return [
        Claim(
            "no slip holds the grasp for at least 100 steps",
            all(steps[name] == ASKED and drift[name] < 1e-9 for name in bound),
            f"{min(steps[name] for name in bound)} steps by {len(bound)} methods, moved "
            f"{max(drift[name] for name in bound):.0e} m",
            printed="at least 100",
        ),
        Claim(
            "Stewart–Trinkle by Lemke loses the boxes after about ten steps",
            bool(steps[STANDARD] <= 20),
            f"ours holds them for {steps[STANDARD]} steps, moved {1e3 * drift[STANDARD]:.1f} mm, at up to "
            f"{speed[STANDARD]:.2f} rad/s{plain}",
            documented=False,
            printed="about ten, by numerical issues",
            why="Our Lemke's method solves every step. But the squeeze leaves forces undetermined, and an answer need "
            f"not be a grasp at rest: where the boxes turned, at {speed[STANDARD]:.2g} rad/s for one step, that was an "
            f"exact second solution (worst residual {rest[STANDARD]:.0e}), beside the cone's, which is at rest and "
            "obeys the pyramid as well.",
        ),
    ]


def _table_2(results: Results) -> list[Claim]:
    ratio, other = (results.walk(name) / results.walk(PIVOTING) for name in (STANDARD, CIRCULAR))
    alone, other_alone = (results.on_walk(name) / results.on_walk(PIVOTING) for name in (STANDARD, CIRCULAR))
    _, mean, _, most = results.walk_contacts[results.walked.tolist().index(PIVOTING)]
    whole = len(set(results.walk_steps.tolist())) == 1
    return [
        Claim(
            "walk: no slip is 1.38 times as fast as Coulomb's friction with mu = 100 (Stewart–Trinkle, Lemke)",
            whole and ratio >= 1.38,
            f"{ratio:.2f} times; methods alone {alone:.2f}; {mean:.1f} contacts, {most:.0f} at most",
            printed="416 s against 302 s: 1.38; 6 contacts, 30 at most",
            timed=True,
        ),
        Claim(
            "walk: no slip is 1.38 times as fast as Coulomb's friction with mu = 100 (circular cone, Newton)",
            whole and other >= 1.38,
            f"{other:.2f} times; methods alone {other_alone:.2f}",
            documented=False,
            printed="416 s against 302 s: 1.38",
            why="On three feet Newton's method needs two or three steps of a few microseconds. A walk that fast is all "
            "kinematics and collision; what a law costs shows where contacts are many, as in the grasp.",
            timed=True,
        ),
    ]


def _table_3(results: Results) -> Claim:
    ratio, alone = (
        results.walk(WET_LEMKE) / results.walk(WET_PIVOTING),
        results.on_walk(WET_LEMKE) / results.on_walk(WET_PIVOTING),
    )
    _, mean, _, most = results.walk_contacts[results.walked.tolist().index(WET_PIVOTING)]
    return Claim(
        "walk with viscous friction: principal pivoting is 1.37 times as fast as Lemke's method",
        ratio >= 1.37,
        f"{ratio:.2f} times; methods alone {alone:.2f}; {mean:.1f} contacts, {most:.0f} at most",
        documented=False,
        printed="2936 s against 2140 s: 1.37",
        why="Four spheres touch the ground: an LCP of four variables, on which Lemke's method alone is the faster one. "
        "Nearly all of a step is kinematics, collision and the search for events; the rest is posing the LCP.",
        timed=True,
    )


def _growth(results: Results) -> list[Claim]:
    claims = []
    large = results.contacts >= 1000
    for name, by_n, by_m, counts in zip(
        GROWN, results.contact_seconds, results.freedom_seconds, results.contact_pivots, strict=True
    ):
        model = name.partition(",")[0]
        power_n = exponent(results.contacts[large], by_n[large])
        power_m = exponent(results.freedoms[-3:], by_m[-3:])
        middle = np.median(counts, axis=1)
        claims += [
            Claim(
                f"{model}: at fixed m, time grows no faster than n",
                power_n <= 1.1,
                f"n^{power_n:.2f} from {results.contacts[large][0]} to {results.contacts[-1]} contacts, "
                f"m = {6 * FIXED_BLOCKS}; {middle.min():.0f} to {middle.max():.0f} pivots",
                printed="O(m³ + m² n)",
                timed=True,
            ),
            Claim(
                f"{model}: at fixed n, time grows no faster than m³",
                power_m <= 3.0,
                f"m^{power_m:.2f} from {results.freedoms[-3]} to {results.freedoms[-1]} velocities, "
                f"n = {FIXED_CONTACTS}",
                printed="O(m³ + m² n)",
                timed=True,
            ),
        ]
    power = exponent(results.standard_contacts[-3:], results.standard_seconds[-3:])
    claims.append(
        Claim(
            "Stewart–Trinkle by Lemke: at fixed m, time grows much faster than n",
            power >= 1.5,
            f"n^{power:.2f} from {results.standard_contacts[-3]} to {results.standard_contacts[-1]} contacts, "
            f"m = {6 * FIXED_BLOCKS}",
            printed="O(n³) expected",
            timed=True,
        )
    )
    return claims


def _ease(results: Results) -> list[Claim]:
    share = {name: results.eased(name) for name in results.tried.tolist()}
    rough = max(value for name, value in share.items() if name.startswith("Stewart"))
    text = ", ".join(f"{100 * value:.0f} % ({name})" for name, value in share.items())
    return [
        Claim(
            "numerically easier: without slip or with viscous friction no fewer problems are solved than by friction",
            min(share[PIVOTING], share[WET_PIVOTING]) >= rough,
            f"{text}, of {results.ease_residual.shape[1]} problems with mu = {MU:g}",
            printed="less likely to fail due to numerical errors",
        )
    ]


def exponent(sizes: NDArray[np.int64], seconds: Array) -> float:
    """Of the power with which the median time grows."""
    return float(np.polyfit(np.log(sizes), np.log(np.median(seconds, axis=1)), 1)[0])


# Figures and tables


def figures(results: Results) -> list[Plate]:
    return [
        Plate("grasp", "Time of each method on the grasp, alone and in whole steps (table I).", _draw_grasp(results)),
        Plate("growth", "Time against the number of contacts and of velocities (section V).", _draw_growth(results)),
    ]


def _draw_grasp(results: Results) -> Any:
    figure = optional.matplotlib().figure.Figure(figsize=(8.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    names = results.held.tolist()
    rows = np.arange(len(names))[::-1]
    for k, (name, marker, face) in enumerate(zip(SETS, "os^", ("0.3", "0.7", "white"), strict=True)):
        left.plot(1e6 * np.median(results.grasp_seconds[k], axis=1), rows, marker, color="0.3", mfc=face, label=name)
    right.plot(1e3 * results.trial_seconds.min(axis=1), rows, "D", color="0.3")
    left.set_yticks(rows, names)
    left.set(xscale="log", xlabel="µs a problem", title="methods alone, median")
    right.set(xscale="log", xlabel="ms for ten steps", title="whole steps, least of the trials")
    left.legend(fontsize=8, loc="lower right")
    left.set_xticks([50, 100, 200, 500, 1000, 2000], ["50", "100", "200", "500", "1000", "2000"])
    right.set_xticks([2, 5, 10, 20], ["2", "5", "10", "20"])
    for ax in (left, right):
        ax.minorticks_off()
        ax.grid(axis="x", color="0.85", lw=0.6)
        ax.grid(axis="y", color="0.93", lw=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_growth(results: Results) -> Any:
    figure = optional.matplotlib().figure.Figure(figsize=(8.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    lines = [("no slip", "o", "-", "0.3"), ("viscous", "s", "--", "white")]
    for (label, marker, line, face), by_n, by_m in zip(
        lines, results.contact_seconds, results.freedom_seconds, strict=True
    ):
        for ax, sizes, seconds in ((left, results.contacts, by_n), (right, results.freedoms, by_m)):
            ax.plot(sizes, 1e3 * np.median(seconds, axis=1), line, marker=marker, color="0.3", mfc=face, label=label)
    standard = 1e3 * np.median(results.standard_seconds, axis=1)
    left.plot(results.standard_contacts, standard, ":", marker="^", color="0.3", label=STANDARD)
    left.set(xlabel="contacts n", ylabel="ms a problem", title=f"m = {6 * FIXED_BLOCKS} velocities")
    right.set(xlabel="velocities m", ylabel="ms a problem", title=f"n = {FIXED_CONTACTS} contacts")
    n, m = results.contacts[[0, -1]], results.freedoms[[-3, -1]]
    at_n, at_m = (1e3 * np.median(s[0][-1]) for s in (results.contact_seconds, results.freedom_seconds))
    left.plot(n, 3.0 * at_n * n / n[-1], color="0.7", lw=0.8)
    left.text(n[1], 3.0 * at_n, " n", va="center", color="0.5")
    right.plot(m, 8.0 * at_m * (m / m[-1]) ** 3.0, color="0.7", lw=0.8)
    right.text(m[1], 8.0 * at_m, " m³", va="center", color="0.5")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log")
        ax.legend(fontsize=8, loc="lower right")
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def tables(results: Results) -> list[Sheet]:
    """Tables I to III, printed and ours, and how often each method solves its problem."""
    printed = {STANDARD: "10.9681 s", DANTZIG: "1.9892 s (MATLAB's quadprog)", PIVOTING: "1.6680 s"}
    grasps = [
        (
            name,
            printed.get(name, ""),
            "gives up" if np.isnan(trials).any() else f"{1e3 * trials.min():.2f} ms",
            *(f"{1e6 * t:.0f} µs" for t in results.alone(name)),
            f"{steps}",
            f"{100 * np.mean(residual <= TOLERANCE):.0f} %",
        )
        for name, trials, steps, residual in zip(
            results.held.tolist(),
            results.trial_seconds,
            results.survived,
            results.grasp_residual.swapaxes(0, 1),
            strict=True,
        )
    ]
    paper = ("416.284 s (Drumwright–Shell)", "", "301.796 s", "2936.36 s", "2139.73 s")
    walks = [
        (
            name,
            old,
            f"{seconds:.2f} s",
            f"{steps}",
            f"{distance:.2f} m",
            f"{spread[0]:.0f} to {spread[3]:.0f}, {spread[1]:.1f} ± {spread[2]:.1f}",
            f"{residual:.0e}",
        )
        for name, old, seconds, steps, distance, spread, residual in zip(
            results.walked.tolist(),
            paper,
            results.walk_seconds,
            results.walk_steps,
            results.walk_distance,
            results.walk_contacts,
            results.walk_residual,
            strict=True,
        )
    ]
    solved = [(name, f"{100 * results.eased(name):.1f} %") for name in results.tried.tolist()]
    return [
        Sheet(
            "Table I: the grasp, ten steps",
            ("method", "printed", "ours, whole steps", *(f"alone, {s}" for s in SETS), "steps held", "solved"),
            grasps,
        ),
        Sheet(
            "Tables II and III: the walk",
            ("method", "printed", "ours", "steps", "distance", "contacts", "worst residual"),
            walks,
        ),
        Sheet(
            f"Contact problems of all families with mu = {MU:g}, up to {LARGEST} contacts", ("method", "solved"), solved
        ),
    ]
