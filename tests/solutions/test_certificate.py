"""The judge: exact answers pass, wrong ones never, and units do not matter."""

import math
from fractions import Fraction

import numpy as np
import pytest

from exact_judge import Exact, unique_solution
from stiction.errors import InvalidProblem
from stiction.problems import FAMILIES, INFEASIBLE, LCP, BoxLCP, classic, rescaled
from stiction.problems.zoo import ingredients
from stiction.solutions import Certificate, Solution, Status, certify
from stiction.solutions.certificate import judge
from stiction.solutions.natural_map import row_exactly
from stiction.solutions.ray import Ray, examine
from stiction.solvers import COMPLEMENTARITY, Auto
from stiction.solvers.lcp.lemke import Lemke
from stiction.solvers.solve import solve

NAMES = [name for name in FAMILIES if name != "p0_matrix"]
TEXTBOOK = LCP([[2.0, 1.0], [1.0, 2.0]], [-5.0, -6.0])  # z = (4/3, 7/3)
BOX = BoxLCP(np.eye(3), [-5.0, 0.5, 4.0], [-1.0, -1.0, -1.0], [2.0, 1.0, 3.0])  # z = (2, -1/2, -1), w = (-3, 0, 3)


def answer(name, n, seed):
    problem = FAMILIES[name].make(n, seed)
    return problem, solve(problem, Lemke()).z


def residual(problem, z):
    return certify(problem, np.array(z, dtype=float)).residual


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_right_answers_leave_rounding_only(name, n):
    for seed in range(3):
        assert residual(*answer(name, n, seed)) < 1e-14


def test_exact_answers_leave_nothing():
    assert residual(BOX, [2.0, -0.5, -1.0]) == 0.0
    assert residual(LCP(np.eye(2), [1.0, 2.0]), [0.0, 0.0]) == 0.0
    assert residual(LCP(np.eye(2), [-1.0, -2.0]), [1.0, 2.0]) == 0.0


@pytest.mark.parametrize(
    "name", ["positive_definite", "positive_definite_box", "unsymmetric_definite", "p_matrix", "mixed"]
)
@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_an_answer_off_by_a_part_has_about_that_residual(name, size):
    for seed in range(5):
        problem, z = answer(name, 8, seed)
        rng = np.random.default_rng(seed)
        off = z * (1.0 + size * rng.choice([-1.0, 1.0], problem.n))
        assert 0.01 * size < residual(problem, off) < 2.0 * size


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_every_single_error_is_seen(size):
    for seed in range(10):
        problem, z = answer("positive_definite", 6, seed)
        unit = 1.0 / (np.abs(problem.M) / (np.abs(problem.q) + np.abs(problem.M) @ z)[:, None]).max(axis=0)
        for i in range(6):
            for sign in (-1.0, 1.0):
                off = z.copy()
                off[i] += sign * size * unit[i]
                assert residual(problem, off) > 0.001 * size


def test_residual_by_hand():
    # w = (2 z1 + z2 - 5, z1 + 2 z2 - 6) at (1, 2): (-1, -1), of terms (2 + 2 + 5, 1 + 4 + 6).
    certificate = certify(TEXTBOOK, [1.0, 2.0])
    assert certificate.residual == pytest.approx(1.0 / 9.0, rel=1e-15)
    assert certificate.index == 0
    assert certificate.complementarity == certificate.residual
    assert certificate.lower == certificate.upper == 0.0


def test_w_is_returned_with_the_certificate():
    certificate, w = judge(TEXTBOOK, np.array([1.0, 2.0]))
    assert np.array_equal(w, [-1.0, -1.0])
    assert certificate == certify(TEXTBOOK, [1.0, 2.0])


