"""`stiction sweep`: a scene, run for many values of its parameters."""

from __future__ import annotations

import inspect
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from stiction.cli import words
from stiction.cli.drive import Driving
from stiction.cli.output import FAILED, INTERRUPTED, columns, plain, progress, say, table, tell
from stiction.cli.run import Scene, check_seconds, check_theme, steps_of
from stiction.cli.source import Reading, Stepping, title
from stiction.errors import InvalidProblem, InvalidScene, MissingDependency, is_number, unknown

if TYPE_CHECKING:
    from stiction.stepping.simulation import Simulation

MOST = 40  # rows that are shown
MOST_CASES = 10_000_000


def sweep(
    scene: Scene,
    /,
    *,
    vary: Annotated[
        tuple[str, ...],
        Parameter(
            help="NAME=FROM:TO:COUNT or NAME=VALUE,VALUE; may be repeated. NAME is a parameter of a named scene, "
            "`geom.friction` for all geoms, or `pad.mass` for one body.",
            negative="",
        ),
    ],
    out: Annotated[Path, Parameter(help="Folder of the results; the same command goes on where it was stopped.")],
    measure: Annotated[str, Parameter(help="Columns of the table, of `slip`, `energy` ... (see below).")] = (
        "slip,energy,residual"
    ),
    on: Annotated[str, Parameter(help="`here`, `cores` or `ray`.")] = "here",
    workers: Annotated[int | None, Parameter(help="Processes, or tasks of Ray.", show_default="processors")] = None,
    address: Annotated[
        str | None, Parameter(help="Of a Ray cluster to join; `auto` finds it.", show_default=False)
    ] = None,
    chunk: Annotated[int | None, Parameter(help="Cases that are kept together.", show_default="up to 16")] = None,
    retries: Annotated[int, Parameter(help="Of a case whose worker was killed.")] = 1,
    seconds: Annotated[float, Parameter(help="Time to simulate in each case.")] = 2.0,
    stepping: Stepping = Stepping(),  # noqa: B008 (frozen)
    theme: Annotated[str, Parameter(help="Paper of the picture: `light` or `dark`.")] = "light",
    quiet: Annotated[bool, Parameter(help="No progress and no table.", negative="", show_default=False)] = False,
    driving: Driving = Driving(),  # noqa: B008 (frozen)
    reading: Reading = Reading(),  # noqa: B008 (frozen)
) -> int:
    """Run a scene for every combination of some values, and tabulate what came of it.

    `--out` receives table.parquet, one row a case, and a picture of it: lines for one parameter, heat maps for two. A
    case that fails is a row with its error; the exit status is 1 then.

    Measures: `slip`, largest sliding speed of a contact [m/s]; `energy` at the end [J]; `residual`, the worst; `moved`,
    how far a body has moved at most, from beginning to end [m]; `force`, largest normal force [N]; `gap`, the smallest
    [m]; `contacts`, at the end.

    **Examples**

        stiction sweep inclined-plane --vary mu=0.1:1:10 --measure moved,residual --out slope
        stiction sweep gripper.xml --vary geom.friction=0.1:1:10 --vary pad.mass=0.1,1 --on cores --out grip
        stiction sweep log-heap --vary seed=0,1,2,3 --on ray --address auto --out heaps
    """
    from stiction.sweeps import cases as of_sweep
    from stiction.sweeps.sweep import run

    check_theme(theme)
    check_seconds(seconds)
    measures = chosen(measure)
    values = dict(varied(each) for each in vary)
    if len(values) < len(vary):
        raise InvalidScene("--vary: each name once")
    if math.prod(map(len, values.values())) > MOST_CASES:
        raise InvalidScene(f"--vary: more than {MOST_CASES:,} cases; vary less")
    given = Given(scene, seconds, measures, stepping, driving, reading, contents(scene))
    cases = of_sweep.checked(of_sweep.grid(**values))
    prepared(given, cases.rows[0])  # whatever is wrong with names and values is said at once
    with progress(title(scene), len(cases.rows), not quiet, "cases") as move:
        try:
            found = run(partial(case, given), cases, out, on, workers, chunk, retries, address, move)
        except KeyboardInterrupt:
            tell(f"stopped; what is done is in {out}, and the same command goes on from there")
            return INTERRUPTED
    drawn = picture(found, list(values), measures, out, theme)
    if not quiet:
        say(shown(found, list(values), measures))
        tell(f"{out / 'table.parquet'}{drawn}")
    errors = [error for error in found["error"].to_pylist() if error is not None]
    if errors:
        tell(f"{len(errors)} of {found.num_rows} cases failed; the first: {errors[0]}")
    return FAILED if errors else 0


class Given(NamedTuple):
    """Data that all cases share; it is sent to workers."""

    scene: str
    seconds: float
    measures: tuple[str, ...]
    stepping: Stepping
    driving: Driving
    reading: Reading
    content: str  # a hash of the scene's file: another file is another sweep


