"""What pictures show: the subject, large enough; its words; its colours without colour. And the model as it was."""

from __future__ import annotations

import itertools
import urllib.request

import mujoco
import numpy as np
import pytest
from opengl import needs_opengl
from PIL import Image

import stiction as st
from stiction.bodies.state import model_bytes
from stiction.scenes import SCENES
from stiction.solutions.contact import Mode
from stiction.viewer import backdrop, brand, caption, film_cones, palette
from stiction.viewer.browser import NARROW, Viewer
from stiction.viewer.forces import LOOKS, cones
from stiction.viewer.pictures import Pictures, laid_over
from stiction.viewer.replay import Replay
from stiction.viewer.shine import SCRIPT as SHINING
from stiction.viewer.shine import SHINE
from stiction.viewer.start import GALLERY, picture_of

GREY = """<mujoco model="two"><worldbody>
  <body><freejoint/><geom name="plain" size="0.1"/></body>
  <body pos="1 0 0"><freejoint/><geom name="other" size="0.1"/></body>
  <body pos="2 0 0"><freejoint/><geom name="red" size="0.1" rgba="1 0 0 1"/></body>
</worldbody></mujoco>"""


# Colours


def test_the_two_modes_are_told_apart_in_print_and_by_shape():
    stick, slide = LOOKS[Mode.STICK], LOOKS[Mode.SLIDE]
    assert palette.grey(slide.colour) - palette.grey(stick.colour) > 0.25
    assert slide.shaft < 0.6 * stick.shaft
    assert stick.symbol != slide.symbol


@pytest.mark.parametrize("theme", palette.THEMES)
def test_lines_are_told_apart_and_from_their_paper(theme):
    chosen = palette.THEMES[theme]
    seen = [np.array([int(line[k : k + 2], 16) for k in (1, 3, 5)]) for line in (chosen.paper, *chosen.lines)]
    for one, two in itertools.combinations(seen, 2):
        assert np.abs(one - two).max() >= 25
    for line in seen[1:]:
        assert abs(palette.grey(tuple(line)) - palette.grey(tuple(seen[0]))) > 0.2


# Pictures


def covered(pictures: Pictures) -> np.ndarray:
    """Where bodies are, those that move and those of the machine around them; floors and walls are not."""
    pictures.take()
    for geom in pictures.scene.geoms[: pictures.scene.ngeom]:
        own = geom.category != mujoco.mjtCatBit.mjCAT_DECOR and geom.objtype == mujoco.mjtObj.mjOBJ_GEOM
        if not own or geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.pos[:] = 1e6
    return pictures._drawn(pictures.scene)[1] < 1.0


@needs_opengl
@pytest.mark.parametrize("name", SCENES)
def test_the_subject_covers_a_tenth_of_the_picture_or_spans_it(name):
    simulation = st.Simulation(st.Scene.named(name))
    pictures = Pictures(simulation, 240, 160, forces=False, words=False)
    mask = covered(pictures)
    pictures.close()
    down, across = (np.ptp(np.flatnonzero(mask.any(axis=axis))) / mask.shape[1 - axis] for axis in (1, 0))
    assert mask.mean() >= 0.1 or max(down, across) > 0.55, "slender things are as long as the picture allows"
    assert max(down, across) < 0.97 or name == "conveyor", "nothing is cut off but a belt that comes from outside"


@needs_opengl
def test_what_walks_stays_in_the_picture():
    simulation = st.Simulation(st.Scene.named("sliding-cube"))
    pictures = Pictures(simulation, 240, 160, forces=False, words=False)
    shares = []
    for k, _ in enumerate(simulation.run(0.6)):
        pictures.follower.look(simulation.data)
        if k % 20 == 19:
            shares.append(covered(pictures).mean())
    pictures.close()
    assert simulation.data.qpos[0] > 0.4  # m: more than four times its edge
    assert min(shares) > 0.1


