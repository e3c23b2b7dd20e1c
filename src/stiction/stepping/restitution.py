"""Restitution: one coefficient for all impacts, or one for each geom or pair of geoms.

    0.5      {"ball": 0.8, ("ball", "floor"): 0.6}

A pair that is named has its own coefficient; of others the larger of the two geoms counts, as MuJoCo mixes friction,
and 0 if none is named. What hits the limit of a joint bounces by the one coefficient for all only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.bodies.state import names
from stiction.contacts.gather import CONTACT
from stiction.errors import InvalidProblem, InvalidScene

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints

Given = float | Mapping[str | tuple[str, str], float] | tuple[tuple[tuple[str, ...], float], ...]


def checked(owner: str, given: Any) -> Given:
    """A coefficient, or sorted pairs of names and coefficient, which can be compared, hashed and saved."""
    if isinstance(given, Mapping):
        given = tuple(given.items())
    if not (isinstance(given, Sequence) and not isinstance(given, str)):
        return coefficient(owner, "restitution", given)
    table: dict[tuple[str, ...], float] = {}
    for entry in given:
        key, value = entry
        geoms = (key,) if isinstance(key, str) else tuple(sorted(key)) if of_names(key) else ()
        if len(geoms) not in (1, 2):
            raise InvalidProblem(f"{owner}: restitution is of a geom's name or of two in a tuple, got {key!r}")
        if geoms in table:
            raise InvalidProblem(f"{owner}: restitution names {' and '.join(geoms)} twice")
        table[geoms] = coefficient(owner, f"restitution of {' and '.join(geoms)}", value)
    return tuple(sorted(table.items())) if table else 0.0


def of_names(key: Any) -> bool:
    return isinstance(key, (tuple, list)) and all(isinstance(each, str) for each in key)


def coefficient(owner: str, what: str, value: Any) -> float:
    if not (isinstance(value, (int, float)) and 0.0 <= value <= 1.0):
        raise InvalidProblem(f"{owner}: {what} must be from 0 to 1, got {value!r}")
    return float(value)


class Table(NamedTuple):
    """Coefficients by the numbers of geoms."""

    of_geom: NDArray[np.float64]  # (ngeom,)
    of_pair: dict[tuple[int, int], float]


def table(model: Any, owner: str, given: Given) -> Table:
    """Names turned into numbers; those that the model does not have are refused."""
    known = names(model)[0]
    number = {name: i for i, name in enumerate(known)}
    found = Table(np.zeros(len(known)), {})
    assert isinstance(given, tuple)
    for geoms, value in given:
        for name in geoms:
            if name not in number:
                raise InvalidScene(f"{owner}: restitution names the geom {name!r}; there are {', '.join(known)}")
        if len(geoms) == 1:
            found.of_geom[number[geoms[0]]] = value
        else:
            one, two = sorted((number[geoms[0]], number[geoms[1]]))
            found.of_pair[one, two] = value
    return found


def coefficients(table: Table, found: Constraints) -> NDArray[np.float64]:
    """(n,) coefficients of the contacts of a step."""
    touching = found.kind == CONTACT
    pair = np.where(touching[:, None], found.pair, 0)
    pair.sort(axis=1)
    e = np.where(touching, table.of_geom[pair].max(axis=1, initial=0.0), 0.0)
    for (one, two), value in table.of_pair.items():
        e[touching & (pair[:, 0] == one) & (pair[:, 1] == two)] = value
    return e
