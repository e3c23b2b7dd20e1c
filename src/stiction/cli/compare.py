"""`stiction compare`: the same scene by us and by MuJoCo, next to each other."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from stiction.cli import words
from stiction.cli.drive import Driving, to_keyframe
from stiction.cli.output import INTERRUPTED, progress, say, table, tell
from stiction.cli.run import OUTPUT, Camera, Record, Scene, Theme, camera_of, check_outputs, check_theme
from stiction.cli.source import Reading, Stepping, title
from stiction.errors import InvalidProblem, InvalidScene, is_number, unknown

if TYPE_CHECKING:
    from stiction.viewer.compare import Comparison

SAMPLES = 200  # moments at which engines are judged, at least; more where there are more pictures


def compare(
    scene: Scene,
    /,
    *,
    with_: Annotated[
        str,
        Parameter(
            name="--with",
            help="With commas: `mujoco`, `mujoco-elliptic`, `mujoco-impratio:100`, `mujoco-noslip:10`.",
        ),
    ] = "mujoco,mujoco-elliptic",
    seconds: Annotated[float, Parameter(help="Time to simulate.")] = 2.0,
    stepping: Stepping = Stepping(),  # noqa: B008 (frozen)
    record: Record = None,
    plot: Annotated[Path | None, Parameter(help="Slip, motion, residual: .svg, .png, .pdf.", group=OUTPUT)] = None,
    speed: Annotated[float, Parameter(help="Seconds of simulation in a second of the video.", group=OUTPUT)] = 1.0,
    fps: Annotated[float, Parameter(help="Pictures in a second of the video.", group=OUTPUT)] = 25.0,
    size: Annotated[
        str, Parameter(help="Width and height of an engine's picture, as in `480x540`.", group=OUTPUT)
    ] = "480x540",
    theme: Theme = "light",
    camera: Camera = None,
    driving: Driving = Driving(),  # noqa: B008 (frozen)
    reading: Reading = Reading(),  # noqa: B008 (frozen)
) -> int:
    """Step one scene by us and by MuJoCo's settings, next to each other.

    Prints the slip, how far the body that went furthest has gone, and the residual: every engine's own forces at its
    own contacts, judged by our certificate. `--record` makes one video or replay of all, with these numbers in it.

    **Examples**

        stiction compare pinched-capsule --seconds 10 --speed 4 --record capsule.mp4
        stiction compare mass-ratio --with mujoco,mujoco-noslip --plot ratio.svg
    """
    for name, value in (("seconds", seconds), ("speed", speed), ("fps", fps)):
        if not 0.0 < value < math.inf:
            raise InvalidScene(f"--{name} must be a number above 0, got {value}")
    chosen = settings(with_)
    width, height = pixels(size)
    check_theme(theme)
    check_outputs(record, plot=plot)
    compared, what = made(scene, stepping, reading, driving, chosen)
    ended = 0
    with ExitStack() as outputs:
        film: Any = None
        if record is not None:
            from stiction.viewer.compare import ComparisonRecorder

            film = ComparisonRecorder(
                compared, record, fps=fps, speed=speed, width=width, height=height, camera=camera_of(camera)
            )
            outputs.callback(film.close)
        try:
            with progress(title(scene), seconds, shown=True) as move:
                go(compared, seconds, speed / fps if film else seconds / SAMPLES, film, move)
        except KeyboardInterrupt:
            tell("stopped")
            ended = INTERRUPTED
    tabulate(compared, what)
    if plot is not None:
        from stiction.viewer import plots

        plots.save(plots.compared(compared, theme), plot)
    for path in (record, plot):
        if path is not None:
            tell(f"wrote {path}")
    return ended


def made(
    scene: Scene, stepping: Stepping, reading: Reading, driving: Driving, chosen: list[tuple[str, float | None]]
) -> tuple[Comparison, str]:
    """Our engines and the others, all at the start of the scene, and a title that says what is compared."""
    from stiction.viewer.compare import Comparison
    from stiction.viewer.rivals import runs_of

    def again() -> Any:
        made = reading.scene(scene)
        if stepping.dt is not None:
            made.model.opt.timestep = stepping.dt
        return driving.steered(made)

    ours = stepping.simulation(scene, reading, driving)
    compared = Comparison(runs_of(again, ours, chosen))
    if driving.keyframe is not None:
        for run in compared.runs[1:]:
            to_keyframe(run.model, run.data, driving.keyframe)
    for run in compared.runs:
        run.begin()
    return compared, ours.scene.description or title(scene)


def tabulate(compared: Comparison, what: str) -> None:
    from stiction.viewer.compare import HEAD

    say(f"{what.rstrip('.')}, {compared.runs[0].time:.6g} s")
    say(table(HEAD, compared.table(), numbers=(1, 2, 3, 4)))


def go(compared: Comparison, seconds: float, spacing: float, film: Any, move: Any) -> None:
    """To the end, judged and filmed at even times."""
    count = max(1, math.ceil(seconds / min(spacing, seconds / SAMPLES) - 1e-9))
    for k in range(1, count + 1):
        compared.advance(seconds * k / count)
        compared.look()
        if film is not None:
            film.frame()
        move(seconds * k / count)


def settings(text: str) -> list[tuple[str, float | None]]:
    """`mujoco,mujoco-impratio:10` as names and values."""
    from stiction.viewer.rivals import SETTINGS

    found: list[tuple[str, float | None]] = []
    for part in filter(None, text.split(",")):
        name, colon, value = part.strip().partition(":")
        if name not in SETTINGS:
            raise InvalidScene(unknown("engine", name, SETTINGS, " (--with)"))
        number = words.literal(value) if colon else None
        if colon and not (is_number(number) and 0.0 < number < math.inf):
            raise InvalidScene(f"--with {part}: write a number above 0 after the colon")
        found.append((name, None if number is None else float(number)))
    if not found:
        raise InvalidScene(f"--with names no engine; there are {', '.join(SETTINGS)}")
    return found


def pixels(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise InvalidProblem(f"--size {text}: write WIDTHxHEIGHT in pixels, as in 480x540")
    return int(parts[0]), int(parts[1])
