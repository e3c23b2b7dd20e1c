"""Scenes: loading, reports, settings, errors."""

from __future__ import annotations

import re
import sys

import mujoco
import numpy as np
import pytest

from stiction import optional
from stiction.bodies.report import STANDARD
from stiction.bodies.scene import Scene
from stiction.bodies.state import model_bytes
from stiction.bodies.structs import DATA, MODEL, memory
from stiction.errors import InvalidScene, MissingDependency

BOX = """<mujoco model="a box"><worldbody><geom type="plane" size="1 1 1"/>
<body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" {geom}/></body></worldbody>{more}</mujoco>"""
ROBOT = """<robot name="arm">
<link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><mesh filename="{mesh}"/></geometry></collision></link>
<link name="tip"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def box(geom: str = "", more: str = "") -> str:
    return BOX.format(geom=geom, more=more)


def robot(folder, mesh: str):
    (folder / "urdf").mkdir()
    path = folder / "urdf" / "arm.urdf"
    path.write_text(ROBOT.format(mesh=mesh))
    return path


def test_a_file_is_a_scene(tmp_path):
    path = tmp_path / "box.xml"
    path.write_text(box())
    scene = Scene.load(path)
    assert (scene.model.nv, scene.description) == (6, "a box")
    assert Scene.load(str(path), ground=-0.5).model.ngeom == 3


def test_any_model_is_a_scene_and_stays_as_it_is():
    model = mujoco.MjModel.from_xml_string(
        box('margin=".003"', '<option integrator="RK4" solver="PGS" cone="pyramidal"/>')
    )
    before = model_bytes(model)
    scene = Scene.of(model)
    assert scene.model is model
    scene.bind(scene.data())
    scene.restore()
    assert np.array_equal(model_bytes(model), before)


def test_a_keyframe_named_start_is_where_it_starts():
    scene = Scene.from_xml(box(more='<keyframe><key name="start" qpos="1 2 3 1 0 0 0"/></keyframe>'))
    assert scene.data().qpos[:3].tolist() == [1.0, 2.0, 3.0]


def test_named_scenes_are_found():
    scene = Scene.named("block-stack", blocks=2)
    assert scene.model.ntree == 2
    assert scene.description
    scene.check()
    with pytest.raises(InvalidScene, match="there is no scene 'pendulum'; there are .*block-stack"):
        Scene.named("pendulum")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody>", "scene: .*XML"),
        ("<mujoco><worldbody><geom type='cube' size='1'/></worldbody></mujoco>", "scene: .*cube"),
        ("<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>", "scene: .*mass"),
    ],
)
def test_broken_text_is_told_in_one_line(text, message):
    with pytest.raises(InvalidScene, match=message) as caught:
        Scene.from_xml(text)
    assert "\n" not in str(caught.value)


def test_broken_files_are_told_in_one_line(tmp_path):
    with pytest.raises(InvalidScene, match=r"nowhere\.xml: no such file"):
        Scene.load(tmp_path / "nowhere.xml")
    path = tmp_path / "broken.urdf"
    path.write_text("<robot><link></robot>")
    with pytest.raises(InvalidScene, match=r"broken\.urdf: not well-formed XML") as caught:
        Scene.load(path)
    assert str(caught.value).count("broken.urdf") == 1
    path.write_text("<mujoco/>")
    with pytest.raises(InvalidScene, match="a URDF begins with <robot>, not with <mujoco>"):
        Scene.load(path)


@pytest.mark.parametrize("model", [None, "box.xml", 3])
def test_only_models_are_models(model):
    with pytest.raises(InvalidScene, match="model must be an MjModel, got"):
        Scene.of(model)


def test_options_are_checked():
    with pytest.raises(InvalidScene, match=r"margin must be a distance in m, or None, got -1\.0"):
        Scene.from_xml(box(), margin=-1.0)
    with pytest.raises(InvalidScene, match="ignore must be a tuple of names"):
        Scene.from_xml(box(), ignore=("gravity",))


def test_the_report_says_what_is_used_and_ignored():
    xml = box(
        'solref=".01 1" margin=".001" condim="1"',
        '<option integrator="implicitfast" noslip_iterations="3" cone="pyramidal"/>'
        '<equality><connect body1="box" body2="world" anchor="0 0 0"/></equality>',
    )
    report = Scene.from_xml(xml).report()
    assert report.refused == ()
    assert "joints: 1 free" in report.used
    assert "1 connect constraint, as hard bilateral rows" in report.used
    text = str(report)
    for word in ("solref of 1 geom", "margin of geoms", "integrator implicitfast", "noslip", "pyramidal"):
        assert word in text.partition("ignored:")[2].partition("refused:")[0]
    assert text.endswith("refused:\n  nothing")


def test_torsion_is_used_unless_it_is_to_be_ignored():
    turning = box('condim="4"')
    assert any("torsional and rolling friction" in line for line in Scene.from_xml(turning).report().used)
    report = Scene.from_xml(turning, ignore=("torsion",)).report()
    assert not any("torsional" in line for line in report.used)
    assert any("torsional and rolling friction" in line and "on request" in line for line in report.ignored)


def test_moving_surfaces_are_used_unless_they_are_to_be_ignored():
    speed = 'surfacevel="1 0 0 0 0 0"'
    geoms = "".join(f'<geom name="g{k}" size=".1" {speed if k != 2 else ""}/>' for k in range(5))
    body = f'<body name="ball"><freejoint/><geom size=".1" {speed}/>{geoms}</body>'
    xml, who = f"<mujoco><worldbody>{body}</worldbody></mujoco>", "of geom 0 of body 'ball', geom 'g0', geom 'g1' and 2"
    report = Scene.from_xml(xml).report()
    assert not report.refused
    assert any(f"surfacevel (moving surfaces) {who}" in line for line in report.used)
    report = Scene.from_xml(xml, ignore=("surfacevel",)).report()
    assert not any("surfacevel" in line for line in report.used)
    assert any(who in line and "on request" in line for line in report.ignored)


def test_what_is_refused_is_refused():
    cloth = (
        '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01" mass="1">'
        '<elasticity young="1e3" poisson=".1" thickness=".01" elastic2d="both"/></flexcomp>'
    )
    scene = Scene.from_xml(f"<mujoco><worldbody>{cloth}</worldbody></mujoco>")
    with pytest.raises(InvalidScene, match="1 flexible body, flex 'cloth'"):
        scene.bind(scene.data())


def test_how_contacts_are_found_is_told():
    terrain = '<asset><hfield name="h" nrow="3" ncol="3" size="1 1 .1 .1"/></asset>'
    world = '<geom type="hfield" hfield="h"/><body><freejoint/><geom type="cylinder" size=".1 .1"/></body>'
    used = Scene.from_xml(f"<mujoco>{terrain}<worldbody>{world}</worldbody></mujoco>").report().used
    assert any("1 heightfield, without those of inner edges" in line for line in used)
    assert any("1 cylinder with planes, boxes" in line for line in used)


@pytest.mark.parametrize("where", ["given", "above"])
def test_meshes_of_packages_are_found(tmp_path, where):
    folder = tmp_path / ("elsewhere" if where == "given" else "arm_description")
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "base.obj").write_text(TETRAHEDRON)
    path = robot(tmp_path, "package://arm_description/meshes/base.obj")
    packages = {"arm_description": folder} if where == "given" else None
    scene = Scene.load(path, packages=packages, ground=0.0)
    assert (scene.model.nv, scene.model.nmesh) == (1, 1)
    assert mujoco.mj_name2id(scene.model, mujoco.mjtObj.mjOBJ_GEOM, "ground") >= 0
    floating = Scene.load(path, packages=packages, floating=True)
    assert (floating.model.nv, floating.model.ntree) == (7, 1)


def test_missing_meshes_are_told(tmp_path):
    path = robot(tmp_path, "package://arm_description/meshes/base.obj")
    message = r"arm\.urdf: package://arm_description/meshes/base\.obj not found; pass packages="
    with pytest.raises(InvalidScene, match=message):
        Scene.load(path)


def test_memory_is_where_mujoco_keeps_it():
    """Every field is compared with MuJoCo's attribute when memory is made; here after a step, in place."""
    scene = Scene.from_xml(box())
    data = scene.data()
    view = memory(scene.model, data)
    data.qpos[2] = 0.099
    mujoco.mj_forward(scene.model, data)
    assert view.data[0]["nefc"] == data.nefc > 0
    assert view.data[0]["efc_J"] == data.efc_J.ctypes.data
    assert view.data[0]["contact"] == data.contact.dist.ctypes.data
    assert view.where[0] == data.contact.dist.strides[0]
    assert view.where[2] == data.contact.pos.ctypes.data - data.contact.dist.ctypes.data
    assert len(view.model.dtype.names) == len(MODEL)
    assert len(view.data.dtype.names) == len(DATA)


