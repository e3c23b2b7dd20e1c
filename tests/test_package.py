"""The package as a whole: its names, what importing it costs, what it ships."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import stiction as st
from stiction import optional

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "stiction"

PUBLIC = {
    "bodies": {
        "Scene",
    },
    "derivatives": {
        "Change",
        "Derivatives",
        "LCPChange",
        "LCPDerivatives",
        "differentiate",
    },
    "problems": {
        "LCP",
        "BoxFriction",
        "BoxLCP",
        "ContactProblem",
        "Coulomb",
        "Frictionless",
        "NoSlip",
        "Viscous",
        "load",
    },
    "solutions": {
        "Certificate",
        "ContactCertificate",
        "ContactSolution",
        "Mode",
        "Ray",
        "Solution",
        "Status",
        "Uniqueness",
        "certify",
    },
    "solvers": {
        "Auto",
        "Baraff",
        "BlockPivot",
        "CellLemke",
        "ConeNewton",
        "CottleDantzig",
        "Enumerate",
        "GaussSeidel",
        "Keller",
        "Lemke",
        "Murty",
        "PrincipalPivot",
        "SmoothingNewton",
        "Splitting",
        "StructuredLemke",
        "solve",
        "solve_many",
    },
    "stepping": {
        "EventDriven",
        "FirstOrder",
        "Simulation",
        "TimeStepping",
        "linearize",
        "rollout",
        "step",
        "step1",
        "step2",
    },
    "sweeps": {
        "grid",
        "sweep",
    },
    "errors": {
        "InvalidProblem",
        "InvalidScene",
        "MissingDependency",
        "NotDifferentiable",
        "NotDifferentiableWarning",
        "SolveFailed",
        "StictionError",
        "UnsupportedProblem",
    },
}


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_public_names():
    assert set(st.__all__) == set().union(*PUBLIC.values()) | {"__version__"}
    assert dir(st) == sorted(st.__all__)


@pytest.mark.parametrize(("layer", "name"), [(layer, name) for layer in PUBLIC for name in sorted(PUBLIC[layer])])
def test_every_public_name_is_found_in_its_layer(layer, name):
    value = getattr(st, name)
    assert value.__name__ == name
    assert value.__module__.startswith(f"stiction.{layer}")
    assert value.__doc__, f"{name} has no docstring"


def test_type_checkers_see_the_names_that_there_are():
    tree = ast.parse((SOURCES / "__init__.pyi").read_text(encoding="utf-8"))
    seen = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(st.__all__) - {"__version__"} | {"gym", "jax", "torch"}


def test_all_solvers_are_public():
    from stiction.solvers import ALL

    assert {solver.__name__ for solver in ALL} == PUBLIC["solvers"] - {"Auto", "solve", "solve_many"}
    for solver in ALL:
        assert solver is getattr(st, solver.__name__)


def test_gym_is_a_module_found_when_it_is_used():
    code = "import stiction as st, sys; print('stiction.gym' in sys.modules, st.gym.wrap.__module__)"
    assert in_a_new_process(code).split() == ["False", "stiction.gym"]


def test_an_unknown_name_says_so():
    with pytest.raises(AttributeError, match="module 'stiction' has no attribute 'Newtonn'"):
        st.Newtonn  # noqa: B018


def test_importing_loads_nothing_heavy():
    loaded = json.loads(in_a_new_process("import json, sys, stiction; print(json.dumps(sorted(sys.modules)))"))
    heavy = {"numpy", "scipy", "numba", "llvmlite", "matplotlib", "mujoco", "mjviser", "h5py", "ray"}
    assert heavy.isdisjoint(loaded)
    assert {name for name in loaded if name.startswith("stiction")} == {"stiction"}


def test_importing_is_quick():
    """0.3 s is promised; it takes a few milliseconds, so the best of five says whether that still holds."""
    timed = "import time; t = time.perf_counter(); import stiction; print(time.perf_counter() - t)"
    assert min(float(in_a_new_process(timed)) for _ in range(5)) < 0.3


def test_posing_a_problem_compiles_nothing():
    code = "import sys, stiction as st; st.LCP([[1.0]], [-1.0]); print('numba' in sys.modules)"
    assert in_a_new_process(code).strip() == "False"


def test_type_information_is_shipped():
    assert resources.files("stiction").joinpath("py.typed").is_file()


def test_the_version_is_the_same_everywhere():
    assert metadata.version("stiction") == st.__version__
    assert f"\nversion: {st.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{st.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_only_kernels_go_without_annotations():
    """Modules with kernels are exempt from mypy's rule that functions are annotated; their other functions are not."""
    bare = []
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not is_kernel(node) and not is_annotated(node):
                bare.append(f"{path.relative_to(SOURCES)}:{node.lineno} {node.name}")
    assert bare == []


def is_kernel(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(d, ast.Name) and d.id in {"inlined", "kernel", "minima", "shared", "sums", "without_lock"}
        for d in node.decorator_list
    )


def is_annotated(node: ast.FunctionDef) -> bool:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    unbound = [a for a in arguments if a.arg not in {"self", "cls"}]
    return node.returns is not None and all(a.annotation is not None for a in unbound)


def test_a_missing_package_names_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(st.MissingDependency, match=re.escape("plots need matplotlib: pip install 'stiction[plots]'")):
        optional.matplotlib()


def test_figures_need_no_display(tmp_path):
    figure = optional.matplotlib().figure.Figure()
    figure.subplots().plot([0.0, 1.0])
    figure.savefig(tmp_path / "line.png")
    assert (tmp_path / "line.png").stat().st_size > 1000


def test_what_is_shipped_is_declared():
    """Licences of the data, the range of MuJoCo whose structs are read, and what the tests of an sdist need."""
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    declared = set(project["project"]["license"].split(" AND "))
    assert declared == {"BSD-3-Clause", "Apache-2.0", "BSD-2-Clause"}
    found = [path for pattern in project["project"]["license-files"] for path in root.glob(pattern)]
    assert {path.name for path in found} == {"LICENSE", "LICENSE-siconos-apache2.txt", "LICENSE-artisynth-bsd2.txt"}
    assert project["project"]["optional-dependencies"]["sim"] == ["mujoco>=4.0,<5"]
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    assert {"src", "tests", "benchmarks", "examples", "docs"} <= included
    assert all((root / part).exists() for part in included)
