"""Path following on large islands: the law is smoothed, solved, and smoothed less, in steps of Newton's method.

In coordinates of the standard second-order cone, z = (mu p_n, p_t) and v = (u_n / mu + s, u_t) with de Saxcé's
s = |u_t|, Coulomb's law is z ∘ v = 0 within the cone (Jordan product). Smoothed by r > 0 it is z ∘ v = r² e, written as

    z = φ(z - v),      φ(y) = (y + (y² + 4 r² e)^½) / 2,      s = (|u_t|² + r⁴)^½

which is smooth and holds no modes to guess. Linearised, dp = a - G du with an explicit 3 × 3 matrix G, so that a step
is one system in velocity space, as in `step`, for both the correction and the tangent of the path by r. The largest cut
of r is taken whose full step stays near the path, max |z - φ| <= WIDTH r. A heap of 100 bodies that falls takes about
25 steps to a violation of 1e-5, where Newton's method on the law itself loses its way among modes.

The last digits are another matter: contacts outnumber the motions that they resist, and which of them bear load depends
on velocities of a millionth. They are found by proximal stages in units of the loads, as in `walk`, each begun with a
Newton step on the law at its centre (`begin_stage`). Where the path folds back, stages take over from its best point.

[FukushimaLuoTseng2002] for φ; [DeSaxceFeng1998].
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.layout import Floats, layout
from stiction.arrays.runs import add_rows, rows_dot
from stiction.arrays.vectors import at, put
from stiction.solvers.contact.cone_newton.blocks import SIZE, clear, factor_blocks, solve_blocks
from stiction.solvers.contact.cone_newton.one_contact import evaluate, into_cone
from stiction.solvers.contact.cone_newton.proximal import copy_rows, distance, stage
from stiction.solvers.contact.cone_newton.step import linearise
from stiction.solvers.contact.cone_newton.system import solve_system
from stiction.solvers.contact.cone_newton.tolerances import (
    CAREFUL,
    CUTS,
    DECREASE,
    FIRST_SETTLE,
    FIRST_SMOOTHING,
    GROW,
    LARGEST_STAGE,
    LEAST_LOAD,
    MANY,
    PATH_GOAL,
    PATH_PATIENCE,
    PATH_STEPS,
    PATH_TRIALS,
    SETTLE_STEPS,
    SHORT,
    SMALLEST_STAGE,
    STAGE_LENGTH,
    STAGE_PART,
    STAGE_ROUNDING,
    STEEPEST,
    SWIFT,
    TINY,
    TRUSTED,
    WIDTH,
)
from stiction.solvers.contact.cone_newton.walk import balance, keep_better, rebalance


class Path(NamedTuple):
    """The linearised smoothed law of each contact, dp = (wanted or tangent) - slope du, and its directions."""

    slope: Array[Floats, "many", 9]
    wanted: Array[Floats, "many", 3]  # brings the contact onto the path
    tangent: Array[Floats, "many", 3]  # follows it for a cut of r to zero
    dp: Array[Floats, "many", 3]
    du: Array[Floats, "many", 3]
    along_p: Array[Floats, "many", 3]
    along_u: Array[Floats, "many", 3]
    start: Array[Floats, "many", 3]  # impulses that the solve began with


layout(Path, "n", "d", many=f"n if n > {MANY} and d == 3 else 0")


@kernel
def follow_path(contacts, search, system, path, weight, violation, tolerance, p):
    """Follow the path from p, of this violation, which keeps the best impulses, and settle the last digits.

    Returns (violation, Newton steps); search.now is where it ended.
    """
    # Units without stretches: the path has its own sense of size.
    now = search.now
    for i in range(len(p)):
        put(search.trial.p, i, contacts.zero)
        put(now.p, i, at(p, i, contacts.zero))
    balance(contacts, search.trial.p, 1.0)
    into_cone(now.p, contacts)
    evaluate(contacts, now)
    violation = keep_better(contacts, now, weight, violation, p)
    violation, steps = follow(contacts, search, system, path, weight, violation, max(PATH_GOAL, tolerance), p)
    violation, more = settle(contacts, search, system, weight, violation, tolerance, p)
    return violation, steps + more


@kernel
def follow(contacts, search, system, path, weight, violation, goal, p):
    """Follow the path from search.now until a violation `goal`; p keeps the best. Returns (violation, Newton steps)."""
    now, trial, r, first, stale = search.now, search.trial, FIRST_SMOOTHING, 0, 0
    for step in range(PATH_STEPS):
        if violation <= goal or stale > PATH_PATIENCE:
            return violation, step

        # Correction and tangent, from one factorisation.
        value, _ = smoothed(contacts, now, r, inf)
        linearise_path(contacts, now, r, path)
        if not factor_path(contacts, system, path):
            return violation, step
        path_direction(contacts, search, system, path.slope, path.wanted, path.dp, path.du)
        path_direction(contacts, search, system, path.slope, path.tangent, path.along_p, path.along_u)

        # The largest cut of r that stays near the path.
        done = False
        for k in range(first, len(CUTS)):
            cut = CUTS[k]
            advance(now, path, 1.0, 1.0 - cut, trial)
            _, top = smoothed(contacts, trial, cut * r, WIDTH * cut * r)
            if top < inf:
                done, r, first = True, cut * r, max(0, k - 3)
                break

        # None does: only the correction, as far as it helps; hardly at all means far from the path, so smooth more.
        if not done:
            length = 1.0
            for _ in range(PATH_TRIALS):
                advance(now, path, length, 0.0, trial)
                reached, _ = smoothed(contacts, trial, r, inf)
                if reached <= value * (1.0 - DECREASE * length):
                    break
                length *= 0.5
            if length < SHORT:
                r = min(2.0 * r, 1.0)

        # Go there; keep the best impulses.
        copy_rows(trial.p, now.p)
        evaluate(contacts, now)
        before = violation
        violation = keep_better(contacts, now, weight, violation, p)
        if not violation < before:
            stale += 1
        elif violation < SWIFT * before:
            stale = 0
    return violation, PATH_STEPS


@kernel
def settle(contacts, search, system, weight, violation, tolerance, p):
    """Proximal stages from p, of this violation, in units of the loads. Returns (violation, Newton steps)."""
    now, centre = search.now, search.direction
    for i in range(len(p)):
        put(now.p, i, at(p, i, contacts.zero))
    steps, epsilon, care = 0, FIRST_SETTLE, 0.0
    while steps < SETTLE_STEPS and not violation <= tolerance:
        # One stage, in units of the loads at its centre.
        rebalance(contacts, now.p, search.trial.p, LEAST_LOAD)
        residual, _ = evaluate(contacts, now)
        copy_rows(now.p, centre)
        begun = begin_stage(contacts, now, system, epsilon)
        solved, count = stage(
            contacts, now, search.trial, centre, search.spare, system, epsilon,
            max(STAGE_PART * residual, STAGE_ROUNDING), begun,
        )  # fmt: skip
        steps += count + 1

        # No solution near by: back to the centre, with a larger ε.
        if not solved:
            copy_rows(centre, now.p)
            epsilon, care = min(LARGEST_STAGE, GROW * epsilon), CAREFUL
            continue

        # Its solution is the next centre; ε is chosen for changes of about STAGE_LENGTH.
        change = distance(now.p, centre) / STAGE_LENGTH
        epsilon, care = max(SMALLEST_STAGE, epsilon * max(care, min(STAGE_LENGTH, change))), 0.0
        evaluate(contacts, now)
        violation = keep_better(contacts, now, weight, violation, p)
    return violation, steps


@kernel
def begin_stage(contacts, now, system, epsilon):
    """Set the change x that a stage begins with: a Newton step on the law. Returns whether there is one.

    At the centre itself, impulses u / ε hold modes that mean nothing.
    """
    linearise(contacts, now, epsilon, system)
    right = system.right
    for j in range(len(right)):
        right[j] = 0.0
    for i in range(len(now.p)):
        add_rows(contacts.rows[i], contacts.segments[i], at(system.constant, i, contacts.zero), right)
    if not solve_system(contacts, system):
        return False
    for j in range(len(right)):
        now.x[j] = right[j]
    return True


@kernel
def advance(now, path, length, part, trial):
    """Impulses and velocities after `length` of the correction and `part` of the tangent."""
    for i in range(len(path.dp)):
        for c in range(3):
            trial.p[i, c] = now.p[i, c] + length * path.dp[i, c] + part * path.along_p[i, c]
            trial.u[i, c] = now.u[i, c] + length * path.du[i, c] + part * path.along_u[i, c]


@kernel
def phi(y, r):
    """(y + (y² + 4 r²)^½) / 2 without cancellation."""
    root = sqrt(y * y + 4.0 * r * r)
    return 0.5 * (y + root) if y >= 0.0 else 2.0 * r * r / (root - y)


@kernel
def smoothed(contacts, point, r, bound):
    """Sum of |z - φ(z - v)|², and the largest; both infinite as soon as that exceeds `bound`."""
    total, top, limit = 0.0, 0.0, bound * bound
    for i in range(len(point.p)):
        p, u, mu = point.p[i], point.u[i], contacts.friction[i]
        if mu <= 0.0:
            off = p[0] - phi(p[0] - u[0], r)
            square = off * off
        else:
            # Both eigenvalues of y = z - v, and its image.
            s = sqrt(u[1] * u[1] + u[2] * u[2] + r * r * r * r)
            y0, y1, y2 = mu * p[0] - (u[0] / mu + s), p[1] - u[1], p[2] - u[2]
            length = sqrt(y1 * y1 + y2 * y2)
            low, high = phi(y0 - length, r), phi(y0 + length, r)
            part = 0.5 * (high - low) / length if length > 0.0 else 0.0
            f0, f1, f2 = mu * p[0] - 0.5 * (low + high), p[1] - part * y1, p[2] - part * y2
            square = f0 * f0 + f1 * f1 + f2 * f2
        total += square
        if not square <= top:
            top = square
            if not top <= limit:
                return inf, inf
    return total, sqrt(top)


@kernel
def linearise_path(contacts, point, r, path):
    """Set slope, wanted and tangent of each contact at smoothing r."""
    fourth = r * r * r * r
    for i in range(len(point.p)):
        p, u, mu = point.p[i], point.u[i], contacts.friction[i]
        G, wanted, tangent = path.slope[i], path.wanted[i], path.tangent[i]
        if mu <= 0.0:
            # Without friction, the normal alone.
            y = p[0] - u[0]
            h = phi(y, r)
            steep = min(h * h / (r * r), STEEPEST)
            for c in range(9):
                G[c] = 0.0
            for c in range(3):
                wanted[c] = tangent[c] = 0.0
            G[0], wanted[0] = steep, -(1.0 + steep) * (p[0] - h)
            tangent[0] = -(1.0 + steep) * 2.0 * r * r / sqrt(y * y + 4.0 * r * r)
            continue

        # y = z - v: its axis t, eigenvalues, their images, and the slopes φ' / (1 - φ') along both and across.
        s = sqrt(u[1] * u[1] + u[2] * u[2] + fourth)
        q1, q2 = u[1] / s, u[2] / s
        y0, y1, y2 = mu * p[0] - (u[0] / mu + s), p[1] - u[1], p[2] - u[2]
        length = sqrt(y1 * y1 + y2 * y2)
        t1, t2 = (y1 / length, y2 / length) if length > 0.0 else (1.0, 0.0)
        l1, l2 = y0 - length, y0 + length
        r1, r2 = sqrt(l1 * l1 + 4.0 * r * r), sqrt(l2 * l2 + 4.0 * r * r)
        h1, h2 = phi(l1, r), phi(l2, r)
        g1, g2 = min(h1 * h1 / (r * r), STEEPEST), min(h2 * h2 / (r * r), STEEPEST)
        if length > 1e-12 * (abs(y0) + r):
            across, rest = (h2 - h1) / (2.0 * length), (phi(-l1, r) - phi(-l2, r)) / (2.0 * length)
        else:
            across, rest = 0.5 * (1.0 + y0 / r2), 0.5 * (1.0 - y0 / r2)
        ga = min(across / max(rest, TINY), STEEPEST)

        # What the contact lacks, in the frame of the axis, times one more than the slopes.
        k = 0.5 * (h2 - h1)
        f0, f1, f2 = mu * p[0] - 0.5 * (h1 + h2), p[1] - k * t1, p[2] - k * t2
        ft, fn = f1 * t1 + f2 * t2, f2 * t1 - f1 * t2
        e2, e1, en = -0.5 * (1.0 + g2) * (f0 + ft), -0.5 * (1.0 + g1) * (f0 - ft), -(1.0 + ga) * fn
        wanted[0], wanted[1], wanted[2] = (e2 + e1) / mu, (e2 - e1) * t1 - en * t2, (e2 - e1) * t2 + en * t1

        # How it moves as r is cut; de Saxcé's term moves as well.
        plus, less, ds = 0.5 * (g2 + g1), 0.5 * (g2 - g1), -2.0 * fourth / s
        e2, e1 = -(1.0 + g2) * r * r / r2, -(1.0 + g1) * r * r / r1
        tangent[0] = (e2 + e1 - plus * ds) / mu
        tangent[1], tangent[2] = (e2 - e1 - less * ds) * t1, (e2 - e1 - less * ds) * t2

        # Slope by u: that by v, with dv_n = du_n / mu + q · du_t.
        G[0], G[1], G[2] = plus / (mu * mu), (less * t1 + plus * q1) / mu, (less * t2 + plus * q2) / mu
        G[3], G[6], skew = less * t1 / mu, less * t2 / mu, (plus - ga) * t1 * t2
        G[4], G[5] = plus * t1 * t1 + ga * t2 * t2 + less * t1 * q1, skew + less * t1 * q2
        G[7], G[8] = skew + less * t2 * q1, plus * t2 * t2 + ga * t1 * t1 + less * t2 * q2


@kernel
def factor_path(contacts, system, path):
    """Factor I + sum of L_iᵀ slope_i L_i by blocks; False if it is singular."""
    blocks = system.blocks
    clear(blocks)
    table, values = blocks.table, blocks.values
    for i in range(len(path.slope)):
        rows, segment, G = contacts.rows[i], contacts.segments[i], path.slope[i]
        one, two, length = segment[0] // SIZE, segment[2] // SIZE, segment[1]
        if length > 0:
            add_full(rows, 0, G, 0, values[table[one, one]])
        if segment[3] > 0:
            add_full(rows, length, G, length, values[table[two, two]])
            if length > 0:
                add_full(rows, 0, G, length, values[table[one, two]])
                add_full(rows, length, G, 0, values[table[two, one]])
    return factor_blocks(blocks, system.pivots)


@sums
def add_full(rows, first, G, second, block):
    """block += Rᵀ G S, R and S the rows of a contact from these places on."""
    for j in range(SIZE):
        a, b, c = rows[0, first + j], rows[1, first + j], rows[2, first + j]
        x, y, z = a * G[0] + b * G[3] + c * G[6], a * G[1] + b * G[4] + c * G[7], a * G[2] + b * G[5] + c * G[8]
        row = block[j]
        for k in range(SIZE):
            row[k] += x * rows[0, second + k] + y * rows[1, second + k] + z * rows[2, second + k]


@kernel
def path_direction(contacts, search, system, slope, constant, dp, du):
    """dp = constant - slope L dx and du = L Lᵀ dp, with dx from the factors, refined while its error is felt."""
    dx, change, error, zero = system.right, search.trial.x, search.spare, contacts.zero
    for j in range(len(dx)):
        dx[j] = 0.0
    for i in range(len(dp)):
        add_rows(contacts.rows[i], contacts.segments[i], at(constant, i, zero), dx)
    solve_blocks(system.blocks, system.pivots, dx)
    for attempt in range(4):
        # dp from dx, and the change of x that it makes.
        for j in range(len(dx)):
            change[j] = 0.0
        for i in range(len(dp)):
            u, G = rows_dot(contacts.rows[i], contacts.segments[i], dx, zero), slope[i]
            for c in range(3):
                dp[i, c] = constant[i, c] - (G[3 * c] * u[0] + G[3 * c + 1] * u[1] + G[3 * c + 2] * u[2])
            add_rows(contacts.rows[i], contacts.segments[i], at(dp, i, zero), change)

        # It should be dx; the difference is solved for again.
        largest, wrong = 0.0, 0.0
        for j in range(len(dx)):
            error[j] = change[j] - dx[j]
            largest, wrong = max(largest, abs(change[j])), max(wrong, abs(error[j]))
        if attempt == 3 or not wrong > TRUSTED * largest:
            break
        solve_blocks(system.blocks, system.pivots, error)
        for j in range(len(dx)):
            dx[j] += error[j]
    for i in range(len(du)):
        put(du, i, rows_dot(contacts.rows[i], contacts.segments[i], change, zero))
