"""`stiction export`: a problem in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from stiction.cli.output import check_writable, say
from stiction.errors import InvalidProblem, unknown

# What `--to` may name, and the ending by which a problem's `save` knows the format.
FORMATS = {"npz": ".npz", "fclib": ".hdf5", "siconos": ".dat"}


def export(
    problem: Annotated[Path, Parameter(help="A problem: .npz, .hdf5 as FCLIB has it, or .dat as Siconos has it.")],
    /,
    *,
    to: Annotated[str, Parameter(help=f"{', '.join(f'`{name}`' for name in FORMATS)}.")],
    out: Annotated[
        Path | None, Parameter(help="File to write.", show_default="the problem's name with another ending")
    ] = None,
    ignore: Annotated[
        tuple[str, ...],
        Parameter(help="What to leave out of a file: `rolling` friction.", negative="", show_default=False),
    ] = (),
) -> int:
    """Write a problem in the format of another program.

    **Examples**

        stiction export failed.npz --to fclib
        stiction export failed.npz --to siconos --out failed.dat
        stiction export box-stack.hdf5 --to npz --out box.npz
    """
    if to not in FORMATS:
        raise InvalidProblem(unknown("format", to, FORMATS, " (--to)"))
    ending = FORMATS[to]
    path = problem.with_suffix(ending) if out is None else out
    if path.resolve() == problem.resolve():
        raise InvalidProblem(f"--out {path} is the problem itself; name another file")
    check_writable(path, (ending,), "--out")

    from stiction.problems.files import load

    load(problem, ignore=ignore).save(path)
    say(str(path))
    return 0
