"""Contact problems are checked once, in words that say what to change, and cannot change afterwards."""

import copy
import pickle
import re

import numpy as np
import pytest

from stiction.errors import InvalidProblem
from stiction.problems import load
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import BoxFriction, Coulomb, Frictionless, NoSlip, Viscous
from stiction.problems.zoo.contact_families import heap, painleve_forces, stack, stack_in_plane
from stiction.solvers import solve

DENSE = {
    "mass": np.eye(3),
    "velocity": [0.0, 0.0, -1.0],
    "normal": [[0.0, 0.0, 1.0]],
    "tangent": [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]],
    "friction": [0.5],
}
LINE = np.eye(6)
BODIES = {
    "mass": np.stack([np.eye(6)] * 2),
    "velocity": np.zeros((2, 6)),
    "bodies": [[0, 1]],
    "normal": [[-LINE[2], LINE[2]]],
    "tangent": [[[-LINE[0], LINE[0]], [-LINE[1], LINE[1]]]],
    "friction": [0.5],
}


def refused(text, make=ContactProblem, given=DENSE, **changes):
    with pytest.raises(InvalidProblem, match=re.escape(text)):
        make(**(given | changes))


def arrays(problem):
    return {name: value for name, value in vars(problem).items() if isinstance(value, np.ndarray)}


def same(a, b):
    assert arrays(a).keys() == arrays(b).keys()
    for name, value in arrays(a).items():
        assert getattr(b, name).tobytes() == value.tobytes(), name
        assert getattr(b, name).shape == value.shape, name
    assert (a.law, a.dim) == (b.law, b.dim)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("ContactProblem: mass must be a square matrix, got shape (2, 3)", {"mass": np.ones((2, 3))}),
        ("mass must be finite, but mass[0, 0] = nan", {"mass": np.diag([np.nan, 1.0, 1.0])}),
        ("mass must be symmetric, but mass[0, 1] - mass[1, 0] = 1", {"mass": np.eye(3) + np.eye(3, k=1)}),
        ("mass must be positive definite, but mass[1, 1] = 0", {"mass": np.diag([1.0, 0.0, 1.0])}),
        ("mass must be positive definite, but its smallest eigenvalue is -1", {"mass": 2.0 - np.eye(3)}),
        ("velocity must have shape (3,) to match mass, got (2,)", {"velocity": [0.0, 0.0]}),
        ("velocity must be finite, but velocity[2] = inf", {"velocity": [0.0, 0.0, np.inf]}),
        ("velocity must hold real numbers, got dtype", {"velocity": ["a", "b", "c"]}),
        ("normal must have shape (rows, 3) to match mass, got (1, 2)", {"normal": [[0.0, 1.0]]}),
        ("normal must have shape (rows, 3) to match mass, got (3,)", {"normal": [0.0, 0.0, 1.0]}),
        ("normal must be finite, but normal[0, 2] = nan", {"normal": [[0.0, 0.0, np.nan]]}),
        ("tangent must have shape (1, 2, 3), or 1 (in the plane), 3 (with torsion)", {"tangent": np.ones((2, 3))}),
        ("or 5 (and rolling) rows a contact, got (1, 4, 3)", {"tangent": np.ones((1, 4, 3))}),
        ("tangent must be finite, but tangent[0, 0, 0] = nan", {"tangent": [[[np.nan, 0, 0], [0, 1, 0]]]}),
        ("friction must have shape (1,) to match normal, got (2,)", {"friction": [0.5, 0.5]}),
        ("friction must not be negative, but friction[0] = -0.1", {"friction": [-0.1]}),
        ("friction must be finite, but friction[0] = nan", {"friction": [np.nan]}),
        ("friction must be finite, but friction[0] = inf", {"friction": np.inf}),
        ("gap_rate must have shape (1,) to match normal, got (2,)", {"gap_rate": [0.0, 0.0]}),
        ("gap_rate must be finite, but gap_rate[0] = nan", {"gap_rate": [np.nan]}),
        ("joints must have shape (rows, 3) to match mass, got (1, 4)", {"joints": np.ones((1, 4))}),
        ("joint_rate must have shape (1,) to match joints, got (2,)", {"joints": [[1.0, 0, 0]], "joint_rate": [0, 0]}),
        ("joint_rate must have shape (0,) to match joints, got (1,)", {"joint_rate": [0.0]}),
        ("viscosity must not be negative, but viscosity[0] = -1", {"viscosity": [-1.0]}),
        ("slip must have shape (1, 2), got (2,)", {"slip": [1.0, 0.0]}),
        ("slip[0] = [0.0, 0.0] is no direction; give a finite vector, or two NaN", {"slip": [[0.0, 0.0]]}),
        ("slip[0] = [nan, 1.0] is no direction", {"slip": [[np.nan, 1.0]]}),
        ("slip[0] = [inf, 1.0] is no direction", {"slip": [[np.inf, 1.0]]}),
        ("law must be a law such as Coulomb(), got 'Coulomb'", {"law": "Coulomb"}),
        ("law must be a law such as Coulomb(), got <class", {"law": Coulomb}),
        ("the law Viscous needs viscosity, one number a contact, in N s / (m/s)", {"law": Viscous()}),
    ],
)
def test_what_is_wrong_is_named(text, changes):
    refused(text, **changes)


