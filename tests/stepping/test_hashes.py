"""The same inputs give the same bits: of a new process and the table in the tree, or of two processes.

On another kind of processor, or with other versions, the table says nothing; then two processes are compared instead.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hashes import STEPS, TABLE, kind, state_hash, table

import stiction as st
from stiction.scenes import SCENES

ELSEWHERE = table()["kind"] != kind()


def in_another_process(*names: str) -> dict[str, str]:
    command = [sys.executable, str(TABLE.with_name("hashes.py")), "--print", *names]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="module")
def both(request):
    """Of a new process, and from the table, or of a second process; of the scenes that are asked for here."""
    mine = [item for item in request.session.items if item.path == request.path and "both" in item.fixturenames]
    names = [item.callspec.params["name"] for item in mine]
    return in_another_process(*names), in_another_process(*names) if ELSEWHERE else table()["hashes"]


@pytest.mark.parametrize("name", SCENES)
def test_the_state_after_200_steps(name, both):
    found, expected = both
    assert found[name] == expected[name]


def test_the_table_holds_every_scene():
    assert list(table()["hashes"]) == list(SCENES)
    assert len(set(table()["hashes"].values())) == len(SCENES)
    assert STEPS == 200


def test_a_bit_is_seen(monkeypatch):
    """One last bit of one velocity, in the last step."""
    step = st.Simulation.step

    def nudged(self):
        report = step(self)
        if round(self.time / self.model.opt.timestep) == STEPS:
            self.data.qvel[0] = np.nextafter(self.data.qvel[0], np.inf)
        return report

    before = state_hash("sliding-ball")
    monkeypatch.setattr(st.Simulation, "step", nudged)
    assert state_hash("sliding-ball") != before


def test_the_table_is_of_this_kind_of_processor():
    if ELSEWHERE:
        pytest.skip(f"{TABLE.name} is of {table()['kind']}: two processes were compared with each other instead")
    assert in_another_process("sliding-ball")["sliding-ball"] == table()["hashes"]["sliding-ball"]