@needs_opengl
def test_pictures_and_pages_leave_the_model_as_it_was(tmp_path):
    simulation = st.Simulation(st.Scene.named("block-stack", blocks=2))
    simulation.step()
    before = model_bytes(simulation.model)
    pictures = Pictures(simulation, 160, 120)
    pictures.take()
    pictures.close()
    pictures.close()
    replay = Replay(simulation, tmp_path / "a.html", 10.0)
    replay.add()
    replay.close()
    assert np.array_equal(model_bytes(simulation.model), before)


@needs_opengl
def test_the_caption_tells_scene_law_engine_and_time():
    simulation = st.Simulation(st.Scene.named("block-stack", blocks=2), st.Coulomb(facets=4))
    for _ in range(3):
        simulation.step()
    assert caption.words_of(simulation).startswith("A stack of 2 blocks")
    assert caption.words_of(simulation).endswith(" · Coulomb, 4 facets law · stiction · 0.03 s")
    shown = []
    for words in (True, False):
        pictures = Pictures(simulation, 640, 360, forces=False, words=words)
        shown.append(pictures.take().astype(int))
        pictures.close()
    differs = np.abs(shown[0] - shown[1]).max(axis=2) > 60
    assert differs.sum() > 300
    assert not differs[:300].any(), "words are at the bottom"
    told = caption.law_words(st.NoSlip()), caption.law_words(st.Coulomb()), caption.law_words(st.BoxFriction())
    assert told == ("no slip", "Coulomb", "box friction")


@pytest.mark.parametrize("installed", [True, False])
def test_no_letter_is_a_box(installed, monkeypatch):
    """With Matplotlib's face all letters are there; without it, those that are not are left out or replaced."""
    for each in (caption.font, caption.full_face):
        each.cache_clear()
    if not installed:
        monkeypatch.setattr(caption, "find_spec", lambda name: None)
    text = caption.written("Lacoursière – 54 µm/s · 2 s …")
    assert text == ("Lacoursière – 54 µm/s · 2 s …" if installed else "Lacoursiere - 54 um/s · 2 s ...")
    face = caption.font(20)
    box = bytes(face.getmask("\u4e00"))
    assert [letter for letter in text if letter != " " and bytes(face.getmask(letter)) == box] == []
    for each in (caption.font, caption.full_face):
        each.cache_clear()


def test_long_words_are_cut_to_the_picture():
    blank = np.full((90, 160, 3), 200, np.uint8)
    made = caption.Caption(160, 90).write(blank, ["far too long a line " * 20], legend=True)
    assert made.shape == blank.shape
    assert (made != blank).any()
    assert (made[:40] == 200).all()


def test_arrows_shine_through_what_is_in_front_of_them():
    below, ink = np.full((5, 5, 3), 100, np.uint8), np.full((5, 5, 3), 20, np.uint8)
    there, in_front = np.zeros((5, 5), bool), np.zeros((5, 5), bool)
    there[2, 2:4] = True
    in_front[2, 3] = True
    made = laid_over(below, ink, there, in_front, rim=1)
    assert made[2, 3].tolist() == [20, 20, 20]
    assert made[2, 2].tolist() == [round(100 - SHINE * 80)] * 3
    assert made[1, 2].min() > 180, "a pale rim"
    assert made[0, 0].tolist() == [100, 100, 100]


BALL = """<mujoco><worldbody><light pos="0 0 3"/>
  <body pos="0.3 -0.2 0.4"><freejoint/><geom size="0.02" rgba="1 0 0 1"/></body>
  <body pos="0 0 0"><freejoint/><geom size="0.2" rgba="0 0 1 1"/></body></worldbody></mujoco>"""


@needs_opengl
@pytest.mark.parametrize("camera", [None, (200.0, -40.0)])
def test_points_are_projected_to_where_mujoco_draws_them(camera):
    simulation = st.Simulation(st.Scene.from_xml(BALL))
    pictures = Pictures(simulation, 320, 200, camera=camera, forces=False, words=False)
    red, green, blue = np.moveaxis(pictures.take().astype(int), 2, 0)
    projection = film_cones.Projection.of(pictures.scene, 320, 200)
    pictures.close()
    rows, columns = np.nonzero((red > 2 * green) & (red > 2 * blue))
    assert rows.size > 20
    x, y = projection.pixels(simulation.data.xpos[1])
    assert (columns.mean() + 0.5, rows.mean() + 0.5) == pytest.approx((x, y), abs=1.0)
    assert np.isnan(projection.pixels(projection.position - projection.axes[2])).all(), "behind the camera"


