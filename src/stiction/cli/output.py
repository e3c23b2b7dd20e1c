"""Results on standard output, messages on standard error, progress on a terminal only."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130  # exit statuses
MANY = 400  # contacts beyond which it is not asked which forces are determined, by a singular value decomposition
REFRESH = 0.2  # s between two movements of a progress bar
# What messages of the package call by its name in Python has another name here.
HERE = (
    (r"\bignore=\('(\w+)',\)", r"--ignore \1"),
    (r"\bpackages=\{'([^']*)': folder\}", r"--package \1=FOLDER"),
    (r"^(.*: )?packages and floating are for URDF", r"\1--package and --floating are for URDF"),
    (r"(?<!-)\bground must be a height in m", "--ground must be a height in m"),
    (r"\bScene: margin must be a distance in m, or None\b", "--margin must be a distance in m"),
    (
        r"\b(?:Scene|load): ignore must be a tuple of names of \(([^)]*?),?\), got \((.*?),?\)$",
        r"--ignore must be one of \1, got \2",
    ),
    (r"\bTimeStepping: on_failure must be", "--on-failure must be"),
    (r"\b(the law Viscous needs a viscosity in N / \(m/s\)): give it to the stepper", r"\1, as in --law viscous:10"),
    (r"\b(the law Viscous needs viscosity), one number a contact, in .*", r"\1, as in --law viscous:10"),
    (r"\bsolve: tolerance must be", "--tolerance must be"),
)


def say(text: str = "") -> None:
    """A line of the result."""
    sys.stdout.write(text + "\n")


def tell(text: str) -> None:
    """A line to the person at the terminal."""
    sys.stderr.write(f"stiction: {text}\n")
    sys.stderr.flush()


def in_options(message: str) -> str:
    """A message of the package, with options where it names arguments."""
    for python, here in HERE:
        message = re.sub(python, here, message)
    return message


def plain(value: float, form: str = ".1e") -> str:
    """A number as text; zero has no sign."""
    return format(value + 0.0, form)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Columns of text, those of `numbers` aligned on their right; no wider than what they hold."""
    lines = [head, *rows]
    widths = [max(len(line[c]) for line in lines) for c in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if c in numbers else cell.ljust(width)
            for c, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def shortened(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int], most: int, what: str = ""
) -> str:
    """The first rows of a table, and how many more there are."""
    more = f"\n... and {len(rows) - most} more{what}" if len(rows) > most else ""
    return table(head, rows[:most], numbers) + more


def columns() -> int:
    """Width of the terminal; 100 where there is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 100


@contextmanager
def progress(what: str, total: float, shown: bool, unit: str = "s") -> Iterator[Callable[[float], None]]:
    """A function that moves a bar to a place from 0 to `total`; it does nothing unless shown on a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda place: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    digits = ".2f" if unit == "s" else ".0f"
    place = f"{{task.completed:{digits}}} of {{task.total:g}} {unit}"
    # No thread of its own: it would take time from the run.
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn(place),
        TimeRemainingColumn(), console=Console(stderr=True), auto_refresh=False, transient=True,
    ) as bar:  # fmt: skip
        task, due = bar.add_task(what, total=total), 0.0

        def move(place: float) -> None:
            nonlocal due
            if (now := time.monotonic()) >= due:
                due = now + REFRESH
                bar.update(task, completed=place, refresh=True)

        yield move


def check_writable(path: Path, suffixes: Sequence[str], what: str) -> None:
    """Refuse, before anything is computed, what can be seen to be unwritable."""
    if path.suffix.lower() not in suffixes:
        raise InvalidProblem(f"{what} {path}: the name must end in {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise InvalidProblem(f"{what} {path}: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InvalidProblem(f"{what} {path}: cannot be written; choose a file in a folder that you may write to")
