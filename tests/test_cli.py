"""The command line: what it prints, how it ends, what it leaves."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import stiction as st
from stiction.cli import words
from stiction.cli.main import app, main
from stiction.cli.output import plain, table
from stiction.problems.laws import LAWS
from stiction.stepping.log import Log
from stiction.studies.claims import Claim

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = [
    ["run"], ["view"], ["compare"], ["sweep"], ["solve"], ["doctor"], ["scenes"], ["solvers"], ["export"], ["warm"],
    ["bench"], ["study"],
    ["study", "list"], ["study", "run"], ["study", "check"], ["study", "plot"], ["study", "report"],
]  # fmt: skip
FALLING = """<mujoco model="falling"><option timestep="0.01"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1"/>
  <body name="ball" pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1" mass="2"/></body>
</worldbody></mujoco>"""
CLOTH = (
    '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01" mass="1">'
    '<elasticity young="1e3" poisson=".1" thickness=".01" elastic2d="both"/></flexcomp>'
)
# A pad that pushes a block of 1 kg against a wall; it holds from 9.81 / (2 · 0.5) N on. It may start open or shut.
PRESS = """<mujoco model="press"><option timestep="0.01"/><worldbody>
  <geom name="wall" type="box" size="0.01 0.1 0.1" pos="-0.06 0 0" friction="0.5"/>
  <body name="pad" pos="0.06 0 0"><joint name="pad" type="slide" axis="-1 0 0"/>
    <geom name="pad" type="box" size="0.01 0.1 0.1" mass="0.1" friction="0.5"/></body>
  <body name="block"><freejoint/><geom name="block" type="box" size="0.05 0.05 0.05" mass="1" friction="0.5"/></body>
</worldbody>
<actuator><motor name="push" joint="pad" ctrlrange="0 100" ctrllimited="true"/></actuator>
<keyframe><key name="open" qpos="-0.05 0 0 0 1 0 0 0"/><key qpos="0 0 0 0 1 0 0 0" time="3"/></keyframe></mujoco>"""
# A wheel that is welded where it is, in the ground: no velocity takes it out.
STUCK = """<mujoco model="stuck"><worldbody>
  <geom name="floor" type="plane" size="5 5 1"/>
  <body name="wheel" pos="0 0 0.05"><freejoint/><geom name="wheel" size="0.1" mass="2"/></body>
</worldbody><equality><weld body1="wheel"/></equality></mujoco>"""


# A wheel on the floor, and a solver that proposes nothing: its first step fails.
RESTING = """<mujoco model="resting"><worldbody>
  <geom name="floor" type="plane" size="5 5 1"/>
  <body name="wheel" pos="0 0 0.1"><freejoint/><geom name="wheel" size="0.1" mass="2"/></body>
</worldbody></mujoco>"""
IDLE = ("--solver", "cone-newton:max_cycles=0")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, which holds the scenes and problems of these tests under `given`."""
    given = tmp_path / "given"
    given.mkdir()
    (given / "falling.xml").write_text(FALLING)
    (given / "stuck.xml").write_text(STUCK)
    (given / "resting.xml").write_text(RESTING)
    (given / "press.xml").write_text(PRESS)
    (given / "broken.xml").write_text(FALLING.replace("</worldbody>", ""))
    (given / "twisting.xml").write_text(FALLING.replace('size="0.1"', 'size="0.1" condim="4"'))
    (given / "conveyor.xml").write_text(FALLING.replace('size="0.1"', 'size="0.1" surfacevel="1 0 0 0 0 0"'))
    (given / "cloth.xml").write_text(FALLING.replace("</worldbody>", f"{CLOTH}</worldbody>"))
    one_ball().save(given / "ball.npz")
    (given / "cut.npz").write_bytes((given / "ball.npz").read_bytes()[:400])
    (given / "cut.dat").write_text("3\n1\n")
    source = ROOT / "src/stiction/problems/zoo/data/fclib/local_problem_test.hdf5"
    (given / "cut.hdf5").write_bytes(source.read_bytes()[:20_000])
    np.savez(given / "nan.npz", format="stiction problem", version=1, kind="LCP", M=np.eye(2), q=[np.nan, 1.0])
    st.LCP([[0.0]], [-1.0]).save(given / "hopeless.npz")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def one_ball() -> st.ContactProblem:
    """2 kg reach a floor at 1 m/s while they slide at 3 m/s, mu = 0.5: 2 N s stop them, 1 N s of friction acts."""
    tangent = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    return st.ContactProblem(2.0 * np.eye(3), [3.0, 0.0, -1.0], [[0.0, 0.0, 1.0]], tangent, [0.5])


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Every command explains itself, quickly


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
def test_help(command, capsys):
    assert main([*command, "--help"]) == 0
    told = capsys.readouterr()
    assert "Usage: stiction" in told.out
    assert told.err == ""
    if len(command) == 1:
        assert f"stiction {command[0]}" in told.out.partition("Examples")[2], "no example"


def test_help_loads_nothing_heavy_and_is_quick():
    """Whoever asks for help waits for the library that draws it, and hardly for more."""
    code = "import json, sys; from stiction.cli import main; main(['--help']); print(json.dumps(sorted(sys.modules)))"
    spent: dict[str, list[float]] = {code: [], "import cyclopts": []}
    for _ in range(3):  # in turns; other processes take their share of caches: the quickest counts
        for each, times in spent.items():
            begin = os.times()
            shown = subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True).stdout
            end = os.times()
            times.append(end.children_user + end.children_system - begin.children_user - begin.children_system)
            if each == code:
                loaded = json.loads(shown.splitlines()[-1])
    assert {"numpy", "numba", "mujoco", "matplotlib", "scipy"}.isdisjoint(loaded)
    assert min(spent[code]) < 3.0 * min(spent["import cyclopts"])


def test_version_and_name():
    shown = subprocess.run([sys.executable, "-m", "stiction", "--version"], capture_output=True, text=True)
    assert (shown.stdout, shown.returncode) == (f"stiction {st.__version__}\n", 0)
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"] == {
        "stiction": "stiction.cli:main"
    }


def test_completion_can_be_generated():
    script = app.generate_completion(shell="bash")
    for command in COMMANDS:
        assert command[-1] in script


