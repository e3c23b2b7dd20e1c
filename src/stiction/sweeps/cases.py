"""Cases: the arguments of many calls, as a list of dictionaries of plain values."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.errors import InvalidProblem
from stiction.optional import pyarrow

if TYPE_CHECKING:
    from collections.abc import Sequence

Case = dict[str, Any]
OURS = ("case", "error", "wall_time")  # columns that every table has
SCALARS = frozenset({bool, int, float, str, type(None)})
KINDS = "numbers, words, truth values and lists of them"


def grid(**values: Iterable[Any]) -> list[Case]:
    """All combinations, the last name varying fastest: `grid(mu=[0.1, 0.2], mass=[1, 2, 3])` has six cases."""
    if not values:
        raise InvalidProblem("grid: name at least one parameter, as in grid(mu=[0.1, 0.5])")
    lists = []
    for name, given in values.items():
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise InvalidProblem(f"grid: {name} must be a list of values, got {given!r}; write {name}=[{given!r}]")
        lists.append([plain(value) for value in given])
        if not lists[-1]:
            raise InvalidProblem(f"grid: {name} is empty, so that there would be no cases; give it a value")
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*lists)]


class Cases(NamedTuple):
    """Cases that were checked."""

    rows: list[Case]
    names: tuple[str, ...]  # of all parameters, in the order in which they first appear
    types: dict[str, Any]  # the type that each has in a table
    digest: str  # a hash of everything


def checked(given: Sequence[Mapping[str, Any]]) -> Cases:
    """Cases with plain values, or InvalidProblem that names the case and the parameter."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidProblem(f"sweep: cases must be a list of dictionaries, got {type(given).__name__}; see st.grid")
    rows = []
    for index, case in enumerate(given):
        if not isinstance(case, Mapping):
            raise InvalidProblem(f"sweep: case {index} must be a dictionary of arguments by name, got {case!r}")
        row = {}
        for name, value in case.items():
            if type(value) in SCALARS:  # nearly all are
                row[name] = value
                continue
            row[name] = plain(value)
            if not is_plain(row[name]):
                kind = type(value).__name__
                raise InvalidProblem(f"sweep: {name!r} of case {index} is a {kind}; cases hold only {KINDS}")
        rows.append(row)
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        if not isinstance(name, str) or name in OURS:
            index = next(i for i, row in enumerate(rows) if name in row)
            why = "which is a column of every table" if isinstance(name, str) else "which is no word"
            raise InvalidProblem(f"sweep: case {index} has a parameter {name!r}, {why}")
    types = {name: type_of(name, [row.get(name) for row in rows]) for name in names}
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return Cases(rows, names, types, digest)


def type_of(name: str, values: list[Any]) -> Any:
    arrow = pyarrow()
    try:
        return arrow.array(values).type
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError) as error:
        first = next(value for value in values if value is not None)
        other = next((i for i, value in enumerate(values) if value is not None and type(value) is not type(first)), 0)
        raise InvalidProblem(
            f"sweep: {name!r} is {first!r} in one case and {values[other]!r} in case {other}; a parameter must be of "
            "one kind"
        ) from error


def plain(value: Any) -> Any:
    """A value without NumPy: what a table and a file hold."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(is_plain(each) for each in value)
    return value is None or isinstance(value, (bool, int, float, str))
