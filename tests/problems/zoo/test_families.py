"""The families are what they say: class by class, size by size, the same for the same seed, and solvable."""

import hashlib
from itertools import chain, combinations

import numpy as np
import pytest

from stiction.problems import FAMILIES, INFEASIBLE, LCP, BoxLCP, rescaled
from stiction.problems.zoo import families, heaps, ingredients
from stiction.solutions import certify
from stiction.solutions.ray import examine
from stiction.solvers.lcp.lemke import Lemke
from stiction.solvers.solve import solve

ALL = {**FAMILIES, **INFEASIBLE}
SIZES = (1, 2, 3, 4, 5, 6)


def of_class(*names):
    return [name for name, family in FAMILIES.items() if family.classes.issuperset(names)]


def supports(n):
    return chain.from_iterable(combinations(range(n), size) for size in range(1, n + 1))


def symmetric_part(H):
    """In units that make the diagonal 1 where it is positive: a congruence, so definiteness stays."""
    S = 0.5 * (H + H.T)
    units = np.where(S.diagonal() > 0.0, S.diagonal(), 1.0) ** -0.5
    return S * np.outer(units, units)


def principal_minors(H):
    """Of the rows divided by their largest entry: signs stay."""
    largest = np.abs(H).max(axis=1)
    H = H / np.where(largest > 0.0, largest, 1.0)[:, None]
    return np.array([np.linalg.det(H[np.ix_(support, support)]) for support in supports(len(H))])


def positive_eigenpairs(S):
    """Of all principal submatrices, padded by zeros; S is copositive if no value is negative (Kaplan 2000)."""
    for support in supports(len(S)):
        values, vectors = np.linalg.eigh(S[np.ix_(support, support)])
        for value, vector in zip(values, vectors.T, strict=True):
            if (vector > 1e-9).all() or (vector < -1e-9).all():
                z = np.zeros(len(S))
                z[list(support)] = np.abs(vector)
                yield value, z


def fingerprint(problem):
    return hashlib.sha256(problem.H.tobytes() + problem.vectors.tobytes()).hexdigest()


@pytest.mark.parametrize("name", ALL)
def test_sizes_kinds_and_seeds(name):
    make, classes = ALL[name]
    for n in (0, 1, 2, 3, 10, 57, 150):
        problem = make(n, 4)
        assert problem.n == n
        assert isinstance(problem, LCP) == ("LCP" in classes)
        assert ("box" in classes) == (type(problem) is BoxLCP)
        if "symmetric" in classes:
            assert problem.symmetric
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    assert fingerprint(make(20, 7)) == fingerprint(make(20, 7))
    assert fingerprint(make(20, 7)) != fingerprint(make(20, 8))
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert make.__doc__


@pytest.mark.parametrize("name", of_class("PD"))
@pytest.mark.parametrize("n", [*SIZES, 60])
def test_definite(name, n):
    for seed in range(5):
        assert np.linalg.eigvalsh(symmetric_part(FAMILIES[name].make(n, seed).H))[0] > 1e-7


@pytest.mark.parametrize("name", [*of_class("PSD"), *INFEASIBLE])
@pytest.mark.parametrize("n", [*SIZES, 60])
def test_semidefinite(name, n):
    for seed in range(5):
        assert np.linalg.eigvalsh(symmetric_part(ALL[name].make(n, seed).H))[0] > -1e-14 * n


@pytest.mark.parametrize("name", of_class("P"))
@pytest.mark.parametrize("n", SIZES)
def test_p(name, n):
    for seed in range(5):
        assert (principal_minors(FAMILIES[name].make(n, seed).H) > 0.0).all()


@pytest.mark.parametrize("name", of_class("P0"))
@pytest.mark.parametrize("n", SIZES)
def test_p0(name, n):
    for seed in range(5):
        assert (principal_minors(FAMILIES[name].make(n, seed).H) > -1e-14).all()


@pytest.mark.parametrize("name", of_class("copositive-plus"))
@pytest.mark.parametrize("n", SIZES)
def test_copositive_plus(name, n):
    for seed in range(3):
        S = symmetric_part(FAMILIES[name].make(n, seed).H)
        for value, z in positive_eigenpairs(S):
            assert value > -1e-14
            if "strictly-copositive" in FAMILIES[name].classes:
                assert value > 0.0
            elif value < 1e-13:
                assert np.abs(S @ z).max() < 1e-6  # z·Sz = 0 needs Sz = 0


@pytest.mark.parametrize(
    "name", ["p_matrix", "p_matrix_box", "p_triangular", "p0_matrix", "strictly_copositive", "copositive_plus"]
)
@pytest.mark.parametrize("n", [3, 4, 9, 40, 80])
def test_the_wider_classes_are_not_semidefinite(name, n):
    for seed in range(5):
        assert np.linalg.eigvalsh(symmetric_part(FAMILIES[name].make(n, seed).H))[0] < -1e-3


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_p0_is_not_p(n):
    for seed in range(5):
        assert np.abs(principal_minors(families.p0_matrix(n, seed).H)).min() < 1e-14


