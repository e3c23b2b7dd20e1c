"""Parts of the page's panel: actuators, the time that was kept, one contact looked at closely, films.

Each makes its widgets at construction, posts commands to the simulation, and shows their result in `follow`. Events
without a client come from our own updates of a widget, not from a person, and are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.viewer import page
from stiction.viewer.pick import Pick, facts, label, labels
from stiction.viewer.server import update
from stiction.viewer.session import actuator_ranges, keyframes
from stiction.viewer.takes import Take, free_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stiction.viewer.history import Moment
    from stiction.viewer.session import Session
    from stiction.viewer.stage import Stage

NONE = "none"
TICK = 1e-3  # s, of the slider of time
KINDS = ("mp4", "html", "gif")


class Drive:
    """A slider for each actuator; the scene's own control moves them until somebody does."""

    def __init__(self, gui: Any, session: Session) -> None:
        self.session = session
        self.by_hand: Any = None
        self.sliders: list[Any] = []
        ranges = actuator_ranges(session.simulation)
        if not ranges:
            return
        with gui.add_folder("Drive"):
            driven = session.hand.scene.control is not None and not session.hand.held
            self.by_hand = gui.add_checkbox("By hand", initial_value=not driven)
            for name, low, high, now in ranges:
                slider = gui.add_slider(name, low, high, (high - low) / 200.0 or 1.0, now, disabled=driven)
                slider.on_update(self._taken)
                self.sliders.append(slider)
            self.by_hand.on_update(self._taken)

    def _taken(self, event: Any) -> None:
        if event.client is None:
            return
        by_hand = bool(self.by_hand.value)
        held = {i: float(each.value) for i, each in enumerate(self.sliders)} if by_hand else {}
        for slider in self.sliders:
            slider.disabled = not by_hand
        self.session.post(lambda: setattr(self.session.hand, "held", held))

    def follow(self) -> None:
        """Sliders show what actuators do, whoever asked for it."""
        held = self.session.hand.held
        if self.by_hand is None or (self.by_hand.value and not held):
            return
        for i, slider in enumerate(self.sliders):
            value = held.get(i, float(self.session.simulation.data.ctrl[i]))
            update(slider, value=float(np.clip(value, slider.min, slider.max)))


def add_keyframes(gui: Any, session: Session) -> Any:
    """A list of keyframes to reset to, if the model has others than its beginning."""
    offered = keyframes(session.simulation.model)
    if len(offered) < 2:
        return None
    first = next(name for name, number in offered.items() if number == session.keyframe)
    listed = gui.add_dropdown("Reset to", tuple(offered), initial_value=first, hint="Keyframes of the model.")
    listed.on_update(lambda _: session.post(lambda: session.set_keyframe(listed.value)))
    return listed


class Past:
    """The recorded past: a slider through it, to look, to play back, and to go on from.

    While `moment` is one of the past, the simulation waits.
    """

    def __init__(self, gui: Any, session: Session) -> None:
        self.session = session
        self.moment: Moment | None = None
        self.playing = False
        self._time = 0.0
        begin = session.moment.time
        self.slider = gui.add_slider(
            "Time [s]", begin, begin + TICK, TICK, begin, hint="The last minute is kept: drag to look back."
        )
        self.slider.on_update(self._dragged)
        self.buttons = gui.add_button_group("Then", ("Go on from here", "Back to now"), visible=False)
        self.buttons.on_click(
            lambda event: self.go_on() if event.target.value.startswith("Go on") else self.return_to_present()
        )

    def _dragged(self, event: Any) -> None:
        if event.client is not None:
            self.look_at(self.session.history.at(float(event.target.value)))

    def look_at(self, moment: Moment | None) -> None:
        """Show a moment; the last one is no past, but the simulation waits all the same."""
        self.session.pause()
        self.playing = False
        if moment is None or moment.time >= self.session.history.span[1]:
            self.moment = None
        else:
            self.moment, self._time = moment, moment.time

    def back(self) -> None:
        """By one moment."""
        shown = self.session.moment if self.moment is None else self.moment
        earlier = self.session.history.before(shown.time)
        if earlier is not None:
            self.look_at(earlier)

    def on(self) -> None:
        """By one moment, towards now."""
        if self.moment is not None:
            self.look_at(self.session.history.after(self.moment.time))

    def return_to_present(self) -> None:
        self.moment, self.playing = None, False

    def go_on(self) -> None:
        """Let the simulation go on from the moment that is shown."""
        moment = self.moment
        if moment is None:
            return
        self.session.moment = moment  # shown until the next step is made
        self.return_to_present()
        self.session.post(lambda: self.session.go_on(moment))
        self.session.post(self.session.play)

    def pass_time(self, seconds: float) -> None:
        """Play back as much."""
        if self.moment is None or not self.playing:
            return
        self._time += self.session.speed * seconds
        moment = self.session.history.at(self._time)
        if moment is None or moment.time >= self.session.history.span[1]:
            self.return_to_present()
        else:
            self.moment = moment

    def follow(self) -> None:
        first, last = self.session.history.span
        shown = last if self.moment is None else self.moment.time
        last = max(last, first + TICK)
        update(self.slider, min=first, max=last, value=shown)
        update(self.buttons, visible=self.moment is not None)


