"""Contacts with heightfields, without those of edges that are none.

MuJoCo looks for contacts with each prism of a heightfield by itself, so that a neighbour of the one below reports its
own edge, from the side: with a normal up to 87° wrong, within the margin, though behind the surface there is no edge.
The nearest contact of a pair is right. Another stays if its normal n is that of a face at its place t, or if no way w
along the surface leads from t towards what it touches,

    n·w <= 0   for all w,

as at a ridge or peak: otherwise t is not the nearest point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.optional import mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

mj = mujoco()

HFIELD = int(mj.mjtGeom.mjGEOM_HFIELD)
WAYS = 8  # along the surface
STRIDE = 1e-3  # of a cell
ASKEW = 3e-3  # rad: angle between normals that agree


def sift(model: Any, data: Any) -> None:
    """Exclude the contacts of heightfields that are not nearest points of their surface."""
    contacts = data.contact
    geoms, dist, exclude = contacts.geom, contacts.dist, contacts.exclude
    touching = np.flatnonzero((geoms >= 0).all(axis=1) & (model.geom_type[geoms[:, 0]] == HFIELD))
    for one, two in {tuple(pair) for pair in geoms[touching].tolist()}:
        here = touching[(geoms[touching] == (one, two)).all(axis=1)]
        if here.size < 2:
            continue
        R = data.geom_xmat[one].reshape(3, 3)
        normal = contacts.frame[here, :3]
        place = (contacts.pos[here] - 0.5 * dist[here, None] * normal - data.geom_xpos[one]) @ R
        wrong = ~on_surface(model, int(model.geom_dataid[one]), place, normal @ R)
        wrong[dist[here].argmin()] = False
        exclude[here[wrong]] = 1


def on_surface(model: Any, field: int, place: NDArray[np.float64], normal: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) whether normals (n, 3) are such of a heightfield at these places (n, 3), in its frame."""
    turns = 2.0 * np.pi * (np.arange(WAYS) + 0.25) / WAYS
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    stride = STRIDE * 2.0 * min(model.hfield_size[field, 0] / (columns - 1), model.hfield_size[field, 1] / (rows - 1))
    around = place[:, None, :2] + stride * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    ways = np.empty((len(place), WAYS, 3))
    ways[..., :2] = around - place[:, None, :2]
    ways[..., 2] = height(model, field, around) - height(model, field, place[:, None, :2])
    faces = np.cross(ways, np.roll(ways, -1, axis=1))
    for each in (ways, faces):
        each /= np.linalg.norm(each, axis=2, keepdims=True)
    agrees = (faces @ normal[:, :, None])[..., 0].max(axis=1) >= np.cos(ASKEW)
    nearest = (ways @ normal[:, :, None])[..., 0].max(axis=1) <= np.sin(ASKEW)
    return np.asarray(agrees | nearest)


def height(model: Any, field: int, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Height of a heightfield at places (..., 2); the triangles of a cell share the diagonal on which x and y grow."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    wide, deep, tall, _ = model.hfield_size[field]
    begin = int(model.hfield_adr[field])
    z = tall * model.hfield_data[begin : begin + rows * columns].reshape(rows, columns).astype(float)
    x = np.clip((place[..., 0] / wide + 1.0) * 0.5 * (columns - 1), 0.0, columns - 1)
    y = np.clip((place[..., 1] / deep + 1.0) * 0.5 * (rows - 1), 0.0, rows - 1)
    c, r = np.minimum(x.astype(int), columns - 2), np.minimum(y.astype(int), rows - 2)
    x, y = x - c, y - r
    low, high, left, right = z[r, c], z[r + 1, c + 1], z[r + 1, c], z[r, c + 1]
    one, two = low + x * (right - low) + y * (high - right), low + y * (left - low) + x * (high - left)
    return np.asarray(np.where(x >= y, one, two))