def test_memory_that_lies_is_caught(monkeypatch):
    scene = Scene.from_xml(box())
    data = scene.data()
    other = scene.data()

    class Liar:
        _address = other._address

        def __getattr__(self, name):
            return getattr(data, name)

    with pytest.raises(RuntimeError, match="does not keep qpos where its introspection says"):
        memory(scene.model, Liar())


def test_without_mujoco_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    message = re.escape("scenes and simulation need mujoco: pip install 'stiction[sim]'")
    with pytest.raises(MissingDependency, match=message):
        optional.mujoco()


def test_an_old_mujoco_is_told(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "3.17.0")
    with pytest.raises(MissingDependency, match=r"need mujoco 4\.0 or newer, not 3\.17\.0"):
        optional.mujoco()


def test_standards_are_those_of_mujoco():
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    assert model.geom_solref[0].tolist() == list(STANDARD["solref"])
    assert model.geom_solimp[0].tolist() == list(STANDARD["solimp"])
    assert model.opt.impratio == STANDARD["impratio"]


SOFT = """<mujoco>{option}<worldbody>
<body><joint name="a" type="slide" limited="true" range="-1 1" frictionloss="1" {joint}/>
<geom name="g" size=".1"/></body>
<body pos="3 0 0"><joint name="b" type="slide"/><geom name="h" size=".1"/></body></worldbody>
<contact><pair geom1="g" geom2="h" {pair}/></contact>
<tendon><fixed limited="true" range="0 1" frictionloss="1" {tendon}><joint joint="b" coef="1"/></fixed></tendon>
<equality><joint joint1="b" polycoef="0 1 0 0 0" {equality}/></equality></mujoco>"""


