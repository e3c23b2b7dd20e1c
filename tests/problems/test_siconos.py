"""Siconos' text format: every kind of matrix, local and global problems, rolling friction, and errors by their line."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from published import reduced, violation
from round_trip import assert_comes_back
from scipy import sparse

from stiction import solve
from stiction.errors import InvalidProblem
from stiction.problems import LCP, load, save
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Coulomb
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, painleve_forces, stack

PUBLISHED = Path(__file__).parents[1] / "data" / "siconos"
W = np.array([[2.0, 0.1, 0.3], [0.1, 1.0, 0.0], [0.3, 0.0, 1.5]])
q = np.array([-1.0, 0.2, 0.1])
M = np.diag([2.0, 1.0, 4.0, 3.0]) + 0.1
H = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.25, 0.0, 1.0], [0.0, -1.0, 0.0]])
f, b = np.array([1.0, -2.0, 0.5, 0.0]), np.array([-0.5, 0.0, 0.0])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "problem.dat"


def line(values) -> str:
    return " ".join(f"{value:.17e}" for value in np.ravel(values)) + " \n"


def dense(A) -> str:
    """Rows and columns, and the entries by columns, broken into lines anyhow."""
    rows, columns = A.shape
    entries = A.T.ravel()
    return f"0\n{rows}\n{columns}\n{rows}\t{columns}\n" + line(entries[:2]) + line(entries[2:])


def blocks(A, high, wide) -> str:
    """Blocks with these heights and widths; those of zeros are left out."""
    ends = [np.cumsum(high), np.cumsum(wide)]
    there, pointers = [], [0]
    for i, end in enumerate(ends[0]):
        for j, stop in enumerate(ends[1]):
            part = A[end - high[i] : end, stop - wide[j] : stop]
            if part.any():
                there.append((j, part))
        pointers.append(len(there))
    text = f"1\n{A.shape[0]}\n{A.shape[1]}\n{len(there)}\n{len(high)}\n{len(wide)}\n"
    for numbers in (*ends, [len(pointers)], [len(there)], pointers, [j for j, _ in there]):
        text += "\t".join(str(number) for number in numbers) + "\n"
    for k, (_, part) in enumerate(there):
        text += f"{k}\n" + "".join(line([value]) for value in part.T.ravel())
    return text


def triplets(A) -> str:
    made = sparse.coo_matrix(A)
    text = f"2\n{A.shape[0]}\n{A.shape[1]}\n1\nCSparse Version 3.1.9\n"
    text += f"triplet: {A.shape[0]}-by-{A.shape[1]}, nzmax: {made.nnz} nnz: {made.nnz}\n"
    return text + "".join(f"    {i} {j} : {x:.17g}\n" for i, j, x in zip(made.row, made.col, made.data, strict=True))


def columns(A) -> str:
    made = sparse.csc_matrix(A)
    text = f"2\n{A.shape[0]}\n{A.shape[1]}\n2\nCSparse Version 3.1.9\n"
    text += f"{A.shape[0]}-by-{A.shape[1]}, nzmax: {made.nnz} nnz: {made.nnz}, 1-norm: 1\n"
    for j in range(A.shape[1]):
        first, last = made.indptr[j], made.indptr[j + 1] - 1
        text += f"    col {j} : locations {first} to {last}\n"
        text += "".join(f"      {made.indices[k]} : {made.data[k]:.17g}\n" for k in range(first, last + 1))
    return text


KINDS = {
    "dense": dense,
    "blocks": lambda A: blocks(A, [A.shape[0]], [1] * A.shape[1]),
    "triplets": triplets,
    "columns": columns,
}


def local(matrix=dense, end="") -> str:
    return "3\n1\n" + matrix(W) + line(q) + line([0.5]) + end


@pytest.mark.parametrize("kind", KINDS)
def test_local_problems_in_every_kind_of_matrix(path, kind):
    for end in ("", "1\n"):  # older files end with a flag
        path.write_text(local(KINDS[kind], end))
        problem = load(path)
        np.testing.assert_array_equal(problem.delassus, W)
        np.testing.assert_array_equal(problem.offset, q)
        assert (problem.n, problem.dim, problem.law, problem.friction[0]) == (1, 3, Coulomb(), 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_global_problems_in_every_kind_of_matrix(path, kind):
    path.write_text("3\n1\n" + KINDS[kind](M) + KINDS[kind](H) + line(f) + line(b) + line([0.5]))
    problem = load(path)
    np.testing.assert_array_equal(problem.mass, M)
    np.testing.assert_array_equal(problem.dense_rows()[0], H.T)
    np.testing.assert_allclose(M @ problem.velocity, f, atol=1e-15)
    np.testing.assert_array_equal(problem.gap_rate, b[:1])


def test_the_name_does_not_matter(tmp_path):
    for name in ("problem", "problem.txt", "problem.npz"):
        (tmp_path / name).write_text(local())
        assert load(tmp_path / name).n == 1


def test_blocks_of_several_sizes(path):
    A = np.random.default_rng(0).normal(size=(6, 6))
    A = A @ A.T
    A[:3, 3:] = A[3:, :3] = 0.0
    path.write_text("3\n2\n" + blocks(A, [3, 2, 1], [3, 2, 1]) + line(np.ones(6)) + line([0.5, 0.6]))
    np.testing.assert_array_equal(load(path).delassus, A)


def test_one_stored_triangle_is_mirrored(path):
    path.write_text(local(lambda A: triplets(np.triu(A))))
    np.testing.assert_array_equal(load(path).delassus, W)


def test_rolling_friction_becomes_turns_about_the_tangents(path):
    """In space, n, t1, t2 and two moments; in the plane, n, t and one. On request without."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(10, 10))
    A, slides = A @ A.T, np.array([0, 1, 2, 5, 6, 7])
    text = "5\n2\n" + dense(A) + line(np.arange(10.0)) + line([0.5, 0.6])
    path.write_text(text + line([0.0, 0.1]))
    problem = load(path)
    assert (problem.dim, problem.law) == (6, Coulomb(joint=False))
    place = np.array([0, 1, 2, 6, 7, 8, 10, 11])  # the first contact has no rolling friction
    kept, size = np.array([0, 1, 2, 5, 6, 7, 8, 9]), np.array([1, 1, 1, 1, 1, 1, 0.1 / 0.6, 0.1 / 0.6])
    expected = np.zeros((12, 12))
    expected[np.ix_(place, place)] = size[:, None] * A[np.ix_(kept, kept)] * size
    np.testing.assert_allclose(problem.delassus, expected, rtol=1e-14)
    np.testing.assert_allclose(problem.offset[place], size * kept, rtol=1e-14)
    solution = solve(problem)
    assert solution.certificate.residual < 1e-9
    assert violation_of_rolling(A, np.arange(10.0), [0.5, 0.6], [0.0, 0.1], solution.as_given) < 1e-8
    for rolling, ignore in (([0.0, 0.1], ("rolling",)), ([0.0, 0.0], ())):
        path.write_text(text + line(rolling))
        problem = load(path, ignore=ignore)
        np.testing.assert_array_equal(problem.delassus, A[np.ix_(slides, slides)])
        np.testing.assert_array_equal(problem.offset, np.arange(10.0)[slides])
        np.testing.assert_array_equal(problem.friction, [0.5, 0.6])
    path.write_text("3\n2\n" + dense(A[:6, :6]) + line(np.arange(6.0)) + line([0.5, 0.6]) + line([0.1, 0.1]))
    assert (load(path).n, load(path).dim) == (2, 6)
    assert solve(load(path)).certificate.residual < 1e-9
    problem = load(path, ignore=("rolling",))
    assert (problem.n, problem.dim) == (2, 2)
    with pytest.raises(InvalidProblem, match=r"ignore must be a tuple of names of \('rolling',\), got \('sliding',\)"):
        load(path, ignore=("sliding",))