@needs_opengl
def test_films_show_friction_cones_through_bodies_in_the_colours_of_the_modes():
    for name, mode in (("block-on-tripod", Mode.STICK), ("sliding-cube", Mode.SLIDE)):
        simulation = st.Simulation(st.Scene.named(name))
        for _ in simulation.run(0.05):
            pass
        shown = {}
        for wanted in (False, True):
            pictures = Pictures(simulation, 320, 200, forces=False, words=False, cones=wanted)
            shown[wanted] = pictures.take().astype(float)
            size, projection = pictures.scale.size, film_cones.Projection.of(pictures.scene, 320, 200)
            pictures.close()
        made = cones(simulation, simulation.contacts, height=film_cones.HEIGHT * size)
        assert len(made.apex) == len(simulation.contacts)
        middle = np.mean(film_cones.rims(made, 32, 0.0, 1.0), axis=1)
        for x, y in projection.pixels(0.4 * made.apex + 0.6 * middle):  # inside, also of those behind the body
            before, after = (shown[wanted][int(y), int(x)] for wanted in (False, True))
            colour = np.array(LOOKS[mode].colour, float)
            assert np.linalg.norm(after - colour) < np.linalg.norm(before - colour)
    slippery = st.Simulation(st.Scene.named("block-on-tripod"), st.Frictionless())
    slippery.step()
    pair = []
    for wanted in (False, True):
        pictures = Pictures(slippery, 160, 100, cones=wanted)
        pair.append(pictures.take())
        pictures.close()
    assert np.array_equal(*pair)


def test_bodies_without_a_colour_get_one_each():
    import copy

    model = st.Scene.from_xml(GREY).model
    shown = copy.copy(model)
    backdrop.tint(shown)
    one, two, red = (shown.geom(name).rgba[:3] for name in ("plain", "other", "red"))
    assert np.abs(one - two).max() > 0.1
    assert red.tolist() == [1.0, 0.0, 0.0]
    assert model.geom("plain").rgba[:3].tolist() == [0.5, 0.5, 0.5]


DRESSED = """<mujoco><asset>
  <texture name="sky" type="skybox" builtin="flat" rgb1="1 0 0" width="32" height="32"/>
  <texture name="tiles" type="2d" builtin="flat" rgb1="0 0.8 0" width="32" height="32"/>
  <material name="tiles" texture="tiles"/></asset>
<worldbody><geom type="plane" size="0 0 1" material="tiles"/>
  <body pos="0 0 0.1"><freejoint/><geom size="0.1" rgba="0 0 1 1"/></body></worldbody></mujoco>"""


@needs_opengl
def test_a_model_keeps_the_sky_and_the_floor_that_it_brings():
    simulation = st.Simulation(st.Scene.from_xml(DRESSED))
    assert backdrop.own_sky(simulation.model)
    assert not backdrop.own_sky(st.Scene.named("box-on-plane").model)
    pictures = Pictures(simulation, 160, 120, words=False)
    shown = pictures.take().astype(int)
    pictures.close()
    top, bottom = shown[2, 80], shown[-2, 80]
    assert top[0] > 150 > 2 * max(top[1], top[2]), "red sky"
    assert bottom[1] > 2 * max(bottom[0], bottom[2]), "green floor"


@pytest.mark.parametrize(("name", "floor"), [
    ("box-on-plane", True), ("inclined-plane", True), ("pinched-capsule", False), ("block-in-groove", False),
    ("peg-in-hole", False),
])  # fmt: skip
def test_there_is_a_floor_where_the_scene_has_one(name, floor):
    assert (backdrop.floor_of(st.Scene.named(name).model) is not None) == floor


