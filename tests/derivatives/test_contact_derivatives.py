"""Derivatives of contact solutions: against differences, by hand, in fifty digits, and where there are none."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

import stiction as st
from derivatives.away import STEPS, is_away
from stiction.derivatives.modes import EDGE, OPEN, STICK
from stiction.problems import CONTACT_FAMILIES

LAWS = {
    "cone": st.Coulomb(),
    "pyramid": st.Coulomb(facets=8),
    "odd pyramid": st.Coulomb(facets=5, rotation=0.3),
    "box": st.BoxFriction(),
    "no slip": st.NoSlip(),
    "viscous": st.Viscous(),
    "implicit": st.Viscous(implicit=True),
    "frictionless": st.Frictionless(),
}


def point(free, mu=0.5, law=st.Coulomb(), **more):  # noqa: B008
    """A point of 1 kg on a table: velocities x, y, z."""
    eye = np.eye(3)
    return st.ContactProblem(eye, free, eye[2:], eye[None, :2], [mu], law=law, **more)


def box_on_table(free, mu=0.5, law=st.Coulomb(), corners=((1, 1), (-1, 1), (-1, -1), (1, -1))):  # noqa: B008
    """A cube of 1 kg and 1 m edges on four corners."""
    mass = np.diag([1.0, 1.0, 1.0, 1 / 6, 1 / 6, 1 / 6])[None]
    spots = [np.array([0.5 * x, 0.5 * y, -0.5]) for x, y in corners]
    eye = np.eye(3)

    def row(direction, spot):
        return [np.zeros(6), np.concatenate([direction, np.cross(spot, direction)])]

    normal = [row(eye[2], spot) for spot in spots]
    tangent = [[row(eye[0], spot), row(eye[1], spot)] for spot in spots]
    return st.ContactProblem.from_bodies(
        mass, [free], [(-1, 0)] * len(spots), normal, tangent, np.full(len(spots), mu), law=law
    )


def direction_of(problem, kind, rng):
    """A random direction in which redundant contacts can stay closed, and the problem moved along it."""
    size = np.abs(problem.velocity).max()
    if kind == "free":
        way = size * rng.normal(size=problem.m)
        return {"free": way}, lambda t: problem.replace(velocity=problem.velocity + t * way)
    if kind == "friction":
        way = problem.friction * rng.uniform(0.5, 1.0)
        return {"friction": way}, lambda t: problem.replace(friction=problem.friction + t * way)
    if kind == "gap_rate":
        way = -problem.normal @ (size * rng.normal(size=problem.m))
        return {"gap_rate": way}, lambda t: problem.replace(gap_rate=problem.gap_rate + t * way)
    if kind == "joint_rate":
        way = problem.joints @ (size * rng.normal(size=problem.m))
        return {"joint_rate": way}, lambda t: problem.replace(joint_rate=problem.joint_rate + t * way)
    assert kind == "mass"
    half = rng.normal(size=problem.mass.shape)
    way = 0.1 * np.abs(problem.mass).max(axis=(-1, -2), keepdims=True) * (half + half.swapaxes(-1, -2))
    way = np.where(problem.mass != 0.0, way, 0.0) * np.where(problem.mass > 0.0, problem.mass, 0.0)
    way /= np.abs(problem.mass).max(axis=(-1, -2), keepdims=True)
    return {"mass": way}, lambda t: with_mass(problem, problem.mass + t * way)


def with_mass(problem, mass):
    fields = {name: getattr(problem, name) for name in problem.__dataclass_fields__}
    return st.ContactProblem.from_checked(**(fields | {"mass": mass}))


def difference_error(problem, solution, derivative, moved, size):
    """The least relative error of central differences over a few step lengths."""
    best = np.inf
    start = solution if solution.solver.contract.warm else None
    for eps in STEPS:
        ahead = st.solve(moved(eps), start=start, throw=False)
        back = st.solve(moved(-eps), start=start, throw=False)
        if not (ahead.ok and back.ok):
            continue
        found = (ahead.velocity - back.velocity) / (2.0 * eps)
        best = min(best, np.abs(found - derivative).max() / max(size, np.abs(found).max()))
        if best <= 1e-6:
            break
    return best


def families_agree(name, law, seeds):
    """Relative errors of the directions compared; problems near kinks, and those without a derivative, are left out."""
    rng, errors = np.random.default_rng(1), []
    for seed in seeds:
        problem = CONTACT_FAMILIES[name](seed)
        if law.viscous and problem.viscosity is None:
            continue
        problem = problem.with_law(law)
        solution = st.solve(problem, throw=False)
        if not solution.ok or problem.mass is None:
            continue
        found = st.differentiate(solution)
        if not (found.smooth and is_away(found)):
            continue
        assert found.residual <= 1e-9
        kinds = ["free", "friction", "gap_rate"]
        kinds += ["joint_rate"] if len(problem.joints) else []
        kinds += ["mass"] if problem.mass.ndim in (2, 3) else []
        for kind in kinds:
            way, moved = direction_of(problem, kind, rng)
            try:
                response = found.jvp(way)
            except st.NotDifferentiable as error:
                # Redundant contacts: their rates cannot change alone, nor their friction where they slide.
                assert kind in ("friction", "gap_rate", "joint_rate")
                assert "share" in str(error)
                continue
            size = max(np.abs(problem.velocity).max(), np.abs(response.velocity).max())
            error = difference_error(problem, solution, response.velocity, moved, size)
            assert error <= 1e-6, (name, law, seed, kind, error)
            errors.append(error)
    return errors


BADLY_CONDITIONED = {"stack-mass-1e6", "stack-lengths", "nearly-duplicated"}  # rounding outweighs the differences


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_against_differences(law):
    names = ("single-corner", "stack-3", "grasp", "peg-8", "incline", "heap-3", "arch", "chain", "motor", "plane-stack")
    names += ("plane-ladder", "plane-arm", "cannonballs")
    known = [name for name in names if name in CONTACT_FAMILIES]
    assert sum(len(families_agree(name, LAWS[law], range(3))) for name in known) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CONTACT_FAMILIES) - BADLY_CONDITIONED - {"heap-delassus"}))
def test_every_family_against_differences(name):
    assert sum(len(families_agree(name, law, range(6))) for law in LAWS.values()) > 0


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("name", ["stack-3", "heap-3", "chain", "motor", "plane-stack", "peg-8", "plane-arm"])
def test_vjp_is_the_transpose_of_jvp(name, law):
    rng = np.random.default_rng(0)
    problem = CONTACT_FAMILIES[name](1).with_law(LAWS[law])
    found = st.differentiate(st.solve(problem), strict=False)
    n, m, j = problem.n, problem.m, len(problem.joints)
    half = rng.normal(size=problem.mass.shape)
    way = {
        "free": rng.normal(size=m), "friction": rng.normal(size=n), "gap_rate": rng.normal(size=n),
        "joint_rate": rng.normal(size=j), "viscosity": rng.normal(size=n), "mass": half + half.swapaxes(-1, -2),
        "rows": rng.normal(size=problem.rows.shape), "joints": rng.normal(size=(j, m)),
    }  # fmt: skip
    weights = {
        "velocity": rng.normal(size=m), "impulse": rng.normal(size=(n, 3)), "joint_impulse": rng.normal(size=j),
        "contact_velocity": rng.normal(size=(n, 3)),
    }  # fmt: skip
    response, gradient = found.jvp(way), found.vjp(weights)
    forward = sum(float((weights[name] * getattr(response, name)).sum()) for name in weights)
    terms = [float((way[name] * getattr(gradient, name)).sum()) for name in way if getattr(gradient, name) is not None]
    if not LAWS[law].viscous:
        assert gradient.viscosity is None
    assert forward == pytest.approx(sum(terms), rel=1e-8, abs=1e-8 * max(np.abs(terms)))


@pytest.mark.parametrize("law", ["cone", "pyramid", "viscous"])
def test_rows_and_joint_rows_against_differences(law):
    """A dense arm with a joint row: nothing is redundant, so that all entries may change alone."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=(5, 5))
    fields = {
        "mass": half @ half.T + 5.0 * np.eye(5), "velocity": rng.normal(size=5), "normal": rng.normal(size=(1, 5)),
        "tangent": rng.normal(size=(1, 2, 5)), "friction": [0.4], "joints": rng.normal(size=(1, 5)),
        "joint_rate": [0.2], "viscosity": [0.7],
    }  # fmt: skip
    fields["gap_rate"] = -fields["normal"] @ fields["velocity"] - 1.0
    problem = st.ContactProblem(**fields, law=LAWS[law])
    found = st.differentiate(st.solve(problem))
    rows, joints = rng.normal(size=(1, 3, 5)), rng.normal(size=(1, 5))
    response = found.jvp({"rows": rows, "joints": joints})

    def moved(t):
        change = {
            "normal": fields["normal"] + t * rows[:, 0], "tangent": fields["tangent"] + t * rows[:, 1:],
            "joints": fields["joints"] + t * joints,
        }  # fmt: skip
        return st.solve(st.ContactProblem(**(fields | change), law=LAWS[law]))

    ahead, back = moved(1e-5), moved(-1e-5)
    for name in ("velocity", "impulse", "joint_impulse", "contact_velocity"):
        difference = (getattr(ahead, name) - getattr(back, name)) / 2e-5
        assert getattr(response, name) == pytest.approx(difference, abs=1e-7)
    assert st.Mode(int(ahead.mode[0])) != st.Mode.OPEN


