"""Kernels that came with the package are run without Numba, and only where they are what would be compiled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from stiction.arrays import calls, prebuilt


class Pair(NamedTuple):
    one: Any
    two: Any


SOURCES = Path(__file__).resolve().parents[2] / "src" / "stiction"
KERNELS = """from typing import Any, NamedTuple

from stiction.arrays.compiled import kernel, sums


class Scaled(NamedTuple):
    matrix: Any
    factor: float
    count: int


@kernel
def weighed(scaled, out):
    for i in range(scaled.count):
        out[i] = scaled.factor * total(scaled.matrix[i])


@sums
def total(row):
    sum = 0.0
    for j in range(len(row)):
        sum += row[j]
    return sum


@kernel
def rows(matrix, factor, twice, out):
    worst, where = -1.0, -1
    for i in range(len(matrix)):
        out[i] = factor * total(matrix[i]) * (2 if twice else 1)
        if out[i] > worst:
            worst, where = out[i], i
    return twice, where, (worst, len(matrix))


@kernel
def nothing(out):
    out[0] = 7
"""
CALLS = [
    ("stiction.solvers.sample:rows", "D2,d,?,D1"),
    ("stiction.solvers.sample:nothing", "Q1"),
    ("stiction.solvers.sample:weighed", "<stiction.solvers.sample:Scaled|D2|d|q>,D1"),
]
RUN = """
import sys
import numpy as np
from stiction.solvers.sample import Scaled, nothing, rows, weighed
matrix, out, seven = np.arange(6.0).reshape(3, 2), np.zeros(3), np.zeros(1, np.int64)
matrix.flags.writeable = False
told = rows(matrix, 0.5, True, out), out.tolist(), nothing(seven), seven[0]
weighed(Scaled(matrix, 3.0, 2), out)
print(*told, out.tolist(), "numba" in sys.modules)
"""
SAID = "(True, 2, (9.0, 3)) [1.0, 5.0, 9.0] None 7 [3.0, 15.0, 9.0]"


def run(package: Path, code: str = RUN, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "STICTION_"))}
    surroundings = {
        **kept,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STICTION_NOTICE": "0",
        **environment,
    }
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=surroundings, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.strip()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A copy of the package with kernels of its own, and the libraries of these."""
    package = tmp_path_factory.mktemp("site") / "stiction"
    (package / "solvers").mkdir(parents=True)
    (package / "solvers" / "__init__.py").touch()
    shutil.copytree(SOURCES / "arrays", package / "arrays", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "__init__.pyi", "building.py", "errors.py"):
        shutil.copy(SOURCES / name, package)
    (package / "solvers" / "sample.py").write_text(KERNELS)
    folder = str(package / "prebuilt")
    make = f"from pathlib import Path; from stiction.building import library_of; library_of({CALLS}, Path({folder!r}))"
    run(package, make)
    return package


@pytest.fixture
def package(built, tmp_path):
    return Path(shutil.copytree(built, tmp_path / "stiction"))


linux = pytest.mark.skipif(
    not prebuilt.processor() >= prebuilt.LEVELS["x86-64-v2"], reason="libraries are of Linux on x86-64"
)


@linux
def test_no_numba_is_imported(package):
    assert run(package) == f"{SAID} False"
    assert {path.name for path in (package / "prebuilt").iterdir()} == {"table.json", "x86-64-v2.so", "x86-64-v3.so"}


@linux
def test_an_older_processor_has_its_own_library(package):
    (package / "prebuilt" / "x86-64-v3.so").unlink()
    assert run(package) == f"{SAID} False"


@linux
def test_other_arguments_are_compiled(package):
    other = RUN.replace("np.arange(6.0).reshape(3, 2)", "np.arange(6.0).reshape(2, 3).T.copy(order='F')")
    assert run(package, other) == "(True, 2, (7.0, 3)) [3.0, 5.0, 7.0] None 7 [9.0, 15.0, 7.0] True"


@linux
def test_changed_sources_are_compiled(package):
    (package / "solvers" / "sample.py").write_text(KERNELS.replace("= 7", "= 8"))
    assert run(package) == f"{SAID.replace('None 7', 'None 8')} True"


@linux
@pytest.mark.parametrize("name", ["STICTION_PREBUILT", "NUMBA_BOUNDSCHECK"])
def test_who_asks_for_compilation_gets_it(package, name):
    assert run(package, **{name: "0" if name == "STICTION_PREBUILT" else "1"}) == f"{SAID} True"


@linux
@pytest.mark.parametrize("damage", ["library", "table", "processor"])
def test_what_cannot_be_loaded_is_compiled(package, damage):
    folder = package / "prebuilt"
    if damage == "library":
        for path in folder.glob("*.so"):
            path.write_bytes(b"no library")
    elif damage == "table":
        (folder / "table.json").write_text(json.dumps({"sources": "of others", "kernels": {}}))
    else:
        for path in folder.glob("*.so"):
            path.unlink()
    assert run(package) == f"{SAID} True"


def test_kinds_of_arguments():
    record = np.zeros(1, np.dtype([("a", np.int32), ("b", np.float64)]))
    kinds = [calls.kind(each) for each in (1.0, 2, True, np.float64(1), np.int64(1), np.zeros((2, 3)), np.ones(3, int))]
    assert kinds == ["d", "q", "?", "d", "q", "D2", "Q1"]
    assert calls.kind(np.zeros((4, 4))[:, :2]) == calls.kind(None) == "-"
    assert calls.kind(Pair(np.zeros(2), 1)) == f"<{__name__}:Pair|D1|q>"
    assert calls.kind(Pair(None, 1)) == "-"
    assert calls.kind((1, Pair(2.0, (True,)))) == f"<|q|<{__name__}:Pair|d|<|?>>>"
    assert calls.split(f"d,{calls.kind((1, Pair(2.0, (True,))))},q") == ["d", calls.kind((1, Pair(2.0, (True,)))), "q"]
    assert calls.kind(record) == calls.kind(record.copy()) != calls.kind(np.zeros(1, np.dtype([("a", np.int32)])))


def test_arrays_are_laid_out_as_the_libraries_take_them_to_be():
    assert calls.array_is_as_known()
