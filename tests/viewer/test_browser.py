"""A newcomer's path through the page, in a real browser: Chromium without a head, and without a GPU.

Screenshots are kept in .cache/screenshots, for people to look at.
"""

from __future__ import annotations

import io
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

import stiction as st
from stiction.solvers.contract import ContactProposal
from stiction.viewer import shine
from stiction.viewer.browser import Viewer
from stiction.viewer.record import Recorder
from stiction.viewer.start import Start

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SOFTWARE = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
SHOTS = Path(__file__).resolve().parents[2] / ".cache" / "screenshots"
PATIENCE = 120.0  # s: pixels are computed on the cores that also step

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")


class Liar:
    """A solver that claims that nothing pushes anything."""

    contract = st.ConeNewton.contract

    def propose(self, problem, start):
        return ContactProposal(st.Status.SOLVED, 1, np.zeros((problem.n, 3)), solver=self)


@pytest.fixture(scope="module")
def browser():
    SHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=SOFTWARE)
        yield opened
        opened.close()


def open_page(browser, url: str, width: int = 1200, height: int = 600, **options) -> Page:
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.set_default_timeout(1e3 * PATIENCE)
    expect.set_options(timeout=1e3 * PATIENCE)
    page.goto(url)
    return page


@pytest.fixture
def shown(browser, request):
    """A page, and the viewer behind it."""
    name, options = request.param
    viewer = Viewer(st.Simulation(st.Scene.named(name)), port=0, **options).start()
    page = open_page(browser, viewer.url)
    page.locator("#stiction-status").wait_for()
    yield page, viewer
    page.context.close()
    viewer.close()


def picture(page: Page, name: str) -> np.ndarray:
    """What is left of the panel and below its messages; the whole is kept."""
    page.wait_for_timeout(800)  # until the last messages are drawn
    content = page.screenshot(path=SHOTS / f"{name}.png")
    return np.array(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)[130:, :780]


def changed(one: np.ndarray, two: np.ndarray, visibly: int = 60) -> int:
    """How many pixels differ."""
    return int((np.abs(one - two).max(axis=2) > visibly).sum())