def test_published_files():
    blocky = load(PUBLISHED / "Capsules-i100-889.dat")
    assert (blocky.n, blocky.dim) == (276, 3)
    assert np.abs(blocky.delassus - blocky.delassus.T).max() < 1e-3 * np.abs(blocky.delassus).max()
    flat = load(PUBLISHED / "fc2d_granularflowonwall_00667_00000.dat")
    assert (flat.n, flat.dim) == (667, 2)
    place = np.arange(2001).reshape(-1, 3)[:, :2].ravel()
    assert np.count_nonzero(flat.delassus) == 3822  # as the file itself says
    assert flat.delassus[place[649], place[0]] == -454.43
    assert flat.delassus[0, 0] == 856.713
    raw = (PUBLISHED / "rockfall_14_25792.dat").read_text().split()
    rock = np.array(raw[7 : 7 + 4900], float).reshape(70, 70).T
    whole = load(PUBLISHED / "rockfall_14_25792.dat")
    assert whole.law == Coulomb(joint=False)
    answer = solve(whole)
    assert answer.certificate.residual < 1e-9
    numbers = np.array(raw[7 + 4900 :], float)
    assert violation_of_rolling(rock, numbers[:70], numbers[70:84], numbers[84:98], answer.as_given) < 1e-8
    kept = np.arange(70).reshape(14, 5)[:, :3].ravel()
    problem = load(PUBLISHED / "rockfall_14_25792.dat", ignore=("rolling",))
    np.testing.assert_array_equal(problem.delassus, rock[np.ix_(kept, kept)])
    answer = solve(problem)
    assert violation(problem.delassus, problem.offset, problem.friction, answer.impulse) < 1e-9


