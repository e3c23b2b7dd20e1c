"""FCLIB files are read in every storage, written so that they come back, and refused by file and group."""

import re
import sys
import time
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pytest
from published import delassus, violation
from round_trip import assert_comes_back
from scipy import sparse

from stiction import solve
from stiction.errors import InvalidProblem, MissingDependency, UnsymmetricMatrix
from stiction.problems import LCP, fclib, load, save
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Coulomb
from stiction.problems.zoo.contact_classics import DATA, FCLIB
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, chain, painleve_forces, stack

PUBLISHED = Path(__file__).parents[1] / "data" / "fclib"
W = np.array([[2.0, 0.0, 0.3], [0.0, 1.0, 0.0], [0.3, 0.0, 1.5]])
q = np.array([-1.0, 0.2, 0.0])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "problem.hdf5"


def put(group, name, matrix, storage="triplets"):
    made = {"triplets": sparse.coo_matrix, "columns": sparse.csc_matrix, "rows": sparse.csr_matrix}[storage](matrix)
    target = group.create_group(name)
    if storage == "triplets":
        i, p, nz = made.row, made.col, made.nnz
    else:
        i, p, nz = made.indices, made.indptr, {"columns": -1, "rows": -2}[storage]
    for key, value in (("m", made.shape[0]), ("n", made.shape[1]), ("nz", nz), ("nzmax", made.nnz + 3)):
        target[key] = np.array([value], np.int32)
    target["i"], target["p"], target["x"] = i.astype(np.int32), p.astype(np.int32), made.data


def local(path, storage="triplets", **more):
    with h5py.File(path, "w") as file:
        root = file.create_group("fclib_local")
        root["spacedim"] = np.array([3], np.int32)
        put(root, "W", W, storage)
        vectors = root.create_group("vectors")
        vectors["q"], vectors["mu"] = q, np.array([0.5])
        for name, value in more.items():
            if np.ndim(value) == 2:
                put(root, name, value, storage)
            else:
                vectors[name] = value


def whole(path, M, H, storage="triplets", dim=3, **vectors):
    with h5py.File(path, "w") as file:
        root = file.create_group("fclib_global")
        root["spacedim"] = np.array([dim], np.int32)
        put(root, "M", M, storage)
        put(root, "H", H, storage)
        if "G" in vectors:
            put(root, "G", vectors.pop("G"), storage)
        group = root.create_group("vectors")
        for name, value in vectors.items():
            group[name] = np.asarray(value, float)


@pytest.mark.parametrize("storage", ["triplets", "columns", "rows"])
@pytest.mark.parametrize("suffix", [".hdf5", ".h5", ".H5"])
def test_local_problems_in_every_storage(tmp_path, storage, suffix):
    path = tmp_path / f"p{suffix}"
    local(path, storage)
    problem = load(path)
    np.testing.assert_array_equal(problem.delassus, W)
    np.testing.assert_array_equal(problem.offset, q)
    assert (problem.n, problem.dim, problem.law, problem.friction[0]) == (1, 3, Coulomb(), 0.5)


def test_triplets_are_row_and_column_and_repeated_ones_add_up(path):
    unsymmetric = W.copy()
    unsymmetric[0, 2] += 1e-4
    local(path)
    with h5py.File(path, "a") as file:
        del file["fclib_local/W"]
        put(file["fclib_local"], "W", unsymmetric)
        group = file["fclib_local/W"]
        for key, value in (("i", 0), ("p", 0), ("x", 0.5)):
            longer = np.append(group[key][()], value).astype(group[key].dtype)
            del group[key]
            group[key] = longer
        group["nz"][0] += 1
    problem = load(path)
    assert problem.delassus[0, 2] == 0.3 + 1e-4
    assert problem.delassus[2, 0] == 0.3
    assert problem.delassus[0, 0] == 2.5


