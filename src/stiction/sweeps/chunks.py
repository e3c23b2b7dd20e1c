"""A chunk of cases: run one after the other in any process, and handed back as the bytes of a Parquet file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stiction.optional import pyarrow
from stiction.sweeps.cases import KINDS, OURS, Case, is_plain, plain

Function = Callable[..., Any]
LARGE = "number of more than 64 bits"


class Chunk(NamedTuple):
    """Part of a sweep, as it is sent to a worker."""

    number: int
    first: int  # index of its first case
    cases: list[Case]
    types: dict[str, Any]  # of the parameters
    lost: dict[int, str]  # cases that are not tried again, by index: their errors


def done(chunk: Chunk, function: Function, beginning: Callable[[int], None] = lambda index: None) -> bytes:
    """The table of a chunk; `beginning` is called with the index of each case before it runs."""
    rows = []
    for index, case in enumerate(chunk.cases, chunk.first):
        if index in chunk.lost:
            rows.append({"case": index, **case, "error": chunk.lost[index], "wall_time": 0.0})
            continue
        beginning(index)
        begin = time.perf_counter()
        found, error = called(function, case)
        rows.append({"case": index, **case, **found, "error": error, "wall_time": time.perf_counter() - begin})
    return as_file(rows, chunk.types)


def called(function: Function, case: Case) -> tuple[dict[str, Any], str | None]:
    """Results of a function for a case, by name, or the error in one line."""
    try:
        answer = function(**case)
        found = {name: plain(value) for name, value in answer.items()} if isinstance(answer, Mapping) else None
        if found is None:
            found = {} if answer is None else {"value": plain(answer)}
        for name, value in found.items():
            if not isinstance(name, str) or name in OURS or name in case:
                return {}, f"the function returns {name!r}, which is no name for a new column"
            if not is_plain(value):
                return {}, f"the function returns {name!r} as a {type(value).__name__}; a table holds only {KINDS}"
    except (Exception, SystemExit) as error:
        return {}, error_line(error)
    return found, None


def error_line(error: BaseException) -> str:
    """An error in one line, with the place where it was raised."""
    line = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    trace = error.__traceback__
    if trace is None:
        return line
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{line} ({Path(code.co_filename).name}, line {trace.tb_lineno}, in {code.co_name})"


def as_file(rows: list[dict[str, Any]], types: dict[str, Any]) -> bytes:
    """Rows as the bytes of a Parquet file; a row that does not fit the others loses its findings, with a note."""
    arrow = pyarrow()
    known = {"case": arrow.int64(), **types, "error": arrow.string(), "wall_time": arrow.float64()}
    found = dict.fromkeys(name for row in rows for name in row if name not in known)
    columns: dict[str, Any] = {}
    for name in found:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = arrow.array(values)
        except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError):
            return as_file(one_kind_only(rows, name, list(found)), types)
    order = ("case", *types, *found, "error", "wall_time")
    table = arrow.table(
        {name: columns.get(name, arrow.array([row.get(name) for row in rows], known.get(name))) for name in order}
    )
    sink = arrow.BufferOutputStream()
    arrow.parquet.write_table(table, sink, compression="none" if len(rows) < 1000 else "snappy")
    return bytes(sink.getvalue())


def one_kind_only(rows: list[dict[str, Any]], name: str, found: list[str]) -> list[dict[str, Any]]:
    """The rows; one whose value in this column is of another kind than the first row's becomes an error."""
    values = [row[name] for row in rows if row.get(name) is not None]
    first = next((value for value in values if kind(value) != LARGE), None)
    # Values of one kind that no column holds, such as lists of several kinds, are all errors.
    all_of_them = all(kind(value) == kind(first) for value in values)
    kept = []
    for row in rows:
        value = row.get(name)
        if value is None or (kind(value) == kind(first) and not all_of_them):
            kept.append(row)
            continue
        other = "" if all_of_them or first is None else f", but as {first!r} for another case"
        error = f"the function returns {name!r} as {value!r}{other}; a column holds values of one kind"
        kept.append({key: each for key, each in row.items() if key not in found} | {"error": error})
    return kept


def kind(value: Any) -> Any:
    """The kind of a value: one column holds one kind; whole numbers of up to 64 bits and others are one."""
    if isinstance(value, list):
        return [kind(each) for each in value[:1]]
    if isinstance(value, int) and not isinstance(value, bool):
        return "number" if -(1 << 63) <= value < 1 << 63 else LARGE
    return "number" if isinstance(value, float) else type(value).__name__