# A cart that may tilt, beside a slider: three contacts, one of them with the world, one between the two.
TREES = {
    "masses": [np.diag([2.0, 2.0, 0.5]), [[3.0]]],
    "velocity": [0.0, -1.0, 0.2, 0.5],
    "trees": [[0, -1], [-1, 1], [1, 0]],
    "normal": [[0.0, 1.0, 0.3, 9.0], [1.0, 0.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.2]],
    "tangent": [[[1.0, 0.0, 0.1, 9.0]], [[0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 1.0, 0.1]]],
    "friction": 0.5,
}


def test_trees_say_the_same_as_one_matrix():
    problem = ContactProblem.from_trees(**TREES, gap_rate=[0.0, 0.1, 0.2], joints=[[1.0, 0.0, 0.0, -1.0]])
    assert (problem.n, problem.m, problem.trees.tolist()) == (3, 4, [0, 3, 4])
    assert repr(problem) == "ContactProblem(n=3, m=4, joints=1, trees, law=Coulomb(facets=None, rotation=0.0))"
    normal = [[0.0, 1.0, 0.3, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.2, -1.0]]
    tangent = [[[1.0, 0.0, 0.1, 0.0]], [[0.0, 0.0, 0.0, 0.0]], [[0.0, 1.0, 0.1, 0.0]]]
    np.testing.assert_array_equal(problem.normal, normal)
    np.testing.assert_array_equal(problem.tangent, tangent)
    dense = ContactProblem(
        np.diag([2.0, 2.0, 0.5, 3.0]), problem.velocity, normal, tangent, 0.5,
        gap_rate=problem.gap_rate, joints=problem.joints,
    )  # fmt: skip
    for each in (problem, dense):
        np.testing.assert_array_equal(np.concatenate([block.ravel() for block in each.mass_blocks]), each.mass.ravel())
    ours, theirs = solve(problem), solve(dense)
    np.testing.assert_allclose(ours.velocity, theirs.velocity, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.impulse, theirs.impulse, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("mass must be symmetric, but mass[0, 1] - mass[1, 0] = 1 (tree 1)", {"masses": [np.eye(3), [[1, 1], [0, 1]]]}),
        ("velocity must have shape (4,) to match masses, got (3,)", {"velocity": [1.0, 2.0, 3.0]}),
        ("trees[1] = [2, -1], but there are 2 trees (-1 is the world)", {"trees": [[0, -1], [2, -1], [0, 1]]}),
        ("trees[0] = [1, 1] touches itself", {"trees": [[1, 1], [0, 1], [0, 1]]}),
        ("normal must have shape (3, 4), got (3, 2)", {"normal": np.ones((3, 2))}),
        ("tangent must have shape (3, 2, 4), or 1 (in the plane)", {"tangent": np.ones((3, 4, 4))}),
    ],
)
def test_what_is_wrong_with_trees_is_named(text, changes):
    with pytest.raises(InvalidProblem) as caught:
        ContactProblem.from_trees(**TREES | changes)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("mass must have shape (bodies, 6, 6), got (12, 12)", {"mass": np.eye(12)}),
        ("mass must be finite, but mass[0, 0, 0] = nan", {"mass": np.full((2, 6, 6), np.nan)}),
        ("mass[0, 1] - mass[1, 0] = 1 (body 0)", {"mass": np.stack([np.eye(6) + np.eye(6, k=1)] * 2)}),
        ("but mass[0, 0] = 0 (body 1)", {"mass": np.stack([np.eye(6), np.zeros((6, 6))])}),
        ("smallest eigenvalue is -1 (body 0)", {"mass": np.stack([2.0 - np.eye(6), np.eye(6)])}),
        ("velocity must have shape (2, 6) to match mass, got (5,)", {"velocity": np.zeros(5)}),
        ("velocity must be finite, but velocity[0, 0] = nan", {"velocity": np.full((2, 6), np.nan)}),
        ("bodies must be whole numbers of shape (n, 2), got int64 (2,)", {"bodies": [0, 1]}),
        ("bodies must be whole numbers of shape (n, 2), got float64 (1, 2)", {"bodies": [[0.0, 1.0]]}),
        ("bodies is not an array of whole numbers", {"bodies": [[0, 1], [0]]}),
        ("bodies[0] = [0, 2], but there are 2 bodies (-1 is the world)", {"bodies": [[0, 2]]}),
        ("bodies[0] = [-2, 1], but there are 2 bodies (-1 is the world)", {"bodies": [[-2, 1]]}),
        ("bodies[0] = [1, 1] touches itself", {"bodies": [[1, 1]]}),
        ("bodies[0] = [-1, -1] touches itself", {"bodies": [[-1, -1]]}),
        ("normal must have shape (1, 2, 6), got (1, 12)", {"normal": np.zeros((1, 12))}),
        ("tangent must have shape (1, 2, 2, 6), or 1 (in the plane)", {"tangent": np.zeros((2, 6))}),
        (
            "normal[0] and tangent[0, 1] must be at right angles, but at body 0 their cosine is 1",
            {"tangent": [[[-LINE[0], LINE[0]], [-LINE[2], LINE[2]]]]},
        ),
        (
            "tangent[0, 0] and tangent[0, 1] must be at right angles, but at body 1 their cosine is 0.707107",
            {"tangent": [[[-LINE[0], LINE[0]], [-LINE[1], LINE[0] + LINE[1]]]]},
        ),
    ],
)
def test_what_is_wrong_with_bodies_is_named(text, changes):
    refused(text, ContactProblem.from_bodies, BODIES, **changes)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("from_delassus: dim must be 2 or 3, or 6 with torsion and rolling, got 4", {"dim": 4}),
        ("from_delassus: W must be a square matrix, got shape (3, 2)", {"W": np.ones((3, 2))}),
        ("from_delassus: the size of W, 4, must be a multiple of dim = 3", {"W": np.eye(4)}),
        ("from_delassus: q must have shape (3,) to match W, got (2,)", {"q": [0.0, 0.0]}),
        ("friction must have shape (1,) to match normal, got (2,)", {"friction": [0.5, 0.5]}),
        ("W must be symmetric, but W[0, 1] - W[1, 0] = 1", {"W": np.eye(3) + np.eye(3, k=1)}),
        ("W must be positive semidefinite, but W[2, 2] = -1", {"W": np.diag([1.0, 1.0, -1.0])}),
    ],
)
def test_what_is_wrong_with_a_delassus_operator_is_named(text, changes):
    refused(text, ContactProblem.from_delassus, {"W": np.eye(3), "q": np.zeros(3), "friction": 0.5}, **changes)


