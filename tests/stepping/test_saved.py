"""Saved simulations: only what was saved is restored, of what the package itself can make, and in bounded time."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import stiction as st
from stiction.bodies.state import check_sizes, model_bytes
from stiction.stepping import saved

FALLING = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.0999"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes a log of its warnings to the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def fields(tmp_path_factory) -> dict[str, np.ndarray]:
    path = tmp_path_factory.mktemp("saved") / "sim.npz"
    st.Simulation(st.Scene.from_xml(FALLING)).save(path)
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def refused(path, *parts: str) -> str:
    with pytest.raises(st.InvalidScene) as caught:
        st.Simulation.restore(path)
    text = str(caught.value)
    assert text.startswith(f"restore: {path} holds no simulation, or is damaged (")
    assert "\n" not in text
    for part in parts:
        assert part in text
    return text


def without(fields, *names: str):
    return {name: value for name, value in fields.items() if name not in names}


def test_files_of_older_versions_have_no_digest_and_are_restored(fields, tmp_path):
    np.savez(tmp_path / "sim.npz", **without(fields, "digest"))
    again = st.Simulation.restore(tmp_path / "sim.npz")
    assert (again.law, again.stepper) == (st.Coulomb(), st.TimeStepping())
    np.testing.assert_array_equal(again.data.qpos, fields["state"][1:8])


def test_files_without_tangents_are_restored(tmp_path):
    """Tangents came last: older files have six numbers less a contact, and begin from the impulses as they are."""
    sim, path = st.Simulation(st.Scene.named("block-stack")), tmp_path / "sim.npz"
    sim.step()
    sim.save(path)
    with np.load(path) as archive:
        fields = {name: archive[name] for name in archive.files if name != "digest"}
    floats, n = fields["floats"], sim.engine.gathered.n
    np.savez(path, **{**fields, "floats": floats[: -6 * n]})
    again = st.Simulation.restore(path)
    np.testing.assert_array_equal(again.engine.gathered.frame, 0.0)
    np.testing.assert_array_equal(again.engine.impulse, sim.engine.impulse)
    assert again.step().certificate.residual <= 1e-8
    np.savez(path, **{**fields, "floats": floats[: -6 * n - 1]})
    refused(path, "shorter than counts says")


def test_what_was_altered_after_it_was_saved_is_refused(fields, tmp_path):
    for name in ("model", "state", "acceleration"):
        changed = fields[name].copy()
        changed[-1] += 1
        np.savez(tmp_path / "sim.npz", **{**fields, name: changed})
        refused(tmp_path / "sim.npz", "its contents are not those that were saved")
    np.savez(tmp_path / "sim.npz", **fields, more=1.0)
    refused(tmp_path / "sim.npz", "its contents are not those that were saved")


@pytest.mark.parametrize(
    ("place", "choice", "text"),
    [
        (0, {"name": "load", "path": "/etc/passwd"}, "which is none of Coulomb, "),
        (0, {"name": "TimeStepping"}, "which is none of Coulomb, "),
        (1, {"name": "load", "path": "/etc/passwd"}, "which is none of Auto, "),
        (1, {"name": "Scene"}, "which is none of Auto, "),
        (1, {"name": "Splitting", "inner": {"name": "load"}}, "which is none of Auto, "),
        (1, {"name": ["Auto"]}, "unhashable"),
        (2, {"name": "Coulomb"}, "which is none of TimeStepping, EventDriven"),
        (2, {"name": "EventDriven", "method": "none"}, "method must be 'euler' or 'rk4'"),
        (2, {"name": "EventDriven", "speed": 1}, "speed"),
        (2, "TimeStepping", "which is none of TimeStepping, EventDriven"),
    ],
)
def test_only_laws_solvers_and_steppers_can_be_named(fields, tmp_path, place, choice, text):
    choices = json.loads(str(fields["choices"]))
    choices[place] = choice
    np.savez(tmp_path / "sim.npz", **{**without(fields, "digest"), "choices": json.dumps(choices)})
    refused(tmp_path / "sim.npz", text)


def test_every_solver_and_stepper_is_described_and_made():
    for kind in saved.SOLVERS.values():
        assert saved.made(saved.described(kind()), saved.SOLVERS) == kind()
    for kind in saved.STEPPERS.values():
        assert saved.made(saved.described(kind()), saved.STEPPERS) == kind()
    inner = st.Splitting(inner=st.Murty())
    assert saved.made(saved.described(inner), saved.SOLVERS) == inner


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "other"}, "its format is other"),
        ({"version": 2}, "it has version 2, but this stiction reads 1"),
        ({"choices": "[" * 100_000}, "recursion"),
        ({"choices": "[1, 2]"}, "unpack"),
        ({"scene": "{}"}, "margin"),
        ({"model": np.zeros(100, np.uint8)}, "the saved model has 100 bytes"),
        ({"model": np.zeros(9000, np.uint8)}, "cannot be read by mujoco"),
        ({"state": np.zeros(3)}, "the state has shape (3,)"),
        ({"counts": np.zeros(3, np.int64)}, "'floats'"),
        ({"counts": np.zeros(3, np.int64), "floats": np.zeros(1), "ints": np.zeros(1, np.int64)}, "counts must be 12"),
        ({"counts": np.full(10, 5), "floats": np.zeros(1), "ints": np.zeros(1, np.int64)}, "shorter than counts says"),
        ({"counts": np.full(10, -5), "floats": np.zeros(1), "ints": np.zeros(1, np.int64)}, "numbers from 0 to"),
        ({"counts": np.zeros(10), "floats": np.zeros(1), "ints": np.zeros(1, np.int64)}, "counts must be a vector of"),
    ],
)
def test_what_does_not_fit_is_named(fields, tmp_path, changes, text):
    np.savez(tmp_path / "sim.npz", **{**without(fields, "digest"), **changes})
    refused(tmp_path / "sim.npz", text)


def test_problems_and_logs_are_no_simulations(tmp_path):
    st.LCP([[1.0]], [1.0]).save(tmp_path / "lcp.npz")
    refused(tmp_path / "lcp.npz", "its format is stiction problem")


def mutations(content: bytes, count: int, seed: int):
    """Files cut off, with a bit turned, a stretch of zeros, a stretch of noise, a piece left out."""
    rng = np.random.default_rng(seed)
    for trial in range(count):
        made = bytearray(content)
        place, length = (int(rng.integers(1, bound)) for bound in (len(content), 64))
        match trial % 5:
            case 0:
                del made[place:]
            case 1:
                made[place] ^= 1 << int(rng.integers(8))
            case 2:
                made[place : place + length] = bytes(len(made[place : place + length]))
            case 3:
                made[place : place + length] = rng.bytes(len(made[place : place + length]))
            case _:
                del made[place : place + length]
        yield bytes(made)


def survive(path, content: bytes, count: int, seed: int) -> None:
    state = st.Simulation.restore(path).data.qpos.copy()
    for made in mutations(content, count, seed):
        path.write_bytes(made)
        try:
            again = st.Simulation.restore(path)
        except st.InvalidScene as error:
            assert "\n" not in str(error)
            assert str(path) in str(error)
        else:  # what was hit is not read
            np.testing.assert_array_equal(again.data.qpos, state)


def test_five_hundred_damaged_files(fields, tmp_path):
    path = tmp_path / "sim.npz"
    np.savez(path, **fields)
    survive(path, path.read_bytes(), 500, 0)


@pytest.mark.slow
def test_many_damaged_files_with_a_step_behind_them(tmp_path):
    path = tmp_path / "sim.npz"
    simulation = st.Simulation(st.Scene.named("block-stack", blocks=2))
    for _ in simulation.run(0.05):
        pass
    simulation.save(path)
    survive(path, path.read_bytes(), 10_000, 1)


@pytest.mark.parametrize("size", ["nq", "na", "nmocap", "nsensordata", "nuserdata", "nplastic", "nnames", "nmesh"])
def test_sizes_that_nothing_stands_behind_are_refused(fields, tmp_path, size):
    """MuJoCo took up to 8 GB, and minutes, before it saw that the rest did not fit."""
    from mujoco.introspect.structs import STRUCTS

    names = [field.name for field in STRUCTS["mjModel"].fields if getattr(field.type, "name", "") == "mjtSize"]
    model = fields["model"].copy()
    model[20 : 20 + 8 * len(names)].view(np.int64)[names.index(size)] += 1 << 27
    np.savez(tmp_path / "sim.npz", **{**without(fields, "digest"), "model": model})
    refused(tmp_path / "sim.npz", "its sizes do not fit its contents")


def altered_models(fields, tmp_path, count: int, seed: int) -> None:
    """Bits of the model turned in an archive that is whole and has no digest: MuJoCo believed any size."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "sim.npz"
    rest = without(fields, "digest")
    for _ in range(count):
        model = fields["model"].copy()
        model[int(rng.integers(0, 1000))] ^= 1 << int(rng.integers(8))
        np.savez(path, **{**rest, "model": model})
        begin = time.monotonic()
        try:
            st.Simulation.restore(path)
        except st.InvalidScene as error:
            assert "\n" not in str(error)
        assert time.monotonic() - begin < 5.0


def test_sizes_of_a_model_are_believed_as_far_as_they_fit(fields, tmp_path):
    altered_models(fields, tmp_path, 100, 0)


@pytest.mark.slow
def test_sizes_of_many_altered_models(fields, tmp_path):
    altered_models(fields, tmp_path, 3000, 1)


def test_models_of_all_scenes_pass():
    from stiction.scenes import SCENES

    for name in SCENES:
        check_sizes(model_bytes(st.Scene.named(name).model))


def test_options_that_older_files_have_are_passed_over():
    older = {**saved.described(st.ConeNewton(max_cycles=7)), "max_pyramids": 3, "last_cycles": 80}
    assert saved.made(older, saved.SOLVERS) == st.ConeNewton(max_cycles=7)
