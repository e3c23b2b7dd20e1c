"""Engines are judged by what they tell: one that tells the truth passes, and one that does not is found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stiction as st

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import engine_judge
    import engine_peers

    return engine_peers, engine_judge


def model(name: str) -> tuple[Any, Any]:
    scene = st.Scene.named(name)
    return scene.model, scene.control


@pytest.mark.parametrize("name", ["block-stack", "force-closure-grasp", "pinched-capsule"])
def test_our_steps_pass_and_our_contacts_do_not_slip(engines, name):
    peers, judge = engines
    given, control = model(name)
    engine = peers.Ours(given, control)
    for _ in range(20):
        verdict = judge.judged(engine, given.opt.gravity, given.opt.timestep)
        assert verdict.residual <= 1e-9
        assert verdict.slip <= 1e-9


def test_forces_that_were_not_there_are_seen(engines):
    peers, judge = engines

    class Liar(peers.Ours):
        def contacts(self) -> Any:
            return [contact._replace(impulse=1.01 * contact.impulse) for contact in super().contacts()]

    given, control = model("block-stack")
    assert judge.judged(Liar(given, control), given.opt.gravity, given.opt.timestep).residual > 1e-3


def test_soft_contact_slips_where_ours_holds(engines):
    peers, judge = engines
    given, control = model("pinched-capsule")
    engine = peers.MuJoCo(given, control, cone=1)
    verdicts = [judge.judged(engine, given.opt.gravity, given.opt.timestep) for _ in range(200)]
    assert np.median([verdict.slip for verdict in verdicts[100:]]) > 1e-4
    assert verdicts[-1].residual > 1e-4
