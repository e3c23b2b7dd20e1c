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
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

import stiction as st
from stiction import optional
from stiction.problems.pyramid import pyramid_impulse, pyramid_lcp
from stiction.problems.zoo import contact_families as families
from stiction.problems.zoo.rigid_bodies import posed
from stiction.studies.claims import Claim, Statement
from stiction.studies.drawing import SERIES, plate, slope, ticks
from stiction.studies.methods import Method, on_package, on_program, on_pyramid, ours, race, with_quantecon
from stiction.studies.programs import impulses, installed, present, program
from stiction.studies.results import Array, Findings, Plate, Sheet, columns
from stiction.studies.timing import exponent

MU = 100.0
PYRAMID, CONE, BOUND, WET = st.Coulomb(facets=4), st.Coulomb(), st.NoSlip(), st.Viscous()
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


METHODS: dict[str, Method] = {
    STANDARD: Method(PYRAMID, partial(on_pyramid, st.Lemke()), pyramid_impulse),
    CELLS: ours(PYRAMID, st.CellLemke()),
    CIRCULAR: ours(CONE, st.ConeNewton(tolerance=1e-12)),
    DANTZIG: Method(BOUND, partial(on_program, st.CottleDantzig()), impulses),
    ASSEMBLED: Method(BOUND, partial(on_program, st.PrincipalPivot()), impulses),
    PIVOTING: ours(BOUND, st.PrincipalPivot()),
    WET_LEMKE: Method(WET, partial(on_program, st.Lemke()), impulses),
    WET_PIVOTING: ours(WET, st.PrincipalPivot()),
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


class Results(Findings):
    """Times in s; the axes are named in this order."""

    declared: ClassVar = {
        "held": "(method,) names of the methods of table I",
        "grasp_seconds, grasp_residual": "(set of SETS, method, problem) of methods alone",
        "grasp_pivots": "(set, problem) of principal pivoting",
        "variables": "(2,) of the LCPs with and without friction",
        "trial_seconds": "(method, trial) of ten steps, all included; NaN where they were not made",
        "survived": "(method,) steps of ASKED until a box is lost",
        "drift, speed, held_residual": "(method,) see `Held`",
        "walked": "(walk,) names",
        "walk_seconds, walk_steps, walk_distance, walk_residual": "(walk,) see `Walk`",
        "walk_contacts": "(walk, 4) least, mean, standard deviation, most",
        "taken": "(method,) names of the methods timed on problems of the walks",
        "taken_seconds, taken_residual": "(method, problem) NaN where there is none",
        "contacts": "(size,) n at m = 6 FIXED_BLOCKS",
        "contact_seconds, contact_pivots": "(method of GROWN, size, problem)",
        "freedoms": "(size,) m at n = FIXED_CONTACTS",
        "freedom_seconds": "(method of GROWN, size, problem)",
        "standard_contacts": "(size,) n at m = 6 FIXED_BLOCKS",
        "standard_seconds": "(size, problem) of Lemke's method on the pyramid",
        "tried": "(method,) names of the methods tried on all families",
        "ease_residual": "(method, problem)",
    }

    def of(self, what: str, method: str) -> Array:
        """(set, problem) times or residuals of a method on the grasp."""
        return np.asarray(self.arrays[f"grasp_{what}"][:, self.at("held", method)])

    def ratio(self, method: str, other: str) -> float:
        """Median over all problems of the grasp of (time of a method) / (time of the other)."""
        return float(np.median(self.of("seconds", method) / self.of("seconds", other)))

    def whole(self, method: str) -> float:
        """Least time of ten steps of the grasp, all included."""
        return float(self.trial_seconds[self.at("held", method)].min())

    def faster(self, method: str, other: str) -> tuple[float, float]:
        """How many times as fast as another a method walks, all included, and alone on the problems of the walk."""
        walks = [self.walk_seconds[self.at("walked", name)] for name in (other, method)]
        alone = [np.nanmedian(self.taken_seconds[self.at("taken", name)]) for name in (other, method)]
        return float(walks[0] / walks[1]), float(alone[0] / alone[1])

    def crowd(self, walk: str) -> str:
        """Contacts of a walk, in words."""
        _, mean, _, most = self.walk_contacts[self.at("walked", walk)]
        return f"{mean:.1f} contacts, {most:.0f} at most"

    def eased(self) -> dict[str, float]:
        """Share of the problems of all families that each method solves."""
        return dict(zip(self.tried.tolist(), (self.ease_residual <= TOLERANCE).mean(axis=1), strict=True))


def run(quick: bool = False, seed: int = 0) -> Results:
    """All experiments: some minutes, or half a minute if quick."""
    ways = methods()
    return Results(
        seed, **grasping(ways, seed), **walking(ways, quick, seed), **growing(ways, quick, seed),
        **easing(ways, quick, seed),
    )  # fmt: skip


# The grasp: table I


def grasping(ways: dict[str, Method], seed: int) -> dict[str, Any]:
    order = (STANDARD, QUANTECON, CELLS, DANTZIG, "no slip, quadprog", "no slip, daqp", ASSEMBLED, PIVOTING)
    held = [name for name in order if name in ways]
    seeds = range(seed, seed + 10)
    sim = held_scene(METHODS[PIVOTING])
    first = [sim.step().solution.require_problem() for _ in seeds]
    sets = [first, *([make(s, MU) for s in seeds] for make in (families.grasp, families.grasp_tripled))]
    seconds, residual = zip(*(race(problems, [ways[name] for name in held], 15) for problems in sets), strict=True)
    steps, drift, speed, worst, _ = zip(*(hold(ways[name], ASKED) for name in held), strict=True)
    trials = [[hold(ways[name], 10).seconds for name in held] for _ in seeds]
    bound = sets[0][0].with_law(BOUND)
    return {
        "held": held,
        "grasp_seconds": seconds,
        "grasp_residual": residual,
        "grasp_pivots": [[pivots(p.with_law(BOUND)) for p in problems] for problems in sets],
        "variables": [pyramid_lcp(bound.with_law(PYRAMID)).n, program(bound).lcp().n],
        "trial_seconds": np.array(trials).T,
    } | {"survived": steps, "drift": drift, "speed": speed, "held_residual": worst}


def held_scene(way: Method) -> Any:
    """The grasp, stepped by 0.01 s; every solve begins anew, as in the paper."""
    sim = st.Simulation(st.Scene.named("force-closure-grasp", mu=MU), way.law, way.solver, st.TimeStepping(warm=False))
    sim.model.opt.timestep = 0.01
    return sim


class Held(NamedTuple):
    steps: int  # until a box is lost or a problem is not solved
    drift: float  # m, or half an angle in rad, of what has moved most
    speed: float  # m/s or rad/s, the largest of all steps
    residual: float  # the worst
    seconds: float = np.nan  # if all steps were made


def hold(way: Method, steps: int) -> Held:
    sim = held_scene(way)
    start, drift, speed, residual, made = sim.data.qpos.copy(), 0.0, 0.0, 0.0, 0
    begin = time.process_time()
    while made < steps and drift <= LOST:
        try:
            report = sim.step()
        except st.SolveFailed:
            break
        made += 1
        drift = float(np.abs(sim.data.qpos - start).max())
        speed = max(speed, float(np.abs(sim.data.qvel).max()))
        residual = max(residual, report.certificate.residual)
    return Held(made, drift, speed, residual, time.process_time() - begin if made == steps else np.nan)


def pivots(problem: st.ContactProblem) -> int:
    return int(st.PrincipalPivot().propose(problem, None).iterations)


# The walk: tables II and III


def walking(ways: dict[str, Method], quick: bool, seed: int) -> dict[str, Any]:
    time_span, step, repeats = (0.5, 5.0 * STEP, 2) if quick else (10.0, STEP, 1)
    walks = [
        min((walk(ways[name], time_span, step, seed) for _ in range(repeats)), key=lambda found: found.seconds)
        for name in WALKS
    ]
    taken = {PIVOTING: (STANDARD, CELLS, CIRCULAR, PIVOTING), WET_PIVOTING: (WET_LEMKE, WET_PIVOTING)}
    raced = [
        race(walks[WALKS.index(walked)].problems, [ways[name] for name in names], 5) for walked, names in taken.items()
    ]
    seconds, residual = (np.concatenate([*map(padded, each)]) for each in zip(*raced, strict=True))
    kept = ("seconds", "steps", "distance", "residual", "contacts")
    return {
        "walked": WALKS,
        **{f"walk_{what}": [getattr(each, what) for each in walks] for what in kept},
        "taken": [name for names in taken.values() for name in names],
        "taken_seconds": seconds,
        "taken_residual": residual,
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
    problems: list[st.ContactProblem]  # SAMPLES of them, evenly over the walk


def walk(way: Method, seconds: float, step: float, seed: int) -> Walk:
    """The robot on boxes; without slip and dry by time steps, with viscous friction by events, Runge–Kutta."""
    wet = isinstance(way.law, st.Viscous)
    stepper: Any = st.EventDriven(method="rk4", viscosity=VISCOSITY) if wet else st.TimeStepping(warm=False)
    sim = st.Simulation(st.Scene.named("quadruped", terrain="boxes", mu=MU, seed=seed), way.law, way.solver, stepper)
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
        except st.SolveFailed:
            break
        counts.append(len(report.solution.impulse))
        worst = max(worst, report.certificate.residual)
        if made % every == 0 and counts[-1]:
            problems.append(report.solution.require_problem())
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
        "contacts": contacts,
        "contact_seconds": [race_sizes(by_contacts, ways[name]) for name in GROWN],
        "contact_pivots": [[[pivots(p.with_law(law)) for p in row] for row in by_contacts] for law in laws],
        "freedoms": freedoms,
        "freedom_seconds": [race_sizes(by_freedoms, ways[name]) for name in GROWN],
        "standard_contacts": standard,
        "standard_seconds": race_sizes(few, ways[STANDARD]),
    }


def race_sizes(problems: Sequence[Sequence[st.ContactProblem]], way: Method) -> Array:
    """(size, problem) the least of several times."""
    return np.array([race(of_size, [way], 5)[0][0] for of_size in problems])


def tower(blocks: int, contacts: int, seed: int) -> st.ContactProblem:
    """Cubes on each other under gravity, as many contacts in all whatever their number, on circles; mu = 100.

    Like `contact_families.stack`, but with a random wrench on the top that is too weak to open a contact.
    """
    rng = np.random.default_rng(seed)
    bodies, touches = families.pile([1.0] * blocks, families.polygon(contacts // blocks))
    return posed(bodies, touches, families.weights(bodies, 0.5 * rng.normal(size=6)), np.full(len(touches), MU))


# Ease


def easing(ways: dict[str, Method], quick: bool, seed: int) -> dict[str, Any]:
    """Every family of contact problems, with mu = 100, under each model."""
    tried = [name for name in (QUANTECON, STANDARD, DANTZIG, PIVOTING, WET_LEMKE, WET_PIVOTING) if name in ways]
    made = [
        ({"family": name, "seed": s}, make(s))
        for name, make in families.CONTACT_FAMILIES.items()
        for s in range(seed, seed + (1 if quick else 5))
    ]
    cases = [case | {"tried": tried} for case, p in made if p.n <= LARGEST and p.viscosity is not None]
    return {"tried": tried, "ease_residual": columns("residual", ease, cases)["residual"].T}


def ease(family: str, seed: int, tried: list[str]) -> tuple[list[float]]:
    """Residuals of methods on a problem of a family."""
    problem, ways = families.with_friction(families.CONTACT_FAMILIES[family](seed), MU), methods()
    return ([ways[name].residual(problem.with_law(ways[name].law)) for name in tried],)


# Claims


def check(results: Results) -> list[Claim]:
    """The claims of the paper, and what was found."""
    about = (_table_1, _holding, _walks, _growth, _ease)
    return [claim for claims in about for claim in claims(results)]


WHY_POSING = "Posing the quadratic program, which NumPy does here, takes ten times as long as solving it."
WHY_ACTIVE = (
    "The paper's active-set method is MATLAB's. daqp is a compiled one of today, and neither is clearly ahead: 0.8 to "
    "1.05 times from run to run."
)


def _table_1(results: Results) -> Iterator[Claim]:
    rough, bound = results.variables.tolist()
    claim = Statement("grasp: friction takes 216 variables, no slip 36", "216 and 36")
    yield claim.found((rough, bound) == (216, 36), f"{rough} and {bound}")

    active = [name for name in results.held.tolist() if name.startswith("no slip") and "Principal" not in name]
    best = min(active, key=lambda name: results.ratio(name, STANDARD))
    named = best.partition(", ")[2]
    quick, slow = results.ratio(STANDARD, PIVOTING), results.ratio(STANDARD, best)
    name = "grasp, methods alone: no slip by principal pivoting is several times as fast as Stewart–Trinkle by Lemke"
    claim = Statement(name, "10.97 s against 1.67 s: 6.6 (whole simulation)", timed=True)
    yield claim.found(quick >= 6.6 / 2.0, f"{quick:.1f} times")
    name = "grasp, methods alone: no slip by an active-set method is several times as fast as that, too"
    claim = Statement(name, "10.97 s against 1.99 s: 5.5 (whole simulation)", timed=True)
    yield claim.found(slow >= 5.5 / 2.0, f"{slow:.1f} times, by {named}")

    quick, slow = (results.whole(STANDARD) / results.whole(name) for name in (PIVOTING, best))
    claim = Statement("grasp, whole steps: principal pivoting is several times as fast", "6.6", timed=True)
    yield claim.found(quick >= 6.6 / 2.0, f"{quick:.1f} times")
    name = "grasp, whole steps: an active-set method is several times as fast"
    claim = Statement(name, "5.5", WHY_POSING, timed=True)
    yield claim.found(slow >= 5.5 / 2.0, f"{slow:.1f} times, by {named}")

    ahead = results.ratio(best, ASSEMBLED)
    name = "grasp: principal pivoting is no slower than the active-set method on the same 36 variables"
    claim = Statement(name, "1.99 s against 1.67 s: 1.19 times as fast", WHY_ACTIVE, timed=True)
    yield claim.found(ahead >= 1.0, f"{ahead:.2f} times as fast as {named}, the best of {len(active)}")

    means, most = results.grasp_pivots.mean(axis=1), results.grasp_pivots.max(axis=1)
    claim = Statement("grasp: 5.5 pivots in the mean, 7 at most", "5.5 and 7")
    numbers = ", ".join(f"{mean:.1f} and {top} ({name})" for name, mean, top in zip(SETS, means, most, strict=True))
    yield claim.found(means[0] <= 5.5 and most[0] <= 7, numbers)


def _holding(results: Results) -> Iterator[Claim]:
    columns = (results.survived, results.drift, results.speed, results.held_residual)
    held = {name: Held(*row) for name, *row in zip(results.held.tolist(), *columns, strict=True)}
    bound = [each for name, each in held.items() if name.startswith("no slip")]
    moved = max(each.drift for each in bound)
    claim = Statement("no slip holds the grasp for at least 100 steps", "at least 100")
    numbers = f"{min(each.steps for each in bound)} steps by {len(bound)} methods, moved {moved:.0e} m"
    yield claim.found(all(each.steps == ASKED and each.drift < 1e-9 for each in bound), numbers)

    steps, drift, speed, residual, _ = held[STANDARD]
    plain = f"; quantecon's stops at step {held[QUANTECON].steps + 1} without an answer" if QUANTECON in held else ""
    why = (
        "Our Lemke's method solves every step. But the squeeze leaves forces undetermined, and an answer need "
        f"not be a grasp at rest: where the boxes turned, at {speed:.2g} rad/s for one step, that was an "
        f"exact second solution (worst residual {residual:.0e}), beside the cone's, which is at rest and "
        "obeys the pyramid as well."
    )
    name = "Stewart–Trinkle by Lemke loses the boxes after about ten steps"
    numbers = f"ours holds them for {steps} steps, moved {1e3 * drift:.1f} mm, at up to {speed:.2f} rad/s{plain}"
    yield Statement(name, "about ten, by numerical issues", why).found(steps <= 20, numbers)


WHY_NEWTON = (
    "On three feet Newton's method needs two or three steps of a few microseconds. A walk that fast is all "
    "kinematics and collision; what a law costs shows where contacts are many, as in the grasp."
)
WHY_FOUR = (
    "Four spheres touch the ground: an LCP of four variables, on which Lemke's method alone is the faster one. "
    "Nearly all of a step is kinematics, collision and the search for events; the rest is posing the LCP."
)


def _walks(results: Results) -> Iterator[Claim]:
    """Tables II and III."""
    whole = len(set(results.walk_steps.tolist())) == 1
    name = "walk: no slip is 1.38 times as fast as Coulomb's friction with mu = 100"
    printed = "416 s against 302 s: 1.38"
    times, alone = results.faster(PIVOTING, STANDARD)
    claim = Statement(f"{name} (Stewart–Trinkle, Lemke)", f"{printed}; 6 contacts, 30 at most", timed=True)
    numbers = f"{times:.2f} times; methods alone {alone:.2f}; {results.crowd(PIVOTING)}"
    yield claim.found(whole and times >= 1.38, numbers)
    times, alone = results.faster(PIVOTING, CIRCULAR)
    claim = Statement(f"{name} (circular cone, Newton)", printed, WHY_NEWTON, timed=True)
    yield claim.found(whole and times >= 1.38, f"{times:.2f} times; methods alone {alone:.2f}")
    times, alone = results.faster(WET_PIVOTING, WET_LEMKE)
    name = "walk with viscous friction: principal pivoting is 1.37 times as fast as Lemke's method"
    numbers = f"{times:.2f} times; methods alone {alone:.2f}; {results.crowd(WET_PIVOTING)}"
    yield Statement(name, "2936 s against 2140 s: 1.37", WHY_FOUR, timed=True).found(times >= 1.37, numbers)


def _growth(results: Results) -> Iterator[Claim]:
    large, m = results.contacts >= 1000, results.freedoms[-3:]
    n = results.contacts[large]
    fixed, printed = f"m = {6 * FIXED_BLOCKS}", "O(m³ + m² n)"
    for k, method in enumerate(GROWN):
        model = method.partition(",")[0]
        power = exponent(n, results.contact_seconds[k][large])
        middle = np.median(results.contact_pivots[k], axis=1)
        claim = Statement(f"{model}: at fixed m, time grows no faster than n", printed, timed=True)
        numbers = f"n^{power:.2f} from {n[0]} to {n[-1]} contacts, {fixed}; "
        yield claim.found(power <= 1.1, f"{numbers}{middle.min():.0f} to {middle.max():.0f} pivots")
        power = exponent(m, results.freedom_seconds[k][-3:])
        claim = Statement(f"{model}: at fixed n, time grows no faster than m³", printed, timed=True)
        numbers = f"m^{power:.2f} from {m[0]} to {m[-1]} velocities, n = {FIXED_CONTACTS}"
        yield claim.found(power <= 3.0, numbers)
    n = results.standard_contacts[-3:]
    power = exponent(n, results.standard_seconds[-3:])
    name = "Stewart–Trinkle by Lemke: at fixed m, time grows much faster than n"
    numbers = f"n^{power:.2f} from {n[0]} to {n[-1]} contacts, {fixed}"
    yield Statement(name, "O(n³) expected", timed=True).found(power >= 1.5, numbers)


def _ease(results: Results) -> Iterator[Claim]:
    share = results.eased()
    rough = max(value for name, value in share.items() if name.startswith("Stewart"))
    text = ", ".join(f"{100 * value:.0f} % ({name})" for name, value in share.items())
    name = "numerically easier: without slip or with viscous friction no fewer problems are solved than by friction"
    numbers = f"{text}, of {results.ease_residual.shape[1]} problems with mu = {MU:g}"
    claim = Statement(name, "less likely to fail due to numerical errors")
    yield claim.found(min(share[PIVOTING], share[WET_PIVOTING]) >= rough, numbers)


# Figures and tables


def figures(results: Results) -> list[Plate]:
    return [_draw_grasp(results), _draw_growth(results)]


@plate("grasp", 8.5, 3.6)
def _draw_grasp(figure: Any, results: Results) -> str:
    left, right = figure.subplots(1, 2, sharey=True)
    rows = np.arange(len(results.held))[::-1]
    for seconds, name, marker, face in zip(results.grasp_seconds, SETS, "os^", ("0.3", "0.7", "white"), strict=True):
        left.plot(1e6 * np.median(seconds, axis=1), rows, marker, color="0.3", mfc=face, label=name)
    right.plot(1e3 * results.trial_seconds.min(axis=1), rows, "D", color="0.3")
    left.set_yticks(rows, results.held.tolist())
    left.set(xscale="log", xlabel="µs a problem", title="methods alone, median")
    right.set(xscale="log", xlabel="ms for ten steps", title="whole steps, least of the trials")
    left.legend(loc="lower right")
    for ax, marks in ((left, (50, 100, 200, 500, 1000, 2000)), (right, (2, 5, 10, 20))):
        ticks(ax, marks)
        ax.grid(axis="x", color="0.85", lw=0.6)
        ax.grid(axis="y", color="0.93", lw=0.6)
        ax.set_axisbelow(True)
    return "Time of each method on the grasp, alone and in whole steps (table I)."


@plate("growth", 8.5, 3.6)
def _draw_growth(figure: Any, results: Results) -> str:
    left, right = figure.subplots(1, 2)
    n, m = results.contacts, results.freedoms
    for k, (label, style) in enumerate(zip(("no slip", "viscous"), SERIES, strict=False)):
        left.plot(n, 1e3 * np.median(results.contact_seconds[k], axis=1), **style, label=label)
        right.plot(m, 1e3 * np.median(results.freedom_seconds[k], axis=1), **style, label=label)
    standard = 1e3 * np.median(results.standard_seconds, axis=1)
    left.plot(results.standard_contacts, standard, ":", marker="^", color="0.3", label=STANDARD)
    slope(left, n[[0, -1]], 3e3 * np.median(results.contact_seconds[0][-1]), 1, "n")
    slope(right, m[[-3, -1]], 8e3 * np.median(results.freedom_seconds[0][-1]), 3, "m³")
    left.set(xlabel="contacts n", title=f"m = {6 * FIXED_BLOCKS} velocities")
    right.set(xlabel="velocities m", title=f"n = {FIXED_CONTACTS} contacts")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log", ylabel="ms a problem")
        ax.legend(loc="lower right", frameon=True)
    return "Time against the number of contacts and of velocities (section V)."


def tables(results: Results) -> list[Sheet]:
    """Tables I to III, printed and ours, and how often each method solves its problem."""
    grasp = ("method", "printed", "ours, whole steps", *(f"alone, {each}" for each in SETS), "steps held", "solved")
    walk = ("method", "printed", "ours", "steps", "distance", "contacts", "worst residual")
    everywhere = f"Contact problems of all families with mu = {MU:g}, up to {LARGEST} contacts"
    solved = [(name, f"{100 * share:.1f} %") for name, share in results.eased().items()]
    return [
        Sheet("Table I: the grasp, ten steps", grasp, [*_grasps(results)]),
        Sheet("Tables II and III: the walk", walk, [*_walked(results)]),
        Sheet(everywhere, ("method", "solved"), solved),
    ]


def _grasps(results: Results) -> Iterator[tuple[str, ...]]:
    printed = {STANDARD: "10.9681 s", DANTZIG: "1.9892 s (MATLAB's quadprog)", PIVOTING: "1.6680 s"}
    for name, steps in zip(results.held.tolist(), results.survived, strict=True):
        whole, solved = results.whole(name), np.mean(results.of("residual", name) <= TOLERANCE)
        ten_steps = "gives up" if np.isnan(whole) else f"{1e3 * whole:.2f} ms"
        alone = (f"{1e6 * t:.0f} µs" for t in np.median(results.of("seconds", name), axis=1))
        yield name, printed.get(name, ""), ten_steps, *alone, f"{steps}", f"{100 * solved:.0f} %"


def _walked(results: Results) -> Iterator[tuple[str, ...]]:
    printed = ("416.284 s (Drumwright–Shell)", "", "301.796 s", "2936.36 s", "2139.73 s")
    for k, (name, theirs) in enumerate(zip(results.walked.tolist(), printed, strict=True)):
        seconds, distance = f"{results.walk_seconds[k]:.2f} s", f"{results.walk_distance[k]:.2f} m"
        least, mean, deviation, most = results.walk_contacts[k]
        contacts = f"{least:.0f} to {most:.0f}, {mean:.1f} ± {deviation:.1f}"
        residual = f"{results.walk_residual[k]:.0e}"
        yield name, theirs, seconds, f"{results.walk_steps[k]}", distance, contacts, residual