# In fifty digits


def solved_in_digits(problem, modes, start):
    """Newton's method on the equations of known modes, in fifty digits; velocities and impulses, in one list."""
    D = Decimal
    m, n = problem.m, problem.n
    mass = [[D(float(x)) for x in row] for row in problem.mass]
    rows = [[[D(float(x)) for x in row] for row in three] for three in problem.dense_rows()]
    free, mu, gap = problem.exact_free, problem.exact_friction, problem.exact_gap

    def equations(x):
        v, p = x[:m], [x[m + 3 * i : m + 3 * i + 3] for i in range(n)]
        out = [
            sum(mass[a][b] * (v[b] - free[b]) for b in range(m))
            - sum(rows[i][c][a] * p[i][c] for i in range(n) for c in range(3))
            for a in range(m)
        ]
        for i in range(n):
            u = [sum(rows[i][c][a] * v[a] for a in range(m)) for c in range(3)]
            u[0] += gap[i]
            if modes[i] == OPEN:
                out += p[i]
            elif modes[i] == STICK:
                out += u
            else:
                speed = (u[1] * u[1] + u[2] * u[2]).sqrt()
                out += [u[0], *(p[i][c] + mu[i] * p[i][0] * u[c] / speed for c in (1, 2))]
        return out

    x = [D(float(value)) for value in start]
    for _ in range(6):
        value = equations(x)
        step = D(10) ** -25
        columns = []
        for k in range(len(x)):
            other = x.copy()
            other[k] += step
            columns.append([(a - b) / step for a, b in zip(equations(other), value, strict=True)])
        x = [a - b for a, b in zip(x, eliminated(columns, value), strict=True)]
    return x


