"""The contents of a saved simulation beside its model and state, checked before anything is made of them.

Laws, solvers and steppers are written by name and options, and only those of the package can be named. A hash of all
arrays detects changes; files of older versions have none, and are accepted if their sizes fit.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.contacts.gather import LENGTHS, Constraints, sizes, views
from stiction.errors import InvalidScene
from stiction.problems.laws import LAWS
from stiction.solvers import ALL, Auto
from stiction.stepping.event_driven import EventDriven
from stiction.stepping.first_order import FirstOrder
from stiction.stepping.record import lengths
from stiction.stepping.time_stepping import TimeStepping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

FORMAT, VERSION = "stiction-simulation", 1
SOLVERS: dict[str, Any] = {each.__name__: each for each in (Auto, *ALL)}
STEPPERS: dict[str, Any] = {each.__name__: each for each in (TimeStepping, EventDriven, FirstOrder)}
COUNTS = 12  # lengths of what the two flat arrays hold; before torsion 10, before moving surfaces 11
RETIRED = {"ConeNewton": ("max_pyramids", "last_cycles")}  # options that older files have: `Auto` does this now
MOST = 1 << 30  # of a count, so that products of counts do not overflow


def sealed(fields: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a simulation with the format's name and a hash of everything."""
    fields = {"format": FORMAT, "version": VERSION, **fields}
    return fields | {"digest": digest(fields)}


def unsealed(fields: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays, refused unless format, version and hash are those that were saved."""
    if str(fields.get("format")) != FORMAT:
        raise InvalidScene(f"its format is {fields.get('format')}, not {FORMAT}")
    if str(fields.get("version")) != str(VERSION):
        raise InvalidScene(f"it has version {fields.get('version')}, but this stiction reads {VERSION}")
    kept = fields.pop("digest", None)
    if kept is not None and str(kept) != digest(fields):
        raise InvalidScene("its contents are not those that were saved")
    return fields


def digest(fields: dict[str, Any]) -> str:
    """A hash of names, types, shapes and contents of arrays."""
    total = hashlib.sha256()
    for name in sorted(fields):
        value = np.asarray(fields[name])
        total.update(f"{name} {value.dtype.str} {value.shape} ".encode())
        total.update(value.tobytes())
    return total.hexdigest()


def described(choice: Any) -> dict[str, Any]:
    """A frozen object of options by its name and its options."""
    options = {
        field.name: described(value) if dataclasses.is_dataclass(value := getattr(choice, field.name)) else value
        for field in dataclasses.fields(choice)
        if field.init
    }
    return {"name": type(choice).__name__, **options}


def chosen(text: str) -> tuple[Any, Any, Any]:
    """The law, the solver and the stepper that were described."""
    law, solver, stepper = json.loads(text)
    return made(law, LAWS), made(solver, SOLVERS), made(stepper, STEPPERS)


def made(description: Any, known: Mapping[str, Any]) -> Any:
    """The object that `described` describes; only names in `known` are made, and the solvers that solvers hold."""
    if not isinstance(description, dict) or description.get("name") not in known:
        raise InvalidScene(f"it names {str(description)[:80]!r}, which is none of {', '.join(known)}")
    options = {
        name: made(value, SOLVERS) if isinstance(value, dict) else value
        for name, value in description.items()
        if name != "name" and name not in RETIRED.get(description["name"], ())
    }
    return known[description["name"]](**options)


def arrays_of(found: Constraints) -> dict[str, NDArray[Any]]:
    """Constraints as they are saved: lengths and sizes of all arrays, and these in two flat ones."""
    floats, ints = (
        np.concatenate([each.ravel() for each in found if each.dtype == kind]) for kind in (np.float64, np.int64)
    )
    return {"counts": np.array([*lengths(found), 0, len(floats), len(ints)]), "floats": floats, "ints": ints}


def last_step(fields: dict[str, NDArray[Any]]) -> tuple[Constraints, NDArray[np.float64], tuple[int, int]]:
    """Arguments of `Step.of` for the last step, if the arrays are as large as `counts`: kernels do not check that."""
    kinds = {"counts": np.int64, "floats": np.float64, "ints": np.int64}
    counts, floats, ints = (fields[name] for name in kinds)
    for name, kind in kinds.items():
        if fields[name].ndim != 1 or fields[name].dtype != kind:
            raise InvalidScene(f"{name} must be a vector of {kind.__name__}")
    older = len(counts) == COUNTS - 2
    if older or len(counts) == COUNTS - 1:
        counts = np.insert(counts, [len(LENGTHS) - 2] * (1 + older), ([3] if older else []) + [0])
    if len(counts) != COUNTS or (counts < 0).any() or (counts > MOST).any():
        raise InvalidScene(f"counts must be {COUNTS} numbers from 0 to {MOST}")
    if older:
        floats = np.append(floats, np.zeros(counts[5]))  # aims of the bilateral rows, which come last
    own = counts[: len(LENGTHS)].tolist()
    whole, tangents = sizes(*own)[0], 6 * own[3]
    if len(floats) != whole and len(floats) >= whole - tangents:
        floats = np.append(floats[: whole - tangents], np.zeros(tangents))  # these come last, and are newer still
    if whole > len(floats) or sizes(*own)[1] > len(ints):
        raise InvalidScene("floats and ints are shorter than counts says")
    found, impulse = views(*own, floats, ints), fields["impulse"]
    if impulse.shape != found.rows.shape[:2] or impulse.dtype != np.float64:
        raise InvalidScene(f"impulse must have shape {found.rows.shape[:2]}, got {impulse.shape}")
    kept = fields.get("kept", np.zeros(2, np.int64))  # older files have none
    if kept.shape != (2,) or kept.dtype != np.int64 or (kept < 0).any() or (kept > MOST).any():
        raise InvalidScene(f"kept must be 2 numbers from 0 to {MOST}")
    return found, impulse, (int(kept[0]), int(kept[1]))
