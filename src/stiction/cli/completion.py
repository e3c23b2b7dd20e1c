"""`stiction --install-completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from stiction.cli.output import say
from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from collections.abc import Callable

Shell = Literal["bash", "zsh", "fish", "powershell"]
STARTUP = {"bash": ".bashrc", "zsh": ".zshrc"}  # what a shell reads when it starts, in the home folder


def installer(app: Any) -> Callable[..., None]:
    """The command for an app."""

    def install_completion(
        *,
        shell: Annotated[
            Shell | None, Parameter(help="Which shell.", show_default="the one that runs", show_choices=True)
        ] = None,
        output: Annotated[Path | None, Parameter(help="Where to write it.", show_default="its own place")] = None,
        startup: Annotated[
            bool,
            Parameter(help="Let the shell load it, in ~/.bashrc or ~/.zshrc.", negative="", show_default=False),
        ] = False,
    ) -> None:
        """Write the completion script for a shell; files of yours are changed only with `--startup`."""
        from cyclopts.completion.detect import ShellDetectionError, detect_shell

        try:
            chosen: Any = detect_shell() if shell is None else shell
        except ShellDetectionError:
            raise InvalidProblem("which shell this is cannot be seen; name it with --shell bash, zsh or fish") from None
        begins = Path.home() / STARTUP[chosen] if chosen in STARTUP else None
        before = content(begins)
        written = app.install_completion(shell=chosen, output=output, add_to_startup=startup)
        say(f"wrote {written}")
        if begins is not None and content(begins) != before:
            say(f"changed {begins}: it loads that file now")
        elif startup:
            say("nothing else had to be changed")
        else:
            say(f"changed nothing else; if a new {chosen} does not complete, --startup lets it load that file")

    return install_completion


def content(path: Path | None) -> bytes | None:
    return path.read_bytes() if path is not None and path.is_file() else None
