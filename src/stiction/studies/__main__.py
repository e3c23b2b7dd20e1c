"""`python -m stiction.studies list | run NAME | check NAME | plot NAME [--quick] [--out DIR]`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from stiction.errors import StictionError
from stiction.studies import STUDIES


def main(arguments: list[str] | None = None) -> int:
    """0 if all is as the study documents it, 1 if a claim came out otherwise, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m stiction.studies", description="Published experiments, repeated.")
    parser.add_argument("action", choices=("list", "run", "check", "plot"))
    parser.add_argument("name", nargs="?", help=f"of {', '.join(STUDIES)}")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems")
    parser.add_argument("--out", type=Path, default=Path("studies"), metavar="DIR", help="where results are kept")
    options = parser.parse_args(arguments)
    if options.action == "list":
        for name in STUDIES:
            say(f"{name}  {headline(name)}")
        return 0
    if options.name not in STUDIES:
        given = "no study named" if options.name is None else f"no study {options.name!r}"
        sys.stderr.write(f"stiction.studies: {given}; there are: {', '.join(STUDIES)}\n")
        return 2
    try:
        return act(options.action, options.name, options.quick, options.out)
    except (StictionError, OSError) as error:
        sys.stderr.write(f"stiction.studies: {error}\n")
        return 2


def act(action: str, name: str, quick: bool, out: Path) -> int:
    """`check` and `plot` use the results of an earlier `run` in the same folder, if there are any."""
    study: Any = import_module(f"stiction.studies.{name}")
    stored = out / f"{name}{'-quick' if quick else ''}.npz"
    if action == "run" or not stored.exists():
        out.mkdir(parents=True, exist_ok=True)
        study.run(quick=quick).save(stored)
        say(f"results: {stored}")
    results = study.Results.load(stored)
    if action == "plot":
        for plate in study.figures(results):
            for suffix in ("svg", "png"):
                path = stored.with_name(f"{stored.stem}-{plate.name}.{suffix}")
                plate.figure.savefig(path, dpi=150)
                say(f"plot: {path}")
    if action == "check":
        claims = study.check(results)
        for claim in claims:
            say(str(claim))
        return int(any(claim.holds != claim.documented for claim in claims))
    return 0


def headline(name: str) -> str:
    return (import_module(f"stiction.studies.{name}").__doc__ or "").splitlines()[0]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
