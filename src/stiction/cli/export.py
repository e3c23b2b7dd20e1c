"""`stiction export`: a problem in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from stiction.cli import words
from stiction.cli.output import check_writable, say
from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from collections.abc import Callable


def save(problem: Any, path: Path) -> None:
    """What the package writes itself; the ending decides."""
    problem.save(path)


# A format is an ending and what writes it: a new one is one more line.
FORMATS: dict[str, tuple[str, Callable[[Any, Path], None]]] = {"npz": (".npz", save), "fclib": (".hdf5", save)}


def export(
    problem: Annotated[Path, Parameter(help="A problem: .npz, or .hdf5 as FCLIB has it.")],
    /,
    *,
    to: Annotated[str, Parameter(help=f"{' or '.join(f'`{name}`' for name in FORMATS)}.")],
    out: Annotated[
        Path | None, Parameter(help="File to write.", show_default="the problem's name with another ending")
    ] = None,
) -> int:
    """Write a problem in the format of another program.

    **Examples**

        stiction export failed.npz --to fclib
        stiction export box-stack.hdf5 --to npz --out box.npz
    """
    if to not in FORMATS:
        raise InvalidProblem(words.nearest("format", to, FORMATS, " (--to)"))
    ending, write = FORMATS[to]
    path = problem.with_suffix(ending) if out is None else out
    if path.resolve() == problem.resolve():
        raise InvalidProblem(f"--out {path} is the problem itself; name another file")
    check_writable(path, (ending,), "--out")

    from stiction.problems.files import load

    write(load(problem), path)
    say(str(path))
    return 0
