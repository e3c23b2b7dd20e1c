"""One contact with spin and rolling, solved exactly (see `one_contact`, which has the same for two tangents).

    u = D p + b,      0 <= p_n ⊥ u_n >= 0,      |p_t| <= mu p_n,      p_t opposed to u_t where it slides

With u_n = 0 the normal impulse is eliminated and u_t = S p_t + c is left. Either it sticks, p_t = -S⁻¹ c, or it slides:
p_t = -(S + λ)⁻¹ c on the rim of the cone, one equation in one unknown.
"""

from __future__ import annotations

from math import sqrt

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import cholesky, cholesky_solve, dot
from stiction.solvers.contact.cone_newton.tolerances import BLUNT, DEAF, EXACT, MAX_ROOT_STEPS, TINY


@kernel
def solve_wide(D, b, mu, accuracy, alone, p):
    """Write the impulse of one contact with response D, free velocity b and friction mu; alone: (3, d, d) scratch."""
    k, S, factor, vectors = len(D) - 1, alone[0], alone[1], alone[2]
    c, x, y, a = vectors[0], vectors[1], vectors[2], vectors[3]
    for i in range(len(p)):
        p[i] = 0.0

    # Separating, or held by joints: no impulse. Without friction: the normal impulse alone.
    if b[0] >= 0.0 or D[0, 0] <= DEAF:
        return
    inverse = 1.0 / D[0, 0]
    if mu <= 0.0:
        p[0] = -b[0] * inverse
        return

    # Closed: eliminating p_n by u_n = 0 leaves u_t = S p_t + c, with S regularised for directions without motion.
    trace = 0.0
    for i in range(k):
        a[i], c[i] = D[0, i + 1], b[i + 1] - D[0, i + 1] * b[0] * inverse
        trace += D[i + 1, i + 1]
    for i in range(k):
        for j in range(k):
            S[i, j] = D[i + 1, j + 1] - a[i] * a[j] * inverse
        S[i, i] += BLUNT * trace

    # Stick: u_t = 0, if this impulse lies in the cone.
    if soften(S, 1.0, 0.0, c, k, factor, x):
        normal = -(b[0] + dot(a, x, k)) * inverse
        if normal >= 0.0 and dot(x, x, k) <= mu * mu * normal * normal:
            keep(normal, 1.0, x, p)
            return
    slide(S, b[0], c, a, inverse, trace / k + TINY, mu, accuracy, factor, x, y, p)


@kernel
def soften(S, part, softness, c, k, factor, x):
    """x = -part (part S + softness)⁻¹ c, and the factor of that matrix; False if it is not positive."""
    for i in range(k):
        for j in range(i + 1):
            factor[i, j] = part * S[i, j]
        factor[i, i] += softness
        x[i] = -part * c[i]
    if cholesky(factor, k) < k:
        return False
    cholesky_solve(factor, k, x)
    return True


@kernel
def slide(S, b0, c, a, inverse, sigma, mu, accuracy, factor, x, y, p):
    """Write the impulse p_t = -(S + λ)⁻¹ c on |p_t| = mu p_n.

    λ in [0, ∞) is σ (1 - θ) / θ with σ the mean of S. At θ = 0 the impulse is normal, inside the cone; at θ = 1 it
    would stick, outside: so a root lies between.
    """
    # First guess: the θ at which an isotropic S would give a tangential impulse of mu times the normal one.
    k = len(p) - 1
    lower, upper, theta = 0.0, 1.0, -mu * b0 * inverse * sigma / (sqrt(dot(c, c, k)) + TINY)
    if not theta < 1.0:
        theta = 0.5
    normal, size = 0.0, 0.0
    for _ in range(MAX_ROOT_STEPS):
        # Impulse at θ, and its distance from the cone; narrow the bracket.
        if not soften(S, theta, sigma * (1.0 - theta), c, k, factor, x):
            break
        normal, size = -(b0 + dot(a, x, k)) * inverse, sqrt(dot(x, x, k))
        outside = size - mu * normal
        if outside > 0.0:
            upper = theta
        else:
            lower = theta

        # Stop when it is accurate enough, or the bracket cannot shrink.
        if abs(outside) <= accuracy * (size + abs(mu * normal)) or upper - lower < EXACT * upper:
            break

        # Newton's method with dx/dθ = σ / θ (θ S + σ (1 - θ))⁻¹ x, or bisection if it leaves the bracket.
        for i in range(k):
            y[i] = sigma / theta * x[i]
        cholesky_solve(factor, k, y)
        rate = dot(x, y, k) / (size + TINY) + mu * dot(a, y, k) * inverse
        step = theta - outside / rate
        if not lower < step < upper:
            step = 0.5 * (lower + upper)
        if abs(step - theta) <= EXACT * theta:
            break
        theta = step

    # Put the impulse exactly on the rim.
    normal = max(normal, 0.0)
    keep(normal, mu * normal / size if size > 0.0 else 0.0, x, p)


@kernel
def keep(normal, part, x, p):
    """p = (normal, part x)."""
    p[0] = normal
    for i in range(1, len(p)):
        p[i] = part * x[i - 1]
