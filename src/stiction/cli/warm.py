"""`stiction warm`: compile before it matters."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from stiction.cli import words
from stiction.cli.output import say, tell
from stiction.errors import InvalidProblem, MissingDependency, StictionError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARTS = ("steps", "contact", "turning", "lcp")  # the longest first


def warm(
    *parts: Annotated[
        str,
        Parameter(
            help="`steps`, `contact`, `turning` (torsion and rolling), `lcp`; all of them if none is given.",
            show_default=False,
        ),
    ],
) -> int:
    """Compile the kernels of all solvers, laws and steppers now, with progress.

    Kernels are compiled when they are first used, and kept on disk. This uses each of them once on a small problem, so
    that nothing has to wait later: before a demonstration, or when an image of a machine is made. Several parts are
    compiled at the same time, in as many processes as there are cores.

    **Examples**

        stiction warm
        stiction warm steps
    """
    from stiction.arrays.ahead import cores

    for part in parts:
        if part not in PARTS:
            raise InvalidProblem(unknown("part", part, PARTS, " (stiction warm)"))
    begin = time.perf_counter()
    chosen = parts or PARTS
    if min(len(chosen), cores()) > 1:
        with ThreadPoolExecutor(cores()) as pool:
            ended = list(pool.map(in_a_process, chosen))
        say(f"{', '.join(chosen)} ready in {time.perf_counter() - begin:.0f} s")
        return max(ended)
    tasks = [task for part in chosen for task in TASKS[part]()]
    for number, (name, do) in enumerate(tasks, 1):
        start = time.perf_counter()
        try:
            do()
        except MissingDependency as error:
            tell(f"[{number}/{len(tasks)}] {name}: left out ({error})")
            continue
        except StictionError:  # a solver may fail on a problem: it is compiled all the same
            pass
        tell(f"[{number}/{len(tasks)}] {name}: {time.perf_counter() - start:.1f} s")
    say(f"{len(tasks)} parts ready in {time.perf_counter() - begin:.0f} s")
    return 0


def in_a_process(part: str) -> int:
    """One part; how far it is comes to the same terminal."""
    command = [sys.executable, "-m", "stiction", "warm", part]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


def lcps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every solver of complementarity problems, on an LCP and with bounds where it takes them."""
    import stiction as st
    from stiction.solvers import COMPLEMENTARITY

    def solved(kind: Any) -> None:
        M, q = [[2.0, 1.0], [1.0, 2.0]], [-5.0, -4.0]
        st.solve(st.LCP(M, q), kind(), throw=False)
        if kind.contract.boxes:
            st.solve(st.BoxLCP(M, q, lo=0.0, hi=[1.5, float("inf")]), kind(), throw=False)

    for kind in COMPLEMENTARITY:
        yield f"{words.kebab(kind.__name__)} on an LCP", partial(solved, kind)


def contacts() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every solver of contact problems under every law it takes, on two blocks."""
    import stiction as st
    from stiction.problems.laws import SHOWN
    from stiction.problems.zoo.contact_families import stack
    from stiction.solvers import ALL

    def solved(solver: Any, law: Any) -> None:
        st.solve(stack(2, seed=0).with_law(law), solver(), throw=False)

    # Steps begin with ConeNewton at the same time, and go on with pyramids.
    kinds: list[Any] = sorted(ALL, key=lambda each: {st.CellLemke: 0, st.ConeNewton: 2}.get(each, 1))
    for solver in kinds:
        for name, law in SHOWN.items():
            if law.kind in solver.contract.laws:
                yield f"{words.kebab(solver.__name__)}, {name}", partial(solved, solver, law)

    def differentiated() -> None:
        solution = st.solve(stack(2, seed=0))
        st.differentiate(solution).vjp(solution.velocity)

    yield "many at once", lambda: st.solve_many([stack(2, seed=seed) for seed in range(2)])
    yield "derivatives", differentiated


def turning() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Steps and solves of contacts that resist spin and rolling."""
    import stiction as st

    def stepped() -> None:
        ball = st.Simulation(st.Scene.from_xml(BALL))
        solution: Any = ball.step().solution
        st.solve(solution.problem)
        ball.step()  # in one call
        ball.rollout(nstep=3)

    yield "time stepping and a rollout, with torsion and rolling", stepped


def steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Both steppers on a scene at rest and on one that slides, time stepping under every law."""
    import stiction as st
    from stiction.problems.laws import SHOWN

    def stepped(scene: str, law: Any, stepper: Any) -> None:
        simulation = st.Simulation(st.Scene.named(scene), law, stepper=stepper)
        for _ in range(3):
            simulation.step()
        _ = simulation.contacts

    for name, law in SHOWN.items():
        for scene in ("box-on-plane", "sliding-cube"):
            yield f"time stepping, {name}, {scene}", partial(stepped, scene, law, st.TimeStepping(viscosity=1.0))

    def rolled() -> None:
        st.Simulation(st.Scene.named("box-on-plane")).rollout(nstep=3)

    def crowded() -> None:
        crowd = st.Simulation(st.Scene.named("humanoids", count=30), stepper=st.TimeStepping(workers=2))
        for _ in range(3):
            crowd.step()

    yield "rollout, box-on-plane", rolled
    yield "islands on threads, humanoids", crowded
    yield "event-driven, box-on-plane", partial(stepped, "box-on-plane", st.Coulomb(), st.EventDriven())


# What resists spin and rolling.
BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><freejoint/><geom size="0.1" condim="6" friction="1 0.005 0.0001"/></body></worldbody></mujoco>"""
TASKS: dict[str, Callable[[], Iterator[tuple[str, Callable[[], Any]]]]] = {
    "steps": steps, "contact": contacts, "turning": turning, "lcp": lcps,
}  # fmt: skip