def eliminated(columns, value):
    """Gauss with pivoting: the matrix of these columns, divided into a vector."""
    n = len(value)
    A = [[columns[j][i] for j in range(n)] + [value[i]] for i in range(n)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(A[i][k]))
        A[k], A[pivot] = A[pivot], A[k]
        for i in range(n):
            if i != k and A[i][k] != 0:
                factor = A[i][k] / A[k][k]
                A[i] = [a - factor * b for a, b in zip(A[i], A[k], strict=True)]
    return [A[i][n] / A[i][i] for i in range(n)]


class Exact:
    """A problem whose free velocities, friction and rates are decimals."""

    def __init__(self, problem, way=None, t=Decimal(0)):
        self.mass, self.m, self.n, self.dense_rows = problem.mass, problem.m, problem.n, problem.dense_rows
        way = way or {}

        def moved(values, name):
            change = way.get(name, np.zeros(len(values)))
            return [Decimal(float(a)) + t * Decimal(float(b)) for a, b in zip(values, change, strict=True)]

        self.exact_free = moved(problem.velocity, "free")
        self.exact_friction = moved(problem.friction, "friction")
        self.exact_gap = moved(problem.gap_rate, "gap_rate")


def test_fifty_digits():
    """Two contacts of a body with six velocities, sliding, sticking or open: the derivative to thirteen digits."""
    getcontext().prec = 50
    compared, kinds = 0, set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        half = rng.normal(size=(6, 6))
        problem = st.ContactProblem(
            half @ half.T + 6.0 * np.eye(6), rng.normal(size=6), rng.normal(size=(2, 6)), rng.normal(size=(2, 2, 6)),
            rng.uniform(0.1, 0.4, 2), gap_rate=rng.normal(size=2) - 2.0,
        )  # fmt: skip
        solution = st.solve(problem, throw=False)
        if not solution.ok:
            continue
        found = st.differentiate(solution)
        if not found.smooth:
            continue
        modes = found.modes.mode
        kinds |= set(modes.tolist())
        start = np.concatenate([solution.velocity, solution.impulse.ravel()])
        way = {"free": rng.normal(size=6), "friction": rng.normal(size=2), "gap_rate": rng.normal(size=2)}
        response = found.jvp(way)
        eps = Decimal(10) ** -16
        ahead = solved_in_digits(Exact(problem, way, eps), modes, start)
        back = solved_in_digits(Exact(problem, way, -eps), modes, start)
        exact = np.array([float((a - b) / (2 * eps)) for a, b in zip(ahead, back, strict=True)])
        ours = np.concatenate([response.velocity, response.impulse.ravel()])
        assert ours == pytest.approx(exact, rel=1e-9, abs=1e-9 * np.abs(exact).max())
        compared += 1
    assert compared >= 20
    assert kinds >= {EDGE, STICK}


