"""Looking back, going on from there, one contact looked at closely, films of what was: without a browser."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from numba import njit

import stiction as st
from stiction.viewer import page
from stiction.viewer.browser import Viewer
from stiction.viewer.compiling import compiling
from stiction.viewer.forces import cones
from stiction.viewer.history import History, Shown
from stiction.viewer.keys import KEYS
from stiction.viewer.pick import Pick, facts, label, labels
from stiction.viewer.session import SPEEDS, Session, keyframes
from stiction.viewer.takes import Take, free_path

GRAVITY = 9.81
KEYED = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="2 2 .1"/>
<body name="box" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<geom type="box" size=".1 .1 .1" mass="2" friction="0.5 0 0"/></body></worldbody>
<actuator><motor name="push" joint="x" ctrlrange="-30 30"/><motor name="free" joint="z"/></actuator>
<keyframe><key name="left" qpos="-1 0" ctrl="3 0"/><key name="right" qpos="1 0" ctrl="-4 0"/></keyframe></mujoco>"""


def session(name="box-on-plane") -> Session:
    return Session(st.Simulation(st.Scene.named(name)))


def steps(held: Session, count: int) -> None:
    for _ in range(count):
        assert held.step(), held.failure


def on_page(held_of=None, **options) -> Viewer:
    scene = st.Scene.named("box-on-plane") if held_of is None else held_of
    return Viewer(st.Simulation(scene), port=0, **options)


def test_going_on_from_a_moment_makes_the_same_bits_again():
    held = session("sliding-cube")
    steps(held, 15)
    moment = held.moment
    steps(held, 15)
    end = held.simulation.data.qpos.copy(), held.simulation.data.qvel.copy(), held.moment.contacts.force
    assert len(held.history) == 31
    held.go_on(moment)
    assert held.history.span[1] == moment.time == held.simulation.time
    assert len(held.history) == 16
    steps(held, 15)
    again = held.simulation.data.qpos, held.simulation.data.qvel, held.moment.contacts.force
    for one, two in zip(end, again, strict=True):
        assert np.array_equal(one, two)


def test_the_scene_that_drives_itself_goes_on_as_it_did():
    held = session("block-feeder")
    steps(held, 10)
    moment = held.moment
    steps(held, 10)
    end = held.simulation.data.qpos.copy()
    held.go_on(moment)
    steps(held, 10)
    assert np.array_equal(held.simulation.data.qpos, end)


def test_a_moment_shows_bodies_where_its_contacts_are():
    held = session("sliding-cube")
    steps(held, 10)
    moment, bodies = held.moment, held.simulation.data.xpos.copy()
    geoms = held.simulation.data.geom_xpos.copy()
    opened = cones(held.simulation, held.simulation.contacts)
    steps(held, 20)
    shown = Shown(held.simulation, moment)
    assert np.array_equal(shown.data.xpos, bodies)
    assert np.array_equal(shown.data.geom_xpos, geoms)
    assert not np.array_equal(held.simulation.data.xpos, bodies)
    again = cones(shown, moment.contacts, moment.friction)
    for one, two in zip(opened, again, strict=True):
        assert np.array_equal(one, two)


def test_so_many_moments_are_kept_and_no_more_bytes_than_allowed():
    held = session()
    steps(held, 40)
    whole = held.history.since(-1.0)
    few = History(frames=10)
    for each in whole:
        few.add(each)
    assert (len(few), few.span) == (10, (whole[-10].time, whole[-1].time))
    assert few.bytes == sum(each.bytes for each in few.since(-1.0))

    small = History(most=10 * whole[-1].bytes)
    for each in whole:
        small.add(each)
    kept = small.since(-1.0)
    assert small.bytes == sum(each.bytes for each in kept) <= small.most
    assert len(kept) > 12, "the oldest give up their impulses before they are forgotten"
    assert kept[0].step is None
    assert kept[-1].step is not None
    held.go_on(kept[0])  # without a warm start
    steps(held, 3)

    small.add(whole[20])  # another course
    assert small.span[1] == whole[20].time
    assert small.at(-1e9) is small.since(-1.0)[0]
    assert small.before(small.span[0]) is small.after(small.span[1]) is None
    assert small.bytes == sum(each.bytes for each in small.since(-1.0))
    small.clear()
    assert (len(small), small.bytes, small.at(0.0)) == (0, 0, None)


