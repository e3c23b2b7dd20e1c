"""Compiled kernels are kept for exactly these sources, and a cache that does not work costs time, never an answer.

Each case is a process of its own with a copy of the few modules that matter and one small kernel that calls another.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from stiction.arrays.sources import source_files

SOURCES = Path(__file__).resolve().parents[2] / "src" / "stiction"
CALLEE = "from stiction.arrays.compiled import kernel\n\n\n@kernel\ndef inner(x):\n    return x + {}\n"
CALLER = """from stiction.arrays.compiled import kernel
from stiction.problems.callee import inner


@kernel
def outer(x):
    return 2 * inner(x)


@kernel
def beyond(x):
    return x[len(x)]
"""
RUN = """
import sys
from stiction.solvers.caller import outer
print(outer(20), "compiled" if "numba" in sys.modules else "loaded")
"""
NOWHERE = "/dev/null/nowhere"  # below a file: cannot be made, not even by root


@pytest.fixture
def package(tmp_path):
    """A copy of the package with two kernels, one calling the other from another file."""
    home = tmp_path / "site" / "stiction"
    for layer in ("problems", "solvers"):
        (home / layer).mkdir(parents=True)
        (home / layer / "__init__.py").touch()
    shutil.copytree(SOURCES / "arrays", home / "arrays", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "__init__.pyi", "errors.py"):
        shutil.copy(SOURCES / name, home)
    (home / "problems" / "callee.py").write_text(CALLEE.format(1))
    (home / "solvers" / "caller.py").write_text(CALLER)
    return home


def run(package: Path, code: str = RUN, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A new process that sees this package and nothing of the caller's own caches."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    surroundings = {
        **kept,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STICTION_NOTICE": "0",
        **environment,
    }
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=surroundings, check=False)


def quietly(ended: subprocess.CompletedProcess[str]) -> str:
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.strip()


def with_one_warning(ended: subprocess.CompletedProcess[str], words: str) -> str:
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("Warning") == 1
    assert "RuntimeWarning: stiction: " in ended.stderr
    assert words in ended.stderr
    return ended.stdout.strip()


def files(base: Path) -> list[Path]:
    """What kernels are kept in, besides the function through which Python calls them."""
    return sorted(path for path in base.rglob("*.kernel") if path.name != "gateway.kernel")


def test_a_second_process_loads_what_the_first_compiled(package):
    assert quietly(run(package)) == "42 compiled"
    kept = files(package / "__pycache__")
    assert len(kept) == 1  # the callee is a part of its caller
    assert quietly(run(package)) == "42 loaded"
    assert files(package / "__pycache__") == kept
    assert not list(package.rglob("*.part"))


ALONE = CALLEE.format(1).replace("import kernel", "import alone, kernel").replace("@kernel", "@alone\n@kernel")


def test_a_kernel_alone_has_a_file_of_its_own(package):
    """Which is loaded before that of its caller, and made again if it is lost."""
    (package / "problems" / "callee.py").write_text(ALONE)
    assert quietly(run(package)) == "42 compiled"
    callee, caller = files(package / "__pycache__")
    assert (callee.name[:12], caller.name[:12]) == ("callee.inner", "caller.outer")
    assert quietly(run(package)) == "42 loaded"
    callee.unlink()
    assert quietly(run(package)) == "42 compiled"
    assert files(package / "__pycache__") == [callee, caller]
    assert quietly(run(package, NUMBA_BOUNDSCHECK="1")) == "42 compiled"


@pytest.mark.parametrize("executable", [sys.executable, "/bin/false"])
def test_another_process_compiles_ahead(package, executable):
    """And where it cannot, this one does."""
    (package / "problems" / "callee.py").write_text(ALONE)
    code = f"""
