"""What a problem accepts, what it refuses and in which words, and that nothing outside can change it."""

import copy
import pickle
import re

import numpy as np
import pytest

from stiction.errors import InvalidProblem
from stiction.problems import LCP, BoxLCP

EYE = np.eye(2)
ZERO = np.zeros(2)


class Sparse:
    def toarray(self):
        return EYE


REFUSED = [
    (lambda: LCP([1.0, 2.0], ZERO), "LCP: M must be a square matrix, got shape (2,)"),
    (lambda: LCP(np.ones((2, 3)), ZERO), "LCP: M must be a square matrix, got shape (2, 3)"),
    (lambda: LCP(np.ones((3, 0)), []), "LCP: M must be a square matrix, got shape (3, 0)"),
    (lambda: LCP(1.0, [1.0]), "LCP: M must be a square matrix, got shape ()"),
    (lambda: LCP(EYE, [1.0]), "LCP: q must have shape (2,) to match M, got (1,)"),
    (lambda: LCP(EYE, [[1.0], [2.0]]), "LCP: q must have shape (2,) to match M, got (2, 1)"),
    (lambda: LCP(EYE, 1.0), "LCP: q must have shape (2,) to match M, got ()"),
    (lambda: LCP([[1.0, np.nan], [0.0, 1.0]], ZERO), "LCP: M must be finite, but M[0, 1] = nan"),
    (lambda: LCP(EYE, [0.0, -np.inf]), "LCP: q must be finite, but q[1] = -inf"),
    (lambda: LCP(EYE * 1j, ZERO), "LCP: M must hold real numbers, got dtype complex128"),
    (lambda: LCP(EYE, ["a", "b"]), "LCP: q must hold real numbers, got dtype <U1"),
    (lambda: LCP(EYE, None), "LCP: q must hold real numbers, got dtype object"),
    (lambda: LCP([[1.0, 2.0], [3.0]], ZERO), "LCP: M is not an array of numbers ("),
    (lambda: LCP(Sparse(), ZERO), "LCP: M is a sparse matrix; pass M.toarray()"),
    (lambda: BoxLCP(np.ones((1, 2)), [0.0]), "BoxLCP: H must be a square matrix, got shape (1, 2)"),
    (lambda: BoxLCP(EYE, [0.0]), "BoxLCP: q must have shape (2,) to match H, got (1,)"),
    (lambda: BoxLCP(EYE, ZERO, lo=[0.0]), "BoxLCP: lo must be a number or have shape (2,) to match H, got (1,)"),
    (lambda: BoxLCP(EYE, ZERO, hi=np.ones(3)), "BoxLCP: hi must be a number or have shape (2,) to match H, got (3,)"),
    (lambda: BoxLCP(EYE, ZERO, lo=[0.0, np.nan]), "BoxLCP: lo[1] = nan leaves no value for z[1]"),
    (lambda: BoxLCP(EYE, ZERO, lo=np.inf), "BoxLCP: lo[0] = inf leaves no value for z[0]"),
    (lambda: BoxLCP(EYE, ZERO, hi=[1.0, -np.inf]), "BoxLCP: hi[1] = -inf leaves no value for z[1]"),
    (
        lambda: BoxLCP(EYE, ZERO, [0.0, 2.0], [1.0, 1.0]),
        "BoxLCP: lo[1] = 2 exceeds hi[1] = 1; swap or widen the bounds",
    ),
    (lambda: mixed(A=np.ones((1, 2))), "from_mixed: A must be a square matrix, got shape (1, 2)"),
    (lambda: mixed(B=[1.0]), "from_mixed: B must be a square matrix, got shape (1,)"),
    (lambda: mixed(C=np.ones((2, 1))), "from_mixed: C must have shape (1, 2), got (2, 1)"),
    (lambda: mixed(D=np.ones((1, 2))), "from_mixed: D must have shape (2, 1), got (1, 2)"),
    (lambda: mixed(D=[[np.inf], [0.0]]), "from_mixed: D must be finite, but D[0, 0] = inf"),
    (lambda: mixed(a=[1.0, 2.0]), "from_mixed: a must have shape (1,) to match A, got (2,)"),
    (lambda: mixed(b=[1.0]), "from_mixed: b must have shape (2,) to match B, got (1,)"),
]


def mixed(A=((2.0,),), B=EYE, C=((1.0, 0.0),), D=((-1.0,), (3.0,)), a=(5.0,), b=(6.0, 7.0)):
    return BoxLCP.from_mixed(A, B, C, D, a, b)


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[message[:60] for _, message in REFUSED])
def test_refuses_with_a_message_that_names_the_field(build, message):
    with pytest.raises(InvalidProblem, match="^" + re.escape(message)):
        build()


