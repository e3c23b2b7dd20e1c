"""`stiction run` and `stiction view`: a scene in time."""

from __future__ import annotations

import errno
import math
import os
import signal
import socket
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from stiction.cli.drive import Driving, held_values
from stiction.cli.output import FAILED, INTERRUPTED, check_writable, plain, progress, say, shortened, tell
from stiction.cli.source import Reading, Stepping, title
from stiction.errors import InvalidProblem, InvalidScene, SolveFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stiction.stepping.report import Report
    from stiction.stepping.simulation import Simulation

OUTPUT = Group("Output")
PORT = 8080
MOST_STEPS = 1e15
MOST = 20  # contacts of the last step that are shown
Scene = Annotated[str, Parameter(help="A file (MJCF or URDF), or a name that `stiction scenes` lists.")]


Record = Annotated[Path | None, Parameter(help="Video: .mp4, .gif, or .html, a replay.", group=OUTPUT)]
Theme = Annotated[str, Parameter(help="Paper of the plot: `light` or `dark`.", group=OUTPUT)]
Camera = Annotated[
    str | None,
    Parameter(
        help="Of a film: its name, or AZIMUTH,ELEVATION in degrees.", group=OUTPUT, show_default="follows what moves"
    ),
]


def run(
    scene: Scene,
    /,
    *,
    seconds: Annotated[float, Parameter(help="Time to simulate.")] = 2.0,
    stepping: Stepping = Stepping(),  # noqa: B008 (frozen)
    record: Record = None,
    log: Annotated[Path | None, Parameter(help="All steps and contacts: .npz or .parquet.", group=OUTPUT)] = None,
    plot: Annotated[Path | None, Parameter(help="Forces, modes, energy ...: .svg, .png, .pdf.", group=OUTPUT)] = None,
    quiet: Annotated[
        bool, Parameter(help="Say nothing of what goes well.", group=OUTPUT, negative="", show_default=False)
    ] = False,
    theme: Theme = "light",
    camera: Camera = None,
    cones: Annotated[
        bool, Parameter(help="Draw friction cones in the video.", group=OUTPUT, negative="", show_default=False)
    ] = False,
    driving: Driving = Driving(),  # noqa: B008 (frozen)
    reading: Reading = Reading(),  # noqa: B008 (frozen)
) -> int:
    """Simulate a scene, every step certified.

    Prints a summary and the contacts of the last step. If a contact problem is not solved, it is written to a file, and
    the exit status is 1. Ctrl-C ends the run and keeps what was recorded.

    **Examples**

        stiction run pinched-capsule
        stiction run log-heap --set logs=12 --law pyramid:8 --seconds 3
        stiction run robot.urdf --floating --ground 0 --record robot.mp4
        stiction run dominoes --log dominoes.npz --plot dominoes.png --quiet
        stiction run gripper.xml --ctrl left=10 --ctrl right=10 --record grip.mp4
        stiction run block-on-tripod --cones --record tripod.mp4
    """
    check_seconds(seconds)
    check_theme(theme)
    check_outputs(record, log, plot)
    simulation = stepping.simulation(scene, reading, driving)
    course = Course(simulation, steps_of(seconds, simulation.model.opt.timestep))
    ended = ""
    with ExitStack() as outputs:
        looks = {"camera": camera_of(camera), "cones": cones}
        watch = open_outputs(simulation, record, log, plot, outputs, theme, looks)
        try:
            with stoppable(course), progress(title(scene), seconds, not quiet) as move:
                course.go(watch, move)
        except SolveFailed as error:
            ended = f"{error}; {dumped(simulation, title(scene), course.steps)}"
        if course.stop and not ended:
            ended = "stopped"
        if not quiet:
            for path in (record, log, plot):
                if path is not None:
                    tell(f"writing {path}")
    if not quiet:
        say(course.summary())
        if ended in ("", "stopped") and course.steps:  # after a failure contacts are those that were not solved
            say(contact_table(simulation))
    if not ended:
        return 0
    tell(f"after {course.steps} steps, at {simulation.time:.6g} s: {ended}")
    return INTERRUPTED if ended == "stopped" else FAILED


def check_seconds(seconds: float) -> None:
    if not 0.0 <= seconds < math.inf:
        raise InvalidScene(f"--seconds must be a time of at least 0, got {seconds}")


