"""What a study found: kept in a file, shown as figures and tables."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np

from stiction.disk import written_whole
from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence


@dataclass(frozen=True, eq=False)
class Stored:
    """Base of all results: arrays of numbers or words, the seed of the first problem, versions and kind of machine."""

    seed: int
    environment: tuple[str, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all or nothing."""
        arrays: dict[str, Any] = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        with written_whole(Path(path), "study") as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        try:
            with np.load(path, allow_pickle=False) as data:
                arrays: dict[str, Any] = {f.name: data[f.name] for f in fields(cls)}
        except (KeyError, ValueError, EOFError, BadZipFile) as error:
            study = cls.__module__.rpartition(".")[2]
            raise InvalidProblem(
                f"study: {path} does not hold results of this version of {study}; run it again"
            ) from error
        arrays["seed"], arrays["environment"] = int(arrays["seed"]), tuple(map(str, arrays["environment"]))
        return cls(**arrays)


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