def violation_of_rolling(W, q, mu, rolling, impulse) -> float:
    """Of Siconos' law with the file's own numbers: sliding and rolling each at most their bound, and opposed to it."""
    r = impulse[:, [0, 1, 2, 4, 5]]
    u = (W @ r.ravel() + q).reshape(-1, 5)
    size = np.sqrt(np.diag(W).reshape(-1, 5)[:, :1])
    worst = [np.abs(np.minimum(u[:, 0], r[:, 0] * size[:, 0] ** 2)).max(), (-u[:, 0]).max(), (-r[:, 0]).max()]
    for part, bound in ((slice(1, 3), mu), (slice(3, 5), rolling)):
        force, speed, most = r[:, part], u[:, part], np.asarray(bound) * r[:, 0]
        worst.append((np.linalg.norm(force, axis=1) - most).max())
        # Maximal dissipation: the power is that of the bound against the speed.
        worst.append(np.abs((force * speed).sum(axis=1) + most * np.linalg.norm(speed, axis=1)).max())
    return float(max(worst)) / np.abs(q).max()


def test_rolling_friction_is_written_and_read_again(path):
    whole = load(PUBLISHED / "rockfall_14_25792.dat")
    whole.save(path)
    again = load(path)
    assert again.law == whole.law
    np.testing.assert_allclose(again.delassus, whole.delassus, rtol=1e-13)
    np.testing.assert_allclose(again.ratio, whole.ratio, rtol=1e-13)
    rng = np.random.default_rng(1)
    spins = ContactProblem(
        np.eye(6), rng.normal(size=6), rng.normal(size=(1, 6)), rng.normal(size=(1, 5, 6)), [[0.5, 0.5, 0.1, 0.2, 0.2]],
        law=Coulomb(joint=False),
    )  # fmt: skip
    with pytest.raises(InvalidProblem, match=r"has rolling friction, but no torsion.*save as \.npz"):
        spins.save(path)
    rolls = ContactProblem(
        np.eye(6), rng.normal(size=6), rng.normal(size=(1, 6)), rng.normal(size=(1, 5, 6)), [[0.5, 0.5, 0, 0.2, 0.2]],
        law=Coulomb(joint=False), gap_rate=[0.1],
    )  # fmt: skip
    rolls.save(path)
    np.testing.assert_allclose(load(path).rows, rolls.rows, atol=1e-15)
    np.testing.assert_allclose(solve(load(path)).impulse, solve(rolls).impulse, atol=1e-9)
    with pytest.raises(InvalidProblem, match=r"bounded apart.*Coulomb\(joint=False\)"):
        rolls.with_law(Coulomb()).save(path)


def test_the_answer_of_a_global_file_holds_for_its_numbers():
    """Bodies in the plane, three velocities each; M and H are read here by other means."""
    file = PUBLISHED / "gfc2d_granularflowonwall_00069_00350.dat"
    text = file.read_text()
    mass = np.array(re.findall(r"^    (\d+) (\d+) : (\S+)$", text, re.MULTILINE), float)
    parts = re.split(r"^    col (\d+) : .*$", text, flags=re.MULTILINE)[1:]
    entries = [
        (int(i), int(j), float(x))
        for j, part in zip(parts[::2], parts[1::2], strict=True)
        for i, x in re.findall(r"^      (\d+) : (\S+)$", part, re.MULTILINE)
    ]
    i, j, x = zip(*entries, strict=True)
    f, w, mu = (np.array(row.split(), float) for row in text.splitlines()[-3:])
    A = sparse.csc_array(sparse.coo_array((mass[:, 2], mass[:, :2].T.astype(int)), (900, 900)))
    B = sparse.csc_array(sparse.coo_array((x, (i, j)), (900, 138)))
    problem = load(file)
    assert (problem.n, problem.dim, len(problem.trees)) == (69, 2, 301)
    answer = solve(problem)
    assert violation(*reduced(A, B, f, w), mu, answer.impulse) < 1e-9


