"""Unknowns refined with residuals in doubled precision: a value is a sum of two doubles."""

from __future__ import annotations

import numpy as np

from stiction.arrays.compiled import in_callers, kernel
from stiction.arrays.dense import times
from stiction.solvers.contact.cell_lemke.basis import driven_force
from stiction.solvers.contact.cell_lemke.cells import QUANTITY, ROW, SIZE, is_force
from stiction.solvers.contact.cell_lemke.tolerances import GAIN, REFINED
from stiction.solvers.tolerances import ROUNDING

SPLIT = 2.0**27 + 1.0  # Dekker's factor, which cuts a double into two halves of 26 bits


@kernel
def refine(contacts, cells, basis, watch, y, x, constant):
    """Refine the unknowns (constant 1) or their rates (constant 0) while that gains anything."""
    size, driven, last = basis.now[SIZE], basis.now[ROW], np.inf
    force = is_force(basis.now[QUANTITY])
    while True:
        # The driven row is zero for the unknowns, and one for the rates.
        precise_residuals(contacts, basis, watch, y, x, constant, driven if force else -1)
        if force:
            basis.residual[driven] = driven_force(contacts, cells, basis, y)
        basis.residual[driven] -= 1.0 - constant

        # Until rounding is reached, or nothing is gained.
        worst, largest = largest_of(basis.residual, size), max(constant, largest_of(y, size))
        if worst <= REFINED * largest or not worst <= GAIN * last:  # NaN ends it too
            return
        last = worst
        times(basis.inverse, basis.residual, size, basis.product)
        for q in range(size):
            y[q] -= basis.product[q]


@kernel
def polish(contacts, basis, watch):
    """Refine the final basis, with z0 = 0 in place of the driven row."""
    K, size, driven, y = basis.inverse, basis.now[SIZE], basis.now[ROW], basis.y
    last = np.inf
    while True:
        precise_residuals(contacts, basis, watch, y, basis.x, 1.0, driven)
        worst = largest_of(basis.residual, size)
        if worst < ROUNDING or not worst <= GAIN * last:  # NaN ends it too
            return
        last = worst
        # The correction, plus the multiple of the driven column that keeps z0 at zero.
        times(K, basis.residual, size, basis.product)
        along = basis.product[0] / K[0, driven]
        for q in range(size):
            y[q] += along * K[q, driven] - basis.product[q]
        y[0] = 0.0


@kernel
def precise_residuals(contacts, basis, watch, y, x, constant, skipped):
    """x and all rows but one: of the unknowns (constant 1) or of their rates (constant 0)."""
    size, low = basis.now[SIZE], watch.low
    # x = free + z0 lift + columns y, its low parts apart.
    for l in range(len(x)):
        x[l], low[l] = add_product(y[0], basis.lift[l], constant * contacts.free[l], 0.0)
    for q in range(1, size):
        segment, column = contacts.segments[basis.column_contact[q]], basis.columns[q]
        place = 0
        for s in range(2):
            for l in range(segment[2 * s], segment[2 * s] + segment[2 * s + 1]):
                x[l], low[l] = add_product(y[q], column[place], x[l], low[l])
                place += 1
    # rows x + cover z0 + bias
    for r in range(size):
        basis.residual[r] = 0.0
        if r != skipped:
            segment, row = contacts.segments[basis.row_contact[r]], basis.rows[r]
            high, rest = add_product(basis.row_cover[r], y[0], constant * basis.row_bias[r], 0.0)
            place = 0
            for s in range(2):
                for l in range(segment[2 * s], segment[2 * s] + segment[2 * s + 1]):
                    high, rest = add_product(row[place], x[l], high, rest)
                    rest += row[place] * low[l]
                    place += 1
            basis.residual[r] = high + rest
    for l in range(len(x)):
        x[l] += low[l]


@in_callers
@kernel
def add_product(a, b, high, low):
    """(high, low) + a b, the product by Dekker's splitting, the sum by Knuth's."""
    # Both factors in two halves, whose products are exact.
    product = a * b
    t = SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    # The sum and its rounding error.
    total = high + product
    part = total - high
    return total, low + ((high - (total - part)) + (product - part)) + error


@in_callers
@kernel
def largest_of(values, size):
    """The largest magnitude of the first `size` values."""
    largest = 0.0
    for i in range(size):
        largest = max(largest, abs(values[i]))
    return largest