def steps_of(seconds: float, dt: float) -> int:
    if not seconds / dt < MOST_STEPS:
        raise InvalidScene(f"--seconds {seconds:g} is too long for steps of {dt:g} s")
    return round(seconds / dt)


def view(
    scene: Annotated[
        str | None,
        Parameter(
            help="A file (MJCF or URDF), or a name; all named scenes to choose from if none is given.",
            show_default=False,
        ),
    ] = None,
    /,
    *,
    stepping: Stepping = Stepping(),  # noqa: B008 (frozen)
    host: Annotated[str, Parameter(help="Address to listen at; the default is this machine only.")] = "127.0.0.1",
    port: Annotated[
        int | None, Parameter(help="Port to listen at.", show_default=f"{PORT}, or another if that is in use")
    ] = None,
    allow_origin: Annotated[
        tuple[str, ...], Parameter(help="Another site, as https://name:port, whose pages may use this one.")
    ] = (),
    driving: Driving = Driving(),  # noqa: B008 (frozen)
    reading: Reading = Reading(),  # noqa: B008 (frozen)
) -> int:
    """Watch a scene in the browser: play, pause, push, contact forces as arrows. Without a scene, choose from pictures.

    **Examples**

        stiction view
        stiction view block-feeder
        stiction view robot.xml --law no-slip --port 9000
        stiction view gripper.xml --ctrl left=10 --ctrl right=10
    """
    from stiction.viewer import browser

    if port is not None and not 0 < port < 65536:
        raise InvalidScene(f"--port must be from 1 to 65535, got {port}")
    wanted = PORT if port is None else port
    if in_use(host, wanted):
        if port is not None:
            raise InvalidScene(f"--port {port} is in use at {host}; choose another, or leave it out")
        tell(f"port {PORT} is in use: listening at another")
    if scene is None:
        from stiction.viewer import start

        start.view(lambda name: stepping.simulation(name, reading, driving), host, wanted, tell_address, allow_origin)
        return 0
    simulation = stepping.simulation(scene, reading, replace(driving, ctrl=()))
    # Sliders of the page hold these, so that they can be moved.
    held = held_values(simulation.model, driving.ctrl)
    browser.view(simulation, host=host, port=wanted, allow_origins=allow_origin, held=held, opened=tell_address)
    return 0


def tell_address(url: str) -> None:
    tell(f"{url} (Ctrl-C ends)")


