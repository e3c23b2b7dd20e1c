"""The surroundings of a scene in pictures: a sky, a checkered floor, light with shadows. The model is never touched.

Floors are drawn where the model has planes without a material of their own; a scene without a floor gets the sky alone,
because a floor that nothing rests on would be a lie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.optional import mujoco
from stiction.viewer.camera import FOV, axes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.viewer.camera import Camera

ZENITH, HORIZON, HAZE = (158, 190, 222), (232, 239, 246), (214, 222, 231)  # from the top of a picture to its bottom
FLOOR, TILE = (226, 230, 236), (205, 212, 221)
UNTINTED = np.array([0.5, 0.5, 0.5, 1.0])  # what MuJoCo gives to geoms without a colour
TINTS = ((108, 131, 158), (158, 134, 108), (126, 152, 122), (146, 124, 154))  # quiet: arrows are to be seen on them
TILES = 15  # in each direction from the middle
LIGHT = np.array([0.30, 0.42, -0.86])  # its direction when seen along x; it turns with the camera
FAR = 30.0  # times the distance of the camera: the end of the world


def sky(width: int, height: int, horizon: float | None = None) -> NDArray[np.uint8]:
    """(height, width, 3) a gradient.

    horizon: where a floor ends, from 0 at the top to 1; None without a floor: then it darkens again below
    """
    if horizon is None:
        places, stops = [0.0, 0.42, 0.55, 1.0], np.array([ZENITH, HORIZON, HORIZON, HAZE], float)
    else:
        end = max(horizon, 0.02)
        places, stops = [end - 0.45, end, 1.0], np.array([ZENITH, HORIZON, HORIZON], float)
    down = np.linspace(0.0, 1.0, height)
    column = np.stack([np.interp(down, places, stops[:, k]) for k in range(3)], axis=1)
    return np.broadcast_to(np.round(column)[:, None], (height, width, 3)).astype(np.uint8)


def horizon_of(camera: Camera) -> float:
    """Where the horizon is in a picture, from 0 at its top to 1."""
    half = math.tan(0.5 * math.radians(FOV))
    return 0.5 + 0.5 * math.tan(math.radians(camera.elevation)) / half


def tile_size(distance: float) -> float:
    """Side of a tile of the floor in m: 1, 2 or 5 times a power of ten, about an eighth of the camera's distance."""
    wanted = distance / 8.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return power * max(step for step in (1.0, 2.0, 5.0) if step * power <= wanted * (1.0 + 1e-9))


def checkers(pixels: int) -> NDArray[np.uint8]:
    """(side, side, 4) the floor as an image that fades to its rim, 2 · TILES squares of so many pixels across."""
    place = np.arange(2 * TILES * pixels)
    square = place // pixels
    odd = (square[:, None] + square) % 2 == 1
    made = np.empty((place.size, place.size, 4), np.uint8)
    made[..., :3] = np.where(odd[:, :, None], np.array(TILE), np.array(FLOOR))
    along = (place + 0.5) / (TILES * pixels) - 1.0
    away = np.hypot(along[:, None], along)
    made[..., 3] = np.round(255.0 * np.clip(2.0 * (1.0 - away), 0.0, 1.0))
    return made


def prepare(model: Any, camera: Camera) -> None:
    """Far end, haze and shadows of a copy of a model, for pictures from about this distance."""
    view, reach = model.vis, camera.distance / float(model.stat.extent)
    view.map.znear, view.map.zfar = 0.02 * reach, FAR * reach
    view.map.fogstart, view.map.fogend = 0.5 * FAR * reach, 0.8 * FAR * reach  # of the wall alone
    view.map.shadowclip = 1.6 * reach
    view.rgba.fog[:] = [*(part / 255.0 for part in HORIZON), 1.0]
    view.quality.shadowsize = 2048


def tint(model: Any) -> None:
    """Colours for a copy of a model whose geoms have none: grey on grey, nobody sees what touches what."""
    plain = (np.abs(np.asarray(model.geom_rgba) - UNTINTED).max(axis=1) < 1e-6) & (np.asarray(model.geom_matid) < 0)
    body = np.asarray(model.geom_bodyid)
    moves = np.asarray(model.body_weldid)[body] != 0
    for geom in np.flatnonzero(plain & moves):
        model.geom_rgba[geom, :3] = np.array(TINTS[(int(body[geom]) - 1) % len(TINTS)]) / 255.0


def own_sky(model: Any) -> bool:
    """Whether a model brings a sky, which is then left to it, as is a floor with a material."""
    return bool((np.asarray(model.tex_type) == mujoco().mjtTexture.mjTEXTURE_SKYBOX).any())


def planes(model: Any) -> list[int]:
    """Planes that are fixed and have no material of their own."""
    mj = mujoco()
    fixed = np.asarray(model.body_weldid)[np.asarray(model.geom_bodyid)] == 0
    plain = (np.asarray(model.geom_type) == mj.mjtGeom.mjGEOM_PLANE) & (np.asarray(model.geom_matid) < 0)
    return [int(g) for g in np.flatnonzero(fixed & plain)]