def test_a_pull_is_no_part_of_what_goes_on():
    held = session()
    steps(held, 3)
    held.grab(1, held.simulation.data.xpos[1])
    held.drag(held.simulation.data.xpos[1] + 0.3)
    steps(held, 3)
    assert held.simulation.data.xfrc_applied.any()
    held.go_on(held.moment)
    assert held.hand.grip is None
    assert not held.simulation.data.xfrc_applied.any()


def test_a_chosen_contact_is_found_again_and_its_numbers_are_those_of_physics():
    held = Session(st.Simulation(st.Scene.from_xml(KEYED)))
    held.hand.held = {0: 5.0}
    steps(held, 30)
    contacts = held.moment.contacts
    assert labels(contacts)[1] == label(contacts, 1) == "2: world – box"
    picks = [Pick(contacts, i) for i in range(len(contacts))]
    steps(held, 1)
    contacts = held.moment.contacts
    assert [pick.find(contacts) for pick in picks] == list(range(len(contacts)))
    assert picks[0].find(None) is None

    told = [dict(facts(held.moment, i)) for i in range(len(contacts))]
    assert {each["mode"] for each in told} == {"stick"}
    assert sum(float(each["normal force"].split()[0]) for each in told) == pytest.approx(2.0 * GRAVITY, rel=1e-3)
    assert sum(float(each["friction"].split()[0]) for each in told) == pytest.approx(5.0, rel=1e-3)
    used = [float(each["of the cone"].split()[0]) for each in told if "of the cone" in each]
    assert 0.0 < min(used) <= max(used) <= 100.0
    held.hand.held = {0: 20.0}  # more than friction holds
    steps(held, 10)
    told = dict(facts(held.moment, 0))
    assert told["mode"] == "slide"
    assert float(told["of the cone"].split()[0]) == pytest.approx(100.0, abs=0.1)
    speed = held.simulation.data.qvel[0]
    assert float(told["slip"].split()[0]) == pytest.approx(speed, rel=1e-3)
    assert "stiction-contact" in page.lines(facts(held.moment, 0), "stiction-contact")


def test_reset_to_a_keyframe_takes_its_controls_as_well():
    simulation = st.Simulation(st.Scene.from_xml(KEYED))
    assert keyframes(simulation.model) == {"the beginning": None, "left": 0, "right": 1}
    held = Session(simulation)
    assert held.keyframe is None
    steps(held, 3)
    held.hand.held = {0: 10.0}
    held.set_keyframe("right")
    assert (simulation.data.qpos[0], simulation.data.ctrl[0], held.hand.held) == (1.0, -4.0, {0: -4.0})
    assert len(held.history) == 1
    steps(held, 3)
    held.reset()
    assert simulation.data.qpos[0] == 1.0
    with pytest.raises(st.InvalidScene, match="there is no keyframe 'up'; there are the beginning, left, right"):
        held.set_keyframe("up")
    held.set_keyframe("the beginning")
    assert simulation.data.qpos[0] == 0.0


def test_what_starts_at_a_keyframe_is_reset_to_it():
    from stiction.cli.drive import Driving

    simulation = st.Simulation(st.Scene.from_xml(KEYED))
    Driving(keyframe="left").place(simulation)
    held = Session(simulation)
    steps(held, 3)
    held.reset()
    assert simulation.data.qpos[0] == -1.0


def test_pictures_go_on_while_a_step_takes_long():
    """A stepper that waits stands for a kernel that is compiled."""
    entered, ready = threading.Event(), threading.Event()

    class Waits:
        own = st.TimeStepping()

        def step(self, engine, law, solver):
            entered.set()
            assert ready.wait(60.0)
            return self.own.step(engine, law, solver)

    viewer = on_page()
    held = viewer.session
    steps(held, 20)
    held.simulation.stepper = Waits()
    viewer.start()
    try:
        viewer.watched.set()
        assert entered.wait(60.0)
        began = held.history.span[0]
        viewer._past.look_at(held.history.at(began))
        wait_for(lambda: viewer.shown.time == began)  # drawn while the step is on its way
        wait_for(lambda: viewer.stage.lines is not None and "looking back" in viewer.stage.lines[0])
        wait_for(lambda: "looking back" in viewer._status.content)
        assert held.made == 20
        viewer.now()
        ready.set()
        wait_for(lambda: held.made > 20)
    finally:
        ready.set()
        viewer.close()