@pytest.mark.parametrize("storage", ["triplets", "columns", "rows"])
def test_equations_of_a_local_problem_are_eliminated(path, storage):
    """u = W r + V λ + q with Vᵀ r + R λ + s = 0."""
    V, R, s = np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.0]]), np.diag([-4.0, -5.0]), np.array([0.3, -0.4])
    local(path, storage, V=V, R=R, s=s)
    problem = load(path)
    r = np.array([0.7, -0.1, 0.2])
    lam = -np.linalg.solve(R, V.T @ r + s)
    np.testing.assert_allclose(problem.delassus @ r + problem.offset, W @ r + V @ lam + q, rtol=1e-14)
    local(path, V=V, R=np.diag([-4.0, 0.0]), s=s)
    with pytest.raises(InvalidProblem, match="/fclib_local/R is singular, and V or s is not in its range"):
        load(path)


@pytest.mark.parametrize("storage", ["triplets", "columns", "rows"])
def test_global_problems_keep_mass_and_joints(path, storage):
    known = chain(2, 0)
    M = sparse.block_diag(list(known.mass)).toarray()
    H = known.dense_rows().reshape(-1, 12).T
    rate = np.arange(6.0)
    gap = np.linspace(0.0, 1.0, known.n)
    w = np.column_stack([gap, 0 * gap, 0 * gap]).ravel()
    whole(path, M, H, storage, f=M @ known.velocity, w=w, mu=known.friction, G=known.joints.T, b=rate)
    problem = load(path)
    np.testing.assert_allclose(problem.velocity, known.velocity, rtol=1e-13)
    np.testing.assert_array_equal(problem.mass, known.mass)
    np.testing.assert_array_equal(problem.joints, known.joints)
    np.testing.assert_array_equal(problem.joint_rate, rate)
    np.testing.assert_array_equal(problem.gap_rate, gap)
    np.testing.assert_array_equal(problem.dense_rows(), known.dense_rows())


def test_global_problems_that_are_no_bodies_stay_dense(path):
    M = np.eye(7) + 0.1
    whole(path, M, np.eye(7)[:, :3], f=np.ones(7), w=np.zeros(3), mu=[0.3])
    problem = load(path)
    np.testing.assert_array_equal(problem.mass, M)
    np.testing.assert_allclose(M @ problem.velocity, 1.0)
    skew = np.eye(6)[:, :3] + np.eye(6)[:, 1:4]
    whole(path, np.eye(6) + 0.1, skew, f=np.ones(6), w=np.zeros(3), mu=[0.3])
    assert load(path).mass.ndim == 2
    flat = np.vstack([np.eye(3)[:, :2], np.zeros((1, 2))])
    whole(path, np.eye(4), flat, dim=2, f=np.ones(4), w=np.zeros(2), mu=[0.3])
    assert load(path).dim == 2


def test_printed_masses_are_made_symmetric(path):
    M = np.eye(3) + 0.1 * np.eye(3, k=1) + (0.1 + 1e-7) * np.eye(3, k=-1)
    whole(path, M, np.eye(3), f=np.ones(3), w=np.zeros(3), mu=[0.3])
    np.testing.assert_array_equal(load(path).mass, 0.5 * (M + M.T))
    M[0, 1] = 0.3
    whole(path, M, np.eye(3), f=np.ones(3), w=np.zeros(3), mu=[0.3])
    with pytest.raises(InvalidProblem, match=r"/fclib_global/M must be symmetric, but M - Mᵀ reaches 0.2"):
        load(path)


@pytest.mark.parametrize("storage", ["triplets", "columns", "rows"])
@pytest.mark.parametrize("half", [np.triu, np.tril])
def test_one_stored_triangle_is_mirrored(path, half, storage):
    rng = np.random.default_rng(0)
    M = rng.normal(size=(7, 7))
    M = M @ M.T + np.eye(7)
    whole(path, half(M), np.eye(7)[:, :3], storage, f=np.ones(7), w=np.zeros(3), mu=[0.3])
    np.testing.assert_array_equal(load(path).mass, M)
    np.testing.assert_allclose(M @ load(path).velocity, 1.0)
    blocks = sparse.block_diag([M[:3, :3], M[3:6, 3:6]]).toarray()
    whole(path, half(blocks), np.eye(6)[:, :3], storage, f=np.ones(6), w=np.zeros(3), mu=[0.3])
    found = sparse.block_diag(list(load(path).mass)).toarray()
    np.testing.assert_array_equal(found, blocks)
    local(path, storage)
    with h5py.File(path, "a") as file:
        del file["fclib_local/W"]
        put(file["fclib_local"], "W", half(W), storage)
    np.testing.assert_array_equal(load(path).delassus, W)


