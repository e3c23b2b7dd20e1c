"""Where MuJoCo keeps its numbers, so that kernels can read and write them in place.

MuJoCo's Python attributes build a new array at every access, a fifth of a microsecond each; a step needs fifty of
them. Kernels read the C structs `mjModel` and `mjData` instead: `Memory` shows the fields named below as two records,
whose pointers are addresses that `floats` and `ints` turn into something to index. Offsets are computed from MuJoCo's
own description of its structs (`mujoco.introspect`, of the same build), never written down here, and every field is
compared with MuJoCo's attribute of that name before it is used.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.optional import mujoco

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

MODEL = (
    "nv", "nq", "nu", "na", "nmocap", "neq", "nbody", "ngeom", "njnt", "npair", "ntree", "ntendon", "nactuator",
    "opt.timestep", "opt.gravity", "opt.integrator", "opt.cone", "opt.jacobian", "opt.solver", "opt.noslip_iterations",
    "opt.disableflags", "opt.enableflags", "opt.disableactuator", "body_mass", "body_inertia", "M_rownnz", "M_rowadr",
    "M_colind", "tree_dofadr", "tree_dofnum", "dof_treeid", "dof_jntid", "dof_damping", "dof_dampingpoly",
    "body_treeid", "body_parentid", "body_rootid", "body_dofadr", "body_dofnum", "body_margin", "geom_bodyid",
    "geom_rbound", "geom_size", "geom_type", "geom_margin", "jnt_type", "jnt_dofadr", "jnt_margin", "jnt_range",
    "jnt_actuatorid", "pair_geom1", "pair_geom2", "pair_margin", "tendon_margin", "actuator_biastype",
    "actuator_biasprm", "actuator_damping", "actuator_dampingpoly", "actuator_gear", "actuator_forcelimited",
    "actuator_forcerange", "actuator_outadr", "actuator_outnum", "actuator_group", "geom_dataid", "mesh_vertadr",
    "mesh_vertnum", "mesh_vert", "mesh_graphadr", "mesh_graph", "hfield_nrow", "hfield_ncol", "hfield_size",
    "hfield_adr", "hfield_data", "flg_surfacevel", "geom_surfacevel", "body_subtreemass", "signature",
)  # fmt: skip
DATA = (
    "time", "energy", "ncon", "ne", "nf", "nl", "nefc", "flg_energypos", "flg_energyvel", "flg_subtreevel",
    "flg_rnepost", "qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat", "act_dot",
    "qacc", "qfrc_actuator", "qfrc_smooth", "qacc_smooth", "qfrc_constraint", "M", "cdof", "cdof_dot", "cinert", "cvel",
    "cacc", "cfrc_int", "cfrc_ext", "xipos", "subtree_com", "geom_xpos", "geom_xmat", "ten_velocity", "actuator_force",
    "moment_rownnz", "moment_rowadr", "moment_colind", "actuator_moment", "contact", "efc_type", "efc_id",
    "efc_J_rownnz", "efc_J_rowadr", "efc_J_colind", "efc_J", "efc_pos", "efc_vel", "efc_frictionloss", "efc_diagA",
    "efc_KBIP", "efc_force", "signature",
)  # fmt: skip
CONTACT = ("dist", "pos", "frame", "friction", "dim", "geom", "efc_address", "exclude")
# Places in `Memory.where`; those from HEADER on belong to `shadow`.
SIZE, DIST, POS, FRAME, FRICTION, DIM, GEOM, ADDRESS, EXCLUDE = range(9)
HEADER, WORDS, CONE, THEIRS, OURS, WIDEST, SURFACES, JOINED = range(9, 17)

PLANE, HFIELD, CAPSULE, CYLINDER, BOX, MESH = 0, 1, 3, 5, 6, 7  # mjtGeom
ELLIPTIC = 1  # mjCONE_ELLIPTIC

SCALARS = {
    "int": "i4", "mjtNum": "f8", "mjtSize": "i8", "size_t": "u8", "uintptr_t": "u8", "uint64_t": "u8", "float": "f4",
    "mjtBool": "u1", "mjtByte": "u1", "char": "u1",
}  # fmt: skip


class Memory(NamedTuple):
    """The structs of one model and one data, in place."""

    model: NDArray[np.void]  # (1,) record: counts, options and addresses of mjModel
    data: NDArray[np.void]  # (1,) record of mjData; addresses after `contact` change at every position stage
    # Size of mjContact and the offset of each field of CONTACT in it; bytes of the sizes that mjModel begins with; ints
    # of its sizes, flags and options; the cone that the user's model asks for; addresses of the user's model and of its
    # shadow, 0 if there is none; the most directions of a contact that are taken, 3 without torsion and rolling;
    # whether surfaces may move by themselves; where the table of joined trees begins, 0 if there is none.
    where: NDArray[np.int64]


def memory(model: Any, data: Any) -> Memory:
    """The memory of a model and its data, which must outlive it; the model may be a `Shadow`."""
    shapes = layouts()
    user = getattr(model, "user", model)
    where = np.concatenate([shapes.where, joined_trees(user)])
    where[JOINED] = 0 if len(where) == len(shapes.where) else len(shapes.where)
    view = Memory(record(model, shapes.model), record(data, shapes.data), where)
    check(record(user, shapes.model)[0], user, MODEL)
    check(view.data[0], data, DATA)
    if user is not model:
        view.where[THEIRS], view.where[OURS] = user._address, model._address
    return view


def record(owner: Any, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    return np.ndarray((1,), dtype, buffer=memoryview((ctypes.c_char * dtype.itemsize).from_address(owner._address)))


def check(found: Any, owner: Any, names: Iterable[str]) -> None:
    """Compare a record with the attributes of the object that it claims to show."""
    for name in names:
        value: Any = owner
        for part in name.split("."):
            value = getattr(value, part)
        if name == "contact":
            value = value.dist
        seen = found[name.rpartition(".")[2]]
        pointer = isinstance(value, np.ndarray) and not isinstance(seen, np.ndarray)
        right = seen == value.ctypes.data or value.size == 0 if pointer else np.array_equal(seen, value, equal_nan=True)
        if not right:
            raise RuntimeError(f"mujoco {mujoco().__version__} does not keep {name} where its introspection says")


def joined_trees(model: Any) -> NDArray[np.int64]:
    """Which trees are one block of the mass, since a limit or dry friction acts on more of them than a contact touches.

    (3 ntree,) for each tree the first one of its block; where its block begins, and its length, 0 if it is not the
    first. Empty if there are none.
    """
    first, end = np.arange(model.ntree), np.arange(1, model.ntree + 1)
    for tendon in range(model.ntendon):
        most = 1 if model.tendon_frictionloss[tendon] > 0.0 else 2
        trees = trees_of_tendon(model, tendon)
        if len(trees) > most and (most == 1 or model.tendon_limited[tendon]):
            inside = (first <= trees[-1]) & (end > trees[0])  # blocks that it reaches into become one
            begin, stop = first[inside].min(), end[inside].max()
            first[begin:stop], end[begin:stop] = begin, stop
    if (first == np.arange(model.ntree)).all():
        return np.zeros(0, np.int64)
    begins = np.append(model.tree_dofadr, model.nv)
    leads = first == np.arange(model.ntree)
    start = np.where(leads, begins[first], begins[end])
    return np.column_stack([first, start, np.where(leads, begins[end] - begins[first], 0)]).astype(np.int64).ravel()


def trees_of_tendon(model: Any, tendon: int) -> list[int]:
    """The trees that a tendon moves, in order."""
    kinds, trees = mujoco().mjtWrap, set()
    begin = int(model.tendon_adr[tendon])
    for kind, place in zip(
        model.wrap_type[begin : begin + model.tendon_num[tendon]].tolist(),
        model.wrap_objid[begin : begin + model.tendon_num[tendon]].tolist(),
        strict=True,
    ):
        if kind == kinds.mjWRAP_JOINT:
            trees.add(int(model.body_treeid[model.jnt_bodyid[place]]))
        elif kind == kinds.mjWRAP_SITE:
            trees.add(int(model.body_treeid[model.site_bodyid[place]]))
        elif kind in (kinds.mjWRAP_SPHERE, kinds.mjWRAP_CYLINDER):
            trees.add(int(model.body_treeid[model.geom_bodyid[place]]))
    return sorted(trees - {-1})


class Layouts(NamedTuple):
    model: np.dtype[np.void]
    data: np.dtype[np.void]
    where: NDArray[np.int64]


@cache
def layouts() -> Layouts:
    from importlib import import_module

    mujoco()
    structs = import_module("mujoco.introspect.structs").STRUCTS
    model, data, contact = (Struct(structs, structs[name].fields) for name in ("mjModel", "mjData", "mjContact"))
    header, words = model.place("flg_gravcomp")[0], model.place("vis")[0] // 4
    places = [contact.size, *(contact.place(name)[0] for name in CONTACT), header, words, ELLIPTIC, 0, 0, 3, 1, 0]
    return Layouts(model.dtype(MODEL), data.dtype(DATA), np.array(places))


class Struct:
    """A C struct: fields in order, each at the next multiple of its alignment."""

    def __init__(self, structs: Any, fields: Iterable[Any]) -> None:
        self.size, self.alignment = 0, 1
        self.fields: dict[str, tuple[int, Any, Struct | None]] = {}
        for field in fields:
            form, size, alignment, inner = described(structs, field.type)
            start = -(-self.size // alignment) * alignment
            self.fields[field.name] = (start, form, inner)
            self.size, self.alignment = start + size, max(self.alignment, alignment)
        self.size = -(-self.size // self.alignment) * self.alignment

    def place(self, name: str) -> tuple[int, Any]:
        """Offset and format of a field; `opt.timestep` lies in the struct `opt`."""
        outer, _, rest = name.partition(".")
        start, form, inner = self.fields[outer]
        if not rest:
            return start, form
        assert inner is not None
        within, form = inner.place(rest)
        return start + within, form

    def dtype(self, names: Iterable[str]) -> np.dtype[np.void]:
        places = {name.rpartition(".")[2]: self.place(name) for name in names}
        fields = {
            "names": list(places),
            "formats": [form for _, form in places.values()],
            "offsets": [start for start, _ in places.values()],
            "itemsize": self.size,
        }
        return np.dtype((np.record, fields))


def described(structs: Any, kind: Any) -> tuple[Any, int, int, Struct | None]:
    """Format, size and alignment of a C type, and the struct that it is, if it is one."""
    name = type(kind).__name__
    if name == "PointerType":
        return "i8", 8, 8, None
    if name == "ArrayType":
        form, size, alignment, _ = described(structs, kind.inner_type)
        return (form, tuple(kind.extents)), size * int(np.prod(kind.extents)), alignment, None
    if name == "ValueType" and kind.name in SCALARS:
        form = SCALARS[kind.name]
        size = np.dtype(form).itemsize
        return form, size, size, None
    struct = Struct(structs, kind.fields if hasattr(kind, "fields") else structs[kind.name].fields)
    return f"V{struct.size}", struct.size, struct.alignment, struct
