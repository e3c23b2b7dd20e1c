"""Sweeps: every case once, whatever happens in between."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stiction as st
from stiction.sweeps import folder as folders
from sweeps import swept

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}


@pytest.fixture
def findable(monkeypatch):
    """Workers find the module of these functions."""
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])


def numbers(count, **same):
    return [{"k": k, **same} for k in range(count)]


def test_a_grid_varies_the_last_name_fastest():
    assert st.grid(a=[1, 2], b=["x", "y"]) == [
        {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "grid: name at least one parameter"),
        ({"mu": 0.5}, r"grid: mu must be a list of values, got 0.5; write mu=\[0.5\]"),
        ({"mu": "ab"}, "grid: mu must be a list of values, got 'ab'"),
        ({"mu": []}, "grid: mu is empty"),
    ],
)
def test_bad_grids_are_refused(given, message):
    with pytest.raises(st.InvalidProblem, match=message):
        st.grid(**given)


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ({"k": 1}, "sweep: cases must be a list of dictionaries, got dict"),
        ([{"k": 1}, 3], "sweep: case 1 must be a dictionary of arguments by name, got 3"),
        ([{"k": 1}, {"k": object()}], "sweep: 'k' of case 1 is a object; cases hold only numbers"),
        ([{"k": 1}, {3: 1}], "sweep: case 1 has a parameter 3, which is no word"),
        ([{"error": 1}], "sweep: case 0 has a parameter 'error', which is a column of every table"),
        ([{"k": 1}, {"k": "a"}], "sweep: 'k' is 1 in one case and 'a' in case 1; a parameter must be of one kind"),
        ([], "sweep: cases is empty"),
    ],
)
def test_bad_cases_are_refused_before_anything_is_written(cases, message, tmp_path):
    with pytest.raises(st.InvalidProblem, match=message):
        st.sweep(swept.square, cases, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "moon"}, "sweep: on must be one of 'here', 'cores', 'ray', got 'moon'"),
        ({"workers": 0}, "sweep: workers must be a whole number of at least 1, got 0"),
        ({"chunk": 1.5}, "sweep: chunk must be a whole number of at least 1, got 1.5"),
        ({"retries": -1}, "sweep: retries must be a whole number of at least 0, got -1"),
        ({"retries": None}, "sweep: retries must be a whole number of at least 0, got None"),
        ({"address": "auto"}, "sweep: address is for on='ray', not for on='here'"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(options, message, tmp_path):
    with pytest.raises(st.InvalidProblem, match=message):
        st.sweep(swept.square, numbers(2), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("on", ["here", "cores"])
def test_every_case_is_a_row_in_order_and_one_that_raises_names_its_error(on, tmp_path, findable):
    cases = [{"k": k, "bad": k == 5} for k in range(11)]
    table = st.sweep(swept.square, cases, tmp_path / "out", on=on, workers=2, chunk=4)
    assert isinstance(table, pa.Table)
    assert table.column_names == ["case", "k", "bad", "square", "error", "wall_time"]
    assert table["case"].to_pylist() == list(range(11))
    assert table["square"].to_pylist() == [None if k == 5 else k * k for k in range(11)]
    errors = table["error"].to_pylist()
    assert errors[5].startswith("ValueError: no square of 5 (swept.py, line ")
    assert [k for k, error in enumerate(errors) if error is not None] == [5]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["sweep.json", "table.parquet"]
    assert pq.read_table(tmp_path / "out" / "table.parquet").equals(table)


def test_numpy_values_and_lists_are_kept_as_they_are(tmp_path):
    table = st.sweep(swept.recorded, numbers(3), tmp_path, chunk=1)
    assert table["vector"].to_pylist() == [[0.0], [0.0, 1.0], [0.0, 1.0, 2.0]]
    assert table["flag"].to_pylist() == [False, False, True]
    assert table["count"].to_pylist() == [0, 1, 2]
    assert table["nothing"].to_pylist() == [None] * 3


def test_what_fits_no_column_is_an_error_of_its_case(tmp_path):
    table = st.sweep(swept.unfit, numbers(7), tmp_path / "a", chunk=7)
    errors = table["error"].to_pylist()
    for error, message in zip(
        errors,
        ["'value' as a object", "'k', which is no name", "'x' as a dict", "1208925819614629174706176", "[1, 'a']"],
        strict=False,
    ):
        assert message in error
    assert errors[5:] == [None, None]
    assert table["x"].to_pylist()[5:] == [[1.0, 2.0]] * 2
    mixed = st.sweep(swept.odd_kinds, numbers(4), tmp_path / "b", chunk=4)
    assert mixed["value"].to_pylist() == [0.0, 0.5, None, 1.5]
    assert "the function returns 'value' as 'a word', but as 0.0 for another case" in mixed["error"].to_pylist()[2]
    with pytest.raises(st.InvalidProblem, match="values of different kinds in one column"):
        st.sweep(swept.kinds_by_chunk, numbers(8), tmp_path / "c", chunk=4)


def test_a_function_that_wants_to_end_the_program_is_an_error(tmp_path):
    table = st.sweep(swept.ends, numbers(3), tmp_path)
    assert table["value"].to_pylist() == [0, None, 2]
    assert table["error"].to_pylist()[1].startswith("SystemExit: enough")


def test_finished_chunks_are_never_done_again(tmp_path, monkeypatch):
    """The folder of a sweep that was stopped half-way: only what is missing is called."""
    calls = tmp_path / "calls"
    calls.mkdir()
    cases, out = numbers(20, folder=str(calls)), tmp_path / "out"
    whole_write = folders.Folder.keep

    def stopping(self, number, content):
        if number == 3:
            raise KeyboardInterrupt
        whole_write(self, number, content)

    monkeypatch.setattr(folders.Folder, "keep", stopping)
    with pytest.raises(KeyboardInterrupt):
        st.sweep(swept.once, cases, out, chunk=4)
    monkeypatch.undo()
    assert sorted(path.name for path in out.glob("chunk*")) == [f"chunk-00000{k}.parquet" for k in range(3)]
    (out / "chunk-000001.parquet").write_bytes(b"PAR1")  # what a power failure may leave
    (out / ".chunk-000003-1.part.parquet").write_bytes(b"half")
    table = st.sweep(swept.once, cases, out, chunk=7)  # the length of a chunk stays that of the folder
    assert table["square"].to_pylist() == [k * k for k in range(20)]
    called = [int(k) for file in calls.iterdir() for k in file.read_text().split()]
    # Chunk 3 ran before it was stopped, chunk 1 was damaged: these two ran twice.
    assert sorted(called) == sorted([*range(20), *range(4, 8), *range(12, 16)])
    assert sorted(path.name for path in out.iterdir()) == ["sweep.json", "table.parquet"]


def test_a_second_call_only_reads(tmp_path):
    cases = numbers(10_000, bad=False)
    first = st.sweep(swept.square, cases, tmp_path, chunk=500)
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        again = st.sweep(swept.square, cases, tmp_path)
        best = min(best, time.process_time() - begin)
    assert again.equals(first)
    assert best < 0.1


def test_another_function_or_other_cases_are_noticed(tmp_path):
    cases = numbers(4)
    st.sweep(swept.square, cases, tmp_path)
    with pytest.raises(st.InvalidProblem, match=r"the function has changed since .* \(.*square then, .*once now\)"):
        st.sweep(swept.once, cases, tmp_path)
    with pytest.raises(st.InvalidProblem, match=r"number of cases has changed since .* \(4 then, 5 now\)"):
        st.sweep(swept.square, numbers(5), tmp_path)
    with pytest.raises(st.InvalidProblem, match="the cases have changed since .*; choose another folder, or remove"):
        st.sweep(swept.square, cases[::-1], tmp_path)
    note = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps({**note, "code": "0"}))
    with pytest.raises(st.InvalidProblem, match="the code of the function has changed since"):
        st.sweep(swept.square, cases, tmp_path)
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(st.InvalidProblem, match=r"sweep.json is damaged, or of another version"):
        st.sweep(swept.square, cases, tmp_path)
    (tmp_path / "sweep.json").unlink()
    with pytest.raises(st.InvalidProblem, match=r"holds chunks, but no sweep.json"):
        st.sweep(swept.square, cases, tmp_path)


def test_arguments_bound_to_a_function_belong_to_it(tmp_path):
    assert st.sweep(partial(swept.slow, seconds=0.0), numbers(2), tmp_path)["value"].to_pylist() == [0, 1]
    with pytest.raises(st.InvalidProblem, match="the code of the function has changed since"):
        st.sweep(partial(swept.slow, seconds=0.1), numbers(2), tmp_path)


def test_a_damaged_table_is_refused(tmp_path):
    st.sweep(swept.square, numbers(4), tmp_path)
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    with pytest.raises(st.InvalidProblem, match=r"table.parquet is damaged; choose another folder, or remove"):
        st.sweep(swept.square, numbers(4), tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(st.InvalidProblem, match=r"sweep: cannot write .*file"):
        st.sweep(swept.square, numbers(4), tmp_path / "file")


def test_one_sweep_at_a_time_in_a_folder(tmp_path):
    def inner(k):
        return st.sweep(inner, numbers(1), tmp_path).num_rows

    table = st.sweep(inner, numbers(1), tmp_path)
    assert "another sweep is at work in" in table["error"].to_pylist()[0]


def test_a_case_that_ends_its_worker_costs_no_other(tmp_path, findable):
    table = st.sweep(swept.deadly, numbers(8, at=2), tmp_path, on="cores", workers=1, chunk=4, retries=1)
    assert table["value"].to_pylist() == [0, 1, None, 3, 4, 5, 6, 7]
    assert table["error"].to_pylist()[2] == "the worker ended: exit status 3"
    assert sum(error is not None for error in table["error"].to_pylist()) == 1


def test_killed_workers_and_cases_that_raise(tmp_path, findable):
    """The bar of the page "At scale": 10,000 cases, 100 of which raise, and two workers are killed."""
    marks = tmp_path / "marks"
    marks.mkdir()
    cases = [
        {"k": k, "folder": str(marks), "bad": k % 100 == 7, "deadly": k in (2000, 7777)} for k in range(10_000)
    ]  # fmt: skip
    table = st.sweep(swept.killed_once, cases, tmp_path / "out", on="cores", workers=2, chunk=16)
    assert sorted(path.name for path in marks.iterdir()) == ["killed-2000", "killed-7777"]
    assert table.num_rows == 10_000
    assert table["case"].to_pylist() == list(range(10_000))
    assert sum(error is not None for error in table["error"].to_pylist()) == 100
    assert all(row == (None if k % 100 == 7 else k * k) for k, row in enumerate(table["square"].to_pylist()))


def test_functions_without_a_name_are_sent_by_value_or_refused(tmp_path, monkeypatch):
    pytest.importorskip("cloudpickle")
    table = st.sweep(lambda k: k + 1, numbers(2), tmp_path / "a", on="cores", workers=1)
    assert table["value"].to_pylist() == [1, 2]
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(st.InvalidProblem, match="cannot be sent to workers .*; define it at the top of a module"):
        st.sweep(lambda k: k + 1, numbers(2), tmp_path / "b", on="cores", workers=1)


SCRIPT = """
import sys, stiction as st
from sweeps.swept import slow
{guard}
    cases = [{{"k": k, "seconds": {seconds}}} for k in range(40)]
    table = st.sweep(slow, cases, sys.argv[1], on="cores", workers=2, chunk=2)
    print(table.num_rows)
