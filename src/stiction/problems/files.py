"""Problems as files: `.npz` archives of plain arrays, nothing pickled, so that opening one runs no code.

    format   "stiction problem"
    version  1
    kind     "LCP" (arrays M, q) or "BoxLCP" (arrays H, q, lo, hi), float64

A file is written beside its destination and then renamed: it is there whole or not at all. The round trip is exact to
the last bit.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.lcp import LCP, BoxLCP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

FORMAT = "stiction problem"
VERSION = 1
FIELDS = {"LCP": ("M", "q"), "BoxLCP": ("H", "q", "lo", "hi")}


def save(problem: BoxLCP, path: str | os.PathLike[str]) -> None:
    """Write a problem as `.npz`; the name is taken as it is, and a file of that name is replaced."""
    if not isinstance(problem, BoxLCP):
        raise InvalidProblem(f"save: expected an LCP or a BoxLCP, got {type(problem).__name__}")
    kind = "LCP" if isinstance(problem, LCP) else "BoxLCP"
    arrays = {name: getattr(problem, name) for name in FIELDS[kind]}
    path = Path(path)
    try:
        _write_whole(path, {"format": FORMAT, "version": VERSION, "kind": kind, **arrays})
    except OSError as error:
        raise InvalidProblem(
            f"save: cannot write {path} ({error.strerror or error}); choose an existing folder that you may write to"
        ) from error


def load(path: str | os.PathLike[str]) -> BoxLCP:
    """Read a problem that `save` wrote: an `LCP` or a `BoxLCP`."""
    path = Path(path)
    with _opened(path) as archive:
        if (found := _text(path, archive, "format")) != FORMAT:
            raise InvalidProblem(
                f"load: {path} is not a stiction problem: its field 'format' is {found!r}, not {FORMAT!r}; "
                "read its arrays with numpy.load, build LCP(M, q) or BoxLCP(H, q, lo, hi), and save that"
            )
        if (version := _text(path, archive, "version")) != str(VERSION):
            raise InvalidProblem(
                f"load: {path} has version {version}, but this stiction reads {VERSION}; update stiction, or save anew"
            )
        if (kind := _text(path, archive, "kind")) not in FIELDS:
            raise InvalidProblem(f"load: {path} holds a problem of kind {kind!r}, expected {' or '.join(FIELDS)}")
        arrays = [_field(path, archive, name) for name in FIELDS[kind]]
    try:
        return LCP(*arrays) if kind == "LCP" else BoxLCP(*arrays)
    except InvalidProblem as error:
        raise InvalidProblem(f"load: {path}: {error}") from None


def _write_whole(path: Path, fields: dict[str, Any]) -> None:
    """Write beside the destination, then rename: readers see the old file or the new one."""
    part = path.with_name(f".{path.name}-{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            np.savez(file, **fields)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The archive of a file; one that cannot be opened is named."""
    if not path.exists():
        raise InvalidProblem(f"load: there is no file {path}; check the name (save adds no suffix)")
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidProblem(f"load: cannot read {path} ({error.strerror}); check its kind and permissions") from error
    with file:
        if not zipfile.is_zipfile(file):
            raise InvalidProblem(f"load: {path} is not an .npz file, or was cut off; write it with save")
        file.seek(0)
        try:
            archive = np.load(file, allow_pickle=False)
        except Exception as error:  # zipfile raises errors of many kinds on damaged archives
            raise InvalidProblem(f"load: {path} is damaged ({error}); copy it anew, or save it anew") from error
        with archive:
            yield archive


def _field(path: Path, archive: Any, name: str) -> NDArray[Any]:
    """One array, or an error that names it."""
    if name not in archive.files:
        raise InvalidProblem(f"load: {path} lacks the field {name!r}; save the problem anew")
    try:
        field = archive[name]
    except Exception as error:  # zipfile and numpy raise errors of many kinds on damaged archives
        reason = "it holds Python objects, which are never unpickled" if "allow_pickle" in str(error) else str(error)
        raise InvalidProblem(f"load: {path}: field {name!r} cannot be read ({reason}); save it anew") from error
    if not isinstance(field, np.ndarray):
        raise InvalidProblem(f"load: {path}: field {name!r} is not an array; save the problem anew")
    return field


def _text(path: Path, archive: Any, name: str) -> str | None:
    """A field of one word or number, as text; None if it is absent."""
    return str(_field(path, archive, name)) if name in archive.files else None
