"""Logs as files: `.npz` and `.parquet`, whole at every moment (see `stepping.log`)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.disk import written_whole
from stiction.errors import InvalidProblem
from stiction.optional import pyarrow
from stiction.problems.files import read_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FORMAT, VERSION = "stiction log", 1
SUFFIXES = (".npz", ".parquet")
STEP = ("time", "potential", "kinetic", "residual", "contacts", "slip", "gap", "seconds")
FORCE = ("normal", "tangent1", "tangent2")
ABOUT = ("scene", "law", "solver", "stepper", "timestep")


@dataclass(frozen=True, eq=False)
class Record:
    """The arrays of a log; the docstring of `stepping.log` has units and shapes."""

    scene: str
    law: str
    solver: str
    stepper: str
    timestep: float
    geoms: tuple[str, ...]
    time: Array
    potential: Array
    kinetic: Array
    residual: Array
    contacts: Array
    slip: Array
    gap: Array
    seconds: Array
    first: NDArray[np.int64]
    contact_geom: NDArray[np.int32]
    contact_gap: Array
    contact_force: Array
    contact_mode: NDArray[np.int32]

    @property
    def steps(self) -> int:
        return len(self.time)

    @property
    def step_of_contact(self) -> NDArray[np.int64]:
        """The step to which each row of the contacts belongs."""
        return np.repeat(np.arange(self.steps), np.diff(self.first))


def part_of(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}.{number}{path.suffix}")


def remove_parts(path: Path) -> None:
    number = 2
    while (part := part_of(path, number)).exists():
        part.unlink()
        number += 1


def writer(path: Path) -> Callable[[Path, Record, int, str], None]:
    """The function that writes this kind of file; refuses what can be seen to be unwritable."""
    if path.suffix not in SUFFIXES:
        raise InvalidProblem(f"log: {path} must end in {' or '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InvalidProblem(f"log: cannot write {path}: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidProblem(f"log: cannot write {path}; choose a file in a folder that you may write to")
    return partial(write_parquet, pyarrow()) if path.suffix == ".parquet" else write_npz


def write_npz(path: Path, record: Record, begin: int, token: str) -> None:
    with written_whole(path, "log") as part, part.open("wb") as file:
        np.savez(file, format=FORMAT, version=VERSION, begin=begin, token=token, **vars(record))


def write_parquet(arrow: Any, path: Path, record: Record, begin: int, token: str) -> None:
    first = arrow.array(record.first, arrow.int32())
    words = arrow.array(record.geoms, arrow.string())
    columns = {name: getattr(record, name) for name in STEP}
    columns["contacts"] = columns["contacts"].astype(np.int32)
    lists: dict[str, Any] = {
        "contact_first": arrow.DictionaryArray.from_arrays(arrow.array(record.contact_geom[:, 0]), words),
        "contact_second": arrow.DictionaryArray.from_arrays(arrow.array(record.contact_geom[:, 1]), words),
        "contact_gap": record.contact_gap,
        **{f"contact_{name}": record.contact_force[:, c] for c, name in enumerate(FORCE)},
        "contact_mode": record.contact_mode.astype(np.int8),
    }
    for name, values in lists.items():
        flat = values if isinstance(values, arrow.Array) else arrow.array(values)
        columns[name] = arrow.ListArray.from_arrays(first, flat)
    about = {name: getattr(record, name) for name in (*ABOUT, "geoms")}
    about |= {"format": FORMAT, "version": VERSION, "begin": begin, "token": token}
    table = arrow.table(columns).replace_schema_metadata({"stiction": json.dumps(about)})
    with written_whole(path, "log") as part:
        arrow.parquet.write_table(table, part)


def load(path: str | os.PathLike[str]) -> Record:
    """Read a log, with the parts that a killed run left beside it."""
    path = Path(path)
    if not path.is_file():
        raise InvalidProblem(f"log: there is no file {path}")
    read = read_parquet if path.suffix == ".parquet" else read_npz
    record, _, token = read(path)
    records, steps, number = [record], record.steps, 2
    while (part := part_of(path, number)).is_file():
        record, begin, its = read(part)
        if its != token or begin != steps:  # left by another run
            break
        records.append(record)
        steps, number = steps + record.steps, number + 1
    return joined(records)


def joined(records: list[Record]) -> Record:
    if len(records) == 1:
        return records[0]
    named = [
        f.name for f in fields(Record) if isinstance(getattr(records[0], f.name), np.ndarray) and f.name != "first"
    ]
    whole: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in records]) for name in named}
    counts = np.concatenate([np.diff(each.first) for each in records])
    whole["first"] = np.concatenate([[0], np.cumsum(counts)])
    return Record(**{f.name: whole.get(f.name, getattr(records[0], f.name)) for f in fields(Record)})


def read_npz(path: Path) -> tuple[Record, int, str]:
    try:
        saved: dict[str, Any] = dict(read_arrays(path))
        check_format(path, str(saved.get("format")), str(saved.get("version")))
        for name in ("scene", "law", "solver", "stepper"):
            saved[name] = str(saved[name])
        saved["timestep"], saved["geoms"] = float(saved["timestep"]), tuple(map(str, saved["geoms"]))
        record = Record(**{f.name: saved[f.name] for f in fields(Record)})
        return record, int(saved["begin"]), str(saved["token"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if str(error).startswith("log: "):
            raise
        reason = " ".join(str(error).split()).removeprefix(f"load: {path}").lstrip(": ")
        raise InvalidProblem(f"log: {path} holds no log, or is damaged ({reason})") from None


def read_parquet(path: Path) -> tuple[Record, int, str]:
    arrow = pyarrow()
    try:
        table = arrow.parquet.read_table(path)
        about = json.loads((table.schema.metadata or {})[b"stiction"])
        check_format(path, about["format"], str(about["version"]))
        number = {name: k for k, name in enumerate(about["geoms"])}
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        flat = {name: columns[name].flatten() for name in columns if name.startswith("contact_")}
        places = [[number[each] for each in flat[f"contact_{name}"].to_pylist()] for name in ("first", "second")]
        counts = np.array([len(each) for each in columns["contact_gap"]], np.int64)
        by_step = {name: columns[name].to_numpy(zero_copy_only=False).astype(np.float64) for name in STEP}
        record = Record(
            **{name: about[name] for name in ABOUT},
            geoms=tuple(about["geoms"]),
            **by_step,
            first=np.concatenate([[0], np.cumsum(counts)]),
            contact_geom=np.array(places, np.int32).T.reshape(-1, 2),
            contact_gap=flat["contact_gap"].to_numpy(),
            contact_force=np.column_stack([flat[f"contact_{name}"].to_numpy() for name in FORCE]),
            contact_mode=flat["contact_mode"].to_numpy().astype(np.int32),
        )
        return record, about["begin"], about["token"]
    except (OSError, ValueError, KeyError, TypeError) as error:  # Arrow's errors are ValueErrors and OSErrors
        if isinstance(error, InvalidProblem):
            raise
        raise InvalidProblem(f"log: {path} holds no log, or is damaged ({error})") from None


def check_format(path: Path, name: str, version: str) -> None:
    if name != FORMAT:
        raise InvalidProblem(f"log: {path} is not a log, but {name!r}")
    if version != str(VERSION):
        raise InvalidProblem(f"log: {path} has version {version}, but this stiction reads {VERSION}")
