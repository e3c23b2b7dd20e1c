"""A newcomer's ten minutes, in an environment of their own: install, demo, tutorial, own robot, a mistake.

Every picture on the way is opened and has a subject that fills at least a tenth of it. They are kept in
.cache/newcomer, for people to look at.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stiction.optional import imageio_ffmpeg

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".cache" / "newcomer"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHARE = 0.1  # of a picture, that its subject covers
LONG = 0.55  # of its width, for what is slender: a row of dominoes
PATIENCE = 400.0  # s: a browser without a GPU, on cores that others use
# A sledge with a mast that swings: what somebody brings who has a robot.
SLEDGE = """<robot name="sledge">
  <link name="base">
    <inertial><mass value="2"/><inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.4 0.3 0.1"/></geometry></collision>
  </link>
  <link name="mast">
    <inertial><origin xyz="0 0 0.15"/><mass value="0.3"/>
      <inertia ixx="0.003" iyy="0.003" izz="0.0003" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 0.15"/><geometry><cylinder radius="0.02" length="0.3"/></geometry></collision>
  </link>
  <joint name="swing" type="revolute">
    <parent link="base"/><child link="mast"/><origin xyz="0 0 0.06"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="5"/>
  </joint>
</robot>"""


class Newcomer:
    """Somebody at a terminal: a folder, a clean environment, and the commands of a new installation."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self.desk = folder / "stiction", folder / "desk"
        self.desk.mkdir()
        self.bin = self.checkout / ".venv" / "bin"
        unwanted = ("NUMBA_", "STICTION_", "PYTHON", "VIRTUAL_ENV")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        self.environment["PATH"] = f"{self.bin}{os.pathsep}{os.environ['PATH']}"

    def types(self, *words: str, at: Path | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
        begin = time.monotonic()
        ended = subprocess.run(
            words, cwd=at or self.desk, env=self.environment, capture_output=True, text=True, encoding="utf-8"
        )
        sys.stdout.write(f"{time.monotonic() - begin:6.1f} s  {' '.join(words)[:100]}\n")
        assert ended.returncode == status, f"{words}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"
        return ended


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    made = Newcomer(tmp_path_factory.mktemp("newcomer"))
    there = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, there.split("\0")):
        if (ROOT / name).is_file():
            (made.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, made.checkout / name)
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    return made


@pytest.mark.slow
def test_ten_minutes(newcomer):
    """In the order of the documentation; each part needs what came before."""
    told = newcomer.types("make", "demo", f"PYTHON={sys.executable}", at=newcomer.checkout).stdout
    assert told.count("worst residual") == 2, "two tables, of us and of MuJoCo"
    demo = newcomer.checkout / "demo"
    for name in ("pinched-capsule.mp4", "mass-ratio.mp4"):
        look_at_film(demo / name)
    for name in ("pinched-capsule.svg", "mass-ratio.svg", "creep.svg", "dominoes.svg"):
        look_at_plot(demo / name)

    follow_the_tutorial(newcomer)
    for name in ("grip.mp4", "slip.mp4", "both.mp4"):
        look_at_film(newcomer.desk / name)
    for name in ("grip.svg", "both.svg"):
        look_at_plot(newcomer.desk / name)

    (newcomer.desk / "sledge.urdf").write_text(SLEDGE)
    on_the_ground = ("sledge.urdf", "--floating", "--ground", "-0.05")
    assert "refused:\n  nothing" in newcomer.types("stiction", "doctor", *on_the_ground).stdout
    newcomer.types("stiction", "run", *on_the_ground, "--seconds", "1", "--record", "sledge.mp4")
    look_at_film(newcomer.desk / "sledge.mp4")

    before = sorted(newcomer.desk.iterdir())
    for words, hint in (
        (("run", "griper.xml"), "griper.xml: no such file"),
        (("run", "gripper.xml", "--ctrl", "lefd=10"), "did you mean 'left'?"),
        (("run", "gripper.xml", "--record", "grip.mov"), ".mp4"),
    ):
        ended = newcomer.types("stiction", *words, status=2)
        assert hint in ended.stderr
        assert (ended.stderr.count("\n"), ended.stdout) == (1, "")
    assert sorted(newcomer.desk.iterdir()) == before
    look_at_page(demo / "dominoes.html")


