"""Saved problems come back to the last bit; files that are not problems are refused by name, field and remedy."""

import contextlib
import re
import zipfile

import numpy as np
import pytest

from stiction.errors import InvalidProblem
from stiction.problems import FAMILIES, LCP, BoxLCP, load, save
from stiction.problems import files as module

PROBLEM = BoxLCP([[2.0, 1.0], [1.0, 2.0]], [-1.0, 0.5], [-np.inf, 0.0], [1.0, np.inf])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "problem.npz"


def refused(path, *parts):
    with pytest.raises(InvalidProblem) as caught:
        load(path)
    for part in (str(path), *parts):
        assert part in str(caught.value)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fields(**changes):
    given = {"format": "stiction problem", "version": 1, "kind": "LCP", "M": np.eye(2), "q": np.ones(2), **changes}
    return {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_round_trip_is_exact(name, n, path):
    problem = FAMILIES[name].make(n, 5)
    problem.save(path)
    again = load(path)
    assert type(again) is type(problem)
    for field in ("H", "q", "lo", "hi"):
        assert getattr(again, field).tobytes() == getattr(problem, field).tobytes()
        assert getattr(again, field).shape == getattr(problem, field).shape


def test_signed_zeros_subnormals_and_infinities_survive(path):
    problem = BoxLCP([[-0.0, 5e-324], [1.7976931348623157e308, 0.1]], [-0.0, 1e-310], -np.inf, [np.inf, -0.0])
    save(problem, path)
    assert load(path).H.tobytes() == problem.H.tobytes()
    assert load(path).vectors.tobytes() == problem.vectors.tobytes()


def test_the_name_is_taken_as_it_is(tmp_path):
    for name in ("a", "a.problem", "ünïcode file.npz"):
        save(PROBLEM, tmp_path / name)
        save(PROBLEM, str(tmp_path / name))  # replaced
        assert load(str(tmp_path / name)).n == 2
    assert names(tmp_path) == ["a", "a.problem", "ünïcode file.npz"]


def test_any_reader_of_npz_can_read_it(path):
    save(PROBLEM, path)
    with np.load(path, allow_pickle=False) as data:
        assert set(data.files) == {"format", "version", "kind", "H", "q", "lo", "hi"}
        assert str(data["format"]) == "stiction problem"


def test_additional_fields_are_ignored(path):
    np.savez(path, **fields(comment=np.array([None]), date="today"))
    assert load(path).n == 2


def test_what_is_not_a_problem_is_not_saved(path):
    with pytest.raises(InvalidProblem, match=r"save: expected an LCP, a BoxLCP or a ContactProblem, got ndarray"):
        save(np.eye(2), path)
    assert not path.exists()


def test_folder_that_does_not_exist(tmp_path):
    path = tmp_path / "missing" / "p.npz"
    with pytest.raises(
        InvalidProblem, match=rf"save: cannot write {re.escape(str(path))} \(No such file.*choose an ex"
    ):
        save(PROBLEM, path)


def test_destination_that_is_a_folder(tmp_path):
    (tmp_path / "p.npz").mkdir()
    with pytest.raises(InvalidProblem, match="save: cannot write"):
        save(PROBLEM, tmp_path / "p.npz")
    assert names(tmp_path) == ["p.npz"]
    with pytest.raises(InvalidProblem, match="load: cannot read"):
        load(tmp_path / "p.npz")


def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(PROBLEM, path)
    before = path.read_bytes()

    def half_written(file, **_):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(module.np, "savez", half_written)
    with pytest.raises(KeyboardInterrupt):
        save(LCP(np.eye(3), np.ones(3)), path)
    assert path.read_bytes() == before
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")])
def test_a_failed_write_is_told_and_leaves_nothing(path, monkeypatch, error):
    def fails(file, **_):
        raise error

    monkeypatch.setattr(module.np, "savez", fails)
    with pytest.raises(
        InvalidProblem, match=rf"save: cannot write {re.escape(str(path))} \({error.strerror}\); choose"
    ):
        save(PROBLEM, path)
    assert names(path.parent) == []


def test_missing_file(path):
    refused(path, "load: there is no file", "check the name")


@pytest.mark.parametrize("content", [b"", b"PK", b"some text", b"\x93NUMPY\x01\x00"])
def test_not_an_archive(path, content):
    path.write_bytes(content)
    refused(path, "is not an .npz file, or was cut off; write it with save")


def test_a_single_array_is_not_an_archive(path):
    with path.open("wb") as file:
        np.save(file, np.eye(2))
    refused(path, "is not an .npz file")


def test_every_truncation_is_refused(path):
    save(PROBLEM, path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        refused(path, "load: ")


def test_damaged_bytes_are_refused_or_harmless(path):
    save(PROBLEM, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 300):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(InvalidProblem):
            problem = load(path)
            assert np.array_equal(problem.H, PROBLEM.H)
            assert np.array_equal(problem.vectors, PROBLEM.vectors)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"format": None}, ["is not a stiction problem", "'format' is None", "numpy.load", "BoxLCP(H, q, lo, hi)"]),
        ({"format": "other"}, ["is not a stiction problem", "'format' is 'other'"]),
        ({"version": 2}, ["has version 2, but this stiction reads 1", "update stiction"]),
        ({"version": None}, ["has version None"]),
        ({"version": np.ones(3)}, ["has version [1. 1. 1.]"]),
        ({"kind": "QP"}, ["holds a problem of kind 'QP', expected LCP or BoxLCP"]),
        ({"kind": None}, ["of kind None"]),
        ({"M": None}, ["lacks the field 'M'; save the problem anew"]),
        ({"q": None}, ["lacks the field 'q'"]),
        ({"kind": "BoxLCP"}, ["lacks the field 'H'"]),
        (
            {"M": np.array([[1, None], [2, 3]])},
            ["field 'M' cannot be read", "Python objects, which are never unpickled"],
        ),
        ({"format": np.array([None])}, ["field 'format' cannot be read", "never unpickled"]),
        ({"M": np.ones((2, 3))}, ["LCP: M must be a square matrix, got shape (2, 3)"]),
        ({"q": np.array([0.0, np.nan])}, ["LCP: q must be finite, but q[1] = nan"]),
        ({"q": np.array(["a", "b"])}, ["LCP: q must hold real numbers"]),
    ],
)
def test_wrong_fields_are_named(path, changes, parts):
    np.savez(path, **fields(**changes))
    refused(path, *parts)


def test_member_that_is_not_an_array(path):
    np.savez(path, **fields(M=None))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("M", "no array")
    refused(path, "field 'M' is not an array")


def test_array_that_cannot_fit_in_memory(path):
    np.savez(path, **fields(M=None))
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000, 10000000), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("M.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    refused(path, "field 'M' cannot be read")