def test_an_indefinite_delassus_operator_is_refused_by_its_normal_form():
    problem = ContactProblem.from_delassus(np.ones((3, 3)) - 0.5 * np.eye(3), np.zeros(3), 0.5)
    with pytest.raises(InvalidProblem, match=r"W must be positive semidefinite, but has an eigenvalue of -0.2 max"):
        problem.whitened  # noqa: B018


def test_numbers_of_a_printed_file_pass():
    W = np.eye(3) + 1e-5 * np.eye(3, k=1)
    assert ContactProblem.from_delassus(W, np.zeros(3), 0.5).delassus[0, 1] == 1e-5


def test_a_nearly_symmetric_mass_is_made_symmetric():
    mass = np.eye(3) + 1e-12 * np.eye(3, k=1)
    problem = ContactProblem(**(DENSE | {"mass": mass}))
    assert np.array_equal(problem.mass, problem.mass.T)


def test_arrays_are_private_and_read_only():
    given = {name: np.array(value, float) for name, value in DENSE.items()}
    problem = ContactProblem(**given, gap_rate=[0.1], joints=[[1.0, 0, 0]], viscosity=[1.0], slip=[[3.0, 4.0]])
    for value in given.values():
        value[:] = 7.0
    assert problem.friction[0] == 0.5
    assert problem.normal[0, 2] == 1.0
    assert problem.slip.tolist() == [[0.6, 0.8]]
    kept = arrays(problem)
    assert {"mass", "velocity", "rows", "segments", "friction", "gap_rate", "joints", "slip"} <= kept.keys()
    for name, value in kept.items():
        assert not value.flags.writeable, name
    with pytest.raises(AttributeError):
        problem.friction = np.ones(1)