def wait_for(happened, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def on_screen(page: Page, viewer: Viewer, point: np.ndarray) -> tuple[float, float]:
    """Pixel of a point of the world, by the camera of the page."""
    wait_for(lambda: len(viewer.server.get_clients()) > 0, "no client")
    camera = next(iter(viewer.server.get_clients().values())).camera
    w, x, y, z = camera.wxyz
    turn = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    right, down, ahead = turn.T @ (point - camera.position)
    size = page.locator("canvas").first.bounding_box()
    focal = 0.5 * size["height"] / np.tan(0.5 * camera.fov)
    return (
        size["x"] + 0.5 * size["width"] + focal * right / ahead,
        size["y"] + 0.5 * size["height"] + focal * down / ahead,
    )


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


@pytest.mark.slow
@pytest.mark.parametrize("shown", [("block-feeder", {})], indirect=True)
def test_the_feeder_moves_shows_its_forces_and_is_driven_by_hand(shown):
    page, viewer = shown
    simulation = viewer.session.simulation
    first = picture(page, "feeder-1-opened")
    begin = simulation.time
    wait_for(lambda: simulation.time > begin + 0.5, "time does not run")
    expect(page.locator("#stiction-status [data-state]")).to_have_text("running")
    wait_for(lambda: changed(first, picture(page, "feeder-2-running")) > 200, "nothing moves")

    viewer.session.post(lambda: setattr(viewer.stage.scale, "factor", 4.0))  # most of a small arrow is inside a body
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#stiction-status [data-state]")).to_have_text("paused")
    paused = simulation.time
    told = page.locator("#stiction-status [data-time]").inner_text()
    assert float(told.split()[0]) == pytest.approx(paused, abs=1e-3)
    assert float(page.locator("#stiction-status [data-residual]").inner_text()) <= 1e-8
    assert page.locator("#stiction-contacts tr").count() == min(len(simulation.contacts), 40) + 1

    wait_for(lambda: changed(picture(page, "feeder-3-arrows"), picture(page, "feeder-3-arrows")) == 0, "it still moves")
    arrows = picture(page, "feeder-3-arrows")
    page.get_by_label("Arrows", exact=True).click()
    wait_for(lambda: changed(arrows, picture(page, "feeder-4-no-arrows")) > 100, "there were no arrows")
    page.get_by_label("Arrows", exact=True).click()
    wait_for(lambda: changed(arrows, picture(page, "feeder-5-arrows-again")) < 20, "arrows do not come back")
    page.get_by_label("Friction cones").click()
    wait_for(lambda: changed(arrows, picture(page, "feeder-6-cones"), visibly=25) > 200, "there are no cones")
    page.get_by_label("Friction cones").click()

    page.get_by_role("button", name="Step").click()
    wait_for(lambda: simulation.time == pytest.approx(paused + simulation.model.opt.timestep), "no step was made")

    page.get_by_label("By hand").click()
    crank = page.locator("input[value='30']:not([type=hidden])")
    crank.fill("0")
    page.keyboard.press("Enter")
    wait_for(lambda: viewer.session.hand.held == {0: 0.0}, "the slider does not drive the crank")
    page.get_by_role("button", name="Play").click()
    begin = simulation.time
    wait_for(lambda: simulation.time > begin + 0.3, "time does not run")
    assert abs(simulation.data.joint("crank-turn").qvel[0]) < 0.2

    page.get_by_role("button", name="Reset").click()
    wait_for(lambda: simulation.time < begin, "it was not reset")
    page.get_by_role("button", name="Pause").click()
    choose(page, "Speed", "0.25 ×")
    wait_for(lambda: viewer.session.speed == 0.25, "the speed did not change")


OFFERED = {"ConeNewton": st.ConeNewton(), "PrincipalPivot": st.PrincipalPivot(), "Liar": Liar()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "shown",
    [("box-on-plane", {"laws": {"Coulomb": st.Coulomb(), "no slip": st.NoSlip()}, "solvers": OFFERED})],
    indirect=True,
)
def test_law_and_solver_switch_a_body_is_pushed_and_a_failure_is_told(shown):
    page, viewer = shown
    session, simulation = viewer.session, viewer.session.simulation
    wait_for(lambda: simulation.time > 0.1, "time does not run")

    choose(page, "Solver", "PrincipalPivot")
    wait_for(lambda: session.failure is not None, "PrincipalPivot takes no cone, and nobody says so")
    expect(page.locator("#stiction-failure")).to_contain_text("The step failed")
    picture(page, "box-1-failure")
    choose(page, "Law", "no slip")
    wait_for(lambda: session.law == "no slip", "the law did not switch")
    page.get_by_role("button", name="Play").click()
    begin = simulation.time
    wait_for(lambda: simulation.time > begin + 0.1, "time does not run without slip")
    assert isinstance(simulation.report.solution.problem.law, st.NoSlip)
    choose(page, "Law", "Coulomb")
    choose(page, "Solver", "Liar")
    wait_for(lambda: session.solver == "Liar", "the solver did not switch")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#stiction-failure")).to_contain_text("residual")
    choose(page, "Solver", "ConeNewton")
    page.get_by_role("button", name="Play").click()
    begin = simulation.time
    wait_for(lambda: simulation.time > begin + 0.1, "time does not run again")
    expect(page.locator("#stiction-failure")).to_have_count(0)

    page.wait_for_timeout(1000)  # the page tells its camera
    start = simulation.data.xpos[1].copy()
    x, y = on_screen(page, viewer, start)
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(1, 11):
        page.mouse.move(x - 25 * k, y)  # the box fills the page: far enough to overcome friction
    wait_for(lambda: session.hand.grip is not None, "the mouse holds nothing")
    assert session.hand.grip.body == 1
    picture(page, "box-2-pushed")
    wait_for(lambda: np.linalg.norm(simulation.data.xpos[1] - start) > 0.05, "it was not pushed")
    page.mouse.up()
    wait_for(lambda: session.hand.grip is None, "it was not let go")
    assert session.failure is None
    assert not simulation.data.xfrc_applied.any()
    picture(page, "box-3-let-go")


@pytest.mark.slow
def test_the_past_is_scrubbed_by_mouse_and_keys_a_contact_inspected_and_a_film_saved(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    viewer = Viewer(st.Simulation(st.Scene.named("box-on-plane")), port=0).start()
    session, past = viewer.session, viewer._past
    try:
        page = open_page(browser, viewer.url, 1280, 800, color_scheme="dark")
        state = page.locator("#stiction-status [data-state]")
        wait_for(lambda: session.simulation.time > 0.5, "time does not run")
        assert "darkMode" in page.url
        page.keyboard.press("Space")
        expect(state).to_have_text("paused")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(state).to_have_text("looking back")
        end = session.history.span[1]
        assert past.moment.time < end - 0.5 * session.simulation.model.opt.timestep

        track = page.locator(".mantine-Slider-root").first.bounding_box()
        page.mouse.click(track["x"] + 0.3 * track["width"], track["y"] + 0.5 * track["height"])
        wait_for(lambda: 0.2 * end < past.moment.time < 0.4 * end, "the slider does not scrub")
        expect(page.locator("#stiction-status [data-time]")).to_have_text(f"{past.moment.time:.3f} s")
        first = picture(page, "past-1-dark")
        choose(page, "Inspect", "1: world – box")
        expect(page.locator("#stiction-contact [data-mode]")).to_have_text("stick")
        assert viewer.stage.chosen == 0
        wait_for(lambda: changed(first, picture(page, "past-2-cone"), visibly=25) > 100, "there is no cone")

        page.keyboard.press("F")  # the list has given the focus back
        wait_for(lambda: not viewer.stage.show_forces, "F does nothing")
        page.get_by_role("button", name="Go on from here").click()
        wait_for(lambda: session.playing and session.history.span[1] < end, "it does not go on")
        page.keyboard.press("Space")  # after a click on a button: once, and not that button again
        expect(state).to_have_text("paused")
        page.keyboard.press("Backspace")
        wait_for(lambda: session.simulation.time == 0.0, "it was not reset")

        choose(page, "As", "html")
        page.locator("button", has_text="Record").click()  # not the head of its folder
        page.get_by_role("button", name="Stop and save").wait_for()
        page.keyboard.press("Space")
        wait_for(lambda: session.simulation.time > 0.3, "it does not run again")
        page.get_by_role("button", name="Stop and save").click()
        expect(page.locator("#stiction-record")).to_contain_text("saved")
        assert [path.suffix for path in tmp_path.iterdir()] == [".html"]
        picture(page, "past-3-saved")
        page.context.close()
    finally:
        viewer.close()


@pytest.mark.slow
def test_a_scene_is_chosen_from_pictures_and_left_again(browser):
    start = Start(lambda name: st.Simulation(st.Scene.named(name)), port=0)
    thread = threading.Thread(target=start.run)
    thread.start()
    try:
        page = open_page(browser, start.url, 1100, 700)
        expect(page).to_have_title("Scenes – stiction")
        page.get_by_role("button", name="box-on-plane").wait_for()
        assert page.locator("img").count() >= 26, "a picture of every scene"
        picture(page, "start-1-scenes")
        page.get_by_role("button", name="box-on-plane").click()
        page.locator("#stiction-status").wait_for()
        wait_for(lambda: start.viewer is not None and start.viewer.session.simulation.time > 0.1, "it does not run")
        picture(page, "start-2-box")
        page.get_by_role("button", name="Other scenes").click()
        page.get_by_role("button", name="sliding-cube").wait_for()
        assert start.viewer is None
        page.context.close()
    finally:
        start.close()
        thread.join()


FOCUSED = """(() => {
  const at = document.activeElement, label = at.labels?.length ? at.labels[0].innerText : "";
  return (at.getAttribute("aria-label") || label || at.innerText || at.value || "").trim().split("\\n")[0];
})()"""


@pytest.mark.slow
def test_every_control_is_reached_and_used_by_keyboard_alone(browser, tmp_path):
    simulation = st.Simulation(st.Scene.named("block-feeder"))
    viewer = Viewer(simulation, port=0).start()
    try:
        page = open_page(browser, viewer.url, 1000, 500)
        page.locator("#stiction-status").wait_for()
        page.get_by_role("button", name="Pause").wait_for()
        visited = []
        while "Keys" not in visited and len(visited) < 150:
            page.keyboard.press("Tab")
            visited.append(page.evaluate(FOCUSED))
            if visited[-1] == "Pause":
                page.keyboard.press("Space")
                wait_for(lambda: not viewer.session.playing, "Space does not press the button")
            if visited[-1] == "What is shown":
                page.keyboard.press("Enter")
                page.get_by_label("Follow what moves").wait_for()
        wanted = [
            "Pause", "Step", "Reset", "Time [s]", "Speed", "Law", "Solver", "By hand", "Contact forces", "Arrows",
            "Arrow size", "Friction cones", "Inspect", "As", "Record", "Save the last minute", "What is shown", "Keys",
        ]  # fmt: skip
        assert [name for name in wanted if name not in visited] == []
        picture(page, "keyboard-1-focus")
        page.context.close()
    finally:
        viewer.close()
    with Recorder(simulation, tmp_path / "replay.html", fps=10):
        pass
    page = open_page(browser, (tmp_path / "replay.html").as_uri(), 320, 320)
    page.locator("canvas").first.wait_for()
    kinds = set()
    for _ in range(8):
        page.keyboard.press("Tab")
        kinds.add(page.evaluate("document.activeElement.tagName"))
    assert {"BUTTON", "INPUT"} <= kinds
    page.context.close()


@pytest.mark.slow
def test_the_panel_folds_on_a_narrow_page(browser):
    viewer = Viewer(st.Simulation(st.Scene.named("box-on-plane")), port=0).start()
    try:
        for width, shown in ((1100, True), (600, False)):
            page = open_page(browser, viewer.url, width, 600)
            page.locator("canvas").first.wait_for()
            button = page.get_by_role("button", name="Pause")
            expect(button).to_be_visible(visible=shown)
            picture(page, f"width-{width}")
            page.context.close()
    finally:
        viewer.close()


def test_a_replay_plays_without_a_network(browser, tmp_path):
    simulation = st.Simulation(st.Scene.named("block-feeder"))
    with Recorder(simulation, tmp_path / "replay.html", fps=10) as film:
        for _ in simulation.run(1.5):
            film.frame()
    asked: list[str] = []
    page = open_page(browser, "about:blank", 320, 320, offline=True)
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "replay.html").as_uri())
    page.locator("canvas").first.wait_for()
    first = picture(page, "replay-1")
    wait_for(lambda: changed(first, picture(page, "replay-2")) > 20, "it does not play")
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    page.context.close()


