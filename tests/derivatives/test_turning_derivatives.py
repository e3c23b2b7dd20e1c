"""Derivatives with torsional and rolling friction: against differences, by hand, and the transpose."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from derivatives.away import STEPS, is_away
from stiction.derivatives.modes import EDGE, STICK
from turning import FAMILIES, disc, with_turning


def agree(make, joint, seeds):
    """Relative errors of the directions compared, and the modes that were met."""
    rng, errors, met = np.random.default_rng(2), [], set()
    for seed in seeds:
        problem = make(seed)
        problem = problem if problem.dim == 6 else with_turning(problem, (0.05, 0.01, 0.01))
        problem = problem.with_law(st.Coulomb(joint=joint))
        solution = st.solve(problem, throw=False)
        if not solution.ok:
            continue
        found = st.differentiate(solution)
        if not (found.smooth and is_away(found)):
            continue
        met |= set(found.modes.mode.tolist())
        assert found.residual <= 1e-9
        ways = {
            "velocity": np.abs(problem.velocity).max() * rng.normal(size=problem.m),
            "friction": problem.friction * rng.uniform(0.5, 1.0),
            "gap_rate": -problem.normal @ rng.normal(size=problem.m),
        }
        for field, way in ways.items():
            try:
                response = found.jvp({"free" if field == "velocity" else field: way})
            except st.NotDifferentiable as error:
                assert field != "velocity"
                assert "share" in str(error)
                continue
            error = np.inf
            for eps in STEPS:
                ahead, back = (
                    st.solve(problem.replace(**{field: getattr(problem, field) + t * way}), start=solution, throw=False)
                    for t in (eps, -eps)
                )
                if ahead.ok and back.ok:
                    difference = (ahead.velocity - back.velocity) / (2.0 * eps)
                    size = max(np.abs(problem.velocity).max(), np.abs(difference).max())
                    error = min(error, np.abs(difference - response.velocity).max() / size)
                if error <= 1e-6:
                    break
            assert error <= 1e-6, (make, joint, seed, field, error)
            errors.append(error)
    return errors, met


@pytest.mark.parametrize("joint", [True, False])
def test_against_differences(joint):
    compared, met = 0, set()
    for name in FAMILIES:
        errors, kinds = agree(FAMILIES[name], joint, range(2))
        compared, met = compared + len(errors), met | kinds
    assert compared >= 8
    assert met >= {STICK}


def loose(seed):
    """Two contacts of a body with many velocities, which slide, spin and roll."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(9, 9))
    return st.ContactProblem(
        half @ half.T + 9.0 * np.eye(9), rng.normal(size=9), rng.normal(size=(2, 9)), rng.normal(size=(2, 5, 9)),
        rng.uniform(0.1, 0.3, 2), gap_rate=rng.normal(size=2) - 2.0,
    )  # fmt: skip


@pytest.mark.parametrize("joint", [True, False])
def test_sliding_against_differences(joint):
    errors, met = agree(loose, joint, range(8))
    assert len(errors) >= 10
    assert met >= {EDGE}


@pytest.mark.slow
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_many_against_differences(name, joint):
    errors, _ = agree(FAMILIES[name], joint, range(3, 40))
    assert errors or name == "heap"  # of ten bodies, the motion is hardly ever determined


@pytest.mark.parametrize("joint", [True, False])
def test_one_disc_that_slides_spins_and_rolls(joint):
    """Velocities, impulses and contact velocities, in all directions."""
    problem = disc((3.0, 2.0, 1.0), push=(0.7, 2.0), coefficients=(0.5, 0.2, 0.1, 0.1), joint=joint)
    solution = st.solve(problem)
    found = st.differentiate(solution)
    assert found.smooth
    rng = np.random.default_rng(0)
    way = {"free": rng.normal(size=6), "friction": rng.normal(size=1), "gap_rate": rng.normal(size=1)}
    response = found.jvp(way)

    def moved(t):
        return st.solve(
            problem.replace(
                velocity=problem.velocity + t * way["free"], friction=problem.friction + t * way["friction"],
                gap_rate=problem.gap_rate + t * way["gap_rate"],
            ),
            start=solution,
        )  # fmt: skip

    ahead, back = moved(1e-5), moved(-1e-5)
    for name in ("velocity", "impulse", "contact_velocity"):
        difference = (getattr(ahead, name) - getattr(back, name)) / 2e-5
        assert getattr(response, name) == pytest.approx(difference, abs=1e-8)