"""


def script(folder, guard, seconds=0.0):
    path = folder / "script.py"
    path.write_text(SCRIPT.format(guard=guard, seconds=seconds))
    return [sys.executable, str(path), str(folder / "out")]


def test_a_script_that_is_not_guarded_learns_what_to_do(tmp_path):
    ended = subprocess.run(script(tmp_path, "if True:"), env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "put the call under `if __name__ == '__main__':`" in ended.stderr.splitlines()[-1]


def alive(group):
    """Whether a group has processes left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_keeps_what_is_done_and_leaves_no_worker(tmp_path):
    command = script(tmp_path, "if __name__ == '__main__':", seconds=0.05)
    begun = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    out, deadline = tmp_path / "out", time.monotonic() + 60
    while len(list(out.glob("chunk-*"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(begun.pid, signal.SIGINT)  # as a terminal does
    _, said = begun.communicate(timeout=30)
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    deadline = time.monotonic() + 10
    while alive(begun.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(begun.pid)
    kept = len(list(out.glob("chunk-*")))
    assert 3 <= kept < 20
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert ended.stdout.split() == ["40"], ended.stderr


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.exceptions", None)
    with pytest.raises(st.MissingDependency, match=r"sweeps on a cluster need ray: pip install 'stiction\[cluster\]'"):
        st.sweep(swept.square, numbers(2), tmp_path / "out", on="ray")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed (extra `cluster`)")
@pytest.mark.filterwarnings("ignore")
class TestOnRay:
    """In one Ray of two workers; each test leaves it running for the next."""

    @pytest.fixture(scope="class", autouse=True)
    def running(self):
        import ray

        path = {"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": path})
        yield
        ray.shutdown()

    def test_the_table_is_the_same(self, tmp_path):
        cases = [{"k": k, "bad": k % 10 == 3} for k in range(100)]
        there = st.sweep(swept.square, cases, tmp_path / "ray", on="ray", chunk=16)
        here = st.sweep(swept.square, cases, tmp_path / "here", chunk=16)
        assert there.drop_columns("wall_time").equals(here.drop_columns("wall_time"))

    def test_a_worker_that_was_killed_is_replaced(self, tmp_path):
        cases = [{"k": k, "folder": str(tmp_path), "deadly": k in (5, 40)} for k in range(64)]
        table = st.sweep(swept.killed_once, cases, tmp_path / "out", on="ray", chunk=8)
        assert table["square"].to_pylist() == [k * k for k in range(64)]

    def test_a_deadly_case_costs_no_other(self, tmp_path):
        table = st.sweep(swept.deadly, numbers(8, at=2), tmp_path, on="ray", chunk=4, retries=0)
        assert table["value"].to_pylist() == [0, 1, None, 3, 4, 5, 6, 7]
        assert table["error"].to_pylist()[2] == "the worker ended: killed"

    def test_other_versions_on_workers_are_refused(self, tmp_path, monkeypatch):
        from stiction.sweeps import on_ray

        monkeypatch.setattr(on_ray, "versions", lambda: "stiction 0.0 on Python 2.7")
        with pytest.raises(st.StictionError, match=r"a worker of Ray has stiction .*, but this is stiction 0.0 on"):
            st.sweep(swept.square, numbers(4), tmp_path, on="ray")