class Inspect:
    """One contact, chosen from a list and followed from moment to moment: its numbers, and where it is."""

    def __init__(self, gui: Any) -> None:
        self.pick: Pick | None = None
        self.number: int | None = None
        self._shown: Moment | None = None
        self.list = gui.add_dropdown(
            "Inspect", (NONE,), hint="A contact, by its number in the table: its forces, its mode, its friction cone."
        )
        self.list.on_update(self._chosen)
        self.words = gui.add_html("")

    def _chosen(self, event: Any) -> None:
        if event.client is not None:
            self.choose(event.target.value)

    def choose(self, words: str) -> None:
        shown = self._shown
        if words == NONE or shown is None or shown.contacts is None or words not in labels(shown.contacts):
            self.pick = None
        else:
            self.pick = Pick(shown.contacts, int(words.split(":")[0]) - 1)

    def find(self, moment: Moment) -> int | None:
        """Number of the chosen contact in a moment."""
        self._shown = moment
        self.number = None if self.pick is None else self.pick.find(moment.contacts)
        return self.number

    def follow(self) -> None:
        moment, number = self._shown, self.number
        if moment is None:
            return
        offered = (NONE, *labels(moment.contacts))
        if self.pick is not None and number is None:
            offered = (*offered, self.pick.words)
        update(self.list, options=offered)
        value = NONE
        if self.pick is not None:
            found = number is not None and moment.contacts is not None
            value = label(moment.contacts, number) if found else self.pick.words  # type: ignore[arg-type]
        if value in offered:
            update(self.list, value=value)
        if self.pick is None:
            text = ""
        elif number is None:
            text = page.lines([("contact", "these geoms do not touch now")], "stiction-contact")
        else:
            text = page.lines(facts(moment, number), "stiction-contact")
        update(self.words, content=text)


class Films:
    """Films between two presses of a button, made from the history: the last minute at most."""

    def __init__(self, gui: Any, session: Session, stage: Stage, done: Callable[[Path], None]) -> None:
        self.session, self._stage, self._done = session, stage, done
        self.begin: float | None = None
        self.take: Take | None = None
        with gui.add_folder("Record"):
            self.kind = gui.add_dropdown("As", KINDS, hint="A film, or a page that can be turned about.")
            self.button = gui.add_button("Record")
            self.button.on_click(lambda _: self.press())
            self.all = gui.add_button("Save the last minute")
            self.all.on_click(lambda _: self.save(self.session.history.span[0]))
            self.words = gui.add_html("")

    def press(self) -> None:
        if self.begin is None:
            self.begin = self.session.moment.time
        else:
            begin, self.begin = self.begin, None
            self.save(begin)

    def save(self, begin: float) -> None:
        """Save the moments from this time on, or all that are kept if time began anew meanwhile."""
        if self.take is not None and self.take.running:
            return
        moments = self.session.history.since(begin) or self.session.history.since(-np.inf)
        path = free_path(self.session.simulation, self.kind.value)
        what = self._stage.show_forces, self._stage.show_cones
        self.take = Take(self.session.simulation, moments, path, *what, self._done)

    def follow(self) -> None:
        if self.begin is None:
            name, text = "Record", "" if self.take is None else self.take.words
        else:
            name = "Stop and save"
            text = f"recording since {self.begin:.2f} s; at most the last minute is kept"
        busy = self.take is not None and self.take.running
        update(self.button, label=name, disabled=busy)
        update(self.all, disabled=busy)
        update(self.words, content=page.remark(text, "stiction-record"))

    def close(self) -> None:
        if self.take is not None:
            self.take.stop()
