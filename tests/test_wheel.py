"""The wheel, as people install it: built, put into an environment of its own, and used at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stiction.arrays import prebuilt

ROOT = Path(__file__).resolve().parent.parent
FIRST = """
import sys, time
import numpy as np
import stiction as st
solution = st.solve(st.LCP(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0])))
assert solution.status == st.Status.SOLVED
print(f"first LCP after {time.process_time():.2f} s of processor time")
import mujoco
model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>''')
data = mujoco.MjData(model)
report = st.step(model, data)
assert report.solution.certificate.residual < 1e-8
print(f"first step after {time.process_time():.2f} s")
for name in ("block-stack", "force-closure-grasp", "card-house", "double-action-jack", "log-heap"):
    simulation = st.Simulation(st.Scene.named(name))
    for _ in range(20):
        simulation.step()
start = np.empty((1, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
mujoco.mj_getState(model, data, start[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
assert (st.rollout(model, data, start, nstep=9).failed < 0).all()
st.solve_many([report.solution.problem] * 2)
print("numba" in sys.modules, st.__file__)
"""


@pytest.mark.slow
def test_steps_in_one_call_are_noted(tmp_path):
    """They call MuJoCo by addresses, which kernels run as they are written cannot: libraries came without them."""
    notes, quiet = tmp_path / "calls.json", {**os.environ, "STICTION_PREBUILT": "0"}
    subprocess.run([sys.executable, "-m", "stiction.building", "note", str(notes)], env=quiet, check=True)
    names = {name for name, _ in json.loads(notes.read_text())}
    assert {"stiction.stepping.one_call:whole_step", "stiction.stepping.fused:make_step"} <= names
    assert "stiction.stepping.loop:run_steps" in names


@pytest.mark.slow
@pytest.mark.skipif(not prebuilt.processor() >= prebuilt.LEVELS["x86-64-v2"], reason="libraries are of Linux on x86-64")
def test_an_installed_wheel_compiles_nothing(tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "STICTION_", "PYTHON"))}

    def run(*words: str) -> str:
        ended = subprocess.run(words, cwd=tmp_path, env=kept, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        return ended.stdout

    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("stiction-*-py3-none-linux_x86_64.whl")
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / "bin" / "python")
    run(python, "-m", "pip", "install", f"{wheel}[sim]")
    *times, last = run(python, "-c", FIRST).splitlines()
    assert last.split()[0] == "False", last
    assert "venv" in last
    sys.stdout.write("\n".join(times))