def test_by_hand():
    """A disc that spins alone: torsion takes mu_t p_n. Bounded apart, it does not slide, nor roll."""
    found = st.differentiate(st.solve(disc((3.0, 0.0, 0.0), coefficients=(0.5, 0.25, 0.1, 0.1), joint=False)))
    assert found.smooth
    # Pressed harder, it spins less; pushed across or turned about a tangent, it sticks.
    assert found.by_free[3] == pytest.approx([0.25, 0.0, 0.0, 1.0, 0.0, 0.0], abs=1e-12)
    assert found.by_free[[0, 1, 2, 4, 5]] == pytest.approx(np.zeros((5, 6)), abs=1e-12)
    # Together, what spins cannot stick: it slides and rolls as easily as it spins.
    found = st.differentiate(st.solve(disc((3.0, 0.0, 0.0), coefficients=(0.5, 0.25, 0.25, 0.25))))
    assert found.by_free[1, 1] > 0.1
    # All coefficients change together: mu by 1, that of torsion by a half.
    assert found.by_friction[:, 0] == pytest.approx([0.0, 0.0, 0.0, -0.5, 0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", ["stack", "grasp", "heap"])
def test_vjp_is_the_transpose_of_jvp(name, joint):
    rng = np.random.default_rng(0)
    problem = with_turning(FAMILIES[name](1), (0.05, 0.01, 0.01)).with_law(st.Coulomb(joint=joint))
    found = st.differentiate(st.solve(problem), strict=False)
    n, m = problem.n, problem.m
    half = rng.normal(size=problem.mass.shape)
    way = {
        "free": rng.normal(size=m), "friction": rng.normal(size=n), "gap_rate": rng.normal(size=n),
        "mass": half + half.swapaxes(-1, -2), "rows": rng.normal(size=problem.rows.shape),
    }  # fmt: skip
    weights = {
        "velocity": rng.normal(size=m), "impulse": rng.normal(size=(n, 6)), "contact_velocity": rng.normal(size=(n, 6)),
    }  # fmt: skip
    response, gradient = found.jvp(way), found.vjp(weights)
    forward = sum(float((weights[name] * getattr(response, name)).sum()) for name in weights)
    terms = [float((way[name] * getattr(gradient, name)).sum()) for name in way]
    assert forward == pytest.approx(sum(terms), rel=1e-8, abs=1e-8 * max(np.abs(terms)))


# At kinks


def test_a_kink_is_known():
    """Torsion at its bound while nothing turns: it sticks on one side and spins on the other."""
    found = st.differentiate(st.solve(disc((0.25, 0.0, 0.0), coefficients=(0.5, 0.25, 0.1, 0.1), joint=False)))
    assert [(kink.contact, kink.between) for kink in found.kinks] == [(0, "sticks or slides")]
    with pytest.raises(st.NotDifferentiable, match="at a kink: contact 0 sticks or slides"):
        found.vjp(np.ones(6))
    cases = [
        ({"free": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]}, 1.0),  # turned harder: it spins
        ({"free": [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]}, 0.0),  # less: it sticks
        ({"free": [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]}, 0.0),  # sliding and rolling have bounds of their own
        ({"free": [-1.0, 0.0, 0.0, 0.2, 0.0, 0.0]}, 0.0),  # pressed harder
        ({"free": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]}, 0.25),  # relieved
        ({"friction": [-1.0]}, 0.5),
        ({"friction": [1.0], "free": [0.0, 0.0, 0.0, 0.75, 0.0, 0.0]}, 0.25),
    ]
    for way, spin in cases:
        assert found.one_sided(way).velocity == pytest.approx([0.0, 0.0, 0.0, spin, 0.0, 0.0], abs=1e-12)