def in_use(host: str, port: int) -> bool:
    """Whether somebody listens there already; what is wrong with the address itself is found later."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # a port that was left a moment ago is free
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    except UnicodeError:
        return False
    return False


class Course:
    """The loop of `run`: it does no more in a step than to remember the worst residual."""

    def __init__(self, simulation: Simulation, steps: int) -> None:
        self.simulation, self.wanted, self.steps, self.stop = simulation, steps, 0, False
        self.worst, self.seconds, self.first, self.uncertified = 0.0, 0.0, 0.0, 0
        self.lifting, self.lift = 0, 0.0

    def go(self, watch: Callable[[Report, float], None] | None, move: Callable[[float], None]) -> None:
        step, clock = self.simulation.step, time.perf_counter
        begin = clock()
        try:
            for _ in range(self.wanted):
                before = clock()
                report = step()
                residual = report.certificate.residual
                if not residual <= self.worst:
                    self.worst = residual
                self.uncertified += not report.ok
                if report.lift > 0.0:
                    self.lifting, self.lift = self.lifting + 1, max(self.lift, report.lift)
                self.steps += 1
                if self.steps == 1:
                    self.first = clock() - begin
                if watch is not None:
                    watch(report, clock() - before)
                move(report.time)
                if self.stop:
                    break
        finally:
            self.seconds = clock() - begin

    def summary(self) -> str:
        simulation = self.simulation
        loading = f" ({self.first:.2f} s for the first)" if self.first > 0.5 * self.seconds else ""
        lines = [
            simulation.scene.description or "scene",
            f"{self.steps} steps of {simulation.model.opt.timestep:g} s in {self.seconds:.2f} s{loading}, "
            f"worst residual {plain(self.worst)}",
        ]
        if self.uncertified:
            lines.append(f"not certified: {self.uncertified} of these steps; the best answer was taken")
        if self.lifting:
            lines.append(
                f"{self.lifting} of these steps were solved only with contacts that lift as they slide, at "
                f"{plain(self.lift)} m/s at most"
            )
        if self.steps and simulation.report is not None:
            lines.append(f"energy {plain(simulation.report.energy, '.6g')} J at {simulation.time:.6g} s")
        return "\n".join(lines)


@contextmanager
def stoppable(course: Course) -> Iterator[None]:
    """Ctrl-C, or a request to end, lets the step finish, so that all that is kept is whole; a second one does not."""

    def stop(number: int, frame: Any) -> None:
        if course.stop:
            raise KeyboardInterrupt
        course.stop = True

    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, stop) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


def contact_table(simulation: Simulation) -> str:
    touches = list(simulation.contacts)
    if not touches:
        return "no contacts"
    rows = [
        [
            *touch.geoms, plain(touch.gap), plain(touch.force[0], ".5g"),
            f"{math.hypot(touch.force[1], touch.force[2]):.5g}", touch.mode.name.lower(),
        ]
        for touch in touches
    ]  # fmt: skip
    head = ("geom", "geom", "gap [m]", "normal [N]", "friction [N]", "mode")
    return "\n" + shortened(head, rows, (2, 3, 4), MOST, " contacts")


# Outputs


def check_theme(theme: str) -> None:
    from stiction.viewer.palette import THEMES

    if theme not in THEMES:
        raise InvalidProblem(f"--theme must be one of {', '.join(THEMES)}, got {theme!r}")


def camera_of(camera: str | None) -> Any:
    """`95,-12` as angles; anything else is a name."""
    if camera is None or "," not in camera:
        return camera
    try:
        azimuth, elevation = (float(part) for part in camera.split(","))
    except ValueError:
        raise InvalidScene(f"--camera {camera}: write a name, or AZIMUTH,ELEVATION as in 95,-12") from None
    if not (math.isfinite(azimuth) and -89.0 <= elevation <= 89.0):
        raise InvalidScene(f"--camera {camera}: the elevation must be from -89 to 89 degrees")
    return azimuth, elevation


def check_outputs(record: Path | None = None, log: Path | None = None, plot: Path | None = None) -> None:
    """Everything that can be refused is refused before the run, and before any file is made."""
    if record is not None:
        check_writable(record, (".mp4", ".gif", ".html"), "--record")
    if log is not None:
        check_writable(log, (".npz", ".parquet"), "--log")
        if log.suffix == ".parquet":
            from stiction.optional import pyarrow

            pyarrow()
    if plot is not None:
        from stiction.viewer import plots

        check_writable(plot, plots.SUFFIXES, "--plot")
        plots.check()
    paths = [path.resolve() for path in (record, log, plot) if path is not None]
    if len(set(paths)) < len(paths):
        raise InvalidProblem("--record, --log and --plot must be different files")


def open_outputs(
    simulation: Simulation,
    record: Path | None,
    log: Path | None,
    plot: Path | None,
    outputs: ExitStack,
    theme: str,
    looks: dict[str, Any],
) -> Callable[[Report, float], None] | None:
    """A function to call after each step; None if nothing is kept. `outputs` closes everything, however a run ends."""
    recorder: Any = None
    logger: Any = None
    if record is not None:
        from stiction.viewer.record import Recorder

        recorder = Recorder(simulation, record, **looks)
        outputs.callback(recorder.close)
    if log is not None or plot is not None:
        from stiction.stepping.log import Log

        logger = Log(simulation, log)
        if plot is not None:
            outputs.callback(draw, logger, plot, theme)
        outputs.callback(logger.close)

    def watch(report: Report, seconds: float) -> None:
        if logger is not None:
            logger.add(report, seconds)
        if recorder is not None:
            recorder.frame()

    return None if recorder is None and logger is None else watch


def draw(logger: Any, path: Path, theme: str) -> None:
    from stiction.viewer import plots

    if not logger.count:
        tell(f"no step was made, so {path} is not drawn")
        return
    plots.save(plots.history(logger.record(), theme), path)


def dumped(simulation: Simulation, name: str, steps: int) -> str:
    """Write the problem that was not solved where the user will find it."""
    file = f"{name}-step-{steps + 1}.npz"
    for folder in (Path(), Path(tempfile.gettempdir())):
        try:
            simulation.dump(folder / file)
        except InvalidProblem:
            continue
        return f"its contact problem is in {folder / file} (stiction solve {folder / file} --solver all)"
    return "its contact problem could not be written"