def follow_the_tutorial(newcomer: Newcomer) -> None:
    """Its Python in one session, its commands in a shell, in order; what is printed is what it shows."""
    blocks = BLOCK.findall((newcomer.checkout / "docs" / "tutorial.md").read_text(encoding="utf-8"))
    code = "".join(f"{text}\nprint('----')\n" for language, text in blocks if language == "python")
    expected = [
        following[1] if following[0] == "text" else ""
        for (language, _), following in zip(blocks, [*blocks[1:], ("", "")], strict=True)
        if language == "python"
    ]
    assert newcomer.types("python", "-c", code).stdout.split("----\n")[:-1] == expected
    for language, text in blocks:
        if language == "sh":
            newcomer.types("sh", "-c", text)


def look_at_film(path: Path) -> None:
    """Its first picture, one of its middle and its last; the last is kept."""
    with tempfile.TemporaryDirectory() as folder:
        command = [imageio_ffmpeg().get_ffmpeg_exe(), "-v", "error", "-i", str(path), f"{folder}/%04d.png"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        files = sorted(Path(folder).iterdir())
        assert len(files) >= 2, path.name
        shutil.copy(files[-1], KEPT / f"{path.stem}.png")
        for file in (files[0], files[len(files) // 2], files[-1]):
            with Image.open(file) as picture:
                share = covered(np.array(picture.convert("RGB")))
            assert share >= SHARE, f"{path.name} shows little: {share:.1%}"


def covered(picture: np.ndarray) -> float:
    """The share that is neither sky nor floor, which are pale, nor shadow, which has no colour."""
    return float(lively(picture).mean())


def lively(picture: np.ndarray) -> np.ndarray:
    colours = picture.astype(int)
    return (np.ptp(colours, axis=2) > 18) & (colours.mean(axis=2) < 165)


def spanned(picture: np.ndarray) -> float:
    """How much of the width is taken by columns with more than a speck of colour in them."""
    taken = np.flatnonzero(lively(picture).mean(axis=0) > 0.03)
    return float(np.ptp(taken) / picture.shape[1]) if taken.size else 0.0


def look_at_plot(path: Path) -> None:
    """A title or labels, axes, and lines that are more than a stroke."""
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r"<text\b|<g id=\"text_", text)) >= 4, path.name
    assert max(map(len, re.findall(r"<path d=\"([^\"]*)\"", text))) > 200, path.name
    shutil.copy(path, KEPT)


def look_at_page(path: Path) -> None:
    """What a browser shows of a replay, once it has appeared."""
    assert path.stat().st_size > 100_000
    if CHROMIUM is None:
        return
    from playwright.sync_api import sync_playwright

    software = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=software)
        page = browser.new_page(viewport={"width": 480, "height": 320})
        page.set_default_timeout(1e3 * PATIENCE)
        page.goto(path.as_uri())
        page.locator("canvas").first.wait_for()
        page.add_style_tag(content="canvas { opacity: 1 !important }")  # it appears slowly out of white
        page.locator(".mantine-Notification-closeButton").first.click()
        end = time.monotonic() + PATIENCE
        while True:
            content = page.screenshot(path=KEPT / f"{path.stem}.png", timeout=1e3 * PATIENCE)
            shown = np.array(Image.open(io.BytesIO(content)).convert("RGB"))[40:260]
            if covered(shown) >= SHARE or spanned(shown) > LONG:
                break
            assert time.monotonic() < end, (
                f"{path.name} shows little: {covered(shown):.1%}, {spanned(shown):.1%} across"
            )
            page.wait_for_timeout(2000)
        browser.close()
