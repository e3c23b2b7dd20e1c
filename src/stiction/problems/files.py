"""Problems as files: `.npz` archives of plain arrays, nothing pickled, so that opening one runs no code.

    format   "stiction problem"
    version  1
    kind     "LCP" (arrays M, q), "BoxLCP" (arrays H, q, lo, hi), float64, or "ContactProblem":
    form     "dense" (mass, velocity, normal, tangent), "bodies" (and bodies) or "delassus" (W, q, dim), as the
             constructors of `ContactProblem` take them; friction, law (JSON); gap_rate, joints, ... where they exist

Contact problems are written as FCLIB instead if the name ends in .hdf5 or .h5 (see `stiction.problems.fclib`), in
Siconos' text format if it ends in .dat (`stiction.problems.siconos`), and read from both whatever the name. A file is
written beside its destination and then renamed: it is there whole or not at all. The round trip of an `.npz` file is
exact to the last bit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.disk import check_archive, written_whole
from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem, with_ratio
from stiction.problems.laws import LAWS, Law
from stiction.problems.lcp import LCP, BoxLCP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

FORMAT = "stiction problem"
VERSION = 1
FIELDS = {"LCP": ("M", "q"), "BoxLCP": ("H", "q", "lo", "hi")}
FORMS = {
    "dense": ("mass", "velocity", "normal", "tangent"),
    "bodies": ("mass", "velocity", "bodies", "normal", "tangent"),
    "trees": ("mass", "begin", "velocity", "trees", "normal", "tangent"),
    "delassus": ("W", "q"),
}
OPTIONAL = ("gap_rate", "tangent_rate", "joints", "joint_rate", "viscosity", "slip")
HDF5 = (".hdf5", ".h5")
HDF5_BEGINS = b"\x89HDF\r\n\x1a\n"
TEXT = ".dat"  # of Siconos
IGNORABLE = ("rolling",)  # what `ignore` may name
ADVICE = "; choose an existing folder that you may write to"


def save(problem: BoxLCP | ContactProblem, path: str | os.PathLike[str]) -> None:
    """Write a problem as `.npz`, or for FCLIB (.hdf5, .h5) or Siconos (.dat); a file of that name is replaced."""
    if not isinstance(problem, BoxLCP | ContactProblem):
        raise InvalidProblem(f"save: expected an LCP, a BoxLCP or a ContactProblem, got {type(problem).__name__}")
    path = Path(path)
    if (suffix := path.suffix.lower()) in (*HDF5, TEXT):
        from stiction.problems import fclib, siconos

        name, write = ("Siconos", siconos.write) if suffix == TEXT else ("FCLIB", fclib.write)
        if not isinstance(problem, ContactProblem):
            raise InvalidProblem(f"save: {name} files hold contact problems only; name {path} .npz instead")
        fill: Callable[[Path], None] = partial(write, problem)
    else:
        fields = _contact_fields(problem) if isinstance(problem, ContactProblem) else _box_fields(problem)
        fill = partial(_write_npz, {"format": FORMAT, "version": VERSION, **fields})
    with written_whole(path, "save", advice=ADVICE) as part:
        fill(part)


def load(path: str | os.PathLike[str], *, ignore: tuple[str, ...] = ()) -> BoxLCP | ContactProblem:
    """Read a problem that `save` wrote, or one of FCLIB or Siconos: an `LCP`, a `BoxLCP` or a `ContactProblem`.

    ignore: what of a file is to be left out: "rolling" friction of Siconos' files
    """
    path = Path(path)
    if not set(ignore) <= set(IGNORABLE):
        raise InvalidProblem(f"load: ignore must be a tuple of names of {IGNORABLE}, got {ignore!r}")
    head = _head(path)
    if path.suffix.lower() in HDF5 or head.startswith(HDF5_BEGINS):
        from stiction.problems.fclib import read

        return read(path)
    from stiction.problems import siconos

    if siconos.is_siconos(head) or path.suffix.lower() == TEXT:
        return siconos.read(path, tuple(ignore))
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
        kind = _text(path, archive, "kind")
        if kind == "ContactProblem":
            return _contact(path, archive)
        if kind not in FIELDS:
            known = " or ".join([*FIELDS, "ContactProblem"])
            raise InvalidProblem(f"load: {path} holds a problem of kind {kind!r}, expected {known}")
        arrays = [_field(path, archive, name) for name in FIELDS[kind]]
    try:
        return LCP(*arrays) if kind == "LCP" else BoxLCP(*arrays)
    except InvalidProblem as error:
        raise InvalidProblem(f"load: {path}: {error}") from None


def _box_fields(problem: BoxLCP) -> dict[str, Any]:
    kind = "LCP" if isinstance(problem, LCP) else "BoxLCP"
    return {"kind": kind, **{name: getattr(problem, name) for name in FIELDS[kind]}}


def _contact_fields(problem: ContactProblem) -> dict[str, Any]:
    """The arguments that build the problem again."""
    fields: dict[str, Any] = {"kind": "ContactProblem", "friction": problem.friction, "law": _law_text(problem.law)}
    fields["dim"] = dim = problem.dim
    n, rows = problem.n, problem.rows
    if problem.ratio is not None:
        fields["ratio"] = problem.ratio
    if problem.mass is None:
        assert problem.delassus is not None
        assert problem.offset is not None
        place = np.arange(rows.shape[1] * n).reshape(n, rows.shape[1])[:, :dim].ravel()
        return fields | {"form": "delassus", "W": problem.delassus[np.ix_(place, place)], "q": problem.offset[place]}
    fields |= {"mass": problem.mass, "velocity": problem.velocity}
    if problem.mass.ndim == 2:
        fields |= {"form": "dense", "normal": rows[:, 0], "tangent": rows[:, 1:dim]}
    elif problem.mass.ndim == 1:
        first = problem.segments[:, 0::2]
        pairs = np.where(problem.segments[:, 1::2] > 0, np.searchsorted(problem.trees, first, "right") - 1, -1)
        fields |= {"form": "trees", "begin": problem.trees, "trees": pairs}
        fields |= {"normal": rows[:, 0], "tangent": rows[:, 1:dim]}
    else:
        bodies = np.where(problem.segments[:, 1::2] > 0, problem.segments[:, 0::2] // 6, -1)
        by_body = rows.reshape(n, rows.shape[1], 2, 6)
        fields |= {"form": "bodies", "bodies": bodies, "normal": by_body[:, 0], "tangent": by_body[:, 1:dim]}
    optional = {name: getattr(problem, name) for name in OPTIONAL}
    return fields | {name: value for name, value in optional.items() if value is not None}


def _contact(path: Path, archive: Any) -> ContactProblem:
    form = _text(path, archive, "form")
    if form not in FORMS:
        raise InvalidProblem(f"load: {path} holds a contact problem of form {form!r}, expected {' or '.join(FORMS)}")
    arrays = {name: _field(path, archive, name) for name in (*FORMS[form], "friction")}
    law = _law(path, str(_field(path, archive, "law")))
    dim = _field(path, archive, "dim")
    optional = {name: _field(path, archive, name) for name in OPTIONAL if name in archive.files}
    ratio = _field(path, archive, "ratio") if "ratio" in archive.files else None
    try:
        if form == "delassus":
            whole = int(dim) if dim.ndim == 0 and dim.dtype.kind in "iu" else 0
            return with_ratio(ContactProblem.from_delassus(**arrays, dim=whole, law=law), ratio)
        if form == "trees":
            masses: Any = _blocks(path, arrays.pop("mass"), arrays.pop("begin"))
            return with_ratio(ContactProblem.from_trees(masses, **arrays, **optional, law=law), ratio)
        make = ContactProblem if form == "dense" else ContactProblem.from_bodies
        return with_ratio(make(**arrays, **optional, law=law), ratio)
    except InvalidProblem as error:
        raise InvalidProblem(f"load: {path}: {error}") from None


def _blocks(path: Path, mass: NDArray[Any], begin: NDArray[Any]) -> list[NDArray[Any]]:
    """The mass of each tree."""
    whole = begin.ndim == 1 and begin.size and begin.dtype.kind in "iu" and begin[0] == 0
    sizes = np.diff(begin) if whole else np.array([-1])
    if (sizes < 0).any() or mass.shape != (np.sum(sizes**2),):
        raise InvalidProblem(f"load: {path}: fields 'mass' and 'begin' do not fit together; save the problem anew")
    parts = np.split(mass, np.cumsum(sizes**2)[:-1])
    return [part.reshape(size, size) for part, size in zip(parts, sizes, strict=False)]


def _law_text(law: Law) -> str:
    options = {name: _plain(value) for name, value in dataclasses.asdict(law).items()}
    return json.dumps({"name": type(law).__name__, **options})


def _plain(value: Any) -> Any:
    """A NumPy number as a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def _law(path: Path, text: str) -> Law:
    try:
        options = json.loads(text)
        law: Law = LAWS[options.pop("name")](**options)
    except InvalidProblem as error:
        raise InvalidProblem(f"load: {path}: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InvalidProblem(f"load: {path}: field 'law' is {text!r}, which names no law; save it anew") from None
    return law


def write_arrays(path: Path, fields: dict[str, Any]) -> None:
    """Write an `.npz` file, as a whole or not at all."""
    with written_whole(path, "save", advice=ADVICE) as part:
        _write_npz(fields, part)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an `.npz` file; nothing is unpickled, and what would fill the memory is refused."""
    with _opened(path) as archive:
        return {name: _field(path, archive, name) for name in archive.files}


def _write_npz(fields: dict[str, Any], path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, **fields)


def _head(path: Path) -> bytes:
    """The first bytes of a file; none if it cannot be read, which the reader then reports."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(4096)
    return b""


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
            if path.suffix.lower() != ".npz":
                kinds = "an .npz file of save's, FCLIB's .hdf5 or Siconos' .dat"
                raise InvalidProblem(f"load: {path} is not a problem, or was cut off; name {kinds}")
            raise InvalidProblem(f"load: {path} is not an .npz file, or was cut off; write it with save")
        try:
            with zipfile.ZipFile(file) as members:
                check_archive(f"load: {path}", members, path.stat().st_size)
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
        except InvalidProblem:
            raise
        except Exception as error:  # zipfile raises errors of many kinds on damaged archives
            reason = " ".join(str(error).split())
            raise InvalidProblem(f"load: {path} is damaged ({reason}); copy it anew, or save it anew") from error
        with archive:
            yield archive


def _field(path: Path, archive: Any, name: str) -> NDArray[Any]:
    """One array, or an error that names it."""
    if name not in archive.files:
        raise InvalidProblem(f"load: {path} lacks the field {name!r}; save the problem anew")
    try:
        field = archive[name]
    except Exception as error:  # zipfile and numpy raise errors of many kinds on damaged archives
        reason = " ".join(str(error).split())
        if "allow_pickle" in reason:
            reason = "it holds Python objects, which are never unpickled"
        raise InvalidProblem(f"load: {path}: field {name!r} cannot be read ({reason}); save it anew") from error
    if not isinstance(field, np.ndarray):
        raise InvalidProblem(f"load: {path}: field {name!r} is not an array; save the problem anew")
    return field


def _text(path: Path, archive: Any, name: str) -> str | None:
    """A field of one word or number, as text; None if it is absent."""
    return str(_field(path, archive, name)) if name in archive.files else None