def documented() -> list[str]:
    """Every command that the page or a help text shows."""
    texts = [(ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")]
    texts += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/stiction/cli").glob("*.py"))]
    found = {
        line.split("   ")[0]
        for text in texts
        for line in re.findall(r"^(?: {4,8}|\$ )(stiction .*)$", text, re.MULTILINE)
    }
    return sorted(found)


@pytest.mark.parametrize("line", documented())
def test_what_is_documented_is_accepted(line):
    command, bound, *_ = app.parse_args(line.split()[1:], exit_on_error=False, print_error=False)
    assert callable(command)
    assert bound is not None


# Good input


def test_run_prints_a_summary_and_the_contacts(folder, capsys):
    assert main(["run", "../given/falling.xml", "--seconds", "0.1"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("falling\n10 steps of 0.01 s in ")
    row = told.out.splitlines()[-1].split()
    assert row[:2] == ["floor", "ball"]
    assert float(row[3]) == pytest.approx(2.0 * 9.81)
    assert row[-1] == "stick"
    assert told.err == ""
    assert left(folder) == []


def test_run_writes_log_and_plot_and_is_quiet(folder, capsys):
    arguments = ["run", "../given/falling.xml", "--seconds", "0.2", "--dt", "0.02", "--law", "frictionless"]
    assert main([*arguments, "--log", "a.npz", "--plot", "a.svg", "--quiet"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")
    assert left(folder) == ["a.npz", "a.svg"]
    record = Log.load("a.npz")
    np.testing.assert_allclose(record.time, 0.02 * np.arange(1, 11))
    assert record.law == "Frictionless()"
    assert "<svg" in (folder / "a.svg").read_text()


def test_parameters_of_named_scenes(folder, capsys):
    assert main(["run", "sliding-ball", "--set", "mu=0.2", "--seconds", "0.02"]) == 0
    capsys.readouterr()
    assert main(["run", "sliding-ball", "--set", "mju=0.2"]) == 2
    assert "there is no parameter of sliding-ball 'mju'; did you mean 'mu'?" in capsys.readouterr().err


@pytest.mark.parametrize(("force", "mode"), [(10.5, "stick"), (9.0, "slide")])
def test_actuators_are_held_at_a_value(force, mode, folder, capsys):
    assert main(["run", "../given/press.xml", "--ctrl", f"push={force}", "--seconds", "0.1"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "block" in line]
    modes = {row[-1] for row in rows}
    assert modes - {"open"} == {mode}  # four contacts share a load in many ways, some of which leave two without any
    pushed = sum(float(row[3]) for row in rows if row[0] == "pad" or row[1] == "pad")
    assert pushed == pytest.approx(force, rel=1e-4)
    assert main(["run", "../given/press.xml", "--ctrl", f"0={force}", "--seconds", "0.01", "--quiet"]) == 0


def test_a_held_actuator_comes_on_top_of_what_drives_a_named_scene(folder, capsys):
    held = ["--ctrl", "left-pad=0.2", "--ctrl", "right-pad=0.2"]
    assert main(["run", "pinched-capsule", *held, "--seconds", "0.1"]) == 0
    assert " slide" in capsys.readouterr().out, "0.2 N do not hold it, the scene's own 10 N do"


def test_a_run_starts_from_a_keyframe(folder, capsys):
    assert main(["run", "../given/press.xml", "--keyframe", "open", "--seconds", "0.01"]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith(("pad ", "block  pad"))]
    assert main(["run", "../given/press.xml", "--keyframe", "1", "--seconds", "0.01"]) == 0
    assert "at 3.01 s" in capsys.readouterr().out


def test_a_seed_is_for_what_is_random(folder, capsys):
    told = []
    for seed in ("1", "1", "2"):
        assert main(["run", "log-heap", "--set", "logs=3", "--seed", seed, "--seconds", "0.01", "--log", "a.npz"]) == 0
        told.append(float(Log.load("a.npz").potential[0]))
    capsys.readouterr()
    assert told[0] == told[1]
    assert main(["run", "log-heap", "--seed", "1", "--set", "seed=2"]) == 2
    assert "give one of them" in capsys.readouterr().err


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_on_light_and_dark_paper(theme, folder):
    from PIL import Image

    arguments = ["run", "../given/falling.xml", "--seconds", "0.05", "--plot", "a.png", "--theme", theme, "--quiet"]
    assert main(arguments) == 0
    brightness = np.array(Image.open("a.png").convert("L")).mean()
    assert (brightness > 200) == (theme == "light")


def test_compare_prints_a_table_and_draws(folder, capsys):
    arguments = ["compare", "pinched-capsule", "--seconds", "0.5", "--with", "mujoco,mujoco-noslip:5"]
    assert main([*arguments, "--plot", "a.svg"]) == 0
    told = capsys.readouterr()
    head, ours, soft, noslip = told.out.splitlines()[1:]
    assert head.split()[:3] == ["engine", "slip", "moved"]
    assert ours.startswith("stiction ")
    assert soft.startswith("MuJoCo, pyramid (default)")
    assert " mm/s " in soft
    assert noslip.startswith("MuJoCo, elliptic, noslip 5")
    assert told.err == "stiction: wrote a.svg\n"
    assert left(folder) == ["a.svg"]


def test_compare_holds_actuators_and_keyframes_for_all(folder, capsys):
    driven = ["--ctrl", "push=50", "--keyframe", "1"]
    assert main(["compare", "../given/press.xml", *driven, "--seconds", "3.2", "--with", "mujoco"]) == 0
    ours, soft = capsys.readouterr().out.splitlines()[2:]
    assert "m/s" in ours
    assert "m/s" in soft


def test_compare_makes_one_replay(folder, capsys):
    arguments = ["compare", "pinched-capsule", "--seconds", "0.2", "--with", "mujoco", "--fps", "10"]
    assert main([*arguments, "--record", "a.html"]) == 0
    capsys.readouterr()
    assert "compared – stiction</title>" in (folder / "a.html").read_text(encoding="utf-8")


def test_warm_tells_how_far_it_is(capsys, monkeypatch):
    from stiction.cli import warm

    done = []
    monkeypatch.setitem(warm.TASKS, "lcp", lambda: iter([("one", lambda: done.append(1)), ("two", fail)]))
    assert main(["warm", "lcp"]) == 0
    told = capsys.readouterr()
    assert done == [1]
    assert re.fullmatch(r"2 parts ready in \d+ s\n", told.out)
    assert re.search(r"\[1/2\] one: \d+\.\d s", told.err)
    assert "[2/2] two: left out (no such package)" in told.err


def test_warm_shares_its_parts_among_cores(capsys, monkeypatch):
    from stiction.cli import warm

    begun = []
    monkeypatch.setattr("stiction.arrays.ahead.cores", lambda: 2)
    monkeypatch.setattr(warm, "in_a_process", lambda part: begun.append(part) or len(begun) - 1)
    assert main(["warm"]) == 3, "the worst of their statuses"
    assert sorted(begun) == ["contact", "lcp", "steps", "turning"]
    assert capsys.readouterr().out.startswith("steps, contact, turning, lcp ready in ")


def fail() -> None:
    raise st.MissingDependency("no such package")


def test_everything_that_can_be_warmed_is_named():
    from stiction.cli import warm
    from stiction.solvers import ALL, COMPLEMENTARITY

    names = [name for part in warm.PARTS for name, _ in warm.TASKS[part]()]
    for solver in (*COMPLEMENTARITY, *ALL):
        assert any(name.startswith(words.kebab(solver.__name__)) for name in names), solver


def test_export_writes_other_formats(folder, capsys):
    assert main(["export", "../given/ball.npz", "--to", "fclib", "--out", "ball.hdf5"]) == 0
    assert capsys.readouterr().out == "ball.hdf5\n"
    assert main(["export", "ball.hdf5", "--to", "npz"]) == 0
    there, back = st.load("../given/ball.npz"), st.load("ball.npz")
    assert st.solve(back).impulse == pytest.approx(st.solve(there).impulse)
    assert left(folder) == ["ball.hdf5", "ball.npz"]
    assert main(["export", "ball.npz", "--to", "siconos"]) == 0
    assert capsys.readouterr().out == "ball.npz\nball.dat\n"
    assert st.solve(st.load("ball.dat")).impulse == pytest.approx(st.solve(there).impulse)
    rolling = str(ROOT / "tests/data/siconos/rockfall_14_25792.dat")
    for options, dim in (((), 6), (("--ignore", "rolling"), 3)):
        Path("rock.dat").unlink(missing_ok=True)
        assert main(["export", rolling, "--to", "siconos", "--out", "rock.dat", *options]) == 0
        assert st.load("rock.dat").dim == dim


def test_view_without_a_scene_offers_all(folder, monkeypatch):
    from stiction.viewer import start

    asked = []
    monkeypatch.setattr(start, "view", lambda make, *where: asked.append((make("box-on-plane"), *where[:2])))
    assert main(["view", "--law", "no-slip", "--port", "9001"]) == 0
    ((simulation, host, port),) = asked
    assert (simulation.law, host, port) == (st.NoSlip(), "127.0.0.1", 9001)


def test_solve_prints_status_certificate_and_modes(folder, capsys):
    assert main(["solve", "../given/ball.npz"]) == 0
    told = capsys.readouterr().out
    assert "solved by ConeNewton" in told
    assert "certificate: residual " in told
    row = told.partition("contact  mode")[2].splitlines()[1].split()
    assert row[:2] == ["0", "slide"]
    assert [float(number) for number in row[2:4]] == pytest.approx([2.0, 1.0])
    assert float(row[5]) == pytest.approx(2.5)  # m/s that are left
    assert "all contact forces are determined" in told


def test_solve_under_another_law(folder, capsys):
    assert main(["solve", "../given/ball.npz", "--law", "frictionless"]) == 0
    told = capsys.readouterr().out
    assert "Frictionless()" in told
    assert "solved by PrincipalPivot" in told


def test_all_solvers_that_apply_are_compared(folder, capsys):
    assert main(["solve", "../given/ball.npz", "--solver", "all"]) == 0
    told = capsys.readouterr()
    names = [line.split()[0] for line in told.out.splitlines()[2:]]
    takers = [name for name, kind in words.solvers().items() if kind.contract.refusal(one_ball()) is None]
    assert names == takers
    assert {"auto", "cone-newton"} <= set(names)
    for line in told.out.splitlines()[2:]:
        assert float(line.split()[2]) <= 1e-8, line
    assert "do not take this problem: lemke" in told.err


def test_a_failed_solve_has_status_1_and_evidence(folder, capsys):
    assert main(["solve", "../given/hopeless.npz", "--solver", "lemke"]) == 1
    told = capsys.readouterr()
    assert "not solved by Lemke" in told.out
    assert "proves that there is no solution" in told.out
    assert "hopeless.npz" in told.err


def test_a_failed_step_dumps_its_problem(folder, capsys):
    assert main(["run", "../given/resting.xml", *IDLE, "--log", "stuck.npz", "--plot", "stuck.png"]) == 1
    told = capsys.readouterr()
    assert "no step was made, so stuck.png is not drawn" in told.err
    assert "resting-step-1.npz" in told.err.splitlines()[-1]
    assert left(folder) == ["resting-step-1.npz", "stuck.npz"]
    assert st.load("resting-step-1.npz").n == 1
    assert Log.load("stuck.npz").steps == 0


def examples() -> list[str]:
    """Every example of a help text."""
    found = []
    for path in sorted((ROOT / "src/stiction/cli").glob("*.py")):
        for text in re.findall(
            r"\*\*Examples\*\*\n\n(.*?)(?:\"\"\"|\n\n)", path.read_text(encoding="utf-8"), re.DOTALL
        ):
            found += [line.strip() for line in text.splitlines() if line.strip()]
    return found


LONG = ("cell-lemke", " warm", " bench", " study check", " study plot")  # examples that take minutes


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=pytest.mark.slow) if any(word in line for word in LONG) else line for line in examples()],
)
def test_examples_of_the_help_run(line, folder, capsys, monkeypatch):
    """As they stand, but for the time to simulate and to measure, with files of the names that they have."""
    arguments = line.split()[1:]
    if arguments[0] in ("bench", "study") and not {"list", "--quick"} & set(arguments):
        arguments.append("--quick")
    if "ray" in arguments:
        pytest.skip("needs a cluster; tests/sweeps/test_sweep.py has those on Ray")
    if any(word.endswith(".mp4") for word in arguments):
        gl = pytest.importorskip("stiction.viewer.gl")
        try:
            gl.platform()
        except st.MissingDependency:
            pytest.skip("neither EGL nor OSMesa is installed")
    (folder / "robot.xml").write_text(FALLING)
    pads = "".join(
        f"<body><joint name='{side}' type='slide' axis='0 1 0'/><geom size='0.1' pos='{x} 0 1' mass='1'/></body>"
        for side, x in (("left", -1), ("right", 1))
    ).replace("<body>", "<body name='pad'>", 1)
    motors = "".join(f"<motor name='{side}' joint='{side}'/>" for side in ("left", "right"))
    (folder / "gripper.xml").write_text(
        FALLING.replace("</worldbody>", f"{pads}</worldbody><actuator>{motors}</actuator>")
    )
    (folder / "robot.urdf").write_text(
        '<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
        'iyz="0"/></inertial><collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>'
    )
    one_ball().save(folder / "failed.npz")
    one_ball().save(folder / "box-stack.hdf5")
    (folder / "rockfall.dat").write_bytes((ROOT / "tests/data/siconos/rockfall_14_25792.dat").read_bytes())
    if "--solver all" in line:
        monkeypatch.setattr(words, "solvers", lambda: {"cone-newton": st.ConeNewton})
    if arguments[0] == "view":
        stub = ModuleType("stiction.viewer.browser")
        stub.view = lambda simulation, **options: None
        monkeypatch.setitem(sys.modules, "stiction.viewer.browser", stub)
        monkeypatch.setattr("stiction.viewer.browser", stub, raising=False)
        start = ModuleType("stiction.viewer.start")
        start.view = lambda make, *where: None
        monkeypatch.setitem(sys.modules, "stiction.viewer.start", start)
        monkeypatch.setattr("stiction.viewer.start", start, raising=False)
    seconds = "0.02" if arguments[0] == "compare" else "0"
    if "--seconds" in arguments:
        arguments[arguments.index("--seconds") + 1] = seconds
    elif arguments[0] in ("run", "compare", "sweep"):
        arguments += ["--seconds", seconds]
    assert main(arguments) == 0, capsys.readouterr().err


def test_there_are_examples_of_every_command():
    assert {line.split()[1] for line in examples()} == {command[0] for command in COMMANDS}


def test_a_plane_at_height_zero_is_a_plane(folder, capsys):
    """0 was taken for not given."""
    floorless = FALLING.replace('<geom name="floor" type="plane" size="5 5 1"/>', "")
    (folder / "a.xml").write_text(floorless)
    assert main(["run", "a.xml", "--ground", "0", "--seconds", "0.05"]) == 0
    assert "ground  ball" in capsys.readouterr().out


def test_unsymmetric_problems_are_told_and_solved(folder, capsys):
    W = np.array([[2.0, 0.3, 0.0], [0.31, 1.0, 0.0], [0.0, 0.0, 1.5]])
    with pytest.warns(st.errors.UnsymmetricMatrix):
        problem = st.ContactProblem.from_delassus(W, [-1.0, 0.2, 0.1], [0.5])
    problem.save("a.npz")
    assert main(["solve", "a.npz"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("stiction: a.npz: W is not symmetric: W[0, 1] - W[1, 0] = -0.01, 5.0e-03 of its largest")
    assert len(told.err.splitlines()) == 1
    assert "solved by " in told.out


def test_rolling_friction_is_left_out_on_request(folder, capsys):
    source = str(ROOT / "tests/data/siconos/rockfall_14_25792.dat")
    for options in ((), ("--ignore", "rolling")):
        assert main(["solve", source, *options]) == 0
        told = capsys.readouterr().out
        assert "14 contacts" in told
        assert ("roll" in told) == (not options)


def test_messages_name_options_not_arguments(folder, capsys):
    assert main(["run", "../given/twisting.xml", "--law", "pyramid", "--seconds", "0.5"]) == 2
    told = capsys.readouterr().err
    assert "set condim to 3, or pass --ignore torsion, which takes it as 3" in told
    assert "ignore=" not in told
    (folder / "a.urdf").write_text(
        '<robot name="r"><link name="l"><visual><geometry><mesh filename="package://arm/a.stl"/></geometry></visual>'
        "</link></robot>"
    )
    assert main(["run", "a.urdf"]) == 2
    assert "package://arm/a.stl not found; pass --package arm=FOLDER" in capsys.readouterr().err


def test_doctor_reads_a_scene_once(folder, capsys, monkeypatch):
    from stiction.bodies.scene import Scene

    read, times = Scene.load, []
    monkeypatch.setattr(Scene, "load", lambda *a, **k: times.append(1) or read(*a, **k))
    assert main(["doctor", "../given/falling.xml"]) == 0
    assert len(times) == 1


def test_a_busy_port_is_told(folder, capsys, monkeypatch):
    stub, asked = ModuleType("stiction.viewer.browser"), []
    stub.view = lambda simulation, **options: asked.append(options["port"])
    monkeypatch.setitem(sys.modules, "stiction.viewer.browser", stub)
    monkeypatch.setattr("stiction.viewer.browser", stub, raising=False)
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        assert main(["view", "../given/falling.xml", "--port", str(port)]) == 2
        assert capsys.readouterr().err == (
            f"stiction: --port {port} is in use at 127.0.0.1; choose another, or leave it out\n"
        )
        assert asked == []
        monkeypatch.setattr("stiction.cli.run.PORT", port)
        assert main(["view", "../given/falling.xml"]) == 0
        assert capsys.readouterr().err == f"stiction: port {port} is in use: listening at another\n"
    assert main(["view", "../given/falling.xml", "--port", str(port)]) == 0
    assert asked == [port, port]


def test_completion_changes_startup_files_only_when_asked(folder, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    (folder / ".bashrc").write_text("mine\n")
    assert main(["--install-completion", "--shell", "bash"]) == 0
    told = capsys.readouterr().out
    script = folder / ".local/share/bash-completion/completions/stiction"
    assert told.startswith(f"wrote {script}\nchanged nothing else; ")
    assert "stiction" in script.read_text()
    assert (folder / ".bashrc").read_text() == "mine\n"
    assert main(["--install-completion", "--shell", "bash", "--startup"]) == 0
    assert f"changed {folder / '.bashrc'}: it loads that file now" in capsys.readouterr().out
    assert str(script) in (folder / ".bashrc").read_text()
    assert main(["--install-completion", "--shell", "bash", "--startup"]) == 0
    assert "nothing else had to be changed" in capsys.readouterr().out


def test_a_wrong_way_to_draw_is_told_in_one_line(folder):
    """45 lines of traceback."""
    shown = subprocess.run(
        [sys.executable, "-m", "stiction", "run", "box-on-plane"], capture_output=True, text=True, cwd=folder,
        env={**os.environ, "MUJOCO_GL": "bogus"},
    )  # fmt: skip
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == (
        "stiction: mujoco cannot be loaded (invalid value for environment variable MUJOCO_GL: bogus); "
        "unset MUJOCO_GL, or set it to egl, osmesa or glfw\n"
    )


def test_zero_has_no_sign():
    assert (plain(-0.0), plain(0.0), plain(-1e-3), plain(-0.0, ".5g")) == ("0.0e+00", "0.0e+00", "-1.0e-03", "0")


def test_doctor(folder, capsys):
    assert main(["doctor", "box-on-plane"]) == 0
    told = capsys.readouterr().out
    for part in ("used:", "ignored:", "refused:", "margins at the start", "not determined", "what to do:"):
        assert part in told
    assert "overlaps" not in told


def test_doctor_tells_what_is_wrong(folder, capsys):
    assert main(["doctor", "../given/cloth.xml"]) == 2
    told = capsys.readouterr()
    assert "1 flexible body, flex 'cloth'" in told.out
    assert "the scene cannot be stepped: change what is refused" in told.err
    assert main(["doctor", "../given/conveyor.xml", "--ignore", "surfacevel"]) == 0
    assert "surfacevel (moving surfaces) of geom 'ball' (on request)" in capsys.readouterr().out
    assert main(["doctor", "../given/stuck.xml"]) == 0
    told = capsys.readouterr().out
    assert "overlaps: floor – wheel by 0.05 m" in told
    assert "contradictions: contact of geoms floor and wheel; equality 0 cannot all be put right" in told


def test_doctor_tells_loops_their_rank_and_condim(folder, capsys):
    """Four bars in a plane: the loop's third row moves nothing, and a second connect repeats the first."""
    Path("../given/loop.xml").write_text(
        """<mujoco><worldbody>
          <geom name="floor" type="plane" size="1 1 1" pos="0 0 -1" condim="1"/>
          <body name="one"><joint axis="0 1 0"/><geom size=".02" fromto="0 0 0 0 0 .2" type="capsule" condim="6"/>
            <body name="two" pos="0 0 .2"><joint axis="0 1 0"/>
              <geom size=".02" fromto="0 0 0 .3 0 0" type="capsule" contype="0" conaffinity="0"/></body></body>
          <body name="three" pos=".3 0 0"><joint axis="0 1 0"/>
            <geom size=".02" fromto="0 0 0 0 0 .2" type="capsule" condim="4"/></body>
        </worldbody><equality>
          <connect name="closed" body1="two" body2="three" anchor=".3 0 0"/>
          <connect name="again" body1="two" body2="three" anchor=".3 0 0"/>
        </equality></mujoco>"""
    )
    assert main(["doctor", "../given/loop.xml"]) == 0
    told = capsys.readouterr().out
    assert "2 connects" in told
    assert "6 rows of rank 2" in told
    assert "2 of them move nothing" in told
    assert "2 of them depend on others" in told
    assert "condim 1 (none) of 1 geom, condim 4 (sliding and torsion) of 1 geom, condim 6" in told


def test_scenes_and_solvers_are_listed(capsys):
    from stiction.scenes import SCENES
    from stiction.solvers import ALL

    assert main(["scenes"]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line and line[0] != " "] == list(SCENES)
    assert main(["solvers"]) == 0
    shown = capsys.readouterr().out
    heads = [line for line in shown.splitlines() if line[0] != " "]
    assert heads == ["auto", *(words.kebab(solver.__name__) for solver in ALL)]
    assert main(["solvers", "KellerX"]) == 2
    assert "did you mean 'keller'?" in capsys.readouterr().err


def test_view_opens_the_browser_viewer(folder, capsys, monkeypatch):
    asked = {}
    stub = ModuleType("stiction.viewer.browser")
    stub.view = lambda simulation, **options: asked.update(options, law=simulation.law)
    monkeypatch.setitem(sys.modules, "stiction.viewer.browser", stub)
    monkeypatch.setattr("stiction.viewer.browser", stub, raising=False)
    assert main(["view", "../given/falling.xml", "--law", "no-slip", "--port", "9000"]) == 0
    assert (asked["host"], asked["port"], asked["law"], asked["held"]) == ("127.0.0.1", 9000, st.NoSlip(), {})
    assert main(["view", "block-feeder", "--ctrl", "crank=12"]) == 0
    assert asked["held"] == {0: 12.0}
    assert main(["view", "block-feeder", "--ctrl", "crnk=12"]) == 2
    assert "did you mean 'crank'?" in capsys.readouterr().err
    assert main(["view", "../given/falling.xml", "--port", "99999"]) == 2
    assert "--port must be from 1 to 65535" in capsys.readouterr().err


def test_studies(folder, capsys, monkeypatch):
    from stiction.studies import commands

    asked = []
    claims = {
        "one": [Claim("a", True, "1")],
        "two": [Claim("b", False, "2"), Claim("c", False, "3", documented=False), Claim("d", False, "4", timed=True)],
    }
    monkeypatch.setattr(commands, "available", lambda: {"one": "The first.", "two": "The second."})
    monkeypatch.setattr(commands, "run", lambda *a: asked.append(a) or Path("one.npz"))
    monkeypatch.setattr(commands, "check", lambda name, quick, out: claims[name])
    monkeypatch.setattr(commands, "plot", lambda *a: [Path("one.svg")])
    monkeypatch.setattr(commands, "report", lambda *a: Path("report.html"))
    assert main(["study", "list"]) == 0
    assert capsys.readouterr().out == "one  The first.\ntwo  The second.\n"
    assert main(["study", "run", "one", "--quick", "--out", "results"]) == 0
    assert main(["study", "run", "two", "--on", "cores", "--workers", "2"]) == 0
    assert asked == [("one", True, Path("results"), "here", None), ("two", False, Path("studies"), "cores", 2)]
    assert main(["study", "check", "one"]) == 0
    capsys.readouterr()
    assert main(["study", "check"]) == 1, "a claim came out otherwise than documented"
    told = capsys.readouterr()
    assert "1 claims came out otherwise than documented" in told.err
    assert "does not hold  c" in told.out
    assert "does not hold  d: 4  (by these times; not as documented)" in told.out
    assert main(["study", "plot", "one"]) == 0
    assert main(["study", "report"]) == 0
    assert capsys.readouterr().out == "one.svg\nreport.html\n"


def test_an_unknown_study_gets_the_nearest(folder, capsys):
    assert main(["study", "run", "lacoursiere203"]) == 2
    assert "did you mean 'lacoursiere2003'?" in capsys.readouterr().err
    assert left(folder) == []


def test_bench_runs_in_a_checkout_only(folder, capfd, monkeypatch):
    monkeypatch.setattr(st, "__file__", str(folder / "a" / "b" / "c" / "__init__.py"))
    assert main(["bench", "pyramid"]) == 2
    assert "benchmarks come with the source" in capfd.readouterr().err
    (folder / "src" / "stiction").mkdir(parents=True)
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "run.py").write_text("import sys; print(sys.argv[1:]); sys.exit(3)")
    assert main(["bench", "pyramid", "--quick"]) == 3
    assert capfd.readouterr().out == "['pyramid', '--quick']\n"


# Bad input: one line, status 2, nothing left behind

BAD = {
    "no command": (["rum"], "Unknown command"),
    "no scene": (["run"], "SCENE"),
    "missing file": (["run", "nowhere.xml"], "nowhere.xml: no such file"),
    "broken XML": (["run", "../given/broken.xml", "--log", "a.npz"], "broken.xml: "),
    "no scene at all": (["run", "../given/ball.npz"], "ball.npz: not a scene; name a .xml (MJCF) or .urdf file"),
    "no problem at all": (["solve", "../given/broken.xml"], "not a problem, or was cut off; name an .npz file"),
    "misspelt scene": (["run", "block-stak"], "did you mean 'block-stack'?"),
    "misspelt option": (["run", "block-stack", "--lwa", "box"], "Did you mean --law?"),
    "misspelt law": (["run", "block-stack", "--law", "colomb"], "did you mean 'coulomb'?"),
    "misspelt solver": (["run", "block-stack", "--solver", "ConeNewtn"], "did you mean 'cone-newton'?"),
    "misspelt stepper": (["run", "block-stack", "--stepper", "event"], "did you mean 'event-driven'?"),
    "option of a solver": (["run", "block-stack", "--solver", "lemke:covr=1"], "did you mean 'cover'?"),
    "wrong facets": (["run", "block-stack", "--law", "pyramid:2"], "facets must be a whole number of at least 3"),
    "wrong viscosity": (["run", "block-stack", "--law", "viscous:-1"], "viscosity must be a number of at least 0"),
    "no viscosity": (["run", "../given/falling.xml", "--law", "viscous"], "needs a viscosity"),
    "solver without that law": (["run", "../given/falling.xml", "--solver", "cell-lemke"], "CellLemke does not take"),
    "parameter of a file": (["run", "../given/falling.xml", "--set", "mu=1"], "--set is for named scenes"),
    "no parameter": (["run", "block-stack", "--set", "blocks"], "write NAME=VALUE"),
    "parameter out of range": (["run", "block-stack", "--set", "blocks=0"], "blocks must be"),
    "no time": (["run", "block-stack", "--seconds", "long"], '"long"'),
    "too long": (["run", "../given/falling.xml", "--seconds", "1e300"], "is too long"),
    "no number": (["run", "block-stack", "--solver", "cone-newton:tolerance=small"], "tolerance must be a number"),
    "negative time": (["run", "block-stack", "--seconds", "-1"], "--seconds must be"),
    "endless time": (["run", "block-stack", "--seconds", "inf"], "--seconds must be"),
    "no step": (["run", "block-stack", "--dt", "0"], "--dt must be"),
    "log of no kind": (["run", "block-stack", "--log", "a.csv"], "must end in .npz, .parquet"),
    "a plane nowhere": (["run", "../given/falling.xml", "--ground", "nan"], "--ground must be a height in m, got nan"),
    "a folder as scene": (["run", "../given"], "../given: a folder; name the .xml or .urdf file in it"),
    "a folder here": (["doctor", "."], ".: a folder"),
    "floating MJCF": (["run", "../given/falling.xml", "--floating"], "--package and --floating are for URDF"),
    "ignored nothing": (["run", "../given/falling.xml", "--ignore", "x"], "--ignore must be one of 'torsion', "),
    "no margin": (["run", "../given/falling.xml", "--margin", "nan"], "--margin must be a distance in m, got nan"),
    "cut dat": (["solve", "../given/cut.dat"], "cut.dat, line 2: the file ends where"),
    "ignored of a problem": (["solve", "../given/ball.npz", "--ignore", "x"], "--ignore must be one of 'rolling', got"),
    "no tolerance": (["solve", "../given/ball.npz", "--tolerance", "-1"], "--tolerance must be a positive number"),
    "no folder": (["run", "block-stack", "--log", "no/a.npz"], "there is no folder no"),
    "a folder as file": (["run", "block-stack", "--log", "a.npz", "--plot", "../given/dir.png"], "cannot be written"),
    "record of no kind": (["run", "block-stack", "--record", "a.avi"], "must end in .mp4, .gif, .html"),
    "twice the same file": (["run", "block-stack", "--log", "a.npz", "--plot", "a.npz"], "must end in"),
    "misspelt actuator": (["run", "../given/press.xml", "--ctrl", "puhs=1"], "did you mean 'push'? (--ctrl)"),
    "no value": (["run", "../given/press.xml", "--ctrl", "push"], "write ACTUATOR=VALUE"),
    "no number for an actuator": (["run", "../given/press.xml", "--ctrl", "push=nan"], "write ACTUATOR=VALUE"),
    "beyond its range": (["run", "../given/press.xml", "--ctrl", "push=101"], "push takes values from 0 to 100"),
    "no such keyframe": (["run", "../given/press.xml", "--keyframe", "oopen"], "did you mean 'open'? (--keyframe)"),
    "nothing random": (["run", "box-on-plane", "--seed", "1"], "--seed: nothing in box-on-plane is random"),
    "no such theme": (["run", "block-stack", "--theme", "pink"], "--theme must be one of light, dark"),
    "no such angle": (["run", "block-stack", "--record", "a.html", "--camera", "1,x"], "AZIMUTH,ELEVATION"),
    "no such engine": (["compare", "block-stack", "--with", "mujocco"], "did you mean 'mujoco'? (--with)"),
    "no engine": (["compare", "block-stack", "--with", ","], "--with names no engine"),
    "no value of an engine": (["compare", "block-stack", "--with", "mujoco-noslip:x"], "a number above 0"),
    "an engine without a value": (["compare", "box-on-plane", "--with", "mujoco:3"], "mujoco takes no value"),
    "no size": (["compare", "block-stack", "--size", "480"], "write WIDTHxHEIGHT"),
    "no speed": (["compare", "block-stack", "--speed", "0"], "--speed must be a number above 0"),
    "compare of no scene": (["compare", "dominos"], "did you mean 'dominoes'?"),
    "ignore nothing": (["solve", "../given/ball.npz", "--ignore", "roling"], "one of 'rolling', got 'roling'"),
    "no such format": (["export", "../given/ball.npz", "--to", "fclip"], "did you mean 'fclib'? (--to)"),
    "export onto itself": (["export", "../given/ball.npz", "--to", "npz"], "is the problem itself"),
    "export of nothing": (["export", "nowhere.npz", "--to", "fclib"], "there is no file nowhere.npz"),
    "LCP as Siconos": (["export", "../given/hopeless.npz", "--to", "siconos", "--out", "a.dat"], "problems only"),
    "export of no ending": (["export", "../given/ball.npz", "--to", "siconos", "--out", "a.txt"], "--out a.txt"),
    "LCP as FCLIB": (["export", "../given/hopeless.npz", "--to", "fclib", "--out", "a.hdf5"], "problems only"),
    "warm of nothing": (["warm", "lpc"], "did you mean 'lcp'?"),
    "no problem": (["solve", "nowhere.npz"], "there is no file nowhere.npz"),
    "NaN": (["solve", "../given/nan.npz"], "q[0] = nan"),
    "cut npz": (["solve", "../given/cut.npz"], "cut.npz is"),
    "cut hdf5": (["solve", "../given/cut.hdf5"], "cut.hdf5"),
    "unknown solver": (["solve", "../given/ball.npz", "--solver", "newton"], "there is no solver 'newton'"),
    "solver of other problems": (["solve", "../given/ball.npz", "--solver", "keller"], "Keller does not take"),
    "law of an LCP": (["solve", "../given/hopeless.npz", "--law", "box"], "--law is for contact problems"),
    "viscous without number": (["solve", "../given/ball.npz", "--law", "viscous"], "needs viscosity"),
    "no such contact": (["solve", "../given/ball.npz", "--contact", "1"], "--contact must be from 0 to 0"),
    "plot of an LCP": (["solve", "../given/hopeless.npz", "--plot", "a.png"], "--plot is for contact problems"),
    "doctor of nothing": (["doctor", "nowhere.urdf"], "nowhere.urdf: no such file"),
    "doctor of no scene": (["doctor", "dominos"], "did you mean 'dominoes'?"),
    "doctor of broken XML": (["doctor", "../given/broken.xml"], "broken.xml: "),
    "view of nothing": (["view", "nowhere.xml"], "nowhere.xml: no such file"),
    "view of no scene": (["view", "dominos"], "did you mean 'dominoes'?"),
    "list of no scene": (["scenes", "dominos"], "did you mean 'dominoes'?"),
    "no study": (["study", "check", "nothing"], "there is no study 'nothing'"),
    "no study command": (["study", "rum"], "Did you mean"),
    "results nowhere": (["study", "run", "--out", "../given/ball.npz"], "ball.npz"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_in_one_line(case, folder, capsys):
    (folder.parent / "given" / "dir.png").mkdir()
    arguments, message = BAD[case]
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert message in told.err
    lines = told.err.strip().splitlines()
    assert len([line for line in lines if not line.startswith("stiction: running ")]) == 1, told.err
    assert lines[0].startswith("stiction: ")
    assert told.out == "" or case == "viscous without number"
    assert left(folder) == []


def test_a_missing_package_names_its_extra(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert main(["run", "block-stack", "--log", "a.parquet"]) == 2
    assert "pip install 'stiction[parquet]'" in capsys.readouterr().err
    assert left(folder) == []


def test_no_traceback_and_no_colour_in_a_pipe(folder):
    shown = subprocess.run(
        [sys.executable, "-m", "stiction", "run", "nowhere.xml"], capture_output=True, text=True, cwd=folder
    )
    assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", "stiction: nowhere.xml: no such file\n")


def test_a_closed_pipe_is_no_error(folder):
    command = f"{sys.executable} -m stiction scenes | head -n 1"
    shown = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder)
    assert (shown.stdout, shown.stderr) == ("peg-in-hole\n", "")


def test_progress_is_shown_on_a_terminal_only(folder):
    terminal, stderr = os.openpty()
    command = [sys.executable, "-m", "stiction", "run", "sliding-ball", "--seconds", "1"]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=folder, env={**os.environ, "TERM": "xterm"}
    )
    os.close(stderr)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    out, _ = run.communicate()
    assert run.returncode == 0
    assert "of 1 s" in shown.decode()
    assert "\x1b" not in out


# Runs that end early


def running(folder: Path, log: str) -> subprocess.Popen[str]:
    """A long run, in its second second."""
    command = [sys.executable, "-m", "stiction", "run", "sliding-ball", "--seconds", "100000", "--log", log]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    path, patience = folder / log, time.monotonic() + 120.0
    while not (path.exists() and Log.load(path).steps > 0):
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < patience, "nothing was logged"
        time.sleep(0.1)
    return run


def test_a_killed_run_leaves_a_readable_log(folder):
    run = running(folder, "long.npz")
    begun = Log.load(folder / "long.npz").steps
    time.sleep(2.5)
    run.kill()
    run.communicate()
    record = Log.load(folder / "long.npz")
    assert record.steps > begun, "it is renewed every second"
    assert record.first[-1] == len(record.contact_gap)
    assert (np.diff(record.time) > 0.0).all()
    assert [name for name in left(folder) if not name.startswith(".")] == ["long.npz"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_was_recorded(folder, number):
    run = running(folder, "long.npz")
    run.send_signal(number)
    out, err = run.communicate()
    assert run.returncode == 130
    record = Log.load(folder / "long.npz")
    assert f"{record.steps} steps of" in out
    assert re.search(rf"after {record.steps} steps, at .* s: stopped", err)
    assert "Traceback" not in err
    assert left(folder) == ["long.npz"]


def test_what_records_is_closed_when_a_step_fails(folder, capsys, monkeypatch):
    calls = []
    stub = ModuleType("stiction.viewer.record")
    stub.Recorder = type("Recorder", (), {
        "__init__": lambda self, simulation, path, **looks: calls.append(path.name),
        "frame": lambda self: calls.append("frame"),
        "close": lambda self: calls.append("close"),
    })  # fmt: skip
    monkeypatch.setitem(sys.modules, "stiction.viewer.record", stub)
    assert main(["run", "../given/resting.xml", *IDLE, "--record", "a.mp4", "--quiet"]) == 1
    assert calls == ["a.mp4", "close"]
    calls.clear()
    assert main(["run", "../given/falling.xml", "--record", "a.mp4", "--quiet", "--seconds", "0.03"]) == 0
    assert calls == ["a.mp4", "frame", "frame", "frame", "close"]


# Words


@pytest.mark.parametrize(
    ("text", "law", "viscosity"),
    [
        ("coulomb", st.Coulomb(), None),
        ("Coulomb:facets=6,rotation=0.5", st.Coulomb(facets=6, rotation=0.5), None),
        ("pyramid", st.Coulomb(facets=8), None),
        ("pyramid:4", st.Coulomb(facets=4), None),
        ("box", st.BoxFriction(), None),
        ("box:scaled=true", st.BoxFriction(scaled=True), None),
        ("no-slip", st.NoSlip(), None),
        ("NoSlip", st.NoSlip(), None),
        ("frictionless", st.Frictionless(), None),
        ("viscous:10", st.Viscous(), 10.0),
        ("viscous:2.5,implicit=true", st.Viscous(implicit=True), 2.5),
    ],
)
def test_laws(text, law, viscosity):
    assert words.law(text) == (law, viscosity)


def test_the_help_names_every_law():
    named = {type(words.law(text.replace("FACETS", "8").replace("VISCOSITY", "1"))[0]) for text in words.LAWS}
    assert named == set(LAWS.values())


def test_solvers_and_steppers():
    assert words.solver("cone-newton:tolerance=1e-9") == st.ConeNewton(tolerance=1e-9)
    assert words.solver("StructuredLemke:reduced=false") == st.StructuredLemke(reduced=False)
    assert words.solver("splitting:inner=murty") == st.Splitting(inner=st.Murty())
    assert words.stepper("event-driven:method=rk4,restitution=0.5", None) == st.EventDriven(
        method="rk4", restitution=0.5
    )
    assert words.stepper("time-stepping", 3.0) == st.TimeStepping(viscosity=3.0)


def test_what_does_not_fit_an_option_is_refused():
    for name, kind in words.solvers().items():
        for field in dataclasses.fields(kind):
            if field.init and not isinstance(field.default, str) and field.name != "inner":
                with pytest.raises(st.InvalidProblem, match=field.name):
                    words.solver(f"{name}:{field.name}=word")


def test_every_solver_has_a_word():
    for name, kind in words.solvers().items():
        assert words.solver(name) == kind() == words.solver(kind.__name__)


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("1e-3", 1e-3), ("true", True), ("(1, 2)", (1, 2)), ("1,2", (1, 2)), ("boxes", "boxes")],
)
def test_values(text, value):
    assert words.parameters([f"a={text}"]) == {"a": value}


def test_table():
    assert (
        table(("a", "number"), [["x", "1"], ["long", "20"]], numbers=(1,)) == "a     number\nx          1\nlong      20"
    )


WEDGED = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <geom type="box" size="0.1 1 1" pos="-0.199 0 0"/><geom type="box" size="0.1 1 1" pos="0.199 0 0"/>
  <body><joint type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.1 0.1"/></body>
</worldbody></mujoco>"""


def test_a_run_goes_on_after_steps_that_are_not_solved_if_asked_to(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wedged.xml").write_text(WEDGED)
    assert main(["run", "wedged.xml", "--seconds", "0.006"]) == 0  # contradictions are no failure
    (tmp_path / "resting.xml").write_text(RESTING)
    assert main(["run", "resting.xml", *IDLE, "--seconds", "0.006"]) == 1
    assert "after 0 steps" in capsys.readouterr().err
    assert main(["run", "resting.xml", *IDLE, "--seconds", "0.006", "--on-failure", "best"]) == 0
    assert "not certified: 3 of these steps; the best answer was taken" in capsys.readouterr().out
    for options, told in (
        (["--on-failure", "ignore"], "stiction: --on-failure must be 'raise' or 'best', got 'ignore'"),
        (["--on-failure", "best", "--stepper", "event-driven"], "--on-failure is for time-stepping, not event-driven"),
    ):
        assert main(["run", "wedged.xml", *options]) == 2
        assert told in capsys.readouterr().err


def test_a_run_tells_in_how_many_steps_contacts_lifted(monkeypatch, capsys):
    """Such steps are certified, but not for Coulomb's law as it is."""
    speeds = iter([0.0, 2e-3, 1e-3, *[0.0] * 100])
    made = st.Simulation.step

    def step(simulation):
        report = made(simulation)
        assert report.solution.ok  # from now on the report has the speed by itself
        report._lift = next(speeds)
        return report

    monkeypatch.setattr(st.Simulation, "step", step)
    assert main(["run", "block-stack", "--seconds", "0.05"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "2 of these steps were solved only with contacts that lift as they slide, at 2.0e-03 m/s at most" in told
