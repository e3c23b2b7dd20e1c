"""Thresholds stay few, stand in one module a family, and no two of them are the same.

A number counts if nobody derived it: a literal, or a factor other than one in front of a name. Codes are written as
ranges and do not count; nor do sizes of batches and launches (`LAUNCHES`), which decide about time, not about answers.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import stiction

SOLVERS = Path(stiction.__file__).parent / "solvers"
LAUNCHES = {"many_on_gpu.py", "solve_many.py"}
MOST, MOST_NUMBERS = 80, 93  # names with a number of their own; the same with factors of derived ones
# Dekker's factor, of the format of doubles; lines of a trace; codes, and how many there are of them; widths of tiles
APART = {"SPLIT", "SHOWN", "(STICKS, UPPER, LOWER)", "(OPEN, STICK, SLIP)", "ROUND", "THREE"}


def numbers(value: ast.expr) -> list[float]:
    """The numbers in an expression that stand for a choice."""
    calls = [ast.unparse(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)]
    if "range" in calls or "np.empty" in calls:
        return []
    found = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return [number for number in found if type(number) in (int, float) and number not in (0, 1)]


def own_numbers(value: ast.expr) -> list[float]:
    """Those of them that are not factors of something named."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    named = [part for part in parts if any(isinstance(node, ast.Name) for node in ast.walk(part))]
    return [number for part in parts if part not in named for number in numbers(part)]


def thresholds(numbers: Callable[[ast.expr], list[float]] = numbers) -> dict[str, dict[str, list[float]]]:
    """Numbers by family and name."""
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for path in sorted(SOLVERS.rglob("*.py")):
        family = path.parent.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and path.name not in LAUNCHES:
                name = ast.unparse(node.targets[0])
                if name.strip("()").replace("_", "").replace(", ", "").isupper() and name not in APART:
                    if kept := numbers(node.value):
                        found[family][name] = kept
            if isinstance(node, ast.FunctionDef) and path.name == "tolerances.py":
                for returned in ast.walk(node):
                    if isinstance(returned, ast.Return) and returned.value is not None:
                        found[family][node.name] = numbers(returned.value)
    return found


def test_thresholds_are_few():
    """Each one more is a number that somebody must understand, and that no test pins down."""
    count = {family: sum(map(len, names.values())) for family, names in thresholds().items()}
    assert sum(count.values()) <= MOST_NUMBERS, count
    own = {family: sum(map(len, names.values())) for family, names in thresholds(own_numbers).items()}
    assert sum(own.values()) <= MOST, own


def test_thresholds_stand_in_the_module_of_their_family():
    """A number beside its kernel is found by nobody, and soon stands twice."""
    for path in sorted(SOLVERS.rglob("*.py")):
        if path.name == "tolerances.py" or path.name in LAUNCHES or path.parent.name == "cone_newton":
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name.isupper() and name not in APART and isinstance(node.value, ast.Constant):
                    assert not numbers(node.value), f"{path.name}: {name} belongs into tolerances.py"


def test_no_threshold_stands_twice():
    """The same name with the same number in two families is one threshold, which `solvers/tolerances.py` holds."""
    seen: dict[tuple[str, tuple[float, ...]], str] = {}
    for family, names in thresholds().items():
        if family == "cone_newton":
            continue
        for name, values in names.items():
            key = name, tuple(values)
            assert key not in seen, f"{name} = {values} in {seen[key]} and in {family}"
            seen[key] = family
