"""Signs of code that can be read, checked mechanically so that they last: length, parameters, comments, repetition.

They are signs, not the aim: a kernel should be readable beside its paper.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import stiction

SOURCES = Path(stiction.__file__).parent
LONGEST, MOST_PARAMETERS, SILENT, TWICE = 80, 12, 15, 10  # lines of a function; of a kernel; lines; lines
KERNELS = {"kernel", "sums", "minima", "inlined", "shared", "without_lock", "alone", "in_callers"}
# Slices of a workspace by arithmetic; `layout.py` cuts them.
OFFSET = re.compile(r"\b(floats|ints|own|scratch)\[(?=[^]]*:)[^]]*[*+]")


def functions() -> Iterator[tuple[str, ast.FunctionDef, list[str]]]:
    """Every function: its file, its tree, the lines of its file."""
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(SOURCES).as_posix(), node, text.splitlines()


def is_kernel(node: ast.FunctionDef) -> bool:
    names = (decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list)
    return any(isinstance(name, ast.Name) and name.id in KERNELS for name in names)


def longest_silence(node: ast.FunctionDef, lines: list[str]) -> int:
    """The most lines of code in a row without a comment, the docstring apart."""
    first = node.body[0]
    described = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    run = longest = 0
    for line in lines[(first.end_lineno if described else node.lineno) : node.end_lineno]:
        if "# " in line:
            run = 0
        elif line.strip():
            run += 1
            longest = max(longest, run)
    return longest


def test_functions_are_short():
    for file, node, _ in functions():
        length = node.end_lineno - node.lineno + 1
        assert length <= LONGEST, f"{file}: {node.name} has {length} lines"


def test_kernels_have_few_parameters():
    for file, node, _ in functions():
        if is_kernel(node):
            count = len(node.args.args) + len(node.args.kwonlyargs)
            assert count <= MOST_PARAMETERS, f"{file}: {node.name} has {count} parameters"


def test_kernels_are_read_by_paragraphs():
    for file, node, lines in functions():
        if is_kernel(node):
            silence = longest_silence(node, lines)
            assert silence <= SILENT, f"{file}: {node.name} has {silence} lines without a comment"


def test_nobody_cuts_a_workspace_by_hand():
    for path in sorted(SOURCES.rglob("*.py")):
        if path.name != "layout.py":
            found = OFFSET.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path.relative_to(SOURCES)}: {found and found.group()}"


def test_no_long_run_of_lines_stands_twice():
    """Imports apart."""
    seen: dict[tuple[str, ...], str] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        imports = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports |= set(range(node.lineno, node.end_lineno + 1))
        lines = [
            (number, line.strip())
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and number not in imports
        ]
        for k in range(len(lines) - TWICE):
            run = tuple(line for _, line in lines[k : k + TWICE + 1])
            place = f"{path.relative_to(SOURCES)}:{lines[k][0]}"
            assert run not in seen, f"{place} repeats {seen[run]}"
            seen[run] = place
