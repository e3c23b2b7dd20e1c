"""The commands, and what an error becomes: one line and an exit status."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError

from stiction import __version__
from stiction.cli import bench, compare, doctor, export, lists, run, solve, study, sweep, warm
from stiction.cli.completion import installer
from stiction.cli.output import BAD_INPUT, FAILED, INTERRUPTED, in_options, tell
from stiction.errors import SolveFailed, StictionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HELP = """Rigid-body contact with friction, solved exactly and fast, every answer with a certificate.

`stiction run block-stack` runs a named scene, `stiction run robot.xml` one of yours (MJCF or URDF);
`stiction COMMAND --help` tells more, with examples.
"""

app = App(
    name="stiction",
    help=HELP,
    version=f"stiction {__version__}",
    help_format="markdown",
    suppress_keyboard_interrupt=False,
)
COMMANDS: tuple[Callable[..., int | None], ...] = (
    run.run, run.view, compare.compare, sweep.sweep, solve.solve, doctor.doctor, lists.scenes, lists.solvers,
    export.export, warm.warm, bench.bench,
)  # fmt: skip
for place, command in enumerate(COMMANDS):
    app.command(command, sort_key=place)
app.command(study.app)
app.command(installer(app), name="--install-completion")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    try:
        status = app(
            sys.argv[1:] if arguments is None else list(arguments),
            print_error=False, exit_on_error=False, result_action="return_value",
        )  # fmt: skip
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except BrokenPipeError:  # `stiction scenes | head`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (Python flushes it at exit)
        return 0
    except KeyboardInterrupt:
        tell("stopped")
        return INTERRUPTED
    except SolveFailed as error:
        tell(str(error))
        return FAILED
    except (StictionError, CycloptsError) as error:
        tell(in_options(" ".join(str(error).split())))
        return BAD_INPUT
    except OSError as error:
        tell(f"{error.filename or 'file'}: {error.strerror or error}")
        return BAD_INPUT