def test_sizes_and_rows_are_told():
    problem = ContactProblem(**DENSE)
    assert (problem.n, problem.m, problem.dim) == (1, 3, 3)
    assert problem.normal.tolist() == [[0.0, 0.0, 1.0]]
    assert problem.tangent.tolist() == [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    assert repr(problem) == f"ContactProblem(n=1, m=3, joints=0, dense, law={Coulomb()})"
    assert "bodies" in repr(ContactProblem.from_bodies(**BODIES))
    assert "delassus" in repr(ContactProblem.from_delassus(np.eye(3), np.zeros(3), 0.5))


def test_one_number_of_friction_stands_for_all():
    assert stack(2, 0).friction.shape == (8,)
    assert ContactProblem(**(DENSE | {"friction": 0.3})).friction.tolist() == [0.3]


@pytest.mark.parametrize("tangent", [[[1.0, 0.0, 0.0]], [[[1.0, 0.0, 0.0]]]])
def test_one_tangent_makes_a_plane_problem(tangent):
    problem = ContactProblem(**(DENSE | {"tangent": tangent}))
    assert problem.dim == 2
    assert problem.tangent.shape == (1, 1, 3)
    assert not problem.rows[:, 2].any()


def test_rows_of_the_world_are_ignored_wherever_it_stands():
    first = ContactProblem.from_bodies(**(BODIES | {"bodies": [[-1, 1]]}))
    second = ContactProblem.from_bodies(
        **(BODIES | {"bodies": [[1, -1]], "normal": [[LINE[2], LINE[2]]], "tangent": [[[LINE[0]] * 2, [LINE[1]] * 2]]})
    )
    assert np.array_equal(first.dense_rows(), second.dense_rows())
    assert first.segments.tolist() == second.segments.tolist() == [[6, 6, 0, 0]]
    assert not first.dense_rows()[0, :, :6].any()


def test_no_contacts_and_no_bodies():
    dense = ContactProblem(np.eye(2), [1.0, 2.0], [], [], [])
    assert (dense.n, dense.m, dense.dense_rows().shape) == (0, 2, (0, 3, 2))
    bodies = ContactProblem.from_bodies([], [], [], [], [], [])
    assert (bodies.n, bodies.m) == (0, 0)
    some = ContactProblem.from_bodies(BODIES["mass"], BODIES["velocity"], [], [], [], [])
    assert (some.n, some.m) == (0, 12)
    assert ContactProblem.from_delassus([], [], [], 2).n == 0
    nothing = ContactProblem(np.zeros((0, 0)), [], [], [], [])
    assert nothing.m == 0
    for problem in (dense, bodies, some, nothing, ContactProblem.from_delassus([], [], [], 2)):
        assert problem.whitened.rows.shape[0] == 0


def test_another_law_keeps_the_normal_form():
    problem = stack(2, 0)
    white = problem.whitened
    assert problem.with_law(NoSlip()).whitened is white


def test_with_law_keeps_everything_else():
    problem = heap(2, 0)
    for law in (
        Frictionless(),
        NoSlip(),
        Viscous(),
        Viscous(implicit=True),
        Coulomb(facets=8),
        BoxFriction(scaled=True),
    ):
        other = problem.with_law(law)
        assert other.law == law
        same(other.with_law(Coulomb()), problem)
    with pytest.raises(InvalidProblem, match=r"law must be a law such as Coulomb\(\), got None"):
        problem.with_law(None)
    with pytest.raises(InvalidProblem, match="the law Viscous needs viscosity"):
        ContactProblem(**DENSE).with_law(Viscous())


@pytest.mark.parametrize("make", [lambda: stack(2, 1), lambda: stack_in_plane(2, 1), lambda: painleve_forces(0.8, 1.0)])
def test_copies_equal_the_original_and_are_read_only_too(make):
    problem = make().with_law(Coulomb(facets=5, rotation=0.1))
    problem.whitened  # noqa: B018
    for again in (pickle.loads(pickle.dumps(problem)), copy.copy(problem), copy.deepcopy(problem)):
        assert "whitened" not in vars(again)
        for value in arrays(again).values():
            assert not value.flags.writeable
        same(again, problem)


EVERY_FORM = {
    "dense": lambda: ContactProblem(**DENSE, gap_rate=[0.1], joints=[[1.0, 0, 0]], joint_rate=[0.2], viscosity=[1.0]),
    "slip": lambda: painleve_forces(0.8, 1.0),
    "plane": lambda: stack_in_plane(3, 2),
    "bodies": lambda: heap(4, 2),
    "trees": lambda: ContactProblem.from_trees(**TREES),
    "delassus": lambda: ContactProblem.from_delassus([[1.0, 0.2], [0.2, 1.0]], [-1.0, -0.0], 0.1, 2),
    "nothing": lambda: ContactProblem(np.eye(2), [1.0, 2.0], [], [], []),
    "no bodies": lambda: ContactProblem.from_bodies([], [], [], [], [], []),
    "no delassus": lambda: ContactProblem.from_delassus([], [], [], 2),
}
EVERY_LAW = [
    Coulomb(), Coulomb(facets=7, rotation=0.1), Frictionless(), NoSlip(), BoxFriction(), BoxFriction(scaled=True),
]  # fmt: skip


@pytest.mark.parametrize("form", EVERY_FORM)
def test_round_trip_is_exact_in_every_form(form, tmp_path):
    problem = EVERY_FORM[form]()
    problem.save(tmp_path / "p.npz")
    same(load(tmp_path / "p.npz"), problem)
    assert [path.name for path in tmp_path.iterdir()] == ["p.npz"]


@pytest.mark.parametrize("law", [*EVERY_LAW, Viscous(), Viscous(implicit=True), Coulomb(facets=np.int64(4))], ids=str)
def test_round_trip_keeps_the_law(law, tmp_path):
    problem = stack(1, 0).with_law(law)
    problem.save(tmp_path / "p.npz")
    assert load(tmp_path / "p.npz").law == law


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"form": "sparse"}, "holds a contact problem of form 'sparse', expected dense or bodies or trees or delassus"),
        ({"form": None}, "of form None"),
        ({"mass": None}, "lacks the field 'mass'"),
        ({"law": None}, "lacks the field 'law'"),
        ({"law": "{"}, "field 'law' is '{', which names no law; save it anew"),
        ({"law": '{"name": "Glue"}'}, "which names no law"),
        ({"law": '{"name": "Coulomb", "colour": 1}'}, "which names no law"),
        ({"law": "[1]"}, "which names no law"),
        ({"law": '{"name": "Coulomb", "facets": 2}'}, "Coulomb: facets must be a whole number of at least 3, got 2"),
        ({"friction": np.array([-1.0] * 4)}, "friction must not be negative, but friction[0] = -1"),
        ({"velocity": np.zeros(5)}, "velocity must have shape (1, 6) to match mass, got (5,)"),
        ({"gap_rate": np.array([None] * 4)}, "field 'gap_rate' cannot be read"),
        (
            {"form": "delassus", "W": np.eye(3), "q": np.zeros(3), "friction": np.ones(1), "dim": 1.5},
            "dim must be 2 or 3",
        ),
    ],
)
def test_broken_files_are_refused(changes, text, tmp_path):
    path = tmp_path / "p.npz"
    stack(1, 0).save(path)
    with np.load(path) as data:
        fields = {name: data[name] for name in data.files} | changes
    np.savez(path, **{name: value for name, value in fields.items() if value is not None})
    with pytest.raises(InvalidProblem) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert text in str(caught.value)