@pytest.mark.slow
def test_forces_and_cones_are_seen_through_bodies(browser, tmp_path):
    """A block hides two of the three feet that it stands on, with their arrows: nothing is to be seen on its face."""
    simulation = st.Simulation(st.Scene.named("block-on-tripod"))
    simulation.step()
    shining = {}
    for cones in (False, True):
        path = tmp_path / f"through-{cones}.html"
        Recorder(simulation, path, fps=1, cones=cones).close()  # one picture
        whole = path.read_text(encoding="utf-8")
        assert shine.SCRIPT in whole
        shining[cones] = on_the_face(browser, path)
        path = tmp_path / f"opaque-{cones}.html"
        path.write_text(whole.replace(shine.SCRIPT, ""), encoding="utf-8")
        assert on_the_face(browser, path) == 0
    assert shining[False] > 30, "arrows are hidden"
    assert shining[True] > shining[False] + 100, "cones are hidden"


def on_the_face(browser, path: Path) -> int:
    """How many pixels of the block's face differ from it, once it is drawn."""
    page = open_page(browser, path.as_uri(), 480, 420)
    page.locator("canvas").first.wait_for()
    page.add_style_tag(content="canvas { opacity: 1 !important }")  # it appears slowly out of white
    page.locator(".mantine-Notification-closeButton").first.click()
    seen = []

    def appeared() -> bool:
        face = picture(page, path.stem)[50:140, 125:320]
        seen.append(int((np.abs(face - np.median(face, axis=(0, 1))).max(axis=2) > 12).sum()))
        return bool(np.median(face[:, :, 0]) < 230)

    wait_for(appeared, "nothing is shown")
    page.context.close()
    return seen[-1]