import sys
import stiction.arrays.ahead as ahead
import stiction.arrays.linking as linking
from stiction.problems.callee import inner
from stiction.solvers.caller import outer
made, compiled = [], linking.compiled
linking.compiled = lambda kernel, *rest: made.append(kernel.__name__) or compiled(kernel, *rest)
ahead.cores, sys.executable = lambda: 2, {executable!r}
ahead.ahead((inner, (20,)))
ahead.ahead((inner, (20,)), (inner, (20,)))
print(outer(20), *sorted(made), len(ahead._begun))
"""
    here = ["outer"] if executable == sys.executable else ["inner", "outer"]
    assert quietly(run(package, code)).split() == ["42", *here, "1"]
    assert len(files(package / "__pycache__")) == 2


def test_a_callee_edited_in_another_file_is_noticed_and_old_caches_go(package):
    old = [package / "__pycache__" / "kernels" / f"{number:016x}" for number in range(5)]
    for age, state in enumerate(old):
        state.mkdir(parents=True)
        os.utime(state, (1e9 - age, 1e9 - age))
    (package / "__pycache__" / "kernels" / "something else").touch()
    for number in (1, 2):
        (package / "problems" / "callee.py").write_text(CALLEE.format(number))
        assert quietly(run(package)) == f"{2 * (20 + number)} compiled"
    left = {path.name for path in (package / "__pycache__" / "kernels").iterdir()}
    assert len(left) == 4
    assert {old[0].name, "something else"} < left


def test_sources_edited_while_a_process_runs_are_nobodys(package):
    """What it imported before is not kept as the code of the new sources, nor is code of the new ones loaded by it.

    Without this, scenes once had other bits after a run of tests: kernels of older sources were kept as newer ones.
    """
    callee = package / "problems" / "callee.py"
    imported = "import time\nfrom pathlib import Path\nfrom stiction.solvers.caller import outer\ntime.sleep(0.1)\n"
    edited = f"{imported}Path({str(callee)!r}).write_text({CALLEE.format(2)!r})\n{RUN}"
    assert quietly(run(package, edited)) == "42 compiled"
    assert not files(package / "__pycache__")
    assert quietly(run(package)) == "44 compiled"
    assert quietly(run(package)) == "44 loaded"
    # One that has imported the old code, while the new code is kept.
    callee.write_text(CALLEE.format(1))
    assert quietly(run(package, edited)) == "42 compiled"


def test_the_folder_of_the_user_is_the_base(package, tmp_path):
    assert quietly(run(package, NUMBA_CACHE_DIR=str(tmp_path / "mine"))) == "42 compiled"
    assert len(files(tmp_path / "mine")) == 1
    assert not files(package)
    elsewhere = run(package, NUMBA_CACHE_DIR=NOWHERE)
    assert with_one_warning(elsewhere, f"cannot be kept in {NOWHERE}") == "42 compiled"
    assert len(files(package)) == 1


def test_a_package_that_cannot_be_written_uses_the_folder_of_the_user(package, tmp_path):
    (package / "__pycache__").touch()
    assert quietly(run(package, HOME=str(tmp_path / "home"))) == "42 compiled"
    assert len(files(tmp_path / "home")) == 1
    assert quietly(run(package, HOME=str(tmp_path / "home"))) == "42 loaded"


@pytest.mark.parametrize("home", [NOWHERE, pytest.param("/proc", marks=pytest.mark.slow)])
def test_without_any_folder_the_work_goes_on(package, home):
    (package / "__pycache__").touch()
    assert with_one_warning(run(package, HOME=home), "no folder to keep compiled kernels in") == "42 compiled"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        pytest.param("pathlib.Path.write_bytes = full", "No space left", id="writing"),
        pytest.param("pathlib.Path.replace = full", "No space left", id="renaming", marks=pytest.mark.slow),
        pytest.param(
            "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))",
            "File too large",
            id="limit",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_full_disk(package, fault, told):
    pytest.importorskip("resource")
    full = "def full(*_): raise OSError(28, 'No space left on device')"
    ended = run(package, f"import pathlib\nimport stiction.arrays.compiled\n{full}\n{fault}\n{RUN}")
    assert with_one_warning(ended, told) == "42 compiled"
    left = [path for path in (package / "__pycache__").rglob("*") if path.is_file()]
    assert left == []
    assert quietly(run(package)) == "42 compiled"


@pytest.mark.parametrize(
    "damage",
    [
        "flipped",
        pytest.param("truncated", marks=pytest.mark.slow),
        pytest.param("empty", marks=pytest.mark.slow),
        pytest.param("garbage", marks=pytest.mark.slow),
    ],
)
def test_damaged_files_are_compiled_anew(package, damage):
    assert quietly(run(package)) == "42 compiled"
    for path in package.rglob("*.kernel"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1  # in the machine code, which would be run
        path.write_bytes(
            {
                "empty": b"",
                "truncated": path.read_bytes()[:-100],
                "garbage": b"garbage" * 100,
                "flipped": bytes(content),
            }[damage]
        )
    assert with_one_warning(run(package), "is damaged and is compiled anew") == "42 compiled"
    assert quietly(run(package)) == "42 loaded"  # it has mended itself


@pytest.mark.slow
@pytest.mark.parametrize("content", ["no kernel", '"no kernel"'])
def test_what_the_checksum_lets_through_is_not_trusted_either(package, content):
    assert quietly(run(package)) == "42 compiled"
    for path in package.rglob("*.kernel"):
        path.write_bytes(zlib.crc32(content.encode()).to_bytes(4, "big") + content.encode())
    assert with_one_warning(run(package), "is damaged") == "42 compiled"


def test_bounds_that_are_checked_have_a_cache_of_their_own(package):
    code = "import numpy as np\nfrom stiction.solvers.caller import beyond\nx = np.arange(9.0)[:3]\nprint(beyond(x))"
    assert quietly(run(package, code)) == "3.0"
    checked = run(package, code, NUMBA_BOUNDSCHECK="1")
    assert "IndexError" in checked.stderr
    assert quietly(run(package, code)) == "3.0"


def test_functions_of_no_file_and_without_compilation(package):
    code = "from stiction.arrays.compiled import kernel\n@kernel\ndef f(x): return x + 1\nprint(f(1))"
    assert quietly(run(package, code)) == "2"
    assert not files(package)
    assert quietly(run(package, code, NUMBA_DISABLE_JIT="1")) == "2"


def test_a_numba_with_other_internals_compiles_and_keeps_kernels_itself(package):
    hidden = "import numba.core.codegen\ndel numba.core.codegen.JITCodeLibrary\n"
    assert quietly(run(package, f"{hidden}{RUN}")) == "42 compiled"
    assert list(package.rglob("*.nbi"))
    assert not files(package)


def test_compiling_that_takes_long_is_announced_once(package):
    at_once = "from stiction.arrays import linking\nlinking.PATIENCE = 0.0\n"
    program = at_once + RUN.replace("print", "outer(20.0)\nprint")
    ended = run(package, program, STICTION_NOTICE="1")
    assert ended.stderr == "stiction: compiling kernels (once; later runs load them from the cache) ...\n"
    assert run(package, program, STICTION_NOTICE="1").stderr == ""  # now they are
    assert quietly(run(package, program, NUMBA_CACHE_DIR=str(package.parent), STICTION_NOTICE="0")) == "42 compiled"


def test_compiling_in_the_middle_of_a_run_is_announced_again(package):
    often = "import time\nfrom stiction.arrays import linking\nlinking.PATIENCE, linking.ANEW = 0.0, 1.0\n"
    program = often + RUN.replace("print", "outer(20.0)\ntime.sleep(1.5)\nprint")
    ended = run(package, program, STICTION_NOTICE="1")
    assert ended.stderr.count("stiction: compiling kernels (once") == 2


def test_every_kernel_lies_in_a_source_that_is_hashed():
    """Studies are not: their kernels call those below and themselves, and a file's own change is always noticed."""
    hashed = set(source_files())
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        text = path.read_text(encoding="utf-8")
        if "import kernel" in text or "import inlined" in text or "import sums" in text or "import minima" in text:
            assert name in hashed or name.startswith("studies/")