def test_copositive_plus_is_not_strictly_so():
    for n in (3, 4, 5, 6):
        S = symmetric_part(families.copositive_plus(n, 1).H)
        s = n // 2
        assert np.linalg.matrix_rank(S[:s, :s]) < s


def test_sufficient_is_monotone_in_other_units():
    for seed in range(5):
        ratio = families.sufficient(8, seed).H / families.monotone(8, seed).H
        assert (ratio > 0.0).all()
        assert np.array_equal(ratio * ratio[0, 0], np.outer(ratio[:, 0], ratio[0]))


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4, 1e8])
@pytest.mark.parametrize("n", [2, 10, 200])
def test_condition_of_definite_matrices(n, condition):
    assert np.linalg.cond(families.positive_definite(n, 1, condition).H) == pytest.approx(condition, rel=1e-6)
    assert np.linalg.cond(families.positive_definite_box(n, 1, condition).H) == pytest.approx(condition, rel=1e-6)


@pytest.mark.parametrize("make", [families.semidefinite, families.semidefinite_box, families.monotone])
@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_rank_and_condition_of_semidefinite_matrices(make, n):
    for rank in sorted({0, 1, n // 3, n // 2, n - 1, n}):
        if rank > n:
            continue
        for condition in (1e2, 1e8):
            H = make(n, 3, rank=rank, condition=condition).H
            assert np.linalg.matrix_rank(H, tol=1e-11) == rank
            values = np.linalg.eigvalsh(0.5 * (H + H.T))
            if rank > 1:
                assert values[-1] / values[n - rank] == pytest.approx(condition, rel=0.05)


def test_a_rank_beyond_the_size_is_refused():
    with pytest.raises(ValueError, match="rank must lie between 0 and n = 3, got 4"):
        families.semidefinite(3, 0, rank=4)


@pytest.mark.parametrize("n", [1, 5, 100, 400])
def test_singular_products_are_exact(n):
    rng = np.random.default_rng(n)
    B = ingredients.factor(n, n // 2, 1e8, rng)
    integers = np.round(B * 2.0**22).astype(np.int64)
    assert np.array_equal(integers * 2.0**-22, B)
    assert np.array_equal((integers @ integers.T) * 2.0**-44, B @ B.T)
    K = ingredients.skew_product(B)
    assert np.array_equal(K, -K.T)
    assert np.array_equal((B @ B.T + K) + (B @ B.T + K).T, 2.0 * (B @ B.T))


@pytest.mark.parametrize("n", [1, 5, 100, 400])
def test_solvable_problems_have_exactly_the_solution_they_were_made_from(n):
    B = ingredients.factor(n, n // 2, 1e4, np.random.default_rng(1))
    for M in (B @ B.T, B @ B.T + ingredients.skew_product(B)):
        problem = ingredients.solvable(M, np.random.default_rng(2), 0.5, 0.1, 1e2)
        z, w = ingredients.complementary(n, np.random.default_rng(2), 0.5, 0.1)
        w = w * ingredients.binary_size(M)
        scale = ingredients.fitting(w - M @ z, 1e2)
        assert np.array_equal(M @ (scale * z) + problem.q, scale * w)
        assert np.abs(problem.q).max() <= 1e2
        assert certify(problem, scale * z).residual == 0.0


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "p0_matrix"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 30])
def test_solvable(name, n):
    for seed in range(10):
        problem = FAMILIES[name].make(n, seed)
        assert certify(problem, solve(problem, Lemke())).residual <= 1e-9


@pytest.mark.parametrize("name", INFEASIBLE)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 30])
def test_infeasible_with_an_exact_proof(name, n):
    for seed in range(10):
        for symmetric in (True, False):
            problem = INFEASIBLE[name].make(n, seed, symmetric=symmetric)
            y = ingredients.contradiction(n, seed, 1e2, symmetric)[2]
            assert (y >= 0.0).all()
            assert (y @ problem.H == 0.0).all()
            assert y @ problem.q < 0.0
            assert np.isinf(problem.hi[y > 0.0]).all()
            assert examine(problem, y).infeasible


def test_degenerate_problems_are_full_of_ties():
    problem = families.degenerate(60, 2)
    assert np.mean(problem.q == 0.0) > 0.3
    assert len(np.unique(problem.H, axis=0)) < 40
    assert np.array_equal(problem.H, np.round(problem.H))
    assert problem.q.min() < 0.0