def same_in_other_units(name, decades, row_is_column):
    for seed in range(5):
        problem, z = answer(name, 7, seed)
        rng = np.random.default_rng((seed, decades))
        row, column = 10.0 ** rng.uniform(-decades, decades, (2, 7))
        row = column if row_is_column else row
        for off in (z * 1.001, z * (1.0 + 1e-4 * rng.normal(size=7)), np.where(z == 0.0, 0.01, z), -z, 2.0 * z):
            here, there = certify(problem, off), certify(rescaled(problem, row, column), off / column)
            for part in ("residual", "lower", "upper", "complementarity"):
                assert getattr(there, part) == pytest.approx(getattr(here, part), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("decades", [1, 4, 12])
@pytest.mark.parametrize("name", ["positive_definite", "semidefinite", "semidefinite_box", "degenerate", "wall"])
def test_units_do_not_matter(name, decades):
    same_in_other_units(name, decades, True)


@pytest.mark.parametrize("decades", [1, 4, 12])
@pytest.mark.parametrize("name", ["positive_definite", "semidefinite", "semidefinite_box", "mixed", "p_matrix_box"])
def test_units_and_row_scales_do_not_matter(name, decades):
    same_in_other_units(name, decades, False)


def test_rows_that_share_no_variable_do_not_excuse_each_other():
    # z = (0, 1) leaves w_1 = -1, whatever the unit of row 2.
    problem = LCP(np.diag([1.0, 1e24]), [-1.0, -1e24])
    assert residual(problem, [0.0, 1.0]) == pytest.approx(1.0)


def test_magnitudes_do_not_matter():
    for exponent in (-900, -400, 400, 900):
        for off in (1.0, 1.001):
            z = off * np.array([4.0 / 3.0, 7.0 / 3.0])
            assert residual(rescaled(TEXTBOOK, 2.0**exponent, 1.0), z) == residual(TEXTBOOK, z)
            assert residual(rescaled(TEXTBOOK, 1.0, 2.0**exponent), z * 2.0**-exponent) == residual(TEXTBOOK, z)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_what_is_not_a_number_fails(value):
    for problem in (TEXTBOOK, BoxLCP(TEXTBOOK.M, TEXTBOOK.q, -np.inf, np.inf), LCP(np.zeros((2, 2)), [1.0, 1.0])):
        for z in ([value, 7.0 / 3.0], [4.0 / 3.0, value], [value, value]):
            for tolerance in (1e-9, 1.0 - 1e-9):
                assert not certify(problem, z).passes(tolerance)


def test_nan_names_its_index():
    certificate = certify(BOX, [2.0, np.nan, -1.0])
    assert np.isnan(certificate.residual)
    assert not certificate.passes(np.inf)


@pytest.mark.parametrize("z", [[], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], 1.0])
def test_wrong_shapes_are_refused(z):
    with pytest.raises(InvalidProblem, match=r"certify: z must have shape \(2,\) to match the problem, got \("):
        certify(TEXTBOOK, z)


def test_anybodys_answer_can_be_judged():
    expected = certify(TEXTBOOK, [1.0, 2.0])
    z = np.array([1.0, 2.0])
    lie = Certificate(0.0, 0, 0.0, 0.0, 0.0)
    solution = Solution(Status.SOLVED, z, np.zeros(2), lie, 0, None, 1e-8)
    assert certify(TEXTBOOK, solution) == expected
    assert certify(TEXTBOOK, (1, 2)) == expected
    z.flags.writeable = False
    assert certify(TEXTBOOK, z) == expected
    assert certify(TEXTBOOK, np.array([1.0, 9.0, 2.0, 9.0])[::2]) == expected


def test_the_answer_is_left_untouched():
    z = np.array([-1.0, 2.0])
    certify(TEXTBOOK, z)
    assert np.array_equal(z, [-1.0, 2.0])


def test_the_index_is_the_culprit():
    for culprit in range(12):
        problem, z = answer("positive_definite", 12, culprit)
        diagonal = LCP(np.diag(problem.M.diagonal()), problem.q)
        z = np.maximum(-problem.q / problem.M.diagonal(), 0.0)
        z[culprit] = -1.0
        assert certify(diagonal, z).index == culprit


def test_parts_name_the_violated_law():
    below, above = certify(BOX, [2.0, -1.5, -1.0]), certify(BOX, [2.5, -0.5, -1.0])
    assert below.lower > 0.1
    assert below.upper == 0.0
    assert above.upper > 0.1
    assert above.lower == 0.0
    inside = certify(BOX, [1.0, -0.5, -1.0])
    assert inside.lower == inside.upper == 0.0
    assert inside.complementarity == inside.residual > 0.1
    for z in ([2.0, -1.5, -1.0], [2.5, -0.5, -1.0], [9.0, 9.0, -9.0]):
        certificate = certify(BOX, z)
        assert certificate.residual >= max(certificate.lower, certificate.upper, certificate.complementarity)