# By hand


def test_a_sliding_point():
    """v = (a - mu g) t: each unit of friction takes a unit of normal impulse, and turns with the direction."""
    found = st.differentiate(st.solve(point([3.0, 4.0, -2.0], mu=0.5)))
    t = np.array([0.6, 0.8])
    assert found.smooth
    assert found.by_friction[:, 0] == pytest.approx([*(-2.0 * t), 0.0], abs=1e-12)
    # |v_t| = 5 - 1: across the sliding, a change of the free velocity is shortened by 4/5.
    across = np.eye(2) - np.outer(t, t)
    assert found.by_free[:2, :2] == pytest.approx(np.outer(t, t) + 0.8 * across, abs=1e-12)
    assert found.by_free[:2, 2] == pytest.approx(0.5 * t, abs=1e-12)
    assert found.by_gap_rate[:, 0] == pytest.approx([*(0.5 * t), -1.0], abs=1e-12)
    assert found.margin[0] == pytest.approx(2.0)  # W p_n = 2 m/s; it slides at 4


def test_four_contacts_under_a_box():
    """Motions differentiate, forces need not; one corner's rate cannot change alone, all together can."""
    found = st.differentiate(st.solve(box_on_table([0.0, 0.0, -1.0, 0.0, 0.0, 0.0])))
    assert found.smooth
    assert found.by_free == pytest.approx(np.zeros((6, 6)), abs=1e-12)
    assert not found.determined.any()
    assert not found.independent.any()
    lifted = found.jvp({"gap_rate": np.ones(4)})
    assert lifted.velocity == pytest.approx([0.0, 0.0, -1.0, 0.0, 0.0, 0.0], abs=1e-12)
    with pytest.raises(st.NotDifferentiable, match="cannot all stay closed"):
        found.jvp({"gap_rate": [1.0, 0.0, 0.0, 0.0]})
    heavier = found.jvp({"free": [0.0, 0.0, -1.0, 0.0, 0.0, 0.0]})
    assert heavier.impulse[:, 0] == pytest.approx(np.full(4, 0.25), abs=1e-12)  # the smallest change shares alike