def test_bounds_of_box_families():
    problem = families.positive_definite_box(200, 0)
    assert (problem.lo < 0.0).all()
    assert (problem.hi > 0.0).all()
    assert np.isfinite(problem.vectors).all()
    problem = families.positive_definite_box(400, 0, infinite=0.3)
    assert np.mean(np.isinf(problem.lo)) == pytest.approx(0.3, abs=0.1)
    assert np.mean(np.isinf(problem.hi)) == pytest.approx(0.3, abs=0.1)


def test_mixed_problems_have_free_variables_and_a_saddle():
    problem = families.mixed(50, 1)
    free = np.isinf(problem.lo) & np.isinf(problem.hi)
    assert free.sum() == 25
    assert np.array_equal(problem.H[25:, 25:], np.zeros((25, 25)))
    assert np.array_equal(problem.H[:25, 25:], -problem.H[25:, :25].T)
    assert np.linalg.cond(problem.H[:25, :25]) < 1e8


def test_rescaled_solutions_are_the_same_in_other_units():
    rng = np.random.default_rng(0)
    problem = families.positive_definite_box(6, 1)
    z = solve(problem, Lemke()).z
    row, column = 10.0 ** rng.uniform(-5, 5, 6), 10.0 ** rng.uniform(-5, 5, 6)
    other = rescaled(problem, row, column)
    assert certify(other, z / column).residual < 1e-14
    assert np.array_equal(rescaled(rescaled(problem, 0.25, 8.0), 4.0, 0.125).H, problem.H)
    assert isinstance(rescaled(families.positive_definite(3, 1), 2.0, row[:3]), LCP)


def test_rescaling_beyond_the_range_of_numbers_is_refused():
    with pytest.raises(ValueError, match="M must be finite"):
        rescaled(LCP([[2.0]], [1.0]), 1e200, 1e200)


def test_units_of_badly_scaled_problems_differ_by_decades():
    diagonal = families.badly_scaled(100, 0).H.diagonal()
    assert diagonal.max() / diagonal.min() > 1e18


def test_contact_rows_by_hand():
    # Two boxes of 0.2 x 0.3 x 0.5 m (30 kg) side by side along x, hit at their centres: 1/m + 1/m.
    size, centre = np.tile([0.2, 0.3, 0.5], (2, 1)), np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    velocity = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    point, normal = np.array([[0.1, 0.0, 0.0], [0.1, 0.1, 0.0]]), np.array([[1.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    first, second = np.array([0, 0]), np.array([1, 1])
    problem = heaps.contact_problem(first, second, point, normal, centre, size, velocity)
    about_z = 30.0 * (0.2**2 + 0.3**2) / 12.0
    expected = [[2.0 / 30.0, 2.0 / 30.0], [2.0 / 30.0, 2.0 / 30.0 + 2.0 * 0.1**2 / about_z]]
    np.testing.assert_allclose(problem.M, expected, rtol=1e-14)
    np.testing.assert_allclose(problem.q, [-3.0, -3.0], rtol=1e-14)


def test_the_ground_carries_the_weight():
    # One box, four corners on the ground, one step of free fall: the impulses sum to m g dt.
    corners = 0.1 * np.array([[-1.0, -1.0, -1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [1.0, 1.0, -1.0]])
    fall = np.array([[0.0, 0.0, -heaps.GRAVITY * heaps.TIME_STEP, 0.0, 0.0, 0.0]])
    ground, box = np.full(4, -1), np.zeros(4, dtype=np.int64)
    up = np.tile([0.0, 0.0, 1.0], (4, 1))
    problem = heaps.contact_problem(ground, box, corners, up, np.zeros((1, 3)), np.full((1, 3), 0.2), fall)
    solution = solve(problem, Lemke())
    assert solution.z.sum() == pytest.approx(8.0 * heaps.GRAVITY * heaps.TIME_STEP, rel=1e-12)
    assert np.linalg.matrix_rank(problem.M) == 3


@pytest.mark.parametrize("n", [40, 150])
def test_contact_families_are_rank_deficient_and_busy(n):
    for make, rank in ((families.wall, (n * 3) // 4 + 1), (families.frictionless_contact, 6 * (n // 8))):
        for seed in range(3):
            problem = make(n, seed)
            assert np.linalg.matrix_rank(problem.M) <= rank
            assert np.mean(solve(problem, Lemke()).z > 0.0) > 0.25
    assert np.linalg.matrix_rank(families.frictionless_contact(n, 0, bodies=n).M) > 6 * (n // 8)


def test_implied_classes():
    assert FAMILIES["positive_definite"].classes == {
        "LCP", "symmetric", "PD", "PSD", "P", "P0", "sufficient", "copositive-plus", "strictly-copositive",
    }  # fmt: skip
    assert FAMILIES["p_matrix"].classes == {"LCP", "P", "P0", "sufficient"}
    assert FAMILIES["p0_matrix"].classes == {"LCP", "P0"}
