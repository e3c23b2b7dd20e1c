"""Named scenes: those of the papers and those that people complain about, each written once, with parameters.

`SCENES[name](**parameters)` gives a `NamedScene`: a MuJoCo specification, the control that drives it (or None), and a
sentence about it. Parameters out of range raise `InvalidScene`. Scenes that do not start at rest carry a keyframe
`start`. Margins are left at zero: they belong to the time step.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from stiction.scenes.baraff import block_feeder, double_action_jack
from stiction.scenes.buildings import card_house, dominoes, masonry_arch
from stiction.scenes.complaints import (
    box_on_plane,
    mass_ratio,
    pinched_capsule,
    sliding_ball,
    sliding_cube,
)
from stiction.scenes.drumwright import force_closure_grasp
from stiction.scenes.features import conveyor, four_bar, rolling_balls
from stiction.scenes.lacoursiere import inclined_plane, log_heap
from stiction.scenes.large import granular_column, heap, humanoids, wall
from stiction.scenes.lloyd import (
    ball_in_rim,
    block_in_channel,
    block_in_corner,
    block_in_groove,
    block_on_edge,
    block_on_octagon,
    block_on_point,
    block_on_table,
    block_on_tripod,
    block_stack,
    face_on_face,
    peg_in_hole,
)
from stiction.scenes.parts import START, NamedScene
from stiction.scenes.walker import quadruped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCENES: Mapping[str, Callable[..., NamedScene]] = MappingProxyType(
    {
        "peg-in-hole": peg_in_hole,
        "block-on-point": block_on_point,
        "block-on-edge": block_on_edge,
        "block-on-tripod": block_on_tripod,
        "block-on-table": block_on_table,
        "face-on-face": face_on_face,
        "block-on-octagon": block_on_octagon,
        "block-in-groove": block_in_groove,
        "block-in-corner": block_in_corner,
        "ball-in-rim": ball_in_rim,
        "block-in-channel": block_in_channel,
        "block-stack": block_stack,
        "inclined-plane": inclined_plane,
        "log-heap": log_heap,
        "force-closure-grasp": force_closure_grasp,
        "quadruped": quadruped,
        "block-feeder": block_feeder,
        "double-action-jack": double_action_jack,
        "box-on-plane": box_on_plane,
        "sliding-cube": sliding_cube,
        "sliding-ball": sliding_ball,
        "pinched-capsule": pinched_capsule,
        "mass-ratio": mass_ratio,
        "card-house": card_house,
        "masonry-arch": masonry_arch,
        "dominoes": dominoes,
        "conveyor": conveyor,
        "rolling-balls": rolling_balls,
        "four-bar": four_bar,
        "heap": heap,
        "wall": wall,
        "humanoids": humanoids,
        "granular-column": granular_column,
    }
)

__all__ = ["SCENES", "START", "NamedScene"]
