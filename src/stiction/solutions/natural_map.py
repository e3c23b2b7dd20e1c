"""Kernel of the judge: the scaled natural map (see `certificate`)."""

from __future__ import annotations

import numpy as np

from stiction.compiled import kernel, sums, workspace


def natural_map(H, vectors, z, w):  # type: ignore[no-untyped-def]
    """(residual, index, lower, upper, complementarity) of `z`; `w` is filled."""
    return judge_into(H, vectors, z, w, workspace(3 * len(z), 0).floats)


@kernel
def judge_into(H, vectors, z, w, floats):
    n = len(z)
    q, lo, hi = vectors[0], vectors[1], vectors[2]
    scale, weight, floor = floats[:n], floats[n : 2 * n], floats[2 * n : 3 * n]
    row_terms(H, q, z, w, scale)
    raise_zero_rows(H, q, z, scale, floor)
    felt_weights(H, scale, weight)

    residual, index, lower, upper, complementarity = 0.0, -1, 0.0, 0.0, 0.0
    for i in range(n):
        reach = max(finite_size(lo[i]), finite_size(hi[i]))
        if not weight[i] > 0.0:  # a variable that no row feels: measured by its bounds, or by itself
            size = max(reach, abs(z[i]))
            weight[i] = 1.0 / size if size > 0.0 else 1.0
        # A violated bound counts relative to the bounds as well, however little the rows feel it.
        strictness = max(weight[i], 1.0 / reach if reach > 0.0 else 0.0)
        below, above = strictness * max(lo[i] - z[i], 0.0), strictness * max(z[i] - hi[i], 0.0)
        row = w[i] / scale[i] if scale[i] > 0.0 else 0.0  # no terms at all: exactly zero
        inside = min(max(z[i], lo[i]), hi[i])
        gap = min(max(row, weight[i] * (inside - hi[i])), weight[i] * (inside - lo[i]))  # z - mid(lo, hi, z - w)
        worst = below + above + abs(gap)
        if not (np.isfinite(z[i]) and np.isfinite(scale[i]) and np.isfinite(worst)):
            return np.nan, i, np.nan, np.nan, np.nan
        worst = max(below, above, abs(gap))
        if worst > residual or index < 0:
            residual, index = worst, i
        lower, upper, complementarity = max(lower, below), max(upper, above), max(complementarity, abs(gap))
    return residual, index, lower, upper, complementarity


@sums
def row_terms(H, q, z, w, scale):
    """w = H z + q, and the size of the terms that make up each row."""
    n = len(z)
    for i in range(n):
        total, size = 0.0, 0.0
        for j in range(n):
            term = H[i, j] * z[j]
            total += term
            size += abs(term)
        w[i] = total + q[i]
        scale[i] = size + abs(q[i])


@kernel
def raise_zero_rows(H, q, z, scale, floor):
    """Give rows with q_i = 0 the scale that other rows imply for the variables they hold."""
    n = len(q)
    any_zero = False
    for i in range(n):
        any_zero = any_zero or q[i] == 0.0
    if not any_zero:
        return
    floor[:] = 0.0  # 1 / (smallest z_j that cancels some q_k)
    for k in range(n):
        if q[k] != 0.0:
            inverse = 1.0 / abs(q[k])
            for j in range(n):
                floor[j] = max(floor[j], abs(H[k, j]) * inverse)
    for i in range(n):
        if q[i] == 0.0:
            for j in range(n):
                if floor[j] > 0.0:
                    scale[i] = max(scale[i], abs(H[i, j]) / floor[j])


@kernel
def felt_weights(H, scale, weight):
    """weight_j = max_i |H_ij| / s_i: how strongly some row feels variable j."""
    n = len(scale)
    weight[:] = 0.0
    for i in range(n):
        if scale[i] > 0.0:
            inverse = 1.0 / scale[i]
            for j in range(n):
                weight[j] = max(weight[j], abs(H[i, j]) * inverse)


@kernel
def finite_size(bound):
    return abs(bound) if np.isfinite(bound) else 0.0
