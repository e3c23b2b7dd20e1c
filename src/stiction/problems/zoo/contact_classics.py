"""Contact problems that others published, by name. Their numbers lie in `data/`, with their origin and licence.

Those of the Siconos tests and of FCLIB are steps of simulations, many rank-deficient, with |q| from 6e-12 to 25: only
scaled tolerances mean anything. The sixteen named `lloyd-...` are the contact sets of Lloyd's own test file.
"""

from __future__ import annotations

import io
import re
from functools import cache
from importlib.resources import as_file, files
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from stiction.problems.contact import ContactProblem
from stiction.problems.fclib import read
from stiction.problems.zoo.rigid_bodies import Body, Touch, posed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SICONOS = (
    "Confeti-ex13-4contact-Fc3D-SBM",
    "FC2D_SliderCrankLagrangian00000",
    "FC3D_Example1",
    "FrictionContactProblem00031",
    "NESpheres_10_1",
    "OneObject-i100000-316",
    "Rover1039",
    "Rover11035",
    "Rover4396",
)
FCLIB = (
    "Box_Stacks-i0122-82-5",
    "CubeH8",
    "LMGC_100_PR_PerioBox-i00361-60-03000",
    "LMGC_GFC3D-i00501-4-00000",
    "local_problem_test",
    "spheres-in-a-box-98-i10000-256-10",
)
DATA = files("stiction.problems.zoo").joinpath("data")


@cache
def contact_classics() -> Mapping[str, ContactProblem]:
    """All 31 published problems; those of FCLIB need h5py."""
    problems = {name: _siconos(name) for name in SICONOS}
    problems |= {name: _fclib(name) for name in FCLIB}
    return MappingProxyType(problems | lloyd_contact_sets())


def lloyd_contact_sets() -> dict[str, ContactProblem]:
    """Lloyd's sixteen sets of 1 to 16 contacts of one body, `lloyd-01` to `lloyd-16` in the order of his file.

    The file gives points, normals, friction, the body's place and the wrench, not its mass: 1 kg and 1 kg m² here, and
    the wrench acts for 1 s. He solves them with `Coulomb(facets=8)`.
    """
    text = re.sub(r"#.*", "", DATA.joinpath("contact", "contactTest.txt").read_text(encoding="utf-8"))
    given: dict[str, NDArray[np.float64]] = {}
    problems: dict[str, ContactProblem] = {}
    for name, numbers, test in re.findall(r"(\w+)\s*=\s*\[([^]]*)\]|\b(test)\b", text):
        if not test:
            given[name] = np.array(numbers.split(), dtype=np.float64)
            continue
        body = Body(1.0, np.eye(3), given["bpos"])
        points, normals = given["pnts"].reshape(-1, 3), given["nrms"].reshape(-1, 3)
        touches = [Touch(point, normal, -1, 0) for point, normal in zip(points, normals, strict=True)]
        problems[f"lloyd-{len(problems) + 1:02d}"] = posed([body], touches, given["wext"], given["fcoefs"])
    return problems


def _siconos(name: str) -> ContactProblem:
    content = io.BytesIO(DATA.joinpath("contact", f"{name}.npz").read_bytes())
    with np.load(content, allow_pickle=False) as data:
        return ContactProblem.from_delassus(data["W"], data["q"], data["mu"], int(data["dim"]))


def _fclib(name: str) -> ContactProblem:
    with as_file(DATA.joinpath("fclib", f"{name}.hdf5")) as path:
        return read(path)
