"""`stiction scenes` and `stiction solvers`: what there is."""

from __future__ import annotations

import inspect
import textwrap
from typing import Annotated, Any

from cyclopts import Parameter

from stiction.cli import words
from stiction.cli.output import columns, say
from stiction.errors import InvalidProblem, InvalidScene, unknown


def scenes(
    name: Annotated[str | None, Parameter(help="One scene; all if none is named.", show_default=False)] = None, /
) -> None:
    """List the named scenes with their parameters.

    **Examples**

        stiction scenes
        stiction scenes log-heap
    """
    from stiction.scenes import SCENES

    if name is not None and name not in SCENES:
        raise InvalidScene(unknown("scene", name, SCENES))
    for each in SCENES if name is None else (name,):
        make = SCENES[each]
        options = inspect.signature(make).parameters.values()
        say(each)
        if name is None:
            put(first_sentence(make))
        else:
            say(textwrap.indent(inspect.getdoc(make) or "", "  "))
        put("--set " + " ".join(f"{option.name}={shown(option.default)}" for option in options))


def solvers(
    name: Annotated[str | None, Parameter(help="One solver; all if none is named.", show_default=False)] = None, /
) -> None:
    """List the solvers: what each takes, guarantees and costs, and when to choose it.

    **Examples**

        stiction solvers
        stiction solvers cone-newton
    """
    known = words.solvers()
    chosen = None if name is None else words.kebab(name)
    if chosen is not None and chosen not in known:
        raise InvalidProblem(unknown("solver", chosen, known))
    for each in known if chosen is None else (chosen,):
        contract = known[each].contract
        say(each)
        kinds = [] if contract.matrix == "contact" else [matrices(contract)]
        laws = [f"contact: {', '.join(contract.laws)}"] if contract.laws else []
        put(f"takes: {'; '.join(kinds + laws)}")
        put(f"guarantees: {contract.guarantee}")
        put(f"costs: {contract.cost}")
        put(f"choose it if: {contract.choose}")


def matrices(contract: Any) -> str:
    of = "" if contract.matrix == "any" else f" with a {contract.matrix}-matrix"
    boxes = "LCP and BoxLCP" if contract.boxes else "LCP"
    largest = "" if contract.largest is None else f", n <= {contract.largest}"
    return f"{boxes}{of}{largest}"


def put(text: str) -> None:
    """Indented, no wider than the terminal."""
    for paragraph in text.split("\n\n"):
        say(textwrap.fill(" ".join(paragraph.split()), columns(), initial_indent="  ", subsequent_indent="    "))


def first_sentence(function: Any) -> str:
    return (inspect.getdoc(function) or "").split("\n\n")[0]


def shown(value: Any) -> str:
    return str(value).replace(" ", "") if isinstance(value, (tuple, list)) else str(value)
