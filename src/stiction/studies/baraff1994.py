"""Forces driven to zero one contact at a time: what that costs, how often it is done, and machines that run on it.

D. Baraff, "Fast contact force computation for nonpenetrating rigid bodies", SIGGRAPH 1994, section 7.

The paper claims: forces without friction cost two to three times a Gaussian elimination of the same size, and a fifth
to a tenth of a quadratic program, for up to 150 contacts; drive-to-zero is called about O(n) times with and without
friction; with static friction it was never seen to fail; a block feeder and a double-action jack run at 20 to 30 frames
a second; and where friction leaves no forces, the drive that nothing stops is the impulse to apply.

What is not as in the paper: its matrices, its QP packages (of 1984 to 1987; here quadprog, daqp and proxsuite where
they are installed) and the sizes of its mechanisms. The algorithm of its section 4, which is given A and b, is Cottle
and Dantzig's; `Baraff` does the same from bodies, without A. Elimination is LAPACK's, and once more a plain one that is
compiled as our own methods are. Quadratic programs get the form that suits them best, the nearest admissible velocity,
with the factor of A for free, and quadprog also A itself. Nothing is timed but the solution, by the processor's time.

In space the paper keeps the direction in which friction has reached its bound, which need not oppose the sliding, and
judges accordingly. Ours turns it until it does, for Coulomb's law; both are run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction import linear, optional
from stiction.errors import SolveFailed
from stiction.problems.contact import ContactProblem
from stiction.problems.contact_families import heap, painleve_forces, stack, stack_in_plane, wall
from stiction.problems.heaps import GRAVITY
from stiction.problems.laws import Coulomb, Frictionless
from stiction.solutions.contact import certify_contact
from stiction.solutions.status import Status
from stiction.solvers.baraff.baraff import Baraff, impulse_along
from stiction.solvers.lcp.cottle_dantzig import CottleDantzig
from stiction.solvers.solve import solve
from stiction.studies.claims import Claim
from stiction.studies.environment import environment
from stiction.studies.methods import Answer, on_contacts, on_package, on_program
from stiction.studies.programs import impulses, installed, program
from stiction.studies.results import Plate, Sheet, Stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TOLERANCE = 1e-8
LAPACK, PLAIN, BARAFF, DANTZIG = "elimination, LAPACK", "elimination, plain", "Baraff", "Cottle–Dantzig"
KINDS: dict[str, Sequence[Callable[[int], ContactProblem]]] = {
    "heap": [partial(heap, bodies) for bodies in (2, 3, 5, 8, 12, 19)],
    "wall": [partial(wall, *size) for size in ((2, 2), (3, 2), (3, 3), (4, 3), (4, 4), (5, 5))],
    "stack": [partial(stack, blocks) for blocks in (3, 5, 9, 15, 23, 37)],
}  # the last has 148 contacts
DRIVEN: dict[str, tuple[Any, Sequence[Callable[[int], ContactProblem]]]] = {
    **{f"{kind}, no friction": (Frictionless(), makes) for kind, makes in KINDS.items()},
    **{f"{kind}, friction": (Coulomb(), makes) for kind, makes in KINDS.items()},
    "stack in the plane, friction": (
        Coulomb(),
        [partial(stack_in_plane, blocks) for blocks in (6, 10, 18, 30, 46, 74)],
    ),
}
MACHINES = ("block-feeder", "double-action-jack")
VARIANTS = ("as published", "friction turned against the sliding")
RIDES = ("time steps, Baraff", "time steps, Auto", "events")
FRAME = 1.0 / 30.0  # s
ANGLES, MUS = np.linspace(0.1, 1.5, 15), np.linspace(0.25, 5.0, 20)
ROD = """
<mujoco><option timestep="0.001"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="2 0 0"/>
  <body name="rod" pos="0 0 1"><freejoint/>
    <geom name="rod" type="capsule" size="0.01" fromto="-0.5 0 0 0.5 0 0" mass="1" friction="2 0 0"/></body>
