"""Laws, solvers, steppers and scenes by the words of a command line.

    NAME  or  NAME:VALUE  or  NAME:OPTION=VALUE,OPTION=VALUE

as in `pyramid:8`, `viscous:10`, `cone-newton:tolerance=1e-9` or `event-driven:method=rk4,restitution=0.5`. Names are
those of the classes, written as in Python or with hyphens. A misspelt one gets the nearest match.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stiction.errors import InvalidProblem, InvalidScene, is_number, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stiction.problems.laws import Law

SCENE_FILES = (".xml", ".mjcf", ".urdf")


class Words(NamedTuple):
    """A name, the value that stands alone after it, and options."""

    name: str
    value: str
    options: dict[str, str]


def split(text: str) -> Words:
    name, _, rest = text.partition(":")
    parts = [part for part in rest.split(",") if part]
    options = dict(part.split("=", 1) for part in parts if "=" in part)
    alone = [part for part in parts if "=" not in part]
    if len(alone) > 1:
        raise InvalidProblem(f"{text!r}: write NAME, NAME:VALUE or NAME:OPTION=VALUE,OPTION=VALUE")
    return Words(kebab(name.strip()), alone[0] if alone else "", options)


def kebab(name: str) -> str:
    """ConeNewton, cone_newton and cone-newton are one name; LCP stays one word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()


def literal(text: str) -> Any:
    """A number, a truth value, a tuple of numbers, or the text itself."""
    try:
        return {"true": True, "false": False, "none": None}[text.lower()]
    except KeyError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def made(what: str, known: Mapping[str, Any], words: Words) -> Any:
    """An object of options, made by its words."""
    if words.name not in known:
        raise InvalidProblem(unknown(what, words.name, known))
    kind = known[words.name]
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    options = {}
    for name, text in words.options.items():
        field = fields.get(name.replace("-", "_"))
        if field is None:
            raise InvalidProblem(unknown(f"option of {words.name}", name, fields))
        options[field.name] = literal(text)
        if not fits(options[field.name], field.default):
            kind_of = {bool: "true or false", str: "a word"}.get(type(field.default), "a number")
            raise InvalidProblem(f"{what} {words.name}: {name} must be {kind_of}, got {text!r}")
    if words.value:
        raise InvalidProblem(f"{what} {words.name}: name the option, as in {words.name}:OPTION={words.value}")
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise InvalidProblem(f"{what} {words.name}: {error}") from None


def fits(value: Any, default: Any) -> bool:
    """Whether a value can stand where the default stands: a word for a word, a truth value for one, else a number."""
    if isinstance(default, (bool, str)):
        return isinstance(value, type(default))
    return is_number(value) or (default is None and value is None)


# Laws

# The class that a word stands for, by name: help shows the words without loading laws.
LAWS = {
    "coulomb": "Coulomb",
    "pyramid:FACETS": "Coulomb",
    "box": "BoxFriction",
    "no-slip": "NoSlip",
    "viscous:VISCOSITY": "Viscous",
    "frictionless": "Frictionless",
}
SYNONYMS = {"cone": "Coulomb", "box-friction": "BoxFriction", "noslip": "NoSlip"}


def law(text: str) -> tuple[Law, float | None]:
    """A law, and the viscosity that was named with it."""
    from stiction.problems import laws

    words = split(text)
    options, viscosity = dict(words.options), None
    if words.name == "pyramid":
        options["facets"] = words.value or options.get("facets", "8")
        words = words._replace(value="")
    if words.name == "viscous":
        number = literal(options.pop("viscosity", words.value or "none"))
        if number is not None:
            viscosity = at_least_zero("viscosity", number)
        words = words._replace(value="")
    known = {word.partition(":")[0]: laws.LAWS[name] for word, name in (LAWS | SYNONYMS).items()}
    return made("law", known, words._replace(options=options)), viscosity


def at_least_zero(what: str, number: Any) -> float:
    if is_number(number) and 0.0 <= number < float("inf"):
        return float(number)
    raise InvalidProblem(f"{what} must be a number of at least 0, got {number!r}")


# Solvers and steppers


def solvers() -> dict[str, Any]:
    """All solvers, the choice made for you first."""
    from stiction.solvers import ALL, Auto

    return {kebab(each.__name__): each for each in (Auto, *ALL)}


def solver(text: str) -> Any:
    known = solvers()
    words = split(text)
    if words.name == "splitting" and "inner" in words.options:
        inner = made("solver", known, Words(kebab(words.options.pop("inner")), "", {}))
        return dataclasses.replace(made("solver", known, words), inner=inner)
    return made("solver", known, words)


def stepper(text: str, viscosity: float | None) -> Any:
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.first_order import FirstOrder
    from stiction.stepping.time_stepping import TimeStepping

    words = split(text)
    if viscosity is not None:
        words.options.setdefault("viscosity", repr(viscosity))
    known = {"time-stepping": TimeStepping, "event-driven": EventDriven, "first-order": FirstOrder}
    return made("stepper", known, words)


# Scenes


def parameters(pairs: Iterable[str]) -> dict[str, Any]:
    """`logs=12 mu=0.3` as arguments."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (equals and name.isidentifier()):
            raise InvalidScene(f"--set {pair}: write NAME=VALUE, as in --set mu=0.5")
        found[name] = literal(value)
    return found


def named(text: str) -> bool:
    """Whether a scene has this name; a folder of that name does not hide it."""
    from stiction.scenes import SCENES

    return text in SCENES and not Path(text).is_file()


def seed(scene: str, number: int, given: Mapping[str, Any]) -> int:
    """The seed, for a scene in which something is random; for others it would promise variety that is not there."""
    from stiction.scenes import SCENES

    if "seed" in given:
        raise InvalidScene("--seed and --set seed=...: give one of them")
    if scene not in SCENES or "seed" not in inspect.signature(SCENES[scene]).parameters:
        random = [name for name, make in SCENES.items() if "seed" in inspect.signature(make).parameters]
        raise InvalidScene(f"--seed: nothing in {scene} is random; the scenes that are: {', '.join(random)}")
    return number


def scene(text: str, given: dict[str, Any], options: dict[str, Any]) -> Any:
    """A scene by the name of its file, or a named one with its parameters."""
    path = Path(text)
    if path.suffix.lower() in SCENE_FILES or (path.exists() and not named(text)) or len(path.parts) > 1:
        from stiction.bodies.scene import Scene

        if given:
            raise InvalidScene(f"--set is for named scenes; {text} is a file")
        return Scene.load(path, **options)
    from stiction.bodies.scene import Scene
    from stiction.scenes import SCENES

    if text not in SCENES:
        raise InvalidScene(
            unknown("scene", text, SCENES, " (`stiction scenes` lists them; a file ends in .xml or .urdf)")
        )
    known = inspect.signature(SCENES[text]).parameters
    for name in given:
        if name not in known:
            raise InvalidScene(unknown(f"parameter of {text}", name, known))
    if options:
        raise InvalidScene(f"--{next(iter(options))} is for files; {text} is a named scene")
    try:
        return Scene.named(text, **given)
    except InvalidScene:
        raise
    except (TypeError, ValueError, OverflowError) as error:  # what a scene does not check itself
        raise InvalidScene(f"{text}: {error}") from error