@pytest.mark.parametrize("name", ["CubeH8", "LMGC_GFC3D-i00501-4-00000", "Box_Stacks-i0122-82-5"])
def test_answers_hold_for_the_numbers_of_the_file(name):
    """CubeH8 was answered with half of what couples its velocities, and the answer certified."""
    file = Path(str(DATA)) / "fclib" / f"{name}.hdf5"
    assert violation(*delassus(file), solve(load(file)).impulse) < 1e-9


@pytest.mark.parametrize("name", ["LMGC_GlobalFrictionContactProblem00046", "Spheres-i099-356-679"])
def test_answers_hold_for_the_numbers_of_larger_files(name):
    file = PUBLISHED / f"{name}.hdf5"
    assert violation(*delassus(file), solve(load(file)).impulse) < 1e-9


def test_two_thousand_bodies_stay_sparse():
    """Dense, this took 78 s and 3.7 GB."""
    tracemalloc.start()
    begin = time.process_time()
    problem = load(PUBLISHED / "Spheres-i099-356-679.hdf5")
    seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (problem.n, problem.m, len(problem.trees)) == (356, 12_000, 2_001)
    assert seconds < 5.0  # 0.3 without tracing
    assert peak < 1 << 27


def test_bodies_in_the_plane_and_trees_of_other_sizes_stay_sparse(path):
    M = sparse.block_diag([np.diag([2.0, 2.0, 0.1]), np.diag([1.0, 1.0, 0.2])]).toarray()
    H = np.array([[0.0, 1.0, 0.1, 0.0, -1.0, 0.2], [1.0, 0.0, 0.3, -1.0, 0.0, 0.4]]).T
    whole(path, M, H, dim=2, f=np.arange(6.0), w=[0.5, 0.0], mu=[0.3])
    problem = load(path)
    assert problem.trees.tolist() == [0, 3, 6]
    np.testing.assert_array_equal(problem.dense_rows()[:, :2].reshape(2, 6), H.T)
    np.testing.assert_allclose(M @ problem.velocity, np.arange(6.0))
    M = sparse.block_diag([np.eye(2) + 0.1, np.eye(5) + 0.2, np.eye(1)]).toarray()
    H = np.random.default_rng(0).normal(size=(8, 6))
    H[2:7, :3] = H[:2, 3:] = 0.0
    whole(path, M, H, f=np.arange(8.0), w=np.zeros(6), mu=[0.3, 0.4])
    problem = load(path)
    assert problem.trees.tolist() == [0, 2, 7, 8]
    np.testing.assert_array_equal(problem.dense_rows().reshape(6, 8), H.T)
    np.testing.assert_allclose(M @ problem.velocity, np.arange(8.0), atol=1e-14)


def test_skew_frames_of_many_bodies_are_trees(path):
    rows = np.random.default_rng(0).normal(size=(12, 3))
    whole(path, np.eye(12), rows, f=np.ones(12), w=np.zeros(3), mu=[0.3])
    problem = load(path)
    assert problem.trees.tolist() == [0, 6, 12]
    np.testing.assert_array_equal(problem.dense_rows().reshape(3, 12), rows.T)


def test_asymmetry_is_told_and_solved_as_it_is(path):
    with pytest.warns(UnsymmetricMatrix, match=r"W\[805, 806\] - W\[806, 805\] = .* 1.3e-03 of its largest entry"):
        problem = load(PUBLISHED / "Capsules-i125-1213.hdf5")
    W, q, _ = delassus(PUBLISHED / "Capsules-i125-1213.hdf5")
    np.testing.assert_array_equal(problem.delassus, W)
    np.testing.assert_array_equal(problem.offset, q)
    small = np.array([[2.0, 0.3, 0.0], [0.31, 1.0, 0.0], [0.0, 0.0, 1.5]])
    with pytest.warns(UnsymmetricMatrix, match="solved and judged as it is"):
        problem = ContactProblem.from_delassus(small, [-1.0, 0.2, 0.1], [0.5])
    assert violation(small, problem.offset, problem.friction, solve(problem).impulse) < 1e-9
    small[1, 0] = 0.33
    with pytest.raises(InvalidProblem, match=r"W must be symmetric, but W\[0, 1\] - W\[1, 0\] = -0.03"):
        ContactProblem.from_delassus(small, [-1.0, 0.2, 0.1], [0.5])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::stiction.errors.UnsymmetricMatrix")