def test_two_bounds_at_once():
    """Apart, spin and rolling let go each by itself."""
    problem = disc((0.25, 0.06, 0.08), coefficients=(0.5, 0.25, 0.1, 0.1), joint=False)
    found = st.differentiate(st.solve(problem))
    for spin, roll, across in ((1.0, 1.0, 0.5), (1.0, -1.0, 0.5), (-1.0, 1.0, -0.5), (-1.0, -1.0, 0.5)):
        way = np.array([0.0, 0.0, 0.0, spin, 0.6 * roll - 0.8 * across, 0.8 * roll + 0.6 * across])
        rolls = max(roll, 0.0)
        expected = [0.0, 0.0, 0.0, max(spin, 0.0), 0.6 * rolls, 0.8 * rolls]
        assert found.one_sided({"free": way}).velocity == pytest.approx(expected, abs=1e-12)


def test_on_the_ellipsoid():
    """Together: sliding of 0.3 of 0.5 and torsion of 0.2 of 0.25 are at the bound, and let go along its normal."""
    found = st.differentiate(st.solve(disc((0.2, 0.0, 0.0), push=(0.3, 0.0), coefficients=(0.5, 0.25, 0.1, 0.1))))
    assert [kink.between for kink in found.kinks] == ["sticks or slides"]
    rng = np.random.default_rng(0)
    for way in rng.normal(size=(10, 6)):
        # Scaled by 1/2, torsion's row has the same mu: o = -(0.6, 0.8) there, and the speed s along -o solves
        # dp · o = mu dp_n with dp = (0.6 s - free, (1.6 s - turn) / 0.5).
        speed = max(0.0, (0.6 * way[1] + 1.6 * way[3] + 0.5 * way[0]) / (0.36 + 2.56))
        expected = [0.0, 0.6 * speed, 0.0, 1.6 * speed, 0.0, 0.0]
        assert found.one_sided({"free": way}).velocity == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("joint", [True, False])
def test_touching_without_pressing(joint):
    """No velocity, no impulse: the answer is the law itself, which is the same at every scale."""
    made = {"coefficients": (0.5, 0.25, 0.1, 0.1), "joint": joint}
    found = st.differentiate(st.solve(disc((0.0, 0.0, 0.0), load=0.0, **made)))
    assert found.kinks[0].between == "sticks or opens"
    ways = [(-1.0, 0.1, 0.0, 0.05, 0.0, 0.02), (-1.0, 0.8, 0.3, 0.4, 0.1, -0.3), (1.0, 0.3, 0.0, 1.0, 0.0, 0.0)]
    for load, *rest in ways:
        alone = st.solve(disc(rest[2:], load=-load, push=rest[:2], **made))
        assert found.one_sided({"free": [load, *rest]}).velocity == pytest.approx(alone.velocity, abs=1e-10)


def test_spinning_about_to_open():
    """Apart: torsion goes with the load, and sliding has a bound that comes with it too."""
    found = st.differentiate(st.solve(disc((3.0, 0.0, 0.0), 0.0, coefficients=(0.5, 0.25, 0.1, 0.1), joint=False)))
    assert found.kinks[0].between == "slides or opens"
    cases = [
        ([-1.0, 0.1, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -0.25, 0.0, 0.0]),  # pressed: it sticks
        ([-1.0, 0.6, 0.8, 0.0, 0.0, 0.0], [0.0, 0.3, 0.4, -0.25, 0.0, 0.0]),  # pressed too little: it slides
        ([1.0, 0.1, 0.0, 0.0, 0.2, 0.0], [1.0, 0.1, 0.0, 0.0, 0.2, 0.0]),  # lifted: nothing acts
    ]
    for way, expected in cases:
        assert found.one_sided({"free": way}).velocity == pytest.approx(expected, abs=1e-10)