def contents(scene: str) -> str:
    path = Path(scene)
    from hashlib import sha256  # which loads OpenSSL

    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def varied(text: str) -> tuple[str, list[Any]]:
    """`mu=0.1:1:10` or `mass=1,2`: a name and its values."""
    name, equals, given = text.partition("=")
    if not (name and equals and given):
        raise InvalidScene(f"--vary {text}: write NAME=FROM:TO:COUNT or NAME=VALUE,VALUE")
    if ":" not in given:
        return name, [words.literal(part) for part in given.split(",")]
    ends = [words.literal(part) for part in given.split(":")]
    numbers = len(ends) == 3 and all(is_number(each) and math.isfinite(each) for each in ends)
    if not numbers or ends[2] != int(ends[2]):
        raise InvalidScene(f"--vary {text}: write {name}=FROM:TO:COUNT, as in {name}=0.1:1:10")
    if not 1 <= ends[2] <= MOST_CASES:
        raise InvalidScene(f"--vary {text}: the count must be from 1 to {MOST_CASES:,}")
    from numpy import linspace

    return name, linspace(ends[0], ends[1], int(ends[2])).tolist()


# One case, in any process


def case(given: Given, **values: Any) -> dict[str, Any]:
    """Run the scene with these values; what was measured."""
    from stiction.sweeps.measures import MEASURES

    simulation = prepared(given, values)
    watches = [MEASURES[name](simulation) for name in given.measures]
    for _ in range(steps_of(given.seconds, simulation.model.opt.timestep)):
        simulation.step()
        for watch in watches:
            watch.look(simulation)
    return {name: watch.result(simulation) for name, watch in zip(given.measures, watches, strict=True)}


def prepared(given: Given, values: dict[str, Any]) -> Simulation:
    """The scene with these values set, ready to run."""
    own = parameters_of(given.scene)
    made = {name: value for name, value in values.items() if name in own}
    pairs = (*given.reading.set, *(f"{name}={value!r}" for name, value in made.items()))
    scene = Reading(**{**vars(given.reading), "set": pairs}).scene(given.scene)
    held = list(given.driving.ctrl)
    for name, value in values.items():
        if name not in made:
            held += set_field(scene.model, name, value)
    driving = Driving(ctrl=tuple(held), keyframe=given.driving.keyframe)
    return given.stepping.checked(driving)(scene)


def set_field(model: Any, name: str, value: Any) -> list[str]:
    """Set a field of a model; a control is returned, as the words of `--ctrl`."""
    from stiction.sweeps.fields import apply

    actuator, _, what = name.rpartition(".")
    if what == "ctrl":
        return [f"{actuator}={value!r}"]
    try:
        apply(model, name, value)
    except InvalidScene as error:
        raise InvalidScene(f"--vary {error}") from None
    return []


def parameters_of(scene: str) -> set[str]:
    from stiction.scenes import SCENES

    return set(inspect.signature(SCENES[scene]).parameters) if words.named(scene) else set()


def chosen(text: str) -> tuple[str, ...]:
    from stiction.sweeps.measures import MEASURES

    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise InvalidProblem(f"--measure: name at least one of {', '.join(MEASURES)}")
    for name in names:
        if name not in MEASURES:
            raise InvalidProblem(f"--measure: {unknown('measure', name, MEASURES)}")
    return names


# What is shown


def shown(found: Any, names: list[str], measures: tuple[str, ...]) -> str:
    """The table, as far as it is readable."""
    from stiction.sweeps.measures import UNITS

    there = [name for name in (*names, *measures) if name in found.column_names]
    rows = []
    for row in found.slice(0, MOST).to_pylist():
        cells = ["" if row[name] is None else number(row[name]) for name in there]
        rows.append([*cells, short(row["error"] or "")])
    head = [name + (f" [{UNITS[name]}]" if name in UNITS and name in measures else "") for name in there]
    text = table((*head, ""), rows, numbers=range(len(there)))
    more = found.num_rows - MOST
    return text + (f"\n... and {more} more cases" if more > 0 else "")


def number(value: Any) -> str:
    return plain(value, ".6g") if isinstance(value, float) else str(value)


def short(text: str) -> str:
    width = max(20, columns() // 2)
    return text if len(text) <= width else text[: width - 1] + "…"


def picture(found: Any, names: list[str], measures: tuple[str, ...], out: Path, theme: str) -> str:
    """Draw the table beside it; the words about it."""
    from stiction.sweeps.measures import UNITS
    from stiction.viewer import plots

    measured = {name: found[name].to_pylist() for name in measures if name in found.column_names}
    axes = {name: found[name].to_pylist() for name in names}
    note = ""
    if not measured:
        note = "; no picture, as all cases failed"
    elif len(names) > 2:
        note = "; no picture, as more than two parameters vary"
    else:
        labels = {name: f"{name} [{UNITS[name]}]" if name in UNITS else name for name in measured}
        try:
            plots.save(plots.swept(axes, measured, labels, theme), out / "sweep.svg")
            note = f" and {out / 'sweep.svg'}"
        except MissingDependency as error:
            note = f"; no picture ({error})"
    return note
