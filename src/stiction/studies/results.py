"""Results of a study: kept in a file, shown as figures and tables."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

import stiction as st
from stiction.disk import written_whole
from stiction.errors import InvalidProblem

Array = NDArray[Any]
PACKAGES = ("stiction", "numpy", "scipy", "numba", "mujoco", "matplotlib")


class Findings:
    """Base of all results: arrays of numbers or words by name, the seed of the first problem, versions and machine.

    A study declares its arrays once: `declared` maps names to what they hold, axes in their order first, then the unit.
    Each array is also an attribute.
    """

    declared: ClassVar[dict[str, str]] = {}

    def __init__(self, seed: int, origin: Sequence[str] = (), **arrays: Any) -> None:
        self.seed, self.environment = seed, tuple(origin) or environment()
        self.arrays: dict[str, Array] = {name: np.asarray(arrays.pop(name)) for name in self.names()}
        if arrays:
            raise TypeError(f"not declared: {', '.join(arrays)}")

    def __getattr__(self, name: str) -> Array:
        try:
            found: Array = self.__dict__["arrays"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no array {name!r}") from None
        return found

    @classmethod
    def names(cls) -> list[str]:
        """Names of all arrays, those of base classes first."""
        tables = [vars(base).get("declared", {}) for base in reversed(cls.__mro__)]
        return [name for table in tables for names in table for name in names.split(", ")]

    def at(self, names: str, name: str) -> int:
        """Where a name stands in an array of names."""
        return list(self.arrays[names]).index(name)

    def replaced(self, **arrays: Any) -> Self:
        """The results with some arrays replaced."""
        return type(self)(self.seed, self.environment, **self.arrays | arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all or nothing."""
        arrays: dict[str, Any] = {"seed": self.seed, "environment": self.environment, **self.arrays}
        with written_whole(Path(path), "study") as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        try:
            with np.load(path, allow_pickle=False) as data:
                origin = [str(each) for each in data["environment"]]
                return cls(int(data["seed"]), origin, **{name: data[name] for name in cls.names()})
        except (KeyError, ValueError, EOFError, BadZipFile) as error:
            study = cls.__module__.rpartition(".")[2]
            raise InvalidProblem(
                f"study: {path} does not hold results of this version of {study}; run it again"
            ) from error


def environment() -> tuple[str, ...]:
    """For readers who repeat a study: versions and the kind of machine, nothing that identifies its owner."""
    packages = []
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # optional, and not used here
            packages.append(f"{name} {version(name)}")
    cores = f"{os.cpu_count()} {platform.machine()} cores"
    return (f"Python {platform.python_version()}", *packages, cores, platform.system())


def tabulated(names: str, measure: Callable[..., Sequence[Any]], *axes: Any) -> dict[str, Any]:
    """Measure every combination of values along the axes; an array, under its name, for each value returned."""
    shape = [len(axis) for axis in axes]
    columns = map(np.array, zip(*(measure(*values) for values in product(*axes)), strict=True))
    return {name: each.reshape(*shape, *each.shape[1:]) for name, each in zip(names.split(", "), columns, strict=True)}


class Place(NamedTuple):
    """Where the cases of studies with many seeds run, as `st.sweep` has it."""

    on: str = "here"
    workers: int | None = None


HERE = Place()
PLACE: ContextVar[Place] = ContextVar("PLACE", default=HERE)


def swept(names: str, function: Callable[..., Sequence[Any]], **axes: Any) -> dict[str, Any]:
    """`tabulated`, of a function at the top of a module and plain values, by `st.sweep`: not for what is timed."""
    cases = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    shape = [len(axis) for axis in axes.values()]
    return {name: each.reshape(*shape, *each.shape[1:]) for name, each in columns(names, function, cases).items()}


def columns(names: str, function: Callable[..., Sequence[Any]], cases: Sequence[dict[str, Any]]) -> dict[str, Array]:
    """Results of a function, an array for each name with the case first; without pyarrow, in a plain loop."""
    place = PLACE.get()
    if place.on == "here" and find_spec("pyarrow") is None:
        found = zip(*(function(**case) for case in cases), strict=True)
        return dict(zip(names.split(", "), map(np.array, found), strict=True))
    with TemporaryDirectory(prefix="stiction-study-") as folder:
        table = st.sweep(partial(row, names, function), cases, folder, on=place.on, workers=place.workers)
    for error in table["error"].to_pylist():
        if error is not None:
            raise RuntimeError(f"study: a case of {function.__name__} failed: {error}")
    return {name: np.array(table[name].to_pylist()) for name in names.split(", ")}


def row(names: str, function: Callable[..., Sequence[Any]], /, **case: Any) -> dict[str, Any]:
    """Results of a function for a case, by name."""
    return dict(zip(names.split(", "), function(**case), strict=True))


class Plate(NamedTuple):
    """A figure: a short name for its file, what it shows (and of which figure of the paper), Matplotlib's object."""

    name: str
    caption: str
    figure: Any


class Sheet(NamedTuple):
    """A table: what it shows and which table of the paper it repeats, column heads, rows of text."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