WRONG = {
    "negative z": (TEXTBOOK, [-1.0, 3.5]),
    "negative z, all rows zero": (LCP([[1.0, 2.0], [0.0, 1.0]], [-1.0, -1.0]), [-1.0, 1.0]),
    "negative w": (TEXTBOOK, [0.0, 0.0]),
    "both positive": (LCP(np.eye(1), [1.0]), [1.0]),
    "both positive, far away": (LCP(np.eye(1), [1.0]), [1e6]),
    "above the bound": (BOX, [5.0, -0.5, -1.0]),
    "below the bound": (BOX, [2.0, -0.5, -4.0]),
    "wrong bound": (BOX, [2.0, -0.5, 3.0]),
    "at a bound without need": (BOX, [2.0, 1.0, -1.0]),
    "between without zero row": (BOX, [0.0, -0.5, -1.0]),
    "free variable, row not zero": (BoxLCP(np.eye(1), [1.0], -np.inf, np.inf), [0.0]),
    "zero matrix, negative row": (LCP(np.zeros((1, 1)), [-1.0]), [7.0]),
    "zero matrix, needless z": (LCP(np.zeros((1, 1)), [1.0]), [7.0]),
    "zero column, negative z": (LCP([[0.0, 1.0], [0.0, 1.0]], [0.0, -1.0]), [-1.0, 1.0]),
    "zero column, outside its box": (BoxLCP(np.zeros((1, 1)), [0.0], 0.0, 1.0), [1.5]),
    "zero column, tiny box": (BoxLCP(np.zeros((1, 1)), [0.0], 0.0, 1e-30), [2e-30]),
    "outside a tiny box that rows hardly feel": (
        BoxLCP([[1e-20, 1.0], [0.0, 1.0]], [-1.0, -1.0], 0.0, [1e-6, 9.0]),
        [2e-6, 1.0],
    ),
    "homogeneous, negative": (LCP(-np.eye(2), [0.0, 0.0]), [1.0, 0.0]),
    "homogeneous, needless": (LCP(np.eye(2), [0.0, 0.0]), [1.0, 0.0]),
    "q with zeros": (LCP([[1.0, -1.0], [-1.0, 2.0]], [0.0, -1.0]), [0.0, 0.5]),
    "no solution": (LCP([[-1.0]], [-1.0]), [0.0]),
    "no solution, the boundary": (LCP([[-1.0]], [-1.0]), [-1.0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_never_pass(name):
    problem, z = WRONG[name]
    assert not certify(problem, z).passes(1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_random_vectors_never_pass(name):
    rng = np.random.default_rng(0)
    for seed in range(20):
        problem, z = answer(name, 6, seed)
        for off in (
            rng.normal(size=6) * (1.0 + np.abs(z)),
            z + np.abs(rng.normal(size=6)) * (np.abs(z).max() + 1.0),
            -z - 1.0,
        ):
            w = problem.H @ off + problem.q
            inside = (off >= problem.lo) & (off <= problem.hi)
            natural = np.abs(off - np.clip(off - w, problem.lo, problem.hi))
            if not inside.all() or natural.max() > 1e-3 * np.abs(off).max():
                assert not certify(problem, off).passes(1e-9)


def test_no_vector_passes_for_a_problem_without_solution():
    rng = np.random.default_rng(1)
    for name in INFEASIBLE:
        for seed in range(20):
            problem = INFEASIBLE[name].make(5, seed)
            proposal = solve(problem, Lemke(), throw=False).z
            for z in (proposal, *np.abs(rng.normal(size=(20, 5)))):
                assert not certify(problem, z).passes(1e-4)


INFINITE = LCP([[1.0, -1.0], [-1.0, 1.0]], [-1.0, -1.0])  # z = t (1, 1) changes nothing: w = (-1, -1) for every t


@pytest.mark.parametrize("t", [1e3, 1e6, 1e9, 1e12, 1e100])
def test_an_infinite_impulse_never_passes(t):
    assert not certify(INFINITE, [t, t]).passes(1e-6)


def test_a_violated_row_without_q_never_passes():
    # w_1 = -z_2 + 1e12 z_3 with z_2 = 1 and z_3 = 0 (w_3 = z_3 + 1 > 0): no solution.
    problem = LCP([[0.0, -1.0, 1e12], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.0, -1.0, 1.0])
    assert not certify(problem, [0.0, 1.0, 0.0]).passes(1e-6)


def test_noise_in_rows_without_q_is_not_punished():
    # A body at rest beside one that moves: its rows have q = 0 and its impulses are rounding errors.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        B = rng.normal(size=(6, 6))
        q = np.array([-1.0, -2.0, -3.0, 0.0, 0.0, 0.0])
        problem = LCP(np.eye(6) + 0.1 * (B + B.T) * (np.arange(6) % 3 == np.arange(6)[:, None] % 3), q)
        z = solve(problem, Lemke()).z
        assert residual(problem, np.abs(z + 1e-16 * rng.normal(size=6))) < 1e-14


def test_noise_in_a_circuit_is_not_punished():
    problem = classic("diodeBridge").problem
    z = np.array([0.985185185185185, 0.985185185185185, 0.0, 0.000985185185185, 0.0, 0.0, 0.000985185185185])
    assert residual(problem, z) < 1e-12
    z[2] = 1e-17
    assert residual(problem, z) < 1e-12


def test_zero_columns_and_zero_rows():
    assert residual(LCP(np.zeros((2, 2)), [1.0, 0.0]), [0.0, 0.0]) == 0.0
    assert residual(LCP(np.zeros((2, 2)), [0.0, 0.0]), [3.0, 0.0]) == 0.0  # any z >= 0 solves it
    assert residual(BoxLCP(np.zeros((1, 1)), [0.0], 0.0, 1.0), [1.0]) == 0.0
    assert residual(BoxLCP(np.zeros((1, 1)), [-1.0], 0.0, 1.0), [1.0]) == 0.0


def test_no_variables():
    certificate = certify(LCP([], []), [])
    assert certificate == Certificate(0.0, -1, 0.0, 0.0, 0.0)
    assert certificate.passes(0.0)


@pytest.mark.parametrize("exponent", [-1040, -1060])
def test_subnormal_rows(exponent):
    assert residual(rescaled(LCP(np.eye(2), [-1.0, 1.0]), 2.0**exponent, 1.0), [1.0, 0.0]) == 0.0


def test_repeated_judgements_agree_to_the_bit():
    problem, z = answer("positive_definite_box", 50, 1)
    assert certify(problem, 1.1 * z) == certify(problem, 1.1 * z)


def test_certificates_in_words():
    assert str(Certificate(1.25e-7, 3, 0.0, 0.0, 1.25e-7)) == "residual 1.2e-07 at index 3"
    with pytest.raises(AttributeError):
        certify(TEXTBOOK, [1.0, 2.0]).residual = 0.0


# Sound: what rounding could fool.


def test_entries_of_the_size_of_rounding_excuse_nothing():
    H = np.eye(10)
    H[0, 1:] = 1e-17
    certificate = certify(LCP(H, -np.ones(10)), np.eye(10)[0])  # nine rows have w = -1
    assert certificate.residual == 1.0
    assert certificate.index == 1
    assert residual(LCP([[1.0, 1e-20], [0.0, 1.0]], [-1.0, -1.0]), [1.0, 0.0]) == 1.0


def test_a_problem_without_solution_is_not_solved_by_entries_of_the_size_of_rounding():
    problem = LCP([[-2.0, -1.0, -1.0], [2.0, -1.0, 0.0], [1e-15, -5e-16, 2e-17]], [-1.0, -2.0, 2.0])
    found = solve(problem, throw=False)
    assert found.status != Status.SOLVED
    assert not Exact(problem.H, problem.q, problem.lo, problem.hi).exists()
    assert residual(problem, [0.25, 0.0, 0.0]) > 0.1  # w = (-1.5, -1.5, 2)


@pytest.mark.parametrize("t", [1e3, 1e6, 1e9, 1e12, 1e15, 1e100])
def test_an_enormous_answer_does_not_hide_behind_a_moderate_part(t):
    # Rows 1 and 2 are those of INFINITE; rows 3 and 4 are exact, moderate, and connected with them.
    problem = LCP(
        [[1.0, -1.0, 1.0, 0.0], [-1.0, 1.0, -1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]],
        [-2.0, 0.0, -3.0, -1.0],
    )
    assert not certify(problem, [t, t, 2.0, 1.0]).passes(1e-6)  # w = (0, -2, 0, 0)
    assert not certify(problem, [t + 1.0, t, 2.0, 1.0]).passes(1e-6) or t + 1.0 == t


@pytest.mark.parametrize("t", [1e6, 1e9, 1e12])
def test_the_error_of_an_enormous_answer_may_lie_in_a_row_without_q(t):
    # z1 - z2 = 0 in row 1 and z1 - z2 >= 1 in row 3 contradict each other.
    problem = LCP([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, -1.0, 0.0]], [0.0, 0.0, -1.0])
    assert not certify(problem, [t + 1.0, t, 0.0]).passes(1e-6)
    assert not certify(problem, [t, t, 0.0]).passes(1e-6)


def test_rows_without_q_may_hold_any_size_that_others_give_them():
    # z2 = z3 = z1 = 1e6, from 1e-6 z1 = 1; the rows of z2 and z3 have no q at all.
    problem = BoxLCP([[1e-6, 0.0, 0.0], [1.0, -1.0, 0.0], [0.0, 3.0, -3.0]], [-1.0, 0.0, 0.0], -np.inf, np.inf)
    assert residual(problem, [1e6, 1e6, 1e6]) < 1e-16  # 1e-6 is not quite a millionth
    assert residual(problem, [1e6, 1e6 * (1.0 + 1e-12), 1e6]) < 1e-12


def test_an_enormous_answer_is_not_excused_by_cancellation():
    # No z solves this; rows 3 and 4 ask for z3 - z4 = 2/3 and 1/2, which doubles near 3e15 cannot hold.
    problem = LCP([[3, 0, 2, 1], [1, 1, 0, 0], [1, -1, 3, -3], [0, 1, -2, 2]], [-2, -2, 0, -1])
    assert residual(problem, [0.0, 2.0, 3e15, 3e15]) > 1e-4
    for kind in COMPLEMENTARITY:
        assert not solve(problem, kind(), throw=False).ok
    assert solve(problem, Auto(), throw=False).status is Status.NO_SOLUTION


def test_a_reduced_row_is_evaluated_in_twice_the_precision():
    rng = np.random.default_rng(5)
    for _ in range(100):
        row, z = rng.normal(size=(2, 6)) * 10.0 ** rng.uniform(-8.0, 8.0, (2, 6))
        q = -float(row @ z) + rng.normal()
        true = sum((Fraction(a) * Fraction(b) for a, b in zip(row, z, strict=True)), Fraction(q))
        error = abs(Fraction(float(row_exactly(row, q, z))) - true)
        assert error <= 2.0**-52 * abs(true) + 2.0**-100 * np.sum(np.abs(row * z))
    assert row_exactly(np.array([1e301]), 0.0, np.array([1.0])) == 1e301  # where splitting overflows


def test_a_q_of_the_size_of_rounding_is_no_measure():
    # z1 = 1, z2 = z3 = 0 to rounding; the third row's q says nothing about the size of its terms.
    H = [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    z = np.array([1.5, -0.5, 0.5])
    for tiny in (0.0, 1e-17, -1e-300):
        assert residual(BoxLCP(H, [-1.0, -2.0, tiny], -np.inf, np.inf), z) < 1e-15


def test_multiples_of_an_answer_pass_where_nothing_is_given():
    problem = BoxLCP([[1.0, -1.0], [-1.0, 1.0]], [0.0, 0.0], [0.0, 0.0], np.inf)
    for t in (1e-200, 1.0, 1e200):
        assert residual(problem, [t, t]) == 0.0
        assert residual(problem, [t, t * (1.0 + 1e-15)]) < 1e-14


def test_many_small_errors_add_up():
    n = 100
    problem = LCP(np.ones((n, n)) + np.eye(n), np.ones(n))  # z = 0
    off = np.full(n, 1e-9)
    off[1:] = 0.0
    assert residual(problem, off) == pytest.approx(2e-9, rel=1e-3)
    assert residual(problem, np.full(n, 1e-9)) == pytest.approx(1.01e-7, rel=1e-3)


# Complete: correctly rounded solutions.


def rounded_solution(seed, condition, decades):
    """A mixed problem of this condition in mixed units, and its solution, correctly rounded."""
    rng = np.random.default_rng(seed)
    n, free = 6, int(rng.integers(1, 6))
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    H, q = (U * np.geomspace(1.0, 1.0 / condition, n)) @ V, rng.normal(size=n)
    row, column = 10.0 ** rng.uniform(-decades, decades, (2, n))
    H, q = row[:, None] * H * column, row * q
    sub = [[Fraction(x) for x in line[:free]] for line in H[:free]]
    columns = [[sub[i][j] for i in range(free)] for j in range(free)]
    _, solution = unique_solution_of_fractions(columns, [-Fraction(x) for x in q[:free]])
    z = np.array([float(x) for x in solution] + [0.0] * (n - free))
    bounded = [sum(Fraction(h) * x for h, x in zip(line, solution, strict=False)) for line in H[free:]]
    q[free:] = [float(abs(b) - b) for b in bounded]  # w >= 0 there
    lo = np.where(np.arange(n) < free, -np.inf, 0.0)
    return BoxLCP(H, q, lo, np.inf), z


def unique_solution_of_fractions(columns, right):
    """The same as `unique_solution`, for fractions."""
    scale = 1
    for x in (*right, *(x for column in columns for x in column)):
        scale = math.lcm(scale, x.denominator)
    integral = [[int(x * scale) for x in column] for column in columns]
    found, values = unique_solution(integral, [int(x * scale) for x in right])
    return found, [Fraction(*value) for value in values]


@pytest.mark.parametrize("decades", [0, 3, 9])
@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8])
def test_correctly_rounded_solutions_pass(condition, decades):
    for seed in range(40):
        assert residual(*rounded_solution(seed, condition, decades)) < 1e-9


# Invariant: units, row scales, parts.


def varied(seed):
    """Problems with zeros, small integers, entries of rounding's size and bounds of all kinds; answers near and far."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    H = rng.integers(-2, 3, (n, n)) * (rng.normal(size=(n, n)) if seed % 2 else 1.0)
    if seed % 3 == 0:
        H = H @ H.T
    H = np.where(rng.random((n, n)) < 0.1, 1e-17, H)
    q = rng.normal(size=n) * rng.integers(0, 2, n)
    lo, hi = np.where(rng.random(n) < 0.3, -np.inf, 0.0), np.where(rng.random(n) < 0.3, 1.0, np.inf)
    problem = BoxLCP(H, q, lo, hi)
    z = solve(problem, Lemke(), throw=False).z
    direction = np.linalg.svd(H)[2][-1]  # nearly null: answers along it can be enormous
    return problem, (z, z * (1.0 + 1e-9 * rng.normal(size=n)), z + 1e7 * direction, z + 1e-12, rng.normal(size=n))


def test_powers_of_two_change_no_bit():
    for seed in range(300):
        problem, answers = varied(seed)
        rng = np.random.default_rng(seed)
        row, column = 2.0 ** rng.integers(-60, 61, (2, problem.n))
        there = BoxLCP(row[:, None] * problem.H * column, row * problem.q, problem.lo / column, problem.hi / column)
        for z in answers:
            assert certify(there, z / column) == certify(problem, z)


def test_other_units_change_rounding_only():
    for seed in range(300):
        problem, answers = varied(seed)
        rng = np.random.default_rng(seed)
        row, column = 10.0 ** rng.uniform(-9.0, 9.0, (2, problem.n))
        there = BoxLCP(row[:, None] * problem.H * column, row * problem.q, problem.lo / column, problem.hi / column)
        for z in answers:
            # What cancels is known to rounding of its terms, of which only a part may count: 1e-6, say, or all wrong.
            here, beyond = residual(problem, z), residual(there, z / column)
            assert min(beyond, 1.0) == pytest.approx(
                min(here, 1.0), rel=1e-6, abs=1e-9 if np.abs(z).max() < 1e3 else 1e-5
            )


def test_each_part_is_judged_by_itself():
    for seed in range(0, 200, 2):
        (first, ours), (second, theirs) = varied(seed), varied(seed + 1)
        n = first.n + second.n
        H = np.zeros((n, n))
        H[: first.n, : first.n], H[first.n :, first.n :] = first.H, 1e9 * second.H
        whole = BoxLCP(
            H,
            np.concatenate([first.q, 1e9 * second.q]),
            np.concatenate([first.lo, second.lo]),
            np.concatenate([first.hi, second.hi]),
        )
        apart = BoxLCP(1e9 * second.H, 1e9 * second.q, second.lo, second.hi)
        for a, b in zip(ours, theirs, strict=True):
            expected = max(residual(first, a), residual(apart, b))
            assert residual(whole, np.concatenate([a, b])) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_nothing_is_ever_minus_zero():
    for seed in range(100):
        problem, answers = varied(seed)
        for z in (*answers, np.zeros(problem.n), -np.zeros(problem.n)):
            certificate = certify(problem, z)
            assert not np.signbit([certificate.residual, *certificate[2:]]).any()
    assert str(certify(LCP(np.eye(1), [-0.0]), [-0.0])) == "residual 0.0e+00 at index 0"


# Rays.


@pytest.mark.parametrize("name", INFEASIBLE)
def test_a_proof_is_recognized_in_any_units(name):
    for seed in range(30):
        problem = INFEASIBLE[name].make(6, seed)
        y = ingredients.contradiction(6, seed, 1e2, name == "infeasible")[2]
        rng = np.random.default_rng(seed)
        row, column = 10.0 ** rng.uniform(-6, 6, (2, 6))
        assert examine(problem, y).infeasible
        assert examine(problem, 1e-200 * y).infeasible
        assert examine(rescaled(problem, row, column), y / row).infeasible
        assert not examine(problem, -y).infeasible
        assert not examine(problem, 0.0 * y).infeasible


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_proven_about_solvable_problems(name):
    for seed in range(20):
        problem = FAMILIES[name].make(5, seed)
        rng = np.random.default_rng(seed)
        for y in (*rng.normal(size=(20, 5)), *np.eye(5), *-np.eye(5), np.ones(5), *np.linalg.svd(problem.H)[0].T):
            assert not examine(problem, y).infeasible
            assert not examine(problem, np.abs(y)).infeasible


@pytest.mark.parametrize("y", [[np.nan, 1.0], [np.inf, 1.0]])
def test_a_ray_that_is_not_a_number_proves_nothing(y):
    assert not examine(INFINITE, np.array(y)).infeasible


def test_a_ray_with_signs_that_no_answer_needs_proves_nothing():
    # 0 <= z <= 1, w = -1: solved by z = 1. y = 1 says only that w < 0.
    assert not examine(BoxLCP([[0.0]], [-1.0], 0.0, 1.0), np.array([1.0])).infeasible
    # z <= 0 needs w <= 0; w = 1 + 0 z never is: y = -1 proves it.
    assert examine(BoxLCP([[0.0]], [1.0], -np.inf, 0.0), np.array([-1.0])).infeasible
    # A free variable needs w = 0: either sign proves.
    assert examine(BoxLCP([[0.0]], [1.0], -np.inf, np.inf), np.array([-1.0])).infeasible
    assert not examine(BoxLCP([[0.0]], [1.0], -np.inf, np.inf), np.array([1.0])).infeasible


def test_finite_bounds_count_where_they_limit_the_rescue():
    # w_1 = z_2 - 3 >= 0 needs z_2 >= 3.
    for most, hopeless in ((2.0, True), (4.0, False)):
        problem = BoxLCP([[0.0, 1.0], [0.0, 0.0]], [-3.0, 0.0], 0.0, [np.inf, most])
        assert examine(problem, np.array([1.0, 0.0])).infeasible is hopeless


def test_a_nearly_singular_problem_is_not_proven_infeasible():
    # Positive definite, hence solvable: z = (2e11 + 1, 2e11), residual 0.
    problem = LCP([[1.0, -1.0], [-1.0, 1.0 + 1e-11]], [-1.0, -1.0])
    assert not examine(problem, np.array([1.0, 1.0])).infeasible


def test_statements():
    assert "no solution: y·(H z + q) < 0" in Ray(np.ones(1), True).statement
    assert "proves nothing" in Ray(np.ones(1), False).statement
