"""Robots in URDF: MuJoCo reads the format; meshes of packages, a floating base and a world to stand on are ours.

A mesh `package://name/path` lies in the folder given for the package, or in a folder of that name beside or above the
file. The root link is fixed to the world unless it floats; then it needs a mass.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from stiction.errors import InvalidScene
from stiction.optional import mujoco

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

mj = mujoco()

ROOT = "<robot"
BEFORE = (("<!--", "-->"), ("<?", "?>"), ("<!", ">"))  # what may stand before the first element, and how it ends
BLANK = re.compile(r"\s+")
DEEPEST = 200  # elements within elements; a robot has about ten


def is_urdf(file: Path) -> bool:
    """By its name, or by its first element."""
    if file.suffix.lower() == ".urdf":
        return True
    text, place = file.read_text(encoding="utf-8-sig", errors="replace"), 0
    while True:
        # White space, declarations and comments come first; each is passed over once.
        blank = BLANK.match(text, place)
        place = place if blank is None else blank.end()
        ending = next((end for begin, end in BEFORE if text.startswith(begin, place)), None)
        if ending is None:
            name = text[place : place + len(ROOT) + 1]
            return name.startswith(ROOT) and not (name[-1].isalnum() or name[-1] in "_-.:")
        end = text.find(ending, place)
        if end < 0:
            return False
        place = end + len(ending)


class Shallow(ElementTree.TreeBuilder):
    """Builds elements, but no deeper than a robot needs: what handles them afterwards is recursive."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0

    def start(self, tag: Any, attrs: Any, /) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise InvalidScene(f"elements are nested more than {DEEPEST} deep")
        return super().start(tag, attrs)

    def end(self, tag: Any, /) -> Any:
        self.depth -= 1
        return super().end(tag)


def spec_of_urdf(file: Path, packages: Mapping[str, str | os.PathLike[str]], floating: bool) -> Any:
    try:
        robot = ElementTree.parse(file, ElementTree.XMLParser(target=Shallow())).getroot()
    except ElementTree.ParseError as error:
        raise InvalidScene(f"not well-formed XML: {error}") from None
    if robot.tag != "robot":
        raise InvalidScene(f"a URDF begins with <robot>, not with <{robot.tag}>")
    for mesh in robot.iter("mesh"):
        mesh.set("filename", str(located(mesh.get("filename", ""), file, packages)))
    extension = robot.find("mujoco")
    if extension is None:
        extension = ElementTree.SubElement(robot, "mujoco")
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(extension, "compiler")
    compiler.set("strippath", "false")
    compiler.attrib.setdefault("fusestatic", "false")
    spec = mj.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
    if floating:
        roots = list(spec.worldbody.bodies)
        if len(roots) != 1:
            raise InvalidScene(f"a floating base needs one root link, but there are {len(roots)}")
        if list(roots[0].joints):
            raise InvalidScene(f"the root link {roots[0].name} has a joint already: it cannot float")
        roots[0].add_freejoint(name="floating")
    return spec


def located(name: str, file: Path, packages: Mapping[str, str | os.PathLike[str]]) -> Path:
    """The file that a mesh's name means."""
    if name.startswith("package://"):
        package, _, rest = name.removeprefix("package://").partition("/")
        if package in packages:
            folders = [Path(packages[package])]
        else:
            folders = [folder for above in file.resolve().parents for folder in (above, above / package)]
            folders = [folder for folder in folders if folder.name == package]
        for folder in folders:
            if (folder / rest).is_file():
                return (folder / rest).resolve()
        raise InvalidScene(f"{name} not found; pass packages={{{package!r}: folder}}")
    name = name.removeprefix("file://")
    found = (file.parent / name).resolve()
    if not found.is_file():
        raise InvalidScene(f"mesh {name} not found")
    return found
