"""Commands on studies: list, run, check, plot, and the report of all.

Results lie in a folder, `NAME.npz` or, of the quick setting, `NAME-quick.npz`. All but `run` use what an earlier run
left there, and run the study first if nothing did.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiction.disk import written_whole
from stiction.errors import InvalidProblem
from stiction.studies import STUDIES

if TYPE_CHECKING:
    from stiction.studies.claims import Claim
    from stiction.studies.results import Findings

FOLDER = Path("studies")
PLACES = ("here", "cores", "ray")  # as `st.sweep` has them


def available() -> dict[str, str]:
    """Names of the studies, and what each is about in one line."""
    return {name: headline(name) for name in STUDIES}


def run(name: str, quick: bool = False, out: Path = FOLDER, on: str = "here", workers: int | None = None) -> Path:
    """Run a study anew; where its results are. Problems of many seeds that are not timed run `on` "cores" or "ray"."""
    from stiction.studies.results import PLACE, Place

    study, path = module(name), stored(name, quick, out)
    if on not in PLACES:
        raise InvalidProblem(f"study: on must be one of {', '.join(map(repr, PLACES))}, got {on!r}")
    out.mkdir(parents=True, exist_ok=True)
    before = PLACE.set(Place(on, workers))
    try:
        study.run(quick=quick).save(path)
    finally:
        PLACE.reset(before)
    return path


def check(name: str, quick: bool = False, out: Path = FOLDER) -> list[Claim]:
    """The claims of a study and what was found; all is as documented where none is `surprising`."""
    claims: list[Claim] = module(name).check(results(name, quick, out))
    return claims


def plot(name: str, quick: bool = False, out: Path = FOLDER) -> list[Path]:
    """Draw the figures of a study, each as SVG and as PNG."""
    paths = []
    for plate in module(name).figures(results(name, quick, out)):
        for suffix in ("svg", "png"):
            paths.append(out / f"{stored(name, quick, out).stem}-{plate.name}.{suffix}")
            with written_whole(paths[-1], "study") as part:
                plate.figure.savefig(part, dpi=150)
    return paths


def report(quick: bool = False, out: Path = FOLDER) -> Path:
    """Write one page about all studies; those without results are run first."""
    from stiction.studies import report as page

    for name in STUDIES:
        if not stored(name, quick, out).exists():
            run(name, quick, out)
    return page.report(out, quick)


def results(name: str, quick: bool, out: Path) -> Findings:
    """The results of a study, run now if it has not been."""
    study, path = module(name), stored(name, quick, out)
    if not path.exists():
        run(name, quick, out)
    found: Findings = study.Results.load(path)
    return found


def stored(name: str, quick: bool, out: Path) -> Path:
    """Where the results of a study are, or will be."""
    return out / f"{name}{'-quick' if quick else ''}.npz"


def headline(name: str) -> str:
    """The first line of a study's docstring, read without importing what it needs."""
    source = files("stiction.studies").joinpath(f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def module(name: str) -> Any:
    """The module of a study, by its name."""
    if name not in STUDIES:
        near = get_close_matches(name, STUDIES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(STUDIES)}"
        raise InvalidProblem(f"study: there is no study {name!r}; {hint}")
    return import_module(f"stiction.studies.{name}")