def test_a_box_that_slides():
    found = st.differentiate(st.solve(box_on_table([5.0, 0.0, -1.0, 0.0, 0.0, 0.0], mu=0.2)))
    assert found.smooth
    assert found.jvp({"friction": np.ones(4)}).velocity[0] == pytest.approx(-1.0)
    with pytest.raises(st.NotDifferentiable, match="share their load"):
        found.jvp({"friction": [1.0, 0.0, 0.0, 0.0], "free": np.zeros(6)})


def test_a_box_that_slides_and_turns_has_no_determined_motion():
    """How four corners share the load decides how it turns: a certified answer is one of many."""
    solution = st.solve(box_on_table([5.0, 0.0, -1.0, 0.0, 0.0, 4.0], mu=0.2))
    found = st.differentiate(solution)
    assert not found.smooth
    with pytest.raises(st.NotDifferentiable, match="motion is not determined"):
        _ = found.by_free
    three = st.differentiate(
        st.solve(box_on_table([5.0, 0.0, -1.0, 0.0, 0.0, 4.0], 0.2, corners=((1, 1), (-1, 0), (1, -1))))
    )
    assert three.smooth


def test_a_vertex_of_impulses_is_no_kink():
    """A pivoting solver may leave a corner without load; another way of sharing has a margin everywhere."""
    solution = st.solve(box_on_table([0.0, 0.0, -1.0, 0.0, 0.0, 0.0], law=st.Frictionless()))
    impulse = np.zeros((4, 3))
    impulse[[0, 2], 0] = 0.5
    lopsided = solution._replace(impulse=impulse)
    assert st.certify(lopsided.problem, lopsided).residual <= 1e-12
    found = st.differentiate(lopsided)
    assert found.smooth
    assert found.margin.min() > 0.1


@pytest.mark.parametrize("name", ["peg-frictionless", "peg-mixed"])
def test_contacts_without_friction_share_a_load_too(name):
    """Projections do not find a margin for each; the linear program does, and must not ask for friction there."""
    found = st.differentiate(st.solve(CONTACT_FAMILIES[name](0)))
    assert not found.kinks


def test_delassus_form():
    """The same problem by mass and by Delassus matrix: contact velocities and impulses change alike."""
    whole = point([3.0, 4.0, -2.0])
    rows = whole.dense_rows().reshape(3, 3)
    small = st.ContactProblem.from_delassus(rows @ rows.T, rows @ whole.velocity, [0.5])
    one, two = st.differentiate(st.solve(whole)), st.differentiate(st.solve(small))
    way = np.array([0.3, -0.2, 0.7])
    first, second = one.jvp({"free": way}), two.jvp({"offset": rows @ way})
    assert second.impulse == pytest.approx(first.impulse, abs=1e-12)
    assert second.contact_velocity == pytest.approx(first.contact_velocity, abs=1e-12)
    gradient = two.vjp({"impulse": np.ones((1, 3))})
    assert gradient.offset @ (rows @ way) == pytest.approx(second.impulse.sum(), abs=1e-12)


def test_by_mass_is_an_operator():
    found = st.differentiate(st.solve(point([3.0, 4.0, -2.0])))
    change = np.diag([0.1, 0.2, 0.3])
    assert found.by_mass.apply(change) == pytest.approx(found.jvp({"mass": change}).velocity)
    weights = np.array([1.0, -1.0, 0.5])
    assert (found.by_mass.transpose(weights) * change).sum() == pytest.approx(weights @ found.by_mass.apply(change))


def test_no_contacts():
    problem = st.ContactProblem(2.0 * np.eye(2), [1.0, 2.0], np.zeros((0, 2)), np.zeros((0, 2, 2)), [])
    found = st.differentiate(st.solve(problem))
    assert found.by_free == pytest.approx(np.eye(2))
    assert found.by_friction.shape == (2, 0)


