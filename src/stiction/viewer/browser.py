"""A simulation in the browser, on viser and mjviser: watch it, read its forces, switch laws and solvers, push it about.

The thread of `run` steps, obeys and draws; callbacks of the page only post commands. Nothing outside this machine can
reach the page unless another host is asked for: whoever opens it can drive the simulation. Pages of other sites in the
same browser cannot (`gate`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.viewer import page
from stiction.viewer.caption import words_of
from stiction.viewer.server import close_server, open_server
from stiction.viewer.session import SPEEDS, Session, actuator_ranges
from stiction.viewer.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from stiction.problems.laws import Law
    from stiction.stepping.contacts import Contacts
    from stiction.stepping.simulation import Simulation

PICTURE = 1.0 / 60.0  # s, between pictures
WORDS = 0.2  # s, between updates of numbers and plots
KEPT = 300  # points of a plot
NARROW = 900  # pixels: a page that is no wider is opened with its panel folded


def view(
    simulation: Simulation,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    laws: Mapping[str, Law] | None = None,
    solvers: Mapping[str, Any] | None = None,
    allow_origins: Sequence[str] = (),
    opened: Callable[[str], None] | None = None,
) -> None:
    """Show a simulation until Ctrl-C.

    host: the machine's own address or name, or 0.0.0.0, to be reached from elsewhere; anybody there can then drive it
    port: the next free one from here is taken
    laws, solvers: offered by name instead of all that apply
    allow_origins: other sites ("https://name:port") whose pages may use this one, such as a proxy in front of it
    opened: called with the page's address
    """
    viewer = Viewer(simulation, host, port, laws=laws, solvers=solvers, allow_origins=allow_origins)
    if opened is not None:
        opened(viewer.url)
    viewer.run()


class Viewer:
    """The page and the loop behind it: `run` until Ctrl-C or `close`, or `start` in a thread of its own.

    Time begins to run when somebody looks.

    server: one that is open already, and stays open
    others: offer a button that leaves for other scenes
    """

    def __init__(
        self,
        simulation: Simulation,
        host: str = "127.0.0.1",
        port: int = 8080,
        *,
        laws: Mapping[str, Law] | None = None,
        solvers: Mapping[str, Any] | None = None,
        allow_origins: Sequence[str] = (),
        server: Any = None,
        others: bool = False,
    ) -> None:
        self._owned = server is None
        if server is None:
            server = open_server(host, port, simulation.scene.description, allow_origins)
        self.server = server
        self.server.gui.set_panel_label(simulation.scene.description.rstrip("."))
        self._others = others
        self.session = Session(simulation, laws, solvers)
        self.stage = Stage(self.server, simulation)
        self.steps_per_second = self.pictures_per_second = 0.0
        self._history: deque[tuple[float, float, float]] = deque(maxlen=KEPT)
        self.watched = threading.Event()  # nothing moves before somebody looks
        self.server.on_client_connect(self._welcome)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._clock = self._drawn = self._told = time.perf_counter()
        self._steps = self._pictures = 0
        self._stale = True
        self._panel()
        for handle, bodies in self.stage.holds():
            self._let_drag(handle, bodies)
        for client in self.server.get_clients().values():
            self._welcome(client)
            client.camera.position = self.stage.follower.camera.position
            client.camera.look_at = self.stage.follower.camera.centre

    @property
    def url(self) -> str:
        return address(self.server)

    def run(self) -> None:
        """Until Ctrl-C or `close`."""
        try:
            self._clock = time.perf_counter()
            while not self._closing.is_set():
                self.tick()
                time.sleep(0.001)
        except KeyboardInterrupt:
            if not self._owned:
                raise
        finally:
            self._shut()

    def start(self) -> Viewer:
        """Run in a thread of its own, as notebooks need."""
        self._thread = threading.Thread(target=self.run, name="stiction-viewer", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        else:
            self._shut()

    def leave(self) -> None:
        """Ask `run` to end, from any thread."""
        self._closing.set()

    def _shut(self) -> None:
        self._closing.set()
        self.session.close()
        if self._owned:
            close_server(self.server)

    def tick(self) -> None:
        """Obey, step as far as the clock has come, draw and tell when it is time to."""
        now = time.perf_counter()
        passed, self._clock = now - self._clock, now
        asked = self.session.obey()
        made = self.session.advance(min(passed, 0.1), PICTURE) if self.watched.is_set() else 0
        self._steps += made
        self._stale |= asked or made > 0 or self.stage.scene.needs_update
        if made and self.session.simulation.report is not None:
            report = self.session.simulation.report
            self._history.append((report.time, report.energy, report.certificate.residual))
        if now - self._drawn >= PICTURE and self._stale:
            self._drawn, self._stale = now, False
            self._pictures += 1
            # Browsers lay out words anew whenever they change: whole seconds are often enough.
            self.stage.lines = [words_of(self.session.simulation, decimals=0)]
            self.stage.draw(self._contacts(), self.session.hand.grip)
        if asked or now - self._told >= WORDS:
            self._tell(now)

    def _welcome(self, client: Any) -> None:
        """Somebody looks; where there is little room, the panel must not hide the scene."""
        if client.camera.image_width < NARROW:
            client.gui.main_panel.minimize()
        else:
            client.gui.main_panel.dock_right()
        self.watched.set()

    def _contacts(self) -> Contacts | None:
        simulation = self.session.simulation
        return None if simulation.report is None else simulation.contacts

    def _tell(self, now: float) -> None:
        passed = now - self._told
        if passed >= WORDS:
            self.steps_per_second, self.pictures_per_second = self._steps / passed, self._pictures / passed
            self._told, self._steps, self._pictures = now, 0, 0
        contacts = self._contacts()
        set_if_new(self._status, page.status(self.session, contacts, self.steps_per_second, self.pictures_per_second))
        set_if_new(self._table, page.table(contacts))
        self._play.label = "Pause" if self.session.playing else "Play"
        if self.session.playing and self._history:
            times, energy, residual = (np.array(column) for column in zip(*self._history, strict=True))
            self._energy.data = (times, energy)
            self._residual.data = (times, np.log10(np.maximum(residual, 1e-17)))
        self._follow_actuators()

    def _panel(self) -> None:
        gui, session = self.server.gui, self.session
        if self._others:
            gui.add_button("Other scenes").on_click(lambda _: self.leave())
        self._status = gui.add_html("")
        self._play = gui.add_button("Pause")
        self._play.on_click(lambda _: session.post(lambda: session.pause() if session.playing else session.play()))
        buttons = gui.add_button_group("Time", ("Step", "Reset"))
        buttons.on_click(lambda event: session.post(self._step if event.target.value == "Step" else self._reset))
        speed = gui.add_dropdown("Speed", tuple(f"{each:g} ×" for each in SPEEDS), initial_value="1 ×")
        speed.on_update(lambda _: session.post(lambda: session.set_speed(float(speed.value.split()[0]))))
        self._law = gui.add_dropdown("Law", tuple(session.laws), initial_value=session.law)
        self._law.on_update(lambda _: session.post(self._set_law))
        self._solver = gui.add_dropdown("Solver", tuple(session.solvers), initial_value=session.solver)
        self._solver.on_update(lambda _: session.post(self._set_solver))
        self._drive_folder()
        with gui.add_folder("Contact forces"):
            gui.add_html(page.legend())
            forces = gui.add_checkbox("Arrows", self.stage.show_forces)
            forces.on_update(lambda _: session.post(lambda: setattr(self.stage, "show_forces", forces.value)))
            size = gui.add_slider("Arrow size", 0.2, 5.0, 0.1, 1.0)
            size.on_update(lambda _: session.post(lambda: setattr(self.stage.scale, "factor", float(size.value))))
            cones = gui.add_checkbox("Friction cones", self.stage.show_cones)
            cones.on_update(lambda _: session.post(lambda: setattr(self.stage, "show_cones", cones.value)))
            self._table = gui.add_html("")
        with gui.add_folder("Energy and residual"):
            self._energy = self._plot("energy [J]")
            self._residual = self._plot("log10 of the residual")
        with gui.add_folder("What is shown", expand_by_default=False):
            follow = gui.add_checkbox("Follow what moves", self.stage.follows)
            follow.on_update(lambda _: session.post(lambda: setattr(self.stage, "follows", follow.value)))
            self.stage.scene.create_groups_gui()
        with gui.add_folder("What MuJoCo can show", expand_by_default=False):
            self.stage.scene.create_overlay_gui()

    def _plot(self, label: str) -> Any:
        nothing = (np.zeros(1), np.zeros(1))
        line = {"label": label, "stroke": "black", "width": 1}
        return self.server.gui.add_uplot(
            nothing, ({"label": "time [s]"}, line), scales={"x": {"time": False}}, height=140
        )

    def _drive_folder(self) -> None:
        """A slider for each actuator; the scene's own control moves them until they are taken by hand."""
        gui, session = self.server.gui, self.session
        ranges = actuator_ranges(session.simulation)
        self._by_hand: Any = None
        self._sliders: list[Any] = []
        if not ranges:
            return
        with gui.add_folder("Drive"):
            driven = session.hand.scene.control is not None
            self._by_hand = gui.add_checkbox("By hand", initial_value=not driven)
            for name, low, high, now in ranges:
                slider = gui.add_slider(name, low, high, (high - low) / 200.0 or 1.0, now, disabled=driven)
                slider.on_update(lambda _: session.post(self._take_actuators))
                self._sliders.append(slider)
            self._by_hand.on_update(lambda _: session.post(self._take_actuators))

    def _take_actuators(self) -> None:
        by_hand = bool(self._by_hand.value)
        self.session.hand.held = {i: float(each.value) for i, each in enumerate(self._sliders)} if by_hand else {}
        for slider in self._sliders:
            slider.disabled = not by_hand

    def _follow_actuators(self) -> None:
        if self._by_hand is None or self._by_hand.value:
            return
        for i, slider in enumerate(self._sliders):
            value = float(np.clip(self.session.simulation.data.ctrl[i], slider.min, slider.max))
            if slider.value != value:
                slider.value = value

    def _step(self) -> None:
        self.session.pause()
        self._steps += self.session.step()

    def _reset(self) -> None:
        self.session.reset()
        self._history.clear()

    def _set_law(self) -> None:
        self._status.content = page.busy()
        self.session.set_law(self._law.value)
        if self._solver.options != tuple(self.session.solvers):
            self._solver.options = tuple(self.session.solvers)
        self._solver.value = self.session.solver

    def _set_solver(self) -> None:
        if self._solver.value in self.session.solvers and self._solver.value != self.session.solver:
            self._status.content = page.busy()
            self.session.set_solver(self._solver.value)

    def _let_drag(self, handle: Any, bodies: NDArray[np.int32]) -> None:
        session = self.session

        async def drag(event: Any) -> None:  # on the event loop, so that phases stay in order
            if event.phase == "start":
                body = int(bodies[event.instance_index or 0])
                session.post(lambda: none(session.grab(body, event.start_position + self.stage.offset)))
            if event.phase == "end":
                session.post(session.release)
            else:
                session.post(lambda: session.drag(event.end_position + self.stage.offset))

        handle.on_drag(drag)


def address(server: Any) -> str:
    host = server.get_host()
    return f"http://{'localhost' if host in ('0.0.0.0', '::') else host}:{server.get_port()}"


def set_if_new(handle: Any, content: str) -> None:
    if handle.content != content:
        handle.content = content


def none(_: object) -> None:
    """A command returns nothing."""