def test_the_answer_of_an_unsymmetric_problem_holds_for_it():
    file = PUBLISHED / "Capsules-i125-1213.hdf5"
    assert violation(*delassus(file), solve(load(file)).impulse) < 1e-9


def test_sizes_that_a_file_cannot_mean_are_refused_before_memory_is_taken(path):
    n = 6000

    def refused(pattern):
        tracemalloc.start()
        with pytest.raises(InvalidProblem, match=pattern):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 24

    # A matrix of 18,000 rows, of which one entry is stored, and vectors that were never written.
    with h5py.File(path, "w") as file:
        root = file.create_group("fclib_local")
        root["spacedim"] = np.array([3], np.int32)
        put(root, "W", sparse.coo_matrix(([1.0], ([0], [0])), (3 * n, 3 * n)))
        vectors = root.create_group("vectors")
        vectors.create_dataset("q", (3 * n,), "f8")
        vectors.create_dataset("mu", (n,), "f8")
    assert path.stat().st_size < 20_000
    refused("W of 18000 rows and 18000 columns would take 2,472 MiB, from a file of .* refused")
    # A vector of 2 GB that takes no place.
    with h5py.File(path, "a") as file:
        del file["fclib_local/vectors/q"]
        file["fclib_local/vectors"].create_dataset("q", (1 << 28,), "f8")
    refused("/fclib_local/vectors/q takes .* bytes and says that it holds 2,147,483,648: refused")
    # A mass without rows that it declares.
    with h5py.File(path, "w") as file:
        root = file.create_group("fclib_global")
        root["spacedim"] = np.array([3], np.int32)
        put(root, "M", sparse.coo_matrix(([1.0], ([0], [0])), (2 * n, 2 * n)))
        put(root, "H", sparse.coo_matrix(([1.0], ([0], [0])), (2 * n, 3)))
        vectors = root.create_group("vectors")
        for name, size in (("f", 2 * n), ("w", 3), ("mu", 1)):
            vectors.create_dataset(name, (size,), "f8")
    refused("/fclib_global/M is singular")


@pytest.mark.parametrize("name", ["chain", "chain-hinged", "motor"])
def test_tangential_velocities_become_tangent_rates(path, name):
    known = CONTACT_FAMILIES[name](1)
    M = sparse.block_diag(list(known.mass)).toarray()
    H = known.dense_rows().reshape(-1, known.m).T
    w = np.random.default_rng(0).normal(size=3 * known.n)
    whole(path, M, H, f=M @ known.velocity, w=w, mu=known.friction, G=known.joints.T, b=known.joint_rate)
    problem = load(path)
    np.testing.assert_array_equal(problem.tangent_rate, w.reshape(-1, 3)[:, 1:])
    np.testing.assert_array_equal(problem.gap_rate, w.reshape(-1, 3)[:, 0])
    impulse = np.random.default_rng(1).normal(size=(known.n, 3)) * 0.1
    u, v = H.T @ known.respond(impulse)[0], problem.dense_rows().reshape(-1, known.m) @ problem.respond(impulse)[0]
    np.testing.assert_allclose(v, u, atol=1e-11 * np.abs(u).max())


@pytest.mark.parametrize("name", [n for n in CONTACT_FAMILIES if n not in {"plate-144", "stack-20", "peg-64"}])
def test_written_problems_come_back(path, name):
    problem = CONTACT_FAMILIES[name](1)
    problem.save(path)
    again = load(path)
    assert (again.n, again.m, again.dim, again.law) == (problem.n, problem.m, problem.dim, problem.law)
    assert (again.mass is None) == (problem.mass is None)
    np.testing.assert_array_equal(again.dense_rows(), problem.dense_rows())
    np.testing.assert_allclose(again.velocity, problem.velocity, rtol=1e-13, atol=1e-14)
    for field in ("friction", "gap_rate", "joints", "joint_rate"):
        np.testing.assert_array_equal(getattr(again, field), getattr(problem, field))
    if problem.mass is None:
        np.testing.assert_array_equal(again.delassus, problem.delassus)
        np.testing.assert_array_equal(again.offset, problem.offset)
    assert [part.name for part in path.parent.iterdir()] == [path.name]