WRONG = {
    "no dimension": ("4\n1\n" + dense(W), 1, "the dimension must be 2 or 3, or 5 with rolling friction, got 4"),
    "no number": ("3\none\n", 2, "the number of contacts must be a whole number of at least 0, got 'one'"),
    "no kind": ("3\n1\n3\n3\n3\n", 5, "must be 0 (dense), 1 (blocks) or 2 (sparse), got 3"),
    "too small": ("3\n2\n" + dense(W) + line(q), 8, "2 contacts of dimension 3 need a matrix of 6 rows, got (3, 3)"),
    "other sizes": ("3\n1\n0\n3\n3\n3 4\n", 6, "has 3 rows and 3 columns at first, then 3 and 4"),
    "cut dense": ("3\n1\n0\n3\n3\n3 3\n1 2 3\n", 6, "has 3 · 3 entries, but the file only 3 more numbers"),
    "cut q": ("3\n1\n" + dense(W) + "1 2\n", 9, "the file ends where q should be"),
    "letters": ("3\n1\n" + dense(W) + "1 2 three\n", 9, "q must hold numbers, got 'three'"),
    "not finite": ("3\n1\n" + dense(W) + "1 2 nan\n", 9, "q must hold finite numbers, got 'nan'"),
    "too many": (local(end="0.5 1 2\n"), 11, "there are more numbers than the problem has"),
    "no version": ("3\n1\n2\n3\n3\n1\nthis\n", 7, "should begin with CSparse's line of its version"),
    "no sizes": ("3\n1\n2\n3\n3\n1\nCSparse\nthis\n", 8, "should begin with its sizes"),
    "outside": (local(triplets).replace("    2 2 :", "    7 2 :"), 15, "has an entry in row 7, but only 3 of them"),
    "too few": (local(triplets).replace("    2 2 : 1.5\n", ""), 14, "has 7 entries by its sizes, but 6 lines"),
    "no column": (local(columns).replace("col 1", "col 2"), 13, "column 1 of the first matrix should begin after this"),
    "no entry": (local(columns).replace("      2 : 1.5\n", ""), 17, "an entry of column 2 of the first matrix should"),
    "block ends": ("3\n1\n1\n3\n3\n1\n1\n1\n2\n3\n", 10, "must rise to its 3 rows"),
    "pointers": ("3\n1\n1\n3\n3\n1\n1\n1\n3\n3\n2\n1\n0 2\n0\n", 14, "must rise from 0 to its 1 blocks in 2 steps"),
    "block columns": ("3\n1\n1\n3\n3\n1\n1\n1\n3\n3\n2\n1\n0 1\n9\n", 14, "are not 1 numbers below 1"),
    "block number": ("3\n1\n1\n3\n3\n1\n1\n1\n3\n3\n2\n1\n0 1\n0\n5\n", 15, "block 0 of the first matrix should"),
    "H of other size": ("3\n1\n" + dense(M) + dense(H[:, :2]), 14, "H must have 4 rows and 3 columns, got (4, 2)"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_line(path, case):
    text, number, message = WRONG[case]
    path.write_text(text)
    with pytest.raises(InvalidProblem, match=re.escape(message)) as caught:
        load(path)
    assert f"{path}, line {number}: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_are_checked_as_elsewhere(path):
    path.write_text("3\n1\n" + dense(-W) + line(q) + line([0.5]))
    with pytest.raises(InvalidProblem, match="W must be positive semidefinite"):
        load(path)
    path.write_text("3\n1\n" + dense(W) + line(q) + line([-0.5]))
    with pytest.raises(InvalidProblem, match="friction must not be negative"):
        load(path)


def test_what_is_no_text_and_sizes_that_no_file_can_mean(path):
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidProblem, match=r"is not text: byte 0"):
        load(path)
    huge = "3\n100000000\n2\n300000000\n300000000\n1\nCSparse\ntriplet: 300000000-by-300000000, nzmax: 0 nnz: 0\n"
    path.write_text(huge)
    with pytest.raises(InvalidProblem, match="the file ends where q should be"):
        load(path)
    size = 24_000
    path.write_text(
        f"3\n{size // 3}\n2\n{size}\n{size}\n1\nCSparse\ntriplet: {size}-by-{size}, nzmax: 0 nnz: 0\n"
        + "0 " * size + "\n" + "0 " * (size // 3) + "\n"
    )  # fmt: skip
    with pytest.raises(InvalidProblem, match="W of 24000 rows and 24000 columns would take 4,395 MiB, from a file of"):
        load(path)


def test_every_cut_is_refused(path):
    for text in (local(dense), local(triplets), "3\n1\n" + columns(M) + columns(H) + line(f) + line(b) + line([0.5])):
        for length in range(8, len(text) - 30, 7):
            path.write_text(text[:length])
            with pytest.raises(InvalidProblem) as caught:
                load(path)
            assert str(path) in str(caught.value)


SMALL = [name for name in CONTACT_FAMILIES if name not in {"plate-144", "stack-20", "peg-64"}]


@pytest.mark.parametrize("name", SMALL)
def test_written_problems_come_back(path, name):
    problem = CONTACT_FAMILIES[name](1)
    problem.save(path)
    again = load(path)
    assert (again.n, again.dim, again.law) == (problem.n, problem.dim, Coulomb())
    np.testing.assert_array_equal(again.friction, problem.friction)
    if len(problem.joints) or problem.mass is None:
        assert again.mass is None
    else:
        assert again.m == problem.m
        np.testing.assert_array_equal(again.dense_rows(), problem.dense_rows())
        np.testing.assert_array_equal(np.concatenate([b.ravel() for b in again.mass_blocks]), masses(problem, again))
        np.testing.assert_allclose(again.velocity, problem.velocity, rtol=1e-13, atol=1e-14)
        np.testing.assert_array_equal(again.gap_rate, problem.gap_rate)
    if problem.mass is None:
        np.testing.assert_array_equal(again.delassus, problem.delassus)
        np.testing.assert_array_equal(again.offset, problem.offset)
    assert [part.name for part in path.parent.iterdir()] == [path.name]


def masses(problem, again):
    """Of the blocks that the file is divided into, which may be smaller."""
    whole = sparse.block_diag(problem.mass_blocks).tocsr()
    ends = again.trees
    return np.concatenate([whole[a:b, a:b].toarray().ravel() for a, b in pairwise(ends)])


@pytest.mark.parametrize("name", ["chain", "chain-hinged", "motor"])
def test_joints_are_eliminated_and_contact_velocities_stay_the_same(path, name):
    from stiction.problems.response import response

    problem = CONTACT_FAMILIES[name](1)
    assert len(problem.joints)
    problem.save(path)
    impulse = np.random.default_rng(1).normal(size=(problem.n, 3)) * 0.1
    u = problem.dense_rows().reshape(-1, problem.m) @ response(problem, impulse)[0]
    u.reshape(-1, 3)[:, 0] += problem.gap_rate
    again = load(path)
    np.testing.assert_allclose(again.delassus @ impulse.ravel() + again.offset, u, atol=1e-11 * np.abs(u).max())


@pytest.mark.parametrize("file", ["gfc2d_granularflowonwall_00069_00350", "fc2d_granularflowonwall_00667_00000"])
def test_published_files_survive_a_round_trip(path, file):
    problem = load(PUBLISHED / f"{file}.dat")
    assert_comes_back(problem, path)


def test_empty_problems_come_back(path):
    for problem in (
        ContactProblem(np.eye(2), [1.0, 2.0], [], [], []),
        ContactProblem.from_bodies([], [], [], [], [], []),
        ContactProblem.from_delassus([], [], [], 2),
    ):
        problem.save(path)
        assert (load(path).n, load(path).m) == (0, problem.m)


def test_what_is_written_is_what_siconos_prints(path):
    """Line by line, as its own reader takes the words, but with all digits."""
    ContactProblem.from_delassus(W, q, [0.5]).save(path)
    assert path.read_text().splitlines() == [
        "3", "1", "2", "3", "3", "1", "CSparse Version 3.1.9", "triplet: 3-by-3, nzmax: 7 nnz: 7",
        "    0 0 : 2.0", "    0 1 : 0.1", "    0 2 : 0.3", "    1 0 : 0.1", "    1 1 : 1.0", "    2 0 : 0.3",
        "    2 2 : 1.5", "-1.0 0.2 0.1", "0.5",
    ]  # fmt: skip


def test_what_siconos_cannot_hold_is_not_written(path):
    with pytest.raises(InvalidProblem, match=r"format knows Coulomb's law on the circular cone only, not Coulomb\(f"):
        stack(1, 0).with_law(Coulomb(facets=8)).save(path)
    with pytest.raises(InvalidProblem, match="no place for known slip directions; save as .npz"):
        painleve_forces(0.5, 0.5).save(path)
    with pytest.raises(InvalidProblem, match="Siconos files hold contact problems only; name .* .npz instead"):
        save(LCP(np.eye(1), [1.0]), path)
    twice = ContactProblem(
        np.eye(3), np.zeros(3), [[1.0, 0, 0]], [[[0, 1.0, 0], [0, 0, 1.0]]], [0.5],
        joints=[[0, 1.0, 0], [0, 1.0, 0]], joint_rate=[1.0, 2.0],
    )  # fmt: skip
    with pytest.raises(InvalidProblem, match="joints that contradict each other cannot be eliminated; save as .npz"):
        twice.save(path)
    assert list(path.parent.iterdir()) == []
