"""`sweep`: one function over many cases, as a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiction.errors import InvalidProblem, is_whole
from stiction.optional import ray
from stiction.sweeps.cases import Cases, checked
from stiction.sweeps.chunks import Chunk, Function
from stiction.sweeps.folder import Folder
from stiction.sweeps.on_ray import on_ray
from stiction.sweeps.workers import here, on_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stiction.sweeps.workers import Done

PLACES = ("here", "cores", "ray")
CHUNK = 16  # cases at most by default: a file costs some milliseconds
SHARES = 4  # chunks for each worker at least, so that none waits long for the others


def sweep(
    function: Function,
    cases: Sequence[Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    on: str = "here",
    workers: int | None = None,
    chunk: int | None = None,
    retries: int = 1,
    address: str | None = None,
) -> Any:
    """Call `function(**case)` for every case; the answers are a `pyarrow.Table` with one row a case, in their order.

    function: returns a dictionary of numbers, words, truth values or lists of them, or one such value
    cases: dictionaries of its arguments, see `grid`
    folder: where finished chunks are kept; a second call with the same folder does only what is missing
    on: "here", in this process; "cores", in processes of their own; "ray", on this machine or a cluster
    workers: how many, by default one for each processor; Ray at an address has those of the cluster
    chunk: cases that are done and kept together
    retries: how often a case is tried again whose worker was killed
    address: of a Ray cluster to join, "auto" for the one that runs on this machine

    A case that raises is a row whose column `error` names the error; the others go on. A function or cases that differ
    from those that the folder was begun with are refused.
    """
    return run(function, checked(cases), Path(folder), on, workers, chunk, retries, address)


def run(
    function: Function, cases: Cases, folder: Path, on: str, workers: int | None, chunk: int | None, retries: int,
    address: str | None, watch: Callable[[int], None] = lambda done: None,
) -> Any:  # fmt: skip
    """`sweep` of checked cases; `watch` is called with the number of cases that are done."""
    if not callable(function):
        raise InvalidProblem(f"sweep: function must be callable, got {function!r}")
    if on not in PLACES:
        raise InvalidProblem(f"sweep: on must be one of {', '.join(map(repr, PLACES))}, got {on!r}")
    if address is not None and on != "ray":
        raise InvalidProblem(f"sweep: address is for on='ray', not for on={on!r}")
    for name, value, least in (("workers", workers, 1), ("chunk", chunk, 1), ("retries", retries, 0)):
        if not is_whole(value, least) and not (value is None and name != "retries"):
            raise InvalidProblem(f"sweep: {name} must be a whole number of at least {least}, got {value!r}")
    if on == "ray":
        ray()
    if not cases.rows:
        raise InvalidProblem("sweep: cases is empty; give at least one")

    processors = 1 if on == "here" else workers or os.cpu_count() or 1
    kept = Folder(folder, function, cases, chunk or min(CHUNK, -(-len(cases.rows) // (SHARES * processors))))
    with kept.alone():
        table = kept.table()
        if table is not None:
            watch(len(cases.rows))
            return table
        missing = kept.missing()
        count = len(cases.rows) - sum(min(kept.chunk, len(cases.rows) - k * kept.chunk) for k in missing)
        watch(count)
        chunks = [chunk_of(cases, number, kept.chunk) for number in missing]
        ways: dict[str, Callable[[], Iterator[Done]]] = {
            "here": lambda: here(chunks, function),
            "cores": lambda: on_cores(chunks, function, processors, retries),
            "ray": lambda: on_ray(chunks, function, workers, retries, address),
        }
        for number, content in ways[on]():
            kept.keep(number, content)
            count += min(kept.chunk, len(cases.rows) - number * kept.chunk)
            watch(count)
        return kept.finish()


def chunk_of(cases: Cases, number: int, length: int) -> Chunk:
    first = number * length
    return Chunk(number, first, cases.rows[first : first + length], cases.types, {})
