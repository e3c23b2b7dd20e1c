"""Tests with kernels as plain Python: indices out of range raise, tracebacks are true, and lines can be counted.

`python tests/kernel_coverage.py TESTS ...` runs them with `NUMBA_DISABLE_JIT=1` under coverage and prints how many
lines of kernels were run; `--files` prints it file by file. Other arguments and the status are pytest's.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "stiction"
COMPILED = {"kernel", "inlined", "sums", "minima", "in_callers", "shared"}


def kernel_lines(path: Path) -> set[int]:
    """Lines inside functions that Numba compiles."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(each, ast.Name) and each.id in COMPILED for each in node.decorator_list
        ):
            lines.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def counted(data_file: str) -> dict[str, tuple[int, int]]:
    """Lines of kernels that were run, and all of them, by file."""
    measured = coverage.Coverage(data_file=data_file)
    measured.load()
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        lines = kernel_lines(path)
        if lines:
            _, statements, _, missing, _ = measured.analysis2(str(path))
            all_lines = lines.intersection(statements)
            found[path.relative_to(SOURCES).as_posix()] = len(all_lines.difference(missing)), len(all_lines)
    return found


def main() -> int:
    arguments = [each for each in sys.argv[1:] if each != "--files"]
    with tempfile.TemporaryDirectory() as folder:
        data_file = str(Path(folder) / "coverage")
        # Overflow and NaN are values in compiled code; NumPy's numbers warn of them.
        pytest = ["-m", "pytest", "-q", "-W", "ignore::RuntimeWarning", "-p", "no:cacheprovider", *arguments]
        command = [
            sys.executable,
            "-m",
            "coverage",
            "run",
            f"--data-file={data_file}",
            f"--include={SOURCES}/*",
            *pytest,
        ]
        status = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, cwd=ROOT, check=False).returncode
        found = counted(data_file)
    if "--files" in sys.argv:
        for name, (run, lines) in found.items():
            sys.stdout.write(f"{run:5d} of {lines:5d}  {100 * run / max(lines, 1):5.1f} %  {name}\n")
    run, lines = (sum(column) for column in zip(*found.values(), strict=True))
    sys.stdout.write(
        f"kernels as plain Python: {run} of {lines} lines in {len(found)} files run, {100 * run / lines:.0f} %\n"
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
