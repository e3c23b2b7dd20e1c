"""State and energy of a simulation, as MuJoCo keeps them."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import InvalidScene
from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

mj = mujoco()
LARGEST = 1 << 21  # the most that is believed of a size, unless the binary model itself is larger
BYTES = ("narena", "nbuffer")  # sizes that count bytes; no memory is touched for them
EVERYTHING = int(mj.mjtState.mjSTATE_INTEGRATION)


def state(model: Any, data: Any) -> NDArray[np.float64]:
    """All that the next step depends on: time, positions, velocities, activations, controls, applied forces."""
    vector = np.empty(mj.mj_stateSize(model, EVERYTHING))
    mj.mj_getState(model, data, vector, EVERYTHING)
    return vector


def set_state(model: Any, data: Any, vector: NDArray[np.float64]) -> None:
    size = mj.mj_stateSize(model, EVERYTHING)
    if vector.shape != (size,):
        raise InvalidScene(f"the state has shape {vector.shape}, but this model needs ({size},)")
    mj.mj_setState(model, data, vector, EVERYTHING)


def energy(model: Any, data: Any) -> tuple[float, float]:
    """Potential and kinetic energy, in J, of the configuration that kinematics were last computed for."""
    mj.mj_energyPos(model, data)
    mj.mj_energyVel(model, data)
    potential, kinetic = data.energy
    return float(potential), float(kinetic)


def copy_data(model: Any, source: Any, target: Any) -> None:
    """Everything that a data holds, derived numbers included."""
    mj.mj_copyData(target, model, source)


def place_bodies(model: Any, data: Any) -> None:
    """Places of bodies and geoms and axes of joints, which margins are computed from, at the present positions."""
    mj.mj_kinematics(model, data)
    mj.mj_comPos(model, data)


def model_bytes(model: Any) -> NDArray[np.uint8]:
    """A compiled model, in MuJoCo's binary form."""
    image = np.empty(mj.mj_sizeModel(model), np.uint8)
    mj.mj_saveModel(model, None, image)
    return image


def model_of(image: NDArray[np.uint8]) -> Any:
    """The model of `model_bytes`."""
    check_sizes(image)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mjb"
        path.write_bytes(image.tobytes())
        try:
            return mj.MjModel.from_binary_path(str(path))
        except (ValueError, mj.FatalError, mj.UnexpectedError) as error:
            raise InvalidScene(f"the saved model cannot be read by mujoco {mj.__version__} ({error})") from error


def check_sizes(image: NDArray[np.uint8]) -> None:
    """Raise if the sizes in front of a binary model promise more than follows: MuJoCo takes memory by them, unasked.

    The form begins with five int32, the third of which counts the int64 sizes that follow; they have the order of the
    first fields of mjModel. MuJoCo's own description lists the arrays that belong to them.
    """
    from importlib import import_module

    fields = import_module("mujoco.introspect.structs").STRUCTS["mjModel"].fields
    sizes = [field.name for field in fields if getattr(field.type, "name", "") == "mjtSize"]
    begin, content = 5 * 4, image.tobytes()
    if image.dtype != np.uint8 or image.ndim != 1 or len(content) < begin + 8 * len(sizes):
        raise InvalidScene(f"the saved model has {image.nbytes} bytes, which is too few")
    if int(np.frombuffer(content, np.int32, 3)[2]) != len(sizes):
        return  # of another version, which MuJoCo refuses by itself
    given = dict(zip(sizes, np.frombuffer(content, np.int64, len(sizes), begin).tolist(), strict=True))
    arrays = [field.array_extent for field in fields if getattr(field, "array_extent", None)]
    promised = {name: max(size, 0) for name, size in given.items() if name not in BYTES}
    # Constants of MuJoCo's count as one each, bytes of an entry too: no more is needed to see what is absurd.
    total = sum(
        math.prod(part if isinstance(part, int) else promised.get(part, 1) for part in extent) for extent in arrays
    )
    if min(given.values()) < -1 or max(promised.values()) > max(LARGEST, len(content)) or total > len(content):
        raise InvalidScene("the saved model is damaged: its sizes do not fit its contents")


def names(model: Any) -> tuple[list[str], list[str]]:
    """Of all geoms and bodies; a number stands for what has none."""
    geoms = [model.geom(i).name or f"geom {i}" for i in range(model.ngeom)]
    bodies = [model.body(i).name or f"body {i}" for i in range(model.nbody)]
    return geoms, bodies


def reset(model: Any, data: Any, key: str) -> None:
    """To the keyframe of that name if there is one, else to the reference configuration."""
    number = mj.mj_name2id(model, mj.mjtObj.mjOBJ_KEY, key)
    if number >= 0:
        mj.mj_resetDataKeyframe(model, data, number)
    else:
        mj.mj_resetData(model, data)
