"""What answers look like at a prompt and in a notebook."""

from __future__ import annotations

import numpy as np

import stiction as st
from stiction.solutions.notebook import MOST, contacts, table, variables

LINE = 120


def test_answers_fit_a_line_and_say_what_matters():
    scene = st.Scene.named("pinched-capsule")
    assert repr(scene) == (
        "<Scene 'A capsule pinched with 10 N a pad': 3 bodies, 8 velocities, 2 actuators, time step 0.002 s>"
    )
    simulation = st.Simulation(scene)
    for _ in range(3):
        report = simulation.step()
    assert repr(report).startswith("<Report at 0.006 s: 4 contacts (4 stick), solved by ConeNewton, ")
    assert repr(report.solution).startswith("<ContactSolution 4 contacts (4 stick): solved by ConeNewton, ")
    solved = st.solve(st.LCP([[2.0, 1.0], [1.0, 2.0]], [-5.0, -4.0]))
    assert repr(solved).startswith("<Solution n = 2: solved by ")
    failed = st.solve(st.LCP([[0.0]], [-1.0]), st.Lemke(), throw=False)
    assert repr(failed).startswith("<Solution n = 1: not solved (ray) by Lemke, 1 iteration, residual ")
    for each in (scene, report, report.solution, solved, failed):
        assert len(repr(each)) <= LINE
        assert "-0.0e" not in repr(each)


def test_unnamed_models_are_named_after_their_file(tmp_path):
    (tmp_path / "arm.xml").write_text("<mujoco><worldbody/></mujoco>")
    assert repr(st.Scene.load(tmp_path / "arm.xml")) == "<Scene 'arm': empty, time step 0.002 s>"
    assert "without a name" in repr(st.Scene.from_xml("<mujoco><worldbody/></mujoco>"))


def test_answers_are_tables_in_notebooks():
    solved = st.solve(st.LCP([[2.0, 1.0], [1.0, 2.0]], [-5.0, -4.0]))
    shown = solved._repr_html_()
    assert shown.count("<tr>") == 3
    assert ">2</td>" in shown
    simulation = st.Simulation(st.Scene.named("pinched-capsule"))
    report = simulation.step()
    shown = report._repr_html_()
    assert "energy" in shown
    assert shown.count("<tr>") == 5
    assert "normal [N s]" in report.solution._repr_html_()


def test_long_tables_are_cut_and_names_are_harmless():
    assert "… and 5 more" in variables("many", np.zeros(MOST + 5), np.zeros(MOST + 5))
    shown = table("<script>", ("a", "b"), [["<b>", "1"]])
    assert "<script>" not in shown
    assert "&lt;b&gt;" in shown
    assert "<tbody></tbody>" in contacts("none", type("S", (), {"impulse": np.zeros((0, 3))}))