def test_kernels_that_are_compiled_are_told_of():
    heard = compiling()
    time.sleep(0.0 if heard.seconds == 0.0 else 1.1)
    assert page.notice(heard.seconds, heard.kernels) == ""

    @njit
    def twice(x):
        return 2 * x

    seen = []

    class Watch(type(heard)):
        def on_start(self, event):
            super().on_start(event)
            seen.append(heard.seconds > 0.0)

    from numba.core import event

    watch = Watch()
    event.register("numba:compile", watch)
    try:
        assert twice(2) == 4
    finally:
        event.unregister("numba:compile", watch)
    assert seen
    assert all(seen)
    assert heard.kernels >= 1
    assert "Compiling kernels" in page.notice(12.0, 3)


def test_the_past_is_looked_at_played_back_and_gone_on_from():
    viewer = on_page()
    try:
        held, past = viewer.session, viewer._past
        steps(held, 30)
        viewer.backward()
        assert past.moment is held.history.before(held.moment.time)
        assert not held.playing
        viewer.backward()
        viewer._draw()
        assert viewer.shown.moment is past.moment
        viewer.forward()
        viewer.forward()
        assert past.moment is None, "the last moment is now"
        made = held.made
        viewer.forward()
        held.obey()
        assert held.made == made + 1

        past.look_at(held.history.at(0.1))
        viewer.play()
        assert (past.playing, held.playing) == (True, False)
        past.pass_time(0.05)
        assert past.moment.time == pytest.approx(0.15)
        past.pass_time(100.0)
        assert (past.moment, past.playing, held.playing) == (None, False, False)

        past.look_at(held.history.at(0.1))
        past.go_on()
        held.obey()
        assert held.playing
        assert held.simulation.time == pytest.approx(0.1)
        viewer._tell(time.perf_counter() + 1.0)
        assert viewer._past.slider.max == pytest.approx(0.1)
        viewer.reset()
        held.obey()
        assert held.simulation.time == 0.0
    finally:
        viewer.close()


def test_every_key_does_something_and_no_two_are_the_same():
    assert len({key.name for key in KEYS}) == len(KEYS)
    viewer = on_page()
    try:
        for key in KEYS:
            assert callable(getattr(viewer, key.action))
            assert key.shown in page.key_table()
        viewer.forces()
        assert not viewer.stage.show_forces
        viewer.cones()
        assert viewer.stage.show_cones
        for _ in range(10):
            viewer.faster()
        assert viewer.session.speed == SPEEDS[-1]
        viewer.slower()
        assert viewer.session.speed == SPEEDS[-2]
        viewer.play()
        viewer.session.obey()
        assert not viewer.session.playing
    finally:
        viewer.close()


def test_actuators_have_their_names_and_ranges_and_follow_a_keyframe():
    viewer = on_page(st.Scene.from_xml(KEYED))
    try:
        drive = viewer._drive
        assert [(each.label, each.min, each.max) for each in drive.sliders] == [("push", -30, 30), ("free", -1, 1)]
        viewer.session.hand.held = {0: 7.0, 1: 0.0}
        drive.follow()
        assert drive.sliders[0].value == 7.0
        assert viewer._keyframes.options == ("the beginning", "left", "right")
        viewer._keyframes.value = "right"
        viewer.session.obey()
        drive.follow()
        assert drive.sliders[0].value == -4.0
    finally:
        viewer.close()


def test_controls_that_are_given_are_held_by_sliders():
    viewer = on_page(st.Scene.from_xml(KEYED), held={0: 25.0})
    try:
        assert viewer._drive.by_hand.value
        assert viewer._drive.sliders[0].value == 25.0
        steps(viewer.session, 20)
        assert viewer.session.simulation.data.ctrl[0] == 25.0
        assert viewer.session.simulation.data.qvel[0] > 0.1  # more than friction holds
    finally:
        viewer.close()


def test_a_film_is_made_of_what_was_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    viewer = on_page()
    try:
        held, films = viewer.session, viewer._films
        films.kind.value = "html"
        steps(held, 5)
        films.press()
        films.follow()
        assert films.button.label == "Stop and save"
        assert "recording since 0.05 s" in films.words.content
        steps(held, 50)
        films.press()
        films.take.wait()
        films.follow()
        assert not films.take.running
        assert f"saved {films.take.path.resolve()} (15 pictures)" in films.words.content
        assert films.take.path.stat().st_size > 1e5
        assert free_path(held.simulation, "html") != films.take.path

        failed = Take(held.simulation, held.history.since(0.0), tmp_path / "none" / "x.html")
        failed.wait()
        assert "x.html was not made: record: cannot write" in failed.words
    finally:
        viewer.close()


def wait_for(happened) -> None:
    end = time.monotonic() + 60.0
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