</worldbody></mujoco>
"""  # mu = 2; at an angle of 1 rad there are no forces above (1 + 3 cos²) / (3 sin cos) = 1.37


@dataclass(frozen=True, eq=False)
class Results(Stored):
    """Times in s; the axes are named in this order.

    solvers: names; sizes: (kind of KINDS, size) contacts; seconds, residual: (kind, size, solver, problem), no friction
    driven_sizes: (kind of DRIVEN, size); drives, given_up, tries: (variant of VARIANTS, kind, size, problem)
    driven_residual: (3, kind, size, problem) of the paper's algorithm by the paper's conditions and by Coulomb's law,
        and of ours by Coulomb's law
    frames: (machine, ride, frame) s of a frame of FRAME; failures: (machine, ride) steps that Baraff's method left to
        others; machine_residual: (machine, ride); machine_contacts: (machine, ride) the most
    coefficient: (angle, mu) A of Painlevé's rod; outcome: 0 forces, 1 a ray, 2 neither; force_error: of A f = m g
    stopped: (angle, mu) m/s of sliding after the impulse along the ray, from 1 m/s; lost: part of the energy after the
        impact that follows; NaN where there are forces
    rod_time, rod_energy: (step,) of the rod that jams, in a simulation; rod_noted: (step,) impulses told of, N s
    rod_residual: (step,)
    """

    solvers: NDArray[np.str_]
    sizes: NDArray[np.int64]
    seconds: Array
    residual: Array
    driven_sizes: NDArray[np.int64]
    drives: NDArray[np.int64]
    given_up: NDArray[np.int64]
    tries: NDArray[np.int64]
    driven_residual: Array
    frames: Array
    failures: NDArray[np.int64]
    machine_residual: Array
    machine_contacts: NDArray[np.int64]
    coefficient: Array
    outcome: NDArray[np.int64]
    force_error: Array
    stopped: Array
    lost: Array
    rod_time: Array
    rod_energy: Array
    rod_noted: Array
    rod_residual: Array

    def ratio(self, solver: str, other: str) -> Array:
        """(kind, size) median over problems of (time of the one) / (time of the other)."""
        one, two = (self.seconds[:, :, self.solvers.tolist().index(name)] for name in (solver, other))
        return np.asarray(np.median(one / two, axis=2))

    def packages(self) -> list[str]:
        return [name for name in self.solvers.tolist() if name not in (LAPACK, PLAIN, BARAFF, DANTZIG)]


def run(quick: bool = False, seed: int = 0) -> Results:
    """All experiments: some minutes, or half a minute if quick."""
    return Results(
        **frictionless(quick, seed),
        **driving(quick, seed),
        **running(quick),
        **jamming(quick),
        seed=seed,
        environment=environment(),
    )


# Without friction: against elimination and quadratic programs


def frictionless(quick: bool, seed: int) -> dict[str, Any]:
    contestants: dict[str, Callable[[ContactProblem], Callable[[], Any]]] = {
        LAPACK: by_lapack,
        PLAIN: by_elimination,
        DANTZIG: partial(on_program, CottleDantzig()),
        BARAFF: partial(on_contacts, Baraff()),
        **{name: partial(on_package, prepare) for name, prepare in installed().items()},
    }
    places, seeds = (1, 3, 5) if quick else range(6), range(seed, seed + (3 if quick else 10))
    problems = [[[makes[k](s).with_law(Frictionless()) for s in seeds] for k in places] for makes in KINDS.values()]
    shape = (len(KINDS), len(problems[0]), len(contestants), len(seeds))
    seconds, residual = np.full(shape, np.inf), np.full(shape, np.nan)
    for at in np.ndindex(shape[0], shape[1], shape[3]):
        problem = problems[at[0]][at[1]][at[2]]
        for repeat in range(4 if quick else 10):
            for c, prepare in enumerate(contestants.values()):
                solve_it = prepare(problem)
                begin = time.process_time()
                found = solve_it()
                spent = time.process_time() - begin
                place = (at[0], at[1], c, at[2])
                if repeat:  # the first compiles
                    seconds[place] = min(seconds[place], spent)
                elif c > 1:
                    residual[place] = judged(problem, found)
    return {
        "solvers": np.array(list(contestants)),
        "sizes": np.array([[row[0].n for row in kind] for kind in problems]),
        "seconds": seconds,
        "residual": residual,
    }


def judged(problem: ContactProblem, found: Any) -> float:
    """Residual of normal impulses z, or of (n, 3) impulses."""
    impulse = found if np.ndim(found) == 2 else impulses(problem, found)
    return certify_contact(problem, Answer(impulse, *problem.respond(impulse))).residual


def definite(problem: ContactProblem) -> tuple[Array, Array]:
    """A and b; what is added to A makes it definite and leaves no zeros to skip: elimination takes what n tells."""
    lcp = program(problem).lcp()
    return lcp.M + 1e-3 * np.eye(lcp.n) + 1e-6, lcp.q.copy()


def by_lapack(problem: ContactProblem) -> Callable[[], Any]:
    A, b = definite(problem)
    return lambda: np.linalg.solve(A, b)


def by_elimination(problem: ContactProblem) -> Callable[[], Any]:
    A, b = definite(problem)
    factor: Any = linear.lu
    substitute: Any = linear.lu_solve
    pivots = np.zeros(len(b), np.int64)

    def eliminate() -> Any:
        U, x = A.copy(), b.copy()
        factor(U, pivots, len(b))
        substitute(U, pivots, len(b), x)
        return x

    return eliminate


# Drives


def driving(quick: bool, seed: int) -> dict[str, Any]:
    places, seeds = range(6), range(seed, seed + (4 if quick else 20))
    shape = (len(DRIVEN), len(places), len(seeds))
    drives, given_up = np.zeros((2, *shape), np.int64), np.zeros((2, *shape), np.int64)
    tries, residual = np.zeros((2, *shape), np.int64), np.full((3, *shape), np.nan)
    sizes = np.zeros(shape[:2], np.int64)
    for k, (law, makes) in enumerate(DRIVEN.values()):
        for p, place in enumerate(places):
            for s, each in enumerate(seeds):
                problem, at = makes[place](each).with_law(law), (k, p, s)
                sizes[k, p] = problem.n
                for v, solver in enumerate((Baraff(realign=False), Baraff())):
                    found = solve(problem, solver, throw=False)
                    drives[(v, *at)], given_up[(v, *at)], tries[(v, *at)] = counted(found.trace[0])
                    residual[(v + 1, *at)] = found.certificate.residual
                    if v == 0:
                        residual[(0, *at)] = violation(problem, found)
    return {
        "driven_sizes": sizes,
        "drives": drives,
        "given_up": given_up,
        "tries": tries,
        "driven_residual": residual,
    }


def counted(trace: str) -> tuple[int, int, int]:
    """Drives, contacts given up and tries, as the solver tells them."""
    drives, given_up, _, tries = map(int, re.findall(r"\d+", trace))
    return drives, given_up, tries


def violation(problem: ContactProblem, found: Any) -> float:
    """By how much the paper's own conditions fail [Baraff1994, eq. 15, 16, 21], in units of the certificate's scale.

    They ask friction to oppose the sliding partially, p_t·u_t <= 0; Coulomb's law asks for the opposite direction.
    """
    W = 1.0 / problem.whitened.scale**2  # turns an impulse into a velocity
    p, u, bound = found.impulse, found.contact_velocity, problem.friction * found.impulse[:, 0]
    if isinstance(problem.law, Frictionless):
        bound = np.zeros(problem.n)
    size, sliding = np.hypot(p[:, 1], p[:, 2]), np.hypot(u[:, 1], u[:, 2])
    along = (p[:, 1:] * u[:, 1:]).sum(axis=1) / np.where(size > 0.0, size, 1.0)
    free = np.minimum(sliding, np.abs(W * (bound - size)))
    parts = [np.abs(np.minimum(u[:, 0], W * p[:, 0])), W * np.maximum(size - bound, 0.0), np.maximum(along, 0.0), free]
    if isinstance(problem.law, Frictionless):
        parts = parts[:2]
    return float(np.max(parts, initial=0.0) / found.certificate.scale)


# Machines


def running(quick: bool) -> dict[str, Any]:
    count = 30 if quick else 300
    shape = (len(MACHINES), len(RIDES))
    frames, failures = np.zeros((*shape, count)), np.zeros(shape, np.int64)
    residual, contacts = np.zeros(shape), np.zeros(shape, np.int64)
    for at in np.ndindex(shape):
        ride = drive_machine(MACHINES[at[0]], RIDES[at[1]], count)
        frames[at], failures[at], residual[at], contacts[at] = ride
    return {"frames": frames, "failures": failures, "machine_residual": residual, "machine_contacts": contacts}


def drive_machine(machine: str, ride: str, count: int) -> tuple[Array, int, float, int]:
    """Seconds of each frame, steps that were left to `Auto`, the worst residual, and the most contacts."""
    from stiction.bodies.scene import Scene
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.simulation import Simulation
    from stiction.stepping.time_stepping import DEFAULT, TimeStepping

    solver: Any = Baraff() if ride == RIDES[0] else DEFAULT
    sim = Simulation(Scene.named(machine), Coulomb(), solver, EventDriven() if ride == "events" else TimeStepping())
    for _ in range(2):  # compiles
        sim.step()
    sim.reset()
    frames, failures, worst, most = np.zeros(count), 0, 0.0, 0
    for frame in range(count):
        begin = time.process_time()
        while sim.time < (frame + 1) * FRAME:
            try:
                report = sim.step()
            except SolveFailed:
                failures += 1
                report = sim.stepper.step(sim.engine, sim.law, DEFAULT)
            worst = max(worst, report.certificate.residual)
        frames[frame] = time.process_time() - begin
        most = max(most, len(report.solution.impulse))
    return frames, failures, worst, most


# Painlevé


def jamming(quick: bool) -> dict[str, Any]:
    shape = (len(ANGLES), len(MUS))
    outcome, error = np.full(shape, 2, np.int64), np.zeros(shape)
    stopped, lost = np.full(shape, np.nan), np.full(shape, np.nan)
    cosine, sine = np.cos(ANGLES)[:, None], np.sin(ANGLES)[:, None]
    coefficient = 1.0 + 3.0 * cosine * (cosine - MUS * sine)
    for at in np.ndindex(shape):
        problem = painleve_forces(float(ANGLES[at[0]]), float(MUS[at[1]]))
        found = Baraff().propose(problem, None)
        if found.status == Status.SOLVED:
            outcome[at] = 0
            error[at] = abs(coefficient[at] * found.impulse[0, 0] / GRAVITY - 1.0)
        elif found.status == Status.RAY:
            outcome[at] = 1
            stopped[at], lost[at] = struck(problem, found.ray)
    return {
        "coefficient": coefficient,
        "outcome": outcome,
        "force_error": error,
        "stopped": stopped,
        "lost": lost,
        **jam(0.1 if quick else 0.6),
    }


def struck(problem: ContactProblem, ray: Any) -> tuple[float, float]:
    """Sliding (m/s) after the impulse along the ray, from 1 m/s, and the part of the energy that is gone in the end."""
    assert problem.mass is not None
    before = np.array([-1.0, 0.0, 0.0])
    blow = impulse_along(problem, ray, before)
    after = ContactProblem(problem.mass, blow.velocity, problem.normal, problem.tangent, problem.friction)
    v = solve(after, Baraff()).velocity
    return abs(float(problem.tangent[0, 0] @ blow.velocity)), float(
        1.0 - (v @ problem.mass @ v) / (before @ problem.mass @ before)
    )


def jam(seconds: float) -> dict[str, Any]:
    """The rod in space, from event to event: it leans by 1 rad and slides on its leading end at 3 m/s."""
    from stiction.bodies.scene import Scene
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.simulation import Simulation

    sim = Simulation(Scene.from_xml(ROD), Coulomb(), None, EventDriven())
    sim.data.qpos[:] = 0.0, 0.0, 0.5 * np.sin(1.0) + 0.01, np.cos(0.5), 0.0, np.sin(0.5), 0.0
    sim.data.qvel[0] = 3.0
    reports = list(sim.run(seconds))
    noted = [re.findall(r"an impulse of (\S+) N s", " ".join(report.solution.trace)) for report in reports]
    return {
        "rod_time": np.array([report.time for report in reports]),
        "rod_energy": np.array([report.energy for report in reports]),
        "rod_noted": np.array([sum(map(float, each)) for each in noted]),
        "rod_residual": np.array([report.certificate.residual for report in reports]),
    }


# Claims


def check(results: Results) -> list[Claim]:
    """The claims of the paper, and what was found."""
    return [
        *_speed(results),
        *_programs(results),
        *_drives(results),
        *_reliable(results),
        *_machines(results),
        *_painleve(results),
    ]


def _speed(results: Results) -> list[Claim]:
    """At the largest size; the worst kind decides."""
    claims = []
    for solver, documented in ((DANTZIG, True), (BARAFF, False)):
        ratio = results.ratio(solver, LAPACK)[:, -1]
        plain = results.ratio(solver, PLAIN)[:, -1]
        given = "given A and b" if solver == DANTZIG else "from bodies"
        claims.append(
            Claim(
                f"forces without friction take at most three eliminations ({solver}, {given})",
                bool(ratio.max() <= 3.0),
                f"n = {results.sizes[0, -1]}: {by_kind(ratio)} times LAPACK's, {by_kind(plain)} times a plain one",
                documented,
                printed="two to three times, to n = 150",
                why="" if documented else WHY_BODIES,
                timed=True,
            )
        )
    return claims


WHY_BODIES = (
    "It holds for heaps and walls. In a tower of 37 blocks 111 contacts become members, in 111 steps as with A and b; "
    "but each step takes two and a half times as long, with a full inverse, which friction needs, and rows made from "
    "bodies."
)


def _programs(results: Results) -> list[Claim]:
    ratios = {name: results.ratio(name, DANTZIG)[:, -1] for name in results.packages()}
    if not ratios:
        return []
    fastest = np.min(list(ratios.values()), axis=0)
    text = "; ".join(f"{name} {by_kind(ratio)}" for name, ratio in ratios.items())
    return [
        Claim(
            "forces without friction are found five times as fast as by the best quadratic programs",
            bool(fastest.min() >= 5.0),
            f"n = {results.sizes[0, -1]}, time over Cottle–Dantzig's: {text}",
            documented=False,
            printed="five to ten times, to n = 150",
            why="Active-set methods of today are pivoting methods themselves, with updated factors: daqp takes two to "
            "four times as long. And where nearly every contact carries force, as in stacks, quadprog on A itself "
            "begins at the unconstrained optimum and is nearly there; in heaps it takes tens of times as long.",
            timed=True,
        )
    ]


def _drives(results: Results) -> list[Claim]:
    claims = []
    for k, kind in enumerate(DRIVEN):
        n, counts = results.driven_sizes[k], np.median(results.drives[0, k], axis=1)
        power = exponent(n, counts)
        ours = np.median(results.drives[1, k], axis=1)
        turned = "" if "no friction" in kind or "plane" in kind else f"; turned, {ours[-1] / n[-1]:.1f} n"
        claims.append(
            Claim(
                f"drive-to-zero is called about O(n) times ({kind})",
                power <= 1.25,
                f"n^{power:.2f} for n = {n[0]} to {n[-1]}, {counts[-1] / n[-1]:.2f} n at last, most "
                f"{results.drives[0, k, -1].max() / n[-1]:.1f} n{turned}",
                printed="about O(n)",
            )
        )
    return claims


def _reliable(results: Results) -> list[Claim]:
    friction = [k for k, kind in enumerate(DRIVEN) if "no friction" not in kind]
    published, ours = results.driven_residual[0][friction], results.driven_residual[2][friction]
    space = [k for k, kind in enumerate(DRIVEN) if "no friction" not in kind and "plane" not in kind]
    given_up, tries = results.given_up[0][friction].sum(), results.tries[0][friction]
    exact = np.mean(results.driven_residual[1][space] <= TOLERANCE)
    return [
        Claim(
            "static friction in the plane and in space is never seen to fail",
            bool((published <= TOLERANCE).all()),
            f"{np.mean(published <= TOLERANCE):.1%} of {published.size} meet the paper's conditions, worst "
            f"{published.max():.0e}; {given_up} contacts given up; {np.mean(tries > 1):.1%} needed another order",
            printed="no failure seen",
        ),
        Claim(
            "and in space obeys Coulomb's law",
            bool((results.driven_residual[1][space] <= TOLERANCE).all()),
            f"{exact:.0%} as published, median residual {np.median(results.driven_residual[1][space]):.0e}; turned, "
            f"{np.mean(ours <= TOLERANCE):.1%}",
            documented=False,
            printed="at least partially opposed",
            why="The paper fixes the direction of friction where it reaches its bound; the sliding then turns away.",
        ),
    ]


def _machines(results: Results) -> list[Claim]:
    claims = []
    for r, ride in enumerate(RIDES):
        typical, slowest = 1.0 / np.median(results.frames[:, r], axis=1), 1.0 / results.frames[:, r].max(axis=1)
        text = ", ".join(
            f"{machine} {usual:.0f} Hz, slowest frame {slow:.0f} Hz, {contacts} contacts"
            for machine, usual, slow, contacts in zip(
                MACHINES, typical, slowest, results.machine_contacts[:, r], strict=True
            )
        )
        left = f"; {results.failures[:, r].sum()} steps left to others" if r == 0 else ""
        claims.append(
            Claim(
                f"block feeder and jack run at more than 30 frames a second, never below 20 ({ride})",
                bool(typical.min() > 30.0 and slowest.min() > 20.0),
                text + left,
                documented=ride != "events",
                printed="consistently 20 to 30 Hz",
                why=WHY_EVENTS if ride == "events" else "",
                timed=True,
            )
        )
    return claims


WHY_EVENTS = (
    "Between events a step of the feeder takes 3.5 ms and one of the jack 1.5 ms; an eighth of that is the forces, a "
    "third is taking back what integration leaves in gaps and joints, which time steps need not. Where blocks land or "
    "pawls catch, a step has up to ten pieces."
)


def _painleve(results: Results) -> list[Claim]:
    known = np.abs(results.coefficient) > 1e-9
    right = (results.outcome == (results.coefficient < 0.0))[known]
    rays = results.outcome == 1
    first = float(MUS[np.nonzero(rays.any(axis=0))[0][0]])
    noted = np.flatnonzero(results.rod_noted > 0.0)
    return [
        Claim(
            "a drive that nothing stops is found exactly where no forces exist (Painlevé's rod)",
            bool(right.all() and results.force_error.max() < 1e-9),
            f"{right.sum()} of {right.size} rods as the formula says; forces within {results.force_error.max():.0e}",
            printed="infinite steps only with dynamic friction",
        ),
        Claim(
            "an impulse along it stops the sliding, and energy is lost",
            bool(np.nanmax(results.stopped) < 1e-9 and np.nanmin(results.lost) > 0.0),
            f"{rays.sum()} rods, left with at most {np.nanmax(results.stopped):.0e} m/s of 1 m/s; "
            f"{np.nanmin(results.lost):.0%} to {np.nanmax(results.lost):.0%} of the energy lost",
            printed="suitable for impulsive forces",
        ),
        Claim(
            "that needs unrealistically large friction",
            first > 1.0,
            f"from mu = {first:g} on (a step of {MUS[1] - MUS[0]:g}; 4/3 in theory)",
            printed="mostly where mu is unrealistically large",
        ),
        Claim(
            "a rod that jams goes on after the impulse (simulated)",
            bool(len(noted) > 0 and (results.rod_residual <= TOLERANCE).all()),
            f"an impulse of {results.rod_noted[noted[0]]:.2g} N s at {1e3 * results.rod_time[noted[0]]:.0f} ms, "
            f"{len(noted)} in all; energy {results.rod_energy[0]:.2f} J, in the end {results.rod_energy[-1]:.2f} J"
            if len(noted)
            else "no impulse",
            printed="regular and impulsive forces in one algorithm",
        ),
    ]


def by_kind(ratio: Array) -> str:
    return ", ".join(f"{value:.1f} ({kind})" for kind, value in zip(KINDS, ratio, strict=True))


def exponent(sizes: NDArray[np.int64], counts: Array) -> float:
    """Of the power with which counts grow."""
    return float(np.polyfit(np.log(sizes), np.log(counts), 1)[0])


# Figures and tables


def figures(results: Results) -> list[Plate]:
    return [
        Plate(
            "speed",
            "Forces without friction against one elimination and against quadratic programs.",
            _draw_speed(results),
        ),
        Plate("drives", "Calls of drive-to-zero, without and with friction.", _draw_drives(results)),
        Plate("machines", "Time of each frame of the block feeder and of the jack.", _draw_machines(results)),
        Plate("rod", "Painlevé's rod: where no forces exist, and the energy of one that jams.", _draw_rod(results)),
    ]


STYLES = (
    ("o", "-", "0.25"),
    ("s", "--", "white"),
    ("^", ":", "0.6"),
    ("D", "-.", "white"),
    ("v", "-", "0.6"),
    ("P", "--", "0.25"),
    ("x", ":", "0.25"),
    ("*", "-.", "0.6"),
)


def _draw_speed(results: Results) -> Any:
    figure = optional.matplotlib().figure.Figure(figsize=(9.5, 3.6), layout="constrained")
    axes = figure.subplots(1, len(KINDS), sharey=True)
    names = [name for name in results.solvers.tolist() if name != LAPACK]
    for k, (ax, kind) in enumerate(zip(axes, KINDS, strict=True)):
        for name, (marker, line, face) in zip(names, STYLES, strict=False):
            ax.plot(
                results.sizes[k],
                results.ratio(name, LAPACK)[k],
                line,
                marker=marker,
                color="0.25",
                mfc=face,
                label=name,
                ms=5,
            )
        ax.axhspan(2.0, 3.0, color="0.9")
        ax.set(xscale="log", yscale="log", xlabel="contacts n", title=kind)
        ax.set_xticks(results.sizes[k], [str(n) for n in results.sizes[k]])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("time over one elimination (LAPACK)\ngrey: the paper's two to three")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return figure


def _draw_drives(results: Results) -> Any:
    figure = optional.matplotlib().figure.Figure(figsize=(6.5, 4.0), layout="constrained")
    ax = figure.subplots()
    for k, (kind, (marker, line, face)) in enumerate(zip(DRIVEN, STYLES, strict=False)):
        middle = np.median(results.drives[0, k], axis=1)
        ax.plot(results.driven_sizes[k], middle, line, marker=marker, color="0.25", mfc=face, label=kind)
    n = np.array([20, 148])
    ax.plot(n, n, color="0.7", lw=0.8)
    ax.text(148, 148, " n", color="0.5", va="center")
    ax.set(xscale="log", yscale="log", xlabel="contacts n", ylabel="calls of drive-to-zero, median")
    ax.set_xticks([12, 20, 36, 60, 92, 148], ["12", "20", "36", "60", "92", "148"])
    ax.set_yticks([5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"])
    ax.minorticks_off()
    ax.legend(fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_machines(results: Results) -> Any:
    figure = optional.matplotlib().figure.Figure(figsize=(8.5, 3.4), layout="constrained")
    axes = figure.subplots(1, len(MACHINES), sharey=True)
    for ax, machine, frames in zip(axes, MACHINES, results.frames, strict=True):
        at = FRAME * np.arange(1, frames.shape[1] + 1)
        for ride, spent, line, colour in zip(RIDES, frames, ("-", ":", "-"), ("0.1", "0.1", "0.6"), strict=True):
            ax.plot(at, 1.0 / spent, line, color=colour, lw=1.0, label=ride)
        ax.axhspan(20.0, 30.0, color="0.9")
        ax.set(yscale="log", xlabel="s of motion", title=machine)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("frames a second\ngrey: the paper's 20 to 30")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_rod(results: Results) -> Any:
    figure = optional.matplotlib().figure.Figure(figsize=(8.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    angle, mu = np.meshgrid(ANGLES, MUS, indexing="ij")
    for outcome, marker, label in ((0, "o", "forces"), (1, "x", "a ray: an impulse")):
        chosen = results.outcome == outcome
        left.plot(angle[chosen], mu[chosen], marker, color="0.3", mfc="white", ms=4, label=label)
    fine = np.linspace(0.1, 1.5, 200)
    left.plot(fine, (1.0 + 3.0 * np.cos(fine) ** 2) / (3.0 * np.sin(fine) * np.cos(fine)), "k", lw=1.0)
    left.set(xlabel="angle of the rod, rad", ylabel="mu", ylim=(-0.9, 5.4), title="line: forces cease to exist above")
    left.legend(fontsize=8, loc="lower center", ncols=2)
    right.plot(results.rod_time, results.rod_energy, "k", lw=1.0)
    for step in np.flatnonzero(results.rod_noted > 0.0):
        right.axvline(results.rod_time[step], color="0.5", lw=0.8, ls="--")
    right.set(xlabel="s", ylabel="energy, J", title="a rod that jams; dashed: impulse")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def tables(results: Results) -> list[Sheet]:
    """Times over one elimination at the largest size, and how often forces are found."""
    speed = [
        (name, *(f"{r:.2f}" for r in results.ratio(name, LAPACK)[:, -1]), *residuals(results.residual[:, -1, k]))
        for k, name in enumerate(results.solvers.tolist())
    ]
    driven = [
        (
            kind,
            f"{results.driven_sizes[k, -1]}",
            *(f"{np.median(results.drives[v, k, -1]):.0f}, at most {results.drives[v, k, -1].max()}" for v in range(2)),
            *(f"{np.mean(results.driven_residual[v, k] <= TOLERANCE):.0%}" for v in range(3)),
        )
        for k, kind in enumerate(DRIVEN)
    ]
    return [
        Sheet(
            f"Without friction, n = {results.sizes[0, -1]}: time over one elimination by LAPACK",
            ("solver", *KINDS, "solved", "worst residual"),
            speed,
        ),
        Sheet(
            "Drives at the largest size, and problems solved of all sizes",
            (
                "problems",
                "n",
                *(f"drives, {v}" for v in VARIANTS),
                "as published, paper's conditions",
                "as published, Coulomb",
                "turned, Coulomb",
            ),
            driven,
        ),
    ]


def residuals(residual: Array) -> tuple[str, str]:
    if np.isnan(residual).all():
        return "", ""
    return f"{np.mean(residual <= TOLERANCE):.0%}", f"{np.nanmax(residual):.0e}"