def test_a_mass_that_is_not_definite_is_refused_with_tangent_rates_too(path):
    whole(path, np.diag([1.0, -1.0, 1.0]), np.eye(3), f=np.ones(3), w=np.ones(3), mu=[0.3])
    with pytest.raises(InvalidProblem, match="mass must be positive definite"):
        load(path)


def test_empty_problems_come_back(path):
    for problem in (
        ContactProblem(np.eye(2), [1.0, 2.0], [], [], []),
        ContactProblem.from_bodies([], [], [], [], [], []),
        ContactProblem.from_delassus([], [], [], 2),
    ):
        problem.save(path)
        assert (load(path).n, load(path).m) == (0, problem.m)


@pytest.mark.parametrize("name", FCLIB)
def test_published_files_survive_a_round_trip(path, name):
    problem = fclib.read(str(DATA.joinpath("fclib", f"{name}.hdf5")))
    assert_comes_back(problem, path)


def test_what_fclib_cannot_hold_is_not_written(path):
    with pytest.raises(
        InvalidProblem, match=r"FCLIB knows Coulomb's law on the circular cone only, not Coulomb\(facets=8"
    ):
        stack(1, 0).with_law(Coulomb(facets=8)).save(path)
    with pytest.raises(InvalidProblem, match="no place for known slip directions; save as .npz"):
        painleve_forces(0.5, 0.5).save(path)
    with pytest.raises(InvalidProblem, match="FCLIB files hold contact problems only; name .* .npz instead"):
        save(LCP(np.eye(1), [1.0]), path)
    assert list(path.parent.iterdir()) == []


def test_folder_that_does_not_exist(tmp_path):
    with pytest.raises(InvalidProblem, match="save: cannot write"):
        stack(1, 0).save(tmp_path / "missing" / "p.h5")
    with pytest.raises(InvalidProblem, match="load: there is no file"):
        load(tmp_path / "missing" / "p.h5")