def test_an_address_of_another_machine_is_refused():
    for host in ("192.0.2.1", "no such host"):
        with pytest.raises(st.InvalidScene, match="cannot listen at .* no address of this machine"):
            Viewer(st.Simulation(st.Scene.named("box-on-plane")), host=host)


def test_nobody_else_can_reach_the_page_unless_asked():
    viewer = Viewer(st.Simulation(st.Scene.named("box-on-plane")), port=0)
    try:
        assert viewer.server.get_host() == "127.0.0.1"
        assert viewer.url.startswith("http://127.0.0.1:")
        for _ in range(3):
            viewer.tick()
        assert viewer.session.simulation.time == 0.0  # nobody looks
    finally:
        viewer.close()
    assert viewer.session.simulation.scene.control is None


@pytest.mark.slow
def test_in_a_first_order_world_the_mouse_carries_a_block_off_a_stack(browser):
    """The block follows the mouse to where it points, the others stay, and nothing flies when it is let go."""
    simulation = st.Simulation(st.Scene.named("block-stack", blocks=3), stepper=st.FirstOrder())
    viewer = Viewer(simulation, port=0).start()
    page = open_page(browser, viewer.url)
    page.locator("#stiction-status").wait_for()
    session, data = viewer.session, simulation.data
    top = int(np.argmax(data.xpos[:, 2]))
    wait_for(lambda: simulation.time > 0.1, "time does not run")
    page.wait_for_timeout(1000)  # the page tells its camera
    start, others = data.xpos[top].copy(), np.delete(data.xpos.copy(), top, axis=0)
    x, y = on_screen(page, viewer, start)
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(1, 11):
        page.mouse.move(x + 6 * k, y - 8 * k)
        page.wait_for_timeout(50)
    wait_for(lambda: session.hand.grip is not None, "the mouse holds nothing")
    assert session.hand.grip.body == top
    grip = session.hand.grip
    wait_for(lambda: np.linalg.norm(grip.target - grip.point(data)) < 0.005, "it does not follow the mouse")
    picture(page, "first-order-1-carried")
    assert np.linalg.norm(data.xpos[top] - start) > 0.02
    assert np.abs(np.delete(data.xpos, top, axis=0) - others).max() < 0.5 * np.linalg.norm(data.xpos[top] - start)
    page.mouse.up()
    wait_for(lambda: session.hand.grip is None, "it was not let go")
    begin = simulation.time
    wait_for(lambda: simulation.time > begin + 0.5, "time does not run")
    picture(page, "first-order-2-let-go")
    assert session.failure is None
    assert np.abs(data.qvel).max() < 1e-6
    page.context.close()
    viewer.close()