def test_replace_keeps_what_still_holds():
    problem = stack(2, 0)
    white, labels = problem.whitened, problem.labels
    other = problem.replace(law=NoSlip(), slip=None)
    assert other.whitened is white
    assert other.labels is labels
    rough = problem.replace(friction=2.0)
    assert rough.friction.tolist() == [2.0] * problem.n
    assert rough.whitened.rows is white.rows
    assert rough.whitened.friction is rough.friction
    for changes in ({"velocity": 2.0 * problem.velocity}, {"gap_rate": np.ones(problem.n)}):
        changed = problem.replace(**changes)
        assert changed.whitened is not white
        assert changed.labels is labels
        (name,) = changes
        np.testing.assert_array_equal(getattr(changed.posed, name), changes[name])
    assert problem.whitened is white


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": np.eye(12)}, "replace: mass is none of law, friction, velocity"),
        ({"friction": -1.0}, r"friction must not be negative, but friction\[0\] = -1"),
        ({"velocity": np.zeros(3)}, "velocity must have"),
        ({"law": Viscous(), "viscosity": None}, "the law Viscous needs viscosity"),
        ({"law": "cone"}, "law must be a law such as Coulomb"),
        ({"slip": np.zeros((1, 2))}, "slip must have shape"),
        ({"gap_rate": np.full(8, np.nan)}, "gap_rate"),
    ],
)
def test_replace_checks_what_it_is_given(changes, message):
    with pytest.raises(InvalidProblem, match=message):
        stack(2, 0).replace(**changes)