def test_an_interrupted_save_leaves_the_old_file(path, monkeypatch):
    stack(1, 0).save(path)
    before = path.read_bytes()
    monkeypatch.setattr(fclib, "_write_global", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        stack(2, 0).save(path)
    assert path.read_bytes() == before
    assert [part.name for part in path.parent.iterdir()] == [path.name]


def changed(path, key, value):
    with h5py.File(path, "a") as file:
        del file[key]
        if value is not None:
            file[key] = value


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("fclib_local", None, "is not an FCLIB file: no fclib_local or fclib_global in it, but nothing"),
        ("fclib_local/spacedim", None, "lacks /fclib_local/spacedim"),
        ("fclib_local/spacedim", np.array([4]), "/fclib_local/spacedim must be 2 or 3, got [4]"),
        ("fclib_local/spacedim", np.array([2]), "/fclib_local has 3 contact rows, not a multiple of spacedim = 2"),
        ("fclib_local/W", None, "lacks /fclib_local/W"),
        ("fclib_local/W", np.ones(3), "/fclib_local/W is not a group with m, n, nz, i, p, x"),
        ("fclib_local/W/nz", None, "lacks /fclib_local/W/nz"),
        ("fclib_local/W/nz", np.array([-3]), "/fclib_local/W has m = 3, n = 3, nz = -3; nz must be at least -2"),
        ("fclib_local/W/nz", np.array([9]), "/fclib_local/W has nz = 9 triplets, but i, p, x have 5, 5, 5"),
        ("fclib_local/W/nz", np.array([-1]), "/fclib_local/W/p must rise from 0 in 4 steps"),
        ("fclib_local/W/m", np.array([1, 2]), "/fclib_local/W: m, n and nz must be one number each"),
        ("fclib_local/W/m", np.array([2]), "/fclib_local/W has an entry in row 2, but only 2 of them"),
        ("fclib_local/W/n", np.array([2]), "/fclib_local/W has an entry in column 2, but only 2 of them"),
        ("fclib_local/W/i", np.array([-1, 0, 0, 0, 0]), "/fclib_local/W has an entry in row -1"),
        ("fclib_local/W/i", np.ones(5), "/fclib_local/W/i is not an array of numbers of the right kind"),
        ("fclib_local/W/x", "text", "/fclib_local/W/x is not an array of numbers"),
        ("fclib_local/W/x", np.full(5, np.nan), "W must be finite, but W[0, 0] = nan"),
        ("fclib_local/vectors", None, "lacks /fclib_local/vectors"),
        ("fclib_local/vectors/q", None, "lacks /fclib_local/vectors/q"),
        ("fclib_local/vectors/q", np.ones(4), "/fclib_local/vectors/q must have shape (3,), got (4,)"),
        ("fclib_local/vectors/mu", np.ones(2), "/fclib_local/vectors/mu must have shape (1,), got (2,)"),
        ("fclib_local/vectors/mu", np.array([-1.0]), "friction must not be negative"),
    ],
)
def test_wrong_local_files_are_named(path, key, value, text):
    local(path)
    changed(path, key, value)
    with pytest.raises(InvalidProblem, match=re.escape(text)) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"M": np.ones((3, 4))}, "/fclib_global/M must have shape (3, 3), got (3, 4)"),
        ({"H": np.ones((4, 3))}, "/fclib_global/H must have shape (3, 3), got (4, 3)"),
        ({"G": np.ones((4, 1)), "b": [0.0]}, "/fclib_global/G must have shape (3, 1), got (4, 1)"),
        ({"G": np.ones((3, 1))}, "lacks /fclib_global/vectors/b"),
        ({"M": np.zeros((3, 3))}, "/fclib_global/M is singular"),
        ({"M": -np.eye(3)}, "mass must be positive definite, but mass[0, 0] = -1"),
    ],
)
def test_wrong_global_files_are_named(path, changes, text):
    whole(path, **({"M": np.eye(3), "H": np.eye(3), "f": np.ones(3), "w": np.zeros(3), "mu": [0.5]} | changes))
    with pytest.raises(InvalidProblem, match=re.escape(text)) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"some text", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"])
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(InvalidProblem, match="is not an HDF5 file, or is damaged") as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_every_truncation_is_refused(path):
    local(path)
    content = path.read_bytes()
    for length in range(0, len(content), max(1, len(content) // 60)):
        path.write_bytes(content[:length])
        with pytest.raises(InvalidProblem) as caught:
            load(path)
        assert str(path) in str(caught.value)


def test_other_hdf5_files_are_refused(path):
    with h5py.File(path, "w") as file:
        file["pixels"] = np.ones(3)
    with pytest.raises(InvalidProblem, match="is not an FCLIB file: .* but pixels"):
        load(path)


def test_an_index_too_large_does_not_fill_the_memory(path):
    local(path)
    for key in ("m", "n"):
        changed(path, f"fclib_local/W/{key}", np.array([2**31 - 2], np.int32))
    with pytest.raises(InvalidProblem, match=re.escape(str(path))):
        load(path)


def test_without_h5py_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingDependency, match=re.escape("FCLIB files need h5py: pip install 'stiction[files]'")):
        load(path)
    with pytest.raises(MissingDependency, match=re.escape("stiction[files]")):
        stack(1, 0).save(path)


def test_data_is_small_and_licensed():
    folder = Path(str(DATA))
    assert sum(part.stat().st_size for part in folder.rglob("*") if part.is_file()) < 2_000_000
    assert "Apache License" in (folder / "LICENSE-siconos-apache2.txt").read_text(encoding="utf-8")
    assert "Redistribution" in (folder / "LICENSE-artisynth-bsd2.txt").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::stiction.errors.UnsymmetricMatrix")
def test_damaged_bytes_are_refused_in_one_line_or_harmless_to_memory(path):
    local(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    tracemalloc.start()
    for place in rng.integers(0, len(content), 200):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        try:
            load(path)
        except InvalidProblem as error:
            assert str(path) in str(error)
            assert "\n" not in str(error)
    assert tracemalloc.get_traced_memory()[1] < 1 << 26
    tracemalloc.stop()
