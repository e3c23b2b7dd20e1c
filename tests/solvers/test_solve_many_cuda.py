"""`solve_many(..., on="cuda")`: the kernels of the GPU, run by Numba's simulator, give the bits of the CPU."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import stiction as st
from stiction.problems.zoo import contact_families as families

simulated = pytest.mark.skipif(find_spec("numba_cuda") is None, reason="needs numba-cuda")

# Run as it is written and simulated, thread by thread; `solve_many` on the CPU is the referee.
BEGIN = """
import json
import numpy as np
import stiction as st
from stiction.problems.zoo import contact_families as families
from stiction.solvers import many_on_gpu as gpu

gpu.AIM, gpu.SHORT = 1e-4, (80, 80)  # as the CPU: the same steps, hence the same bits

def told(here, there, **more):
    same = [bool(np.array_equal(one, other)) for one, other in zip(here[:4], there[:4], strict=True)]
    print(json.dumps({"same": same, "ok": there.ok, "left": there.left_by_gpu, "ones": there.one_by_one, **more}))
"""


def simulate(script: str) -> dict[str, object]:
    """What a script prints last, run in the simulator."""
    surroundings = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script], env=surroundings, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@simulated
def test_loads_of_one_geometry_go_through_in_chunks():
    """Five loads in chunks of two; one row of friction for all, gap rates for each."""
    found = simulate("""
gpu.CHUNK = 2
problem = families.peg(4, 1)
rng = np.random.default_rng(0)
loads = {
    "velocity": problem.velocity + 0.3 * rng.normal(size=(5, problem.m)),
    "friction": np.full(problem.n, 0.4),
    "gap_rate": 0.01 * rng.uniform(size=(5, problem.n)),
}
told(st.solve_many(problem, **loads, workers=1), st.solve_many(problem, **loads, on="cuda"))
""")
    assert found == {"same": [True] * 4, "ok": True, "left": 0, "ones": 0}


@simulated
def test_a_list_of_all_kinds_of_problems():
    """Sizes and directions mixed, joints, a shared geometry; a form that no kernel takes is left to the CPU."""
    found = simulate("""
from stiction.problems.contact import ContactProblem
block = families.single_body("table", 2)
turning = np.zeros((block.n, 5, block.m))
turning[:, :2], turning[:, 2:, 3:] = block.tangent, np.eye(3)
turning = ContactProblem(
    block.mass[0], block.velocity, block.normal, turning, np.tile([0.3, 0.3, 0.01, 0.01, 0.01], (block.n, 1))
)
problems = [
    families.peg(4, 1), families.stack(2, 1), families.chain(2, 1), families.heap_delassus(2, 1), turning,
    families.peg(4, 1).replace(friction=[0.9] * 4),
]
told(st.solve_many(problems, workers=1), st.solve_many(problems, on="cuda"), turns=turning.rows.shape[1])
""")
    assert found == {"same": [True] * 4, "ok": True, "left": 1, "ones": 1, "turns": 6}


@simulated
def test_what_a_short_launch_leaves_gets_a_second_one():
    """Two Newton steps solve some of these stacks; the second launch solves the others, and nothing is left."""
    found = simulate("""
gpu.SHORT, gpu.MANY, asked = (2, 2), 1, []
launch = gpu.Lane.launch
gpu.Lane.launch = lambda *given: asked.append(len(given[2].cases)) or launch(*given)
problem = families.stack(2, 1)
velocity = problem.velocity * np.linspace(0.0, 1.0, 4)[:, None]
here, there = (st.solve_many(problem, velocity=velocity, **way) for way in ({"workers": 1}, {"on": "cuda"}))
problems = [problem.replace(velocity=each) for each in velocity]
told(here, st.solve_many(problems, on="cuda"), asked=asked, close=bool(np.allclose(here.velocity, there.velocity)))
""")
    assert found.pop("asked") == [4, 3, 4, 3]
    assert found["ok"]
    assert found["close"]
    assert found["left"] == 0


@simulated
def test_what_is_too_large_is_left_to_the_cpu():
    found = simulate("""
gpu.BINS = (gpu.BINS[0] // 4,)
problems = [families.stack(2, 1), families.peg(2, 1), families.stack(2, 2)]
told(st.solve_many(problems, workers=1), st.solve_many(problems, on="cuda"))
""")
    assert found == {"same": [True] * 4, "ok": True, "left": 2, "ones": 0}


@simulated
def test_an_answer_that_is_not_certified_is_not_taken():
    """A kernel that claims nothing leaves all to the CPU."""
    found = simulate("""
gpu.solve_case = lambda *given: np.inf
problem = families.peg(2, 1)
velocity = problem.velocity + np.arange(3.0)[:, None]
told(st.solve_many(problem, velocity=velocity, workers=1), st.solve_many(problem, velocity=velocity, on="cuda"))
""")
    assert found == {"same": [True] * 4, "ok": True, "left": 3, "ones": 0}


def test_without_numba_cuda_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(st.MissingDependency, match=r"solves on a GPU need numba_cuda: pip install 'stiction\[cuda\]'"):
        st.solve_many(families.peg(2, 1), on="cuda")


@simulated
def test_without_a_gpu_that_is_said(monkeypatch):
    from numba import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.raises(st.MissingDependency, match="need an NVIDIA GPU and its driver, .*: use on='cpu'"):
        st.solve_many(families.peg(2, 1), on="cuda")


@simulated
def test_a_numba_cuda_that_cannot_be_loaded_is_named(monkeypatch):
    from stiction import optional

    def broken(name):
        if name == "numba.cuda":
            raise AttributeError("module 'numpy' has no attribute 'row_stack'")
        return importlib.import_module(name)

    monkeypatch.setattr(optional, "import_module", broken)
    with pytest.raises(st.MissingDependency, match=r"numba-cuda cannot be loaded \(.*row_stack'\): use on='cpu'"):
        st.solve_many(families.peg(2, 1), on="cuda")
