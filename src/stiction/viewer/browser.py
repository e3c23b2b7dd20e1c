"""A simulation in the browser, on viser and mjviser: watch it, read its forces, switch laws and solvers, push it about.

The thread of `run` draws, another steps and obeys, and callbacks of the page only post commands: pictures go on while a
step takes long. Nothing outside this machine can reach the page unless another host is asked for: whoever opens it can
drive the simulation. Pages of other sites in the same browser cannot (`gate`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.viewer import page
from stiction.viewer.caption import words_of
from stiction.viewer.compiling import compiling
from stiction.viewer.controls import Drive, Films, Inspect, Past, add_keyframes
from stiction.viewer.history import Shown
from stiction.viewer.keys import KEYS
from stiction.viewer.server import close_server, open_server, update
from stiction.viewer.session import PICTURE, SPEEDS, Session
from stiction.viewer.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from stiction.problems.laws import Law
    from stiction.stepping.simulation import Simulation

WORDS = 0.2  # s, between updates of numbers and plots
KEPT = 300  # points of a plot
STROKE = "#3f88c5"  # of plots, seen on white and on black
PATIENCE = 5.0  # s, that a step may take to end when the page is closed
NARROW = 900  # pixels: a page that is no wider is opened with its panel folded


def view(
    simulation: Simulation,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    laws: Mapping[str, Law] | None = None,
    solvers: Mapping[str, Any] | None = None,
    allow_origins: Sequence[str] = (),
    held: Mapping[int, float] | None = None,
    opened: Callable[[str], None] | None = None,
) -> None:
    """Show a simulation until Ctrl-C.

    host: the machine's own address or name, or 0.0.0.0, to be reached from elsewhere; anybody there can then drive it
    port: the next free one from here is taken
    laws, solvers: offered by name instead of all that apply
    allow_origins: other sites ("https://name:port") whose pages may use this one, such as a proxy in front of it
    held: controls of actuators, by number, until their sliders are moved
    opened: called with the page's address
    """
    viewer = Viewer(simulation, host, port, laws=laws, solvers=solvers, allow_origins=allow_origins, held=held)
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
        held: Mapping[int, float] | None = None,
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
        self.session.hand.held = dict(held or {})
        self.shown = Shown(simulation, self.session.moment)
        self.stage = Stage(self.server, self.shown)
        self.compiling = compiling()
        self.steps_per_second = self.pictures_per_second = 0.0
        self._curve: deque[tuple[float, float, float]] = deque(maxlen=KEPT)
        self.watched = threading.Event()  # nothing moves before somebody looks
        self.server.on_client_connect(self._welcome)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._worker: threading.Thread | None = None
        self._clock = self._drawn = self._told = time.perf_counter()
        self._made = self._pictures = 0
        self._stale = True
        self._panel()
        self._keys()
        for handle, bodies in self.stage.draggable():
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
        self._worker = threading.Thread(target=self._work, name="stiction-steps", daemon=True)
        self._worker.start()
        try:
            self._clock = time.perf_counter()
            while not self._closing.wait(0.002):
                self.tick()
        except KeyboardInterrupt:
            if not self._owned:
                raise
        finally:
            self._shut()

    def _work(self) -> None:
        try:
            self.session.work(self._closing, self.watched)
        finally:
            self.session.close()

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
        self._films.close()
        if self._worker is None:
            self.session.close()
        else:  # a kernel that is being compiled is not waited for
            self._worker.join(PATIENCE)
        if self._owned:
            close_server(self.server)

    def tick(self) -> None:
        """Redraw the scene and the numbers when due, whatever the simulation does meanwhile."""
        now = time.perf_counter()
        passed, self._clock = now - self._clock, now
        self._past.pass_time(passed)
        if now - self._drawn >= PICTURE:
            self._drawn = now
            self._draw()
        if now - self._told >= WORDS:
            self._tell(now)

    def _draw(self) -> None:
        """The present moment, or the one of the past that is looked at; nothing if it is there already."""
        moment = self._past.moment or self.session.moment
        grip = None if self._past.moment is not None else self.session.hand.grip
        new = moment is not self.shown.moment
        if new:
            self.shown.show(moment)
            if self.session.playing and moment.contacts is not None:
                self._curve.append((moment.time, sum(moment.energy), moment.residual))
        chosen = self._inspect.find(moment)
        lines = self._caption()
        wanted = (self.stage.chosen, self.stage.lines) != (chosen, lines)
        if not (new or wanted or self._stale or grip is not None or self.stage.scene.needs_update):
            return
        self.stage.chosen, self.stage.lines, self._stale = chosen, lines, False
        self._pictures += 1
        self.stage.draw(moment.contacts, grip)

    def _caption(self) -> list[str]:
        # Browsers lay out words anew whenever they change: whole seconds are often enough while it runs.
        past = self._past.moment is not None
        lines = [words_of(self.shown, decimals=3 if past else 0) + (" · looking back" if past else "")]
        if self.compiling.seconds > page.SOON:
            lines.append("compiling kernels, once …")
        return lines

    def _welcome(self, client: Any) -> None:
        """Somebody looks; where there is little room, the panel must not hide the scene."""
        if client.camera.image_width < NARROW:
            client.gui.main_panel.minimize()
        else:
            client.gui.main_panel.dock_right()
        self.watched.set()

    def _tell(self, now: float) -> None:
        passed = now - self._told
        made = self.session.made
        self.steps_per_second, self.pictures_per_second = (made - self._made) / passed, self._pictures / passed
        self._told, self._made, self._pictures = now, made, 0
        moment, past = self.shown.moment, self._past.moment is not None
        rates = self.steps_per_second, self.pictures_per_second
        update(self._notice, content=page.notice(self.compiling.seconds, self.compiling.kernels))
        update(self._status, content=page.status(self.session, moment, *rates, past))
        update(self._table, content=page.table(moment.contacts))
        playing = self._past.playing if past else self.session.playing
        update(self._play, label="Pause" if playing else "Play back" if past else "Play")
        if self.session.playing and self._curve:
            times, energy, residual = (np.array(column) for column in zip(*self._curve, strict=True))
            self._energy.data = (times, energy)
            self._residual.data = (times, np.log10(np.maximum(residual, 1e-17)))
        for part in (self._drive, self._past, self._inspect, self._films):
            part.follow()

    def _panel(self) -> None:
        gui, session = self.server.gui, self.session
        if self._others:
            gui.add_button("Other scenes").on_click(lambda _: self.leave())
        self._notice = gui.add_html("")
        self._status = gui.add_html("")
        self._play = gui.add_button("Pause", hint="Space")
        self._play.on_click(lambda _: self.play())
        buttons = gui.add_button_group("Steps", ("Step", "Reset"), hint="Arrow to the right, backspace")
        buttons.on_click(lambda event: self.forward() if event.target.value == "Step" else self.reset())
        self._past = Past(gui, session)
        self._keyframes = add_keyframes(gui, session)
        self._speed = gui.add_dropdown("Speed", tuple(f"{each:g} ×" for each in SPEEDS), initial_value="1 ×")
        self._speed.on_update(lambda _: session.set_speed(float(self._speed.value.split()[0])))
        self._law = gui.add_dropdown("Law", tuple(session.laws), initial_value=session.law)
        self._law.on_update(lambda _: session.post(self._set_law))
        self._solver = gui.add_dropdown("Solver", tuple(session.solvers), initial_value=session.solver)
        self._solver.on_update(lambda _: session.post(self._set_solver))
        self._drive = Drive(gui, session)
        with gui.add_folder("Contact forces"):
            gui.add_html(page.legend())
            self._arrows = gui.add_checkbox("Arrows", self.stage.show_forces, hint="F")
            self._arrows.on_update(lambda _: self._show(show_forces=self._arrows.value))
            size = gui.add_slider("Arrow size", 0.2, 5.0, 0.1, 1.0)
            size.on_update(lambda _: self._show(factor=float(size.value)))
            self._cones = gui.add_checkbox("Friction cones", self.stage.show_cones, hint="C")
            self._cones.on_update(lambda _: self._show(show_cones=self._cones.value))
            self._inspect = Inspect(gui)
            self._table = gui.add_html("")
        self._films = Films(gui, session, self.stage, self._offer)
        with gui.add_folder("Energy and residual"):
            self._energy = self._plot("energy [J]")
            self._residual = self._plot("log10 of the residual")
        with gui.add_folder("What is shown", expand_by_default=False):
            follow = gui.add_checkbox("Follow what moves", self.stage.follows)
            follow.on_update(lambda _: self._show(follows=follow.value))
            self.stage.scene.create_groups_gui()
        with gui.add_folder("What MuJoCo can show", expand_by_default=False):
            self.stage.scene.create_overlay_gui()
        with gui.add_folder("Keys", expand_by_default=False):
            gui.add_html(page.key_table())

    def _keys(self) -> None:
        for key in KEYS:
            command = self.server.gui.add_command(key.words, hotkey=key.name, description=f"Key: {key.shown}")
            command.on_trigger(self._on_key(getattr(self, key.action)))

    def _on_key(self, action: Callable[[], None]) -> Any:
        async def pressed(_: Any) -> None:  # on the event loop, so that keys stay in order
            action()

        return pressed

    def _show(self, **settings: Any) -> None:
        """Change what the stage shows, from the next picture on."""
        for name, value in settings.items():
            setattr(self.stage.scale if name == "factor" else self.stage, name, value)
        self._stale = True

    def _offer(self, path: Path) -> None:
        """A film to whoever looks."""
        self.server.send_file_download(path.name, path.read_bytes())

    def play(self) -> None:
        """Or pause; of the past, if that is looked at."""
        session, past = self.session, self._past
        if past.moment is not None:
            past.playing = not past.playing
        else:
            session.post(lambda: session.pause() if session.playing else session.play())

    def forward(self) -> None:
        """By a step, or by a moment of the past."""
        if self._past.moment is not None:
            self._past.on()
        else:
            self.session.pause()
            self.session.post(lambda: none(self.session.step()))

    def backward(self) -> None:
        self._past.back()

    def now(self) -> None:
        self._past.return_to_present()

    def reset(self) -> None:
        self._past.return_to_present()
        self.session.post(self._reset)

    def forces(self) -> None:
        self._arrows.value = not self._arrows.value

    def cones(self) -> None:
        self._cones.value = not self._cones.value

    def faster(self) -> None:
        self._change_speed(1)

    def slower(self) -> None:
        self._change_speed(-1)

    def _change_speed(self, by: int) -> None:
        place = min(max(SPEEDS.index(self.session.speed) + by, 0), len(SPEEDS) - 1)
        self._speed.value = f"{SPEEDS[place]:g} ×"

    def _plot(self, label: str) -> Any:
        nothing = (np.zeros(1), np.zeros(1))
        line = {"label": label, "stroke": STROKE, "width": 1}
        return self.server.gui.add_uplot(
            nothing, ({"label": "time [s]"}, line), scales={"x": {"time": False}}, height=140
        )

    def _reset(self) -> None:
        self.session.reset()
        self._curve.clear()

    def _set_law(self) -> None:
        self.session.set_law(self._law.value)
        if self._solver.options != tuple(self.session.solvers):
            self._solver.options = tuple(self.session.solvers)
        self._solver.value = self.session.solver

    def _set_solver(self) -> None:
        if self._solver.value in self.session.solvers and self._solver.value != self.session.solver:
            self.session.set_solver(self._solver.value)

    def _let_drag(self, handle: Any, bodies: NDArray[np.int32]) -> None:
        session = self.session

        async def drag(event: Any) -> None:  # on the event loop, so that phases stay in order
            if self._past.moment is not None:
                return
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


def none(_: object) -> None:
    """A command returns nothing."""