# At kinks


def test_at_the_friction_bound():
    """|p_t| = mu p_n exactly: it sticks on one side and slides on the other."""
    found = st.differentiate(st.solve(point([0.5, 0.0, -1.0], mu=0.5)))
    assert [(k.contact, k.between) for k in found.kinks] == [(0, "sticks or slides")]
    assert found.kinks[0].margin <= 1e-8
    for ask in (lambda: found.by_free, lambda: found.jvp({"free": np.ones(3)}), lambda: found.vjp(np.ones(3))):
        with pytest.raises(st.NotDifferentiable, match="contact 0 sticks or slides .*one_sided"):
            ask()
    cases = [
        ({"free": [1.0, 0.0, 0.0]}, [1.0, 0.0, 0.0]),  # pushed harder: it slides
        ({"free": [-1.0, 0.0, 0.0]}, [0.0, 0.0, 0.0]),  # less: it sticks
        ({"free": [0.0, 1.0, 0.0]}, [0.0, 0.0, 0.0]),  # across: to first order nothing
        ({"free": [0.0, 0.0, -1.0]}, [0.0, 0.0, 0.0]),  # pressed harder
        ({"free": [0.0, 0.0, 1.0]}, [0.5, 0.0, 0.0]),  # relieved
        ({"friction": [1.0]}, [0.0, 0.0, 0.0]),
        ({"friction": [-1.0]}, [1.0, 0.0, 0.0]),
        ({"free": [1.0, 0.0, -1.0], "friction": [-0.25]}, [0.75, 0.0, 0.0]),
    ]
    for way, expected in cases:
        assert found.one_sided(way).velocity == pytest.approx(expected, abs=1e-12)


def test_about_to_open_while_sliding():
    found = st.differentiate(st.solve(point([1.0, 0.0, 0.0], mu=0.5)))
    assert found.kinks[0].between == "slides or opens"
    assert found.one_sided({"free": [0.0, 0.0, -1.0]}).velocity == pytest.approx([-0.5, 0.0, 0.0], abs=1e-12)
    assert found.one_sided({"free": [0.0, 0.0, 1.0]}).velocity == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)
    assert found.one_sided({"gap_rate": [-1.0]}).velocity == pytest.approx([-0.5, 0.0, 1.0], abs=1e-12)


def test_touching_without_pressing():
    """No velocity, no impulse: the whole law is undecided, and solved as a contact problem."""
    found = st.differentiate(st.solve(point([0.0, 0.0, 0.0], gap_rate=[0.0], mu=0.5)))
    assert found.kinks[0].between == "sticks or opens"
    assert found.one_sided({"free": [0.1, 0.0, -1.0]}).velocity == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    slid = found.one_sided({"free": [1.5, 2.0, -1.0]}).velocity
    assert slid == pytest.approx([1.5 - 0.3, 2.0 - 0.4, 0.0], abs=1e-10)
    assert found.one_sided({"free": [0.1, 0.0, 1.0]}).velocity == pytest.approx([0.1, 0.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("law", [st.BoxFriction(), st.Coulomb(facets=4, rotation=np.pi / 4)])
def test_at_a_side_and_at_a_vertex_of_a_box(law):
    reach = 1.0 if isinstance(law, st.BoxFriction) else np.sqrt(0.5)
    mu = 0.5 / reach
    side = st.differentiate(st.solve(point([0.5, 0.2, -1.0], mu=mu, law=law)))
    assert side.kinks[0].between == "sticks or slides"
    assert side.one_sided({"free": [1.0, 1.0, 0.0]}).velocity == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)
    assert side.one_sided({"free": [-1.0, 1.0, 0.0]}).velocity == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    vertex = st.differentiate(st.solve(point([0.5, 0.5, -1.0], mu=mu, law=law)))
    assert vertex.one_sided({"free": [1.0, 2.0, 0.0]}).velocity == pytest.approx([1.0, 2.0, 0.0], abs=1e-12)
    assert vertex.one_sided({"free": [1.0, -2.0, 0.0]}).velocity == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)
    sliding = st.differentiate(st.solve(point([2.0, 0.5, -1.0], mu=mu, law=law)))
    assert sliding.kinks[0].between == "slides along one side or the next"
    assert sliding.one_sided({"free": [1.0, 1.0, 0.0]}).velocity == pytest.approx([1.0, 1.0, 0.0], abs=1e-12)
    assert sliding.one_sided({"free": [1.0, -1.0, 0.0]}).velocity == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)


