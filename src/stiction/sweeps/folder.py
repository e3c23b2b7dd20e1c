"""The folder of a sweep: what it is a sweep of, a file for each finished chunk, and in the end one table.

sweep.json                what was asked: the function, the cases, the length of a chunk
chunk-000007.parquet      cases that are done; whole or absent
table.parquet             all cases, once they are done; the chunks are removed then
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiction.disk import Part, unwritable
from stiction.errors import InvalidProblem
from stiction.optional import pyarrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stiction.sweeps.cases import Cases
    from stiction.sweeps.chunks import Function

FORMAT, VERSION = "stiction-sweep", 1
NOTE, TABLE, LOCK = "sweep.json", "table.parquet", ".lock"
ADVICE = "choose another folder, or remove this one to begin anew"


class Folder:
    """Where a sweep keeps its finished chunks."""

    def __init__(self, path: Path, function: Function, cases: Cases, chunk: int) -> None:
        self.path, self.count = path, len(cases.rows)
        asked = {
            "format": FORMAT, "version": VERSION, "function": name_of(function), "code": digest_of(function),
            "cases": self.count, "digest": cases.digest,
        }  # fmt: skip
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.chunk = self.agreed(asked, chunk)
        except OSError as error:
            raise InvalidProblem(unwritable(path, "sweep", error)) from error

    def agreed(self, asked: dict[str, Any], chunk: int) -> int:
        """The length of a chunk: that with which the folder began, or the one given now."""
        note = self.path / NOTE
        if not note.exists():
            if (self.path / TABLE).exists() or any(self.path.glob("chunk-*.parquet")):
                raise InvalidProblem(f"sweep: {self.path} holds chunks, but no {NOTE} that says of what; {ADVICE}")
            self.write(NOTE, json.dumps({**asked, "chunk": chunk}, indent=1).encode())
            return chunk
        try:
            found = json.loads(note.read_text(encoding="utf-8"))
            length = int(found["chunk"])
            if found["format"] != FORMAT or found["version"] != VERSION or length < 1:
                raise ValueError
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidProblem(f"sweep: {note} is damaged, or of another version; {ADVICE}") from error
        for name, what in (("function", "function"), ("code", "code of the function"), ("cases", "number of cases")):
            if found.get(name) != asked[name]:
                change = "" if name == "code" else f" ({found.get(name)} then, {asked[name]} now)"
                raise InvalidProblem(f"sweep: the {what} has changed since {self.path} was begun{change}; {ADVICE}")
        if found.get("digest") != asked["digest"]:
            raise InvalidProblem(f"sweep: the cases have changed since {self.path} was begun; {ADVICE}")
        return length

    def write(self, name: str, content: bytes) -> None:
        """A file that appears whole or not at all.

        It is not forced to the disk, which would take longer than most chunks: after a power failure a file may be
        damaged, which `whole` notices.
        """
        part = Part(self.path / name)
        try:
            part.path.write_bytes(content)
            part.path.replace(part.destination)
        finally:
            part.discard()

    def keep(self, number: int, content: bytes) -> None:
        """A chunk that is done."""
        try:
            self.write(f"chunk-{number:06d}.parquet", content)
        except OSError as error:
            raise InvalidProblem(unwritable(self.path, "sweep", error)) from error

    def missing(self) -> list[int]:
        """Numbers of the chunks that are yet to be done; files of killed writers are removed."""
        for part in self.path.glob(".*.part.*"):
            part.unlink(missing_ok=True)
        return [number for number in range(self.chunks) if not self.whole(number)]

    @property
    def chunks(self) -> int:
        return -(-self.count // self.chunk)

    def whole(self, number: int) -> bool:
        """Whether a chunk is there with all its cases."""
        arrow, path = pyarrow(), self.path / f"chunk-{number:06d}.parquet"
        try:
            rows = arrow.parquet.read_metadata(path).num_rows
        except (OSError, arrow.ArrowException):
            return False
        return bool(rows == min(self.chunk, self.count - number * self.chunk))

    def table(self) -> Any:
        """The table of all cases if they were done before, None if they were not."""
        arrow, path = pyarrow(), self.path / TABLE
        if not path.exists():
            return None
        try:
            found = arrow.parquet.read_table(path)
        except (OSError, arrow.ArrowException) as error:
            raise InvalidProblem(f"sweep: {path} is damaged; {ADVICE}") from error
        if found.num_rows != self.count:
            raise InvalidProblem(f"sweep: {path} has {found.num_rows} rows of {self.count}; {ADVICE}")
        return found

    def finish(self) -> Any:
        """One table of all chunks, kept in their place."""
        arrow = pyarrow()
        files = [self.path / f"chunk-{number:06d}.parquet" for number in range(self.chunks)]
        tables = [arrow.parquet.read_table(file) for file in files]
        try:
            table = arrow.concat_tables(tables, promote_options="permissive")
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            raise InvalidProblem(
                f"sweep: the function returns values of different kinds in one column ({error}); the chunks are in "
                f"{self.path}"
            ) from error
        # Columns that some chunks do not have come last, where they were found; ours stand at the ends.
        last = ["error", "wall_time"]
        table = table.select([name for name in table.column_names if name not in last] + last).combine_chunks()
        sink = arrow.BufferOutputStream()
        arrow.parquet.write_table(table, sink)
        try:
            self.write(TABLE, sink.getvalue())
        except OSError as error:
            raise InvalidProblem(unwritable(self.path / TABLE, "sweep", error)) from error
        for file in files:
            file.unlink(missing_ok=True)
        return table

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse a second sweep in the same folder at the same time, where the system can detect it."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield
            return
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InvalidProblem(f"sweep: another sweep is at work in {self.path}; wait until it ends") from error
            try:
                yield
            finally:
                with suppress(OSError):
                    (self.path / LOCK).unlink()


def name_of(function: Any) -> str:
    """A function's name for people and for the note."""
    if isinstance(function, partial):
        return name_of(function.func)
    if not hasattr(function, "__qualname__"):
        function = type(function)
    return f"{function.__module__}.{function.__qualname__}"


def digest_of(function: Any) -> str:
    """A hash of a function's own text, and of arguments bound to it; not of what it calls."""
    parts = []
    while isinstance(function, partial):
        parts += [repr(function.args), repr(sorted(function.keywords.items()))]
        function = function.func
    owner = function if hasattr(function, "__qualname__") else type(function)
    if owner is not function:
        parts.append(repr(getattr(function, "__dict__", "")))
    try:
        parts.append(inspect.getsource(inspect.unwrap(owner)))
    except (OSError, TypeError):  # typed in at a prompt, or not written in Python
        code = getattr(owner, "__code__", None)
        parts.append("" if code is None else code.co_code.hex() + repr(code.co_consts))
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", "\n".join(parts))
    return hashlib.sha256(text.encode()).hexdigest()