def floor_of(model: Any) -> int | None:
    """The plane that is a floor: the only one, unless it is steeper than 45 degrees."""
    found = planes(model)
    if len(found) != 1:
        return None
    data = mujoco().MjData(model)
    mujoco().mj_kinematics(model, data)
    return found[0] if data.geom_xmat[found[0]][8] > math.sqrt(0.5) else None


def dress(scene: Any, model: Any, data: Any, camera: Camera, floor: int | None) -> None:
    """Add floor, far wall and light to an updated mjvScene."""
    mj, plain = mujoco(), set(planes(model))
    for g in scene.geoms[: scene.ngeom]:
        if g.objtype == mj.mjtObj.mjOBJ_GEOM and g.objid in plain:
            g.reflectance = g.castshadow = 0
            # A floor is drawn tile by tile instead; other planes give way a little to what touches them.
            back = 10.0 * FAR if g.objid == floor else 1e-3
            g.pos[:] -= back * camera.distance * g.mat[:, 2]
    if floor is not None:
        add_tiles(scene, np.array(data.geom_xpos[floor]), np.array(data.geom_xmat[floor]).reshape(3, 3), camera)
    add_light(scene, camera)
    scene.flags[mj.mjtRndFlag.mjRND_SHADOW] = 1
    scene.flags[mj.mjtRndFlag.mjRND_FOG] = not own_sky(model)
    if not own_sky(model):
        add_wall(scene, model, camera)
        scene.flags[mj.mjtRndFlag.mjRND_HAZE] = 0


def add_tiles(scene: Any, at: NDArray[np.float64], turn: NDArray[np.float64], camera: Camera) -> None:
    """A checkered floor around the point that is looked at, which fades into the haze; its squares stay in place."""
    mj = mujoco()
    side = tile_size(camera.distance)
    local = (turn.T @ (camera.centre - at))[:2] / side
    middle = np.floor(local).astype(int)
    size = np.array([0.5 * side, 0.5 * side, 1.0])
    for i in range(middle[0] - TILES, middle[0] + TILES + 1):
        for j in range(middle[1] - TILES, middle[1] + TILES + 1):
            away = math.hypot(i + 0.5 - local[0], j + 0.5 - local[1]) / TILES
            if away >= 1.0 or (geom := next_geom(scene)) is None:
                continue
            centre = at + side * (i + 0.5) * turn[:, 0] + side * (j + 0.5) * turn[:, 1]
            mj.mjv_initGeom(geom, mj.mjtGeom.mjGEOM_PLANE, size, centre, turn.ravel(), np.ones(4, np.float32))
            colour(geom, TILE if (i + j) % 2 else FLOOR)
            geom.rgba[3] = min(1.0, 2.0 * (1.0 - away))
            geom.transparent = int(geom.rgba[3] < 1.0)
            geom.category, geom.specular, geom.castshadow = mj.mjtCatBit.mjCAT_DECOR, 0.0, 0


def add_wall(scene: Any, model: Any, camera: Camera) -> None:
    """Behind everything, lost in the haze: edges against the sky are smoothed with its colour, not with black."""
    geom = next_geom(scene)
    if geom is None:
        return
    mj = mujoco()
    right, up, ahead = axes_of(camera.azimuth, camera.elevation)
    far = float(model.vis.map.zfar) * float(model.stat.extent)
    turn = np.stack([right, up, -ahead], axis=1)
    size = np.array([2.0 * far, 2.0 * far, 1.0])
    place = camera.position + 0.95 * far * ahead
    mj.mjv_initGeom(geom, mj.mjtGeom.mjGEOM_PLANE, size, place, turn.ravel(), np.ones(4, np.float32))
    colour(geom, HORIZON)
    geom.category, geom.castshadow = mj.mjtCatBit.mjCAT_DECOR, 0


def add_light(scene: Any, camera: Camera) -> None:
    """One light from the side that casts shadows, and an even one, in place of the model's."""
    mj = mujoco()
    scene.nlight = 2
    even, side = scene.lights[0], scene.lights[1]
    turn = math.radians(camera.azimuth)
    x, y, z = LIGHT / np.linalg.norm(LIGHT)
    direction = np.array([x * math.cos(turn) + y * math.sin(turn), x * math.sin(turn) - y * math.cos(turn), z])
    for light in (even, side):
        light.type = mj.mjtLightType.mjLIGHT_DIRECTIONAL
        light.attenuation[:] = 1.0, 0.0, 0.0
        light.texid = -1
    even.headlight, even.castshadow = 1, 0
    even.pos[:], even.dir[:] = camera.position, (camera.centre - camera.position) / camera.distance
    even.ambient[:], even.diffuse[:], even.specular[:] = 0.38, 0.20, 0.0
    side.headlight, side.castshadow = 0, 1
    side.pos[:], side.dir[:] = camera.centre - 1.5 * camera.distance * direction, direction
    side.ambient[:], side.diffuse[:], side.specular[:] = 0.12, 0.45, 0.12


def next_geom(scene: Any) -> Any:
    """Room for one more, or None."""
    if scene.ngeom >= scene.maxgeom:
        return None
    scene.ngeom += 1
    return scene.geoms[scene.ngeom - 1]


def colour(geom: Any, rgb: tuple[int, int, int]) -> None:
    geom.rgba[:] = [*(part / 255.0 for part in rgb), 1.0]