def built(kinds, joint, seed, d=6):
    """Contacts that do what they are asked to, at kinks or away from them, on one mass that couples them all."""
    rng, n, mu = np.random.default_rng(seed), len(kinds), 0.4
    m, split = 6 * n + 1, [(1, 6)] if joint or d == 3 else [(1, 3), (3, 4), (4, 6)]
    half = rng.normal(size=(m, m))
    mass, rows = half @ half.T + m * np.eye(m), rng.normal(size=(n, d, m))
    p, u = np.zeros((n, d)), np.zeros((n, d))
    for i, kind in enumerate(kinds):
        p[i, 0] = 0.0 if kind in ("touches", "leaves", "leaves at rest") else rng.uniform(0.5, 1.0) * m
        for first, end in split:
            way = rng.normal(size=min(end, d) - first)
            way /= np.sqrt((way**2).sum())
            slides = kind in ("slides", "leaves") or (kind in ("half", "leaves at rest") and first == 3)
            if slides:
                u[i, first:end], p[i, first:end] = -way * rng.uniform(0.5, 1.0), mu * p[i, 0] * way
            else:
                p[i, first:end] = (1.0 if kind in ("brink", "half") else 0.5) * mu * p[i, 0] * way
    velocity = np.linalg.lstsq(rows[:, 1:].reshape(-1, m), u[:, 1:].ravel(), rcond=None)[0]
    free = velocity - np.linalg.solve(mass, np.einsum("icm,ic->m", rows, p))
    return st.ContactProblem(
        mass, free, rows[:, 0], rows[:, 1:], np.full(n, mu), gap_rate=u[:, 0] - rows[:, 0] @ velocity,
        law=st.Coulomb(joint=joint),
    ), velocity  # fmt: skip


KINKS = [
    ("brink",), ("leaves",), ("touches",), ("brink", "brink"), ("brink", "slides"), ("leaves", "slides", "sticks"),
    ("brink", "leaves", "sticks"), ("touches", "sticks"), ("touches", "slides"), ("touches", "brink"),
    ("touches", "leaves"), ("half",), ("half", "slides"), ("leaves at rest",), ("leaves at rest", "brink"),
]  # fmt: skip


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kinds", KINKS, ids=" ".join)
def test_constructed_kinks(kinds, joint):
    """Against differences on one side, extrapolated; in all data that have no other kink."""
    if joint and {"half", "leaves at rest"} & set(kinds):
        pytest.skip("parts are bounded together")
    problem, velocity = built(kinds, joint, len(kinds))
    solution = st.solve(problem)
    assert solution.velocity == pytest.approx(velocity, abs=1e-10)
    found = st.differentiate(solution)
    assert [k.contact for k in found.kinks] == [i for i, kind in enumerate(kinds) if kind not in ("slides", "sticks")]
    rng = np.random.default_rng(0)
    for _ in range(4):
        way = {"free": rng.normal(size=problem.m), "friction": 0.1 * rng.normal(size=problem.n)}

        def moved(t, way=way):
            data = {"velocity": problem.velocity + t * way["free"], "friction": problem.friction + t * way["friction"]}
            return (st.solve(problem.replace(**data), start=solution).velocity - velocity) / t

        response = found.one_sided(way)
        assert response.residual <= 1e-9
        assert response.velocity == pytest.approx(2.0 * moved(5e-6) - moved(1e-5), abs=1e-6)


def test_rows_of_rolling_that_are_not_there():
    """Torsion alone, as condim 4 has it: tangents without a row leave nothing undetermined."""
    found = st.differentiate(st.solve(disc((0.1, 0.0, 0.0), coefficients=(0.5, 0.25, 0.0, 0.0))))
    assert found.smooth
    assert found.determined.all()
    assert found.by_free[4:, 4:] == pytest.approx(np.eye(2), abs=1e-12)