def test_kinks_of_a_whole_box():
    """All four corners at the friction bound at once: they let go together."""
    found = st.differentiate(st.solve(box_on_table([0.5, 0.0, -1.0, 0.0, 0.0, 0.0], mu=0.5)))
    assert len(found.kinks) == 4
    # How they share the load is not determined, and so the direction of friction is known to the square root only.
    assert found.one_sided({"free": [1.0, 0, 0, 0, 0, 0]}).velocity == pytest.approx([1.0, 0, 0, 0, 0, 0], abs=1e-4)
    assert found.one_sided({"free": [-1.0, 0, 0, 0, 0, 0]}).velocity == pytest.approx(np.zeros(6), abs=1e-9)


def test_one_sided_away_from_kinks_is_the_derivative():
    found = st.differentiate(st.solve(point([3.0, 4.0, -2.0])))
    way = {"free": [0.3, -0.2, 0.1], "friction": [0.7]}
    assert found.one_sided(way).velocity == pytest.approx(found.jvp(way).velocity)


def test_not_strict_takes_one_of_the_modes():
    found = st.differentiate(st.solve(point([0.5, 0.0, -1.0], mu=0.5)), strict=False)
    assert not found.smooth
    assert "at a kink" in repr(found)
    assert found.by_free == pytest.approx(np.zeros((3, 3)), abs=1e-12)  # that of sticking


# Bad input


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f: f.jvp({"velocity": np.ones(3)}), "'velocity' is no datum .*free, friction"),
        (lambda f: f.jvp({"free": np.ones(2)}), r"free must have shape \(3,\).*got \(2,\)"),
        (lambda f: f.jvp({"free": [0.0, np.nan, 0.0]}), r"free\[1\] is not"),
        (lambda f: f.jvp({}), "changes nothing; give at least one of"),
        (lambda f: f.jvp(3.0), "must be a Change or a mapping, got float"),
        (lambda f: f.jvp({"free": "abc"}), "free is not an array of numbers"),
        (lambda f: f.vjp(np.ones(4)), r"velocity must have shape \(3,\).*got \(4,\)"),
        (lambda f: f.vjp({"force": np.ones(3)}), "'force' is no part of an answer; there are velocity"),
        (lambda f: f.columns("mass"), "name must be one of free, .*got 'mass'; use jvp"),
        (lambda f: st.differentiate(f), "not a solution of solve"),
        (lambda f: st.differentiate(f.solution, within=-1.0), "within must be a number of at least 0, got -1.0"),
        (lambda f: st.differentiate(f.solution._replace(problem=None)), "made without its problem"),
        (lambda f: st.differentiate(f.solution._replace(status=st.Status.RAY)), "is not certified"),
    ],
)
def test_bad_input(ask, message):
    found = st.differentiate(st.solve(point([3.0, 4.0, -2.0])))
    with pytest.raises(st.InvalidProblem, match=message):
        ask(found)


def test_an_unsymmetric_delassus_matrix_is_refused():
    W = np.eye(3)
    W[0, 1] = 1e-4
    solution = st.solve(st.ContactProblem.from_delassus(W, [-1.0, 0.1, 0.0], [0.5]))
    with pytest.raises(st.InvalidProblem, match="W is not symmetric; pose the problem with 0.5"):
        st.differentiate(solution)