def test_a_refusal_is_a_value_error():
    with pytest.raises(ValueError, match="square"):
        LCP([1.0], [1.0])


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float16, np.float32, np.longdouble])
def test_real_numbers_of_any_kind_become_float64(kind):
    problem = BoxLCP(np.eye(3, dtype=kind), np.ones(3, dtype=kind), np.zeros(3, dtype=kind), np.ones(3, dtype=kind))
    for value in (problem.H, problem.q, problem.lo, problem.hi):
        assert value.dtype == np.float64
        assert value.flags.c_contiguous


def test_lists_and_strided_arrays():
    M = np.arange(16.0).reshape(4, 4)[::2, ::2]
    assert np.array_equal(LCP(M.T, [1, 2]).M, [[0.0, 8.0], [2.0, 10.0]])


def test_bounds_may_be_numbers_and_default_to_an_lcp():
    problem = BoxLCP(EYE, ZERO)
    assert np.array_equal(problem.lo, [0.0, 0.0])
    assert np.array_equal(problem.hi, [np.inf, np.inf])
    assert np.array_equal(BoxLCP(EYE, ZERO, -1, 1).lo, [-1.0, -1.0])
    assert np.array_equal(BoxLCP(EYE, ZERO, 1, 1).hi, [1.0, 1.0])  # fixed variables are allowed


def problems():
    return [
        LCP([[2.0, 1.0], [1.0, 3.0]], [-1.0, 4.0]),
        BoxLCP([[2.0, 1.0], [0.0, 3.0]], [-1.0, 4.0], -np.inf, [1.0, 2.0]),
    ]


@pytest.mark.parametrize("problem", problems())
def test_arrays_are_read_only(problem):
    for name in ("H", "q", "lo", "hi", "vectors"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(problem, name)[...] = 0.0
        with pytest.raises(AttributeError):
            setattr(problem, name, None)


def test_later_changes_outside_do_not_reach_the_problem():
    H, q, lo, hi = np.eye(2), np.ones(2), np.zeros(2), np.full(2, 3.0)
    problem = BoxLCP(H, q, lo, hi)
    for value in (H, q, lo, hi):
        value[...] = np.nan
    assert np.array_equal(problem.H, np.eye(2))
    assert np.array_equal(problem.vectors, [[1.0, 1.0], [0.0, 0.0], [3.0, 3.0]])
    assert H.flags.writeable


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda problem: pickle.loads(pickle.dumps(problem))])
@pytest.mark.parametrize("problem", problems())
def test_copies_are_equal_and_read_only_too(problem, again):
    twin = again(problem)
    assert type(twin) is type(problem)
    assert np.array_equal(twin.H, problem.H)
    assert np.array_equal(twin.vectors, problem.vectors)
    for name in ("H", "q", "lo", "hi", "vectors"):
        assert not getattr(twin, name).flags.writeable


@pytest.mark.parametrize("nothing", [[], [[]], np.zeros((0, 0))])
def test_problems_without_variables(nothing):
    assert LCP(nothing, []).n == 0
    assert BoxLCP(nothing, [], [], []).n == 0
    assert LCP(nothing, []).symmetric
    assert LCP(nothing, []).smallest_diagonal == np.inf


def test_symmetry_is_exact():
    M = np.array([[1.0, 0.3], [0.3, 1.0]])
    assert LCP(M, ZERO).symmetric
    M[0, 1] = np.nextafter(0.3, 1.0)
    assert not LCP(M, ZERO).symmetric


def test_smallest_diagonal():
    assert LCP([[1.0, -9.0], [0.0, -2.0]], ZERO).smallest_diagonal == -2.0


def test_from_mixed_by_hand():
    # 2 x + y1 + 5 = 0;  y1 + (-x) + 6 >= 0;  y2 + 3 x + 7 >= 0: with x = -5/2, y = (0, 1/2), w = (17/2, 0).
    problem = mixed()
    assert np.array_equal(problem.H, [[2.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    assert np.array_equal(problem.q, [5.0, 6.0, 7.0])
    assert np.array_equal(problem.lo, [-np.inf, 0.0, 0.0])
    assert np.array_equal(problem.hi, [np.inf, np.inf, np.inf])
    assert np.array_equal(problem.H @ [-2.5, 0.0, 0.5] + problem.q, [0.0, 8.5, 0.0])


def test_from_mixed_without_free_or_without_bounded_variables():
    assert np.array_equal(BoxLCP.from_mixed([], EYE, [], [], [], ZERO).lo, [0.0, 0.0])
    assert np.array_equal(BoxLCP.from_mixed(EYE, [], [], [], ZERO, []).lo, [-np.inf, -np.inf])
    assert BoxLCP.from_mixed([], [], [], [], [], []).n == 0
    assert type(LCP.from_mixed(EYE, [], [], [], ZERO, [])) is BoxLCP


def test_representations():
    assert repr(LCP(EYE, ZERO)) == "LCP(n=2)"
    assert repr(mixed()) == "BoxLCP(n=3, free=1, boxed=0)"
    assert repr(BoxLCP(EYE, ZERO, 0.0, [1.0, np.inf])) == "BoxLCP(n=2, free=0, boxed=1)"