def soft(**given):
    parts = dict.fromkeys(("option", "joint", "pair", "tendon", "equality"), "") | given
    return Scene.from_xml(SOFT.format(**parts)).report().ignored


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"joint": 'solreflimit=".01 1"'}, "solref of 1 joint limit: limits are rigid"),
        ({"joint": 'solimplimit=".9 .99 .001 .5 2"'}, "solimp of 1 joint limit"),
        ({"joint": 'solreffriction=".01 1"'}, "solref of 1 dry friction: friction of joints is exact"),
        ({"joint": 'solimpfriction=".9 .99 .001 .5 2"'}, "solimp of 1 dry friction"),
        ({"tendon": 'solreflimit=".01 1"'}, "solref of 1 tendon limit: limits are rigid"),
        ({"tendon": 'solimpfriction=".9 .99 .001 .5 2"'}, "solimp of 1 tendon's dry friction"),
        ({"pair": 'solref=".01 1"'}, "solref of 1 contact pair: contact is rigid"),
        ({"pair": 'solimp=".9 .99 .001 .5 2"'}, "solimp of 1 contact pair"),
        ({"pair": 'solreffriction=".01 1"'}, "solreffriction of contact pairs"),
        ({"option": '<option integrator="RK4"/>'}, "integrator RK4 becomes semi-implicit Euler"),
        ({"option": '<option integrator="implicitfast"/>'}, "integrator implicitfast becomes semi-implicit Euler"),
    ],
)
def test_what_makes_constraints_soft_is_reported_as_ignored(given, line):
    plain = soft()
    assert not any("solref" in each or "solimp" in each or "integrator" in each for each in plain)
    (found,) = set(soft(**given)) - set(plain)
    assert found.startswith(line)