@pytest.mark.parametrize(("distance", "side"), [(8.0, 1.0), (15.9, 1.0), (16.0, 2.0), (0.9, 0.1), (4e-4, 5e-5)])
def test_tiles_have_a_round_size(distance, side):
    assert backdrop.tile_size(distance) == pytest.approx(side)


def test_the_sky_ends_at_the_horizon():
    made = backdrop.sky(3, 100, horizon=0.2)
    assert made.shape == (100, 3, 3)
    assert made[50, 0].tolist() == list(backdrop.HORIZON)
    assert made[0, 0, 0] < made[30, 0, 0]
    image = backdrop.checkers(2)
    middle = len(image) // 2
    assert image[middle, middle, 3] == 255
    assert image[0, 0, 3] == 0


def test_there_is_a_small_picture_of_every_named_scene():
    assert {path.stem for path in GALLERY.glob("*.webp")} == set(SCENES)
    for name in SCENES:
        picture = picture_of(name)
        assert picture is not None
        assert picture.shape == (320, 480, 3)
        assert picture.std() > 5.0, f"{name} shows nothing"
        assert (GALLERY / f"{name}.webp").stat().st_size < 40_000
    assert picture_of("nothing") is None
    Image.open(GALLERY / "dominoes.webp").verify()


# Pages


def test_pages_have_our_name_and_icon():
    page = brand.branded('<html><head><link rel="icon" href="x"><title>Viser</title></head></html>', "<b> & co.")
    assert "<title>&lt;b&gt; &amp; co – stiction</title>" in page
    assert page.count('rel="icon"') == 1
    assert "data:image/svg+xml" in page
    assert page.count(SHINING) == 1
    assert brand.title_words("") == "stiction"


def test_the_live_page_has_our_name_and_narrow_ones_fold_their_panel():
    viewer = Viewer(st.Simulation(st.Scene.named("box-on-plane")), port=0)
    try:
        page = urllib.request.urlopen(viewer.url).read().decode()
        assert "<title>A box on a plane – stiction</title>" in page
        assert "<title>Viser" not in page
        for width, wanted in ((NARROW - 1, ["minimize"]), (NARROW, ["dock_right"])):
            done: list[str] = []
            viewer._welcome(Guest(width, done))
            assert done == wanted
        assert viewer.watched.is_set()
    finally:
        viewer.close()


class Guest:
    """A client that remembers what its panel was told."""

    def __init__(self, width: int, done: list[str]) -> None:
        self.camera = type("Camera", (), {"image_width": width})
        panel = type("Panel", (), {name: lambda _, name=name: done.append(name) for name in ("minimize", "dock_right")})
        self.gui = type("Gui", (), {"main_panel": panel()})


def test_the_scene_is_moved_under_a_camera_that_stays_and_the_floor_with_it():
    viewer = Viewer(st.Simulation(st.Scene.named("sliding-cube")), port=0)
    try:
        stage, simulation = viewer.stage, viewer.session.simulation
        for _ in simulation.run(0.5):
            pass
        viewer.shown.show(viewer.session.look())
        stage.draw(simulation.contacts)
        slid = simulation.data.xpos[1]
        assert stage.offset[0] == pytest.approx(slid[0], abs=0.2 * stage.follower.first.distance)
        tiles = stage._floor[0]
        side = backdrop.tile_size(stage.follower.first.distance)
        assert abs(tiles.position[0] - stage.follower.first.centre[0]) < 2.0 * side, "under what is looked at"
        steps = (np.array(tiles.position)[:2] + stage.offset[:2]) / (2.0 * side)
        assert steps == pytest.approx(np.round(steps), abs=1e-6), "its squares stay where they are"
        (group,) = [handle for handle, bodies in stage.draggable() if 1 in bodies]
        assert group.batched_positions[0] + stage.offset == pytest.approx(slid, abs=1e-6)
        assert "0.50 s" in stage._caption.text
        before = stage.offset
        stage.follows = False
        for _ in simulation.run(0.1):
            pass
        viewer.shown.show(viewer.session.look())
        stage.draw(simulation.contacts)
        assert np.array_equal(stage.offset, before)
    finally:
        viewer.close()
