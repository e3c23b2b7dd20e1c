"""Products and triangular solves of matrices whose sides are short and known only when they are there.

Compilers make long loops fast, and loops of known length; a product of 6 × 6 takes five times as long as it must, and a
short triangular solve as well. So tiles of six, three and one rows and columns are written out in vectors, which stay
in registers.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from stiction.arrays.compiled import built, kernel

MAY_CONTRACT = ("contract", "reassoc")
SIX = 6  # rows of a triangular tile


class Lowering:
    """What tiles of so many columns are written with, while a kernel is compiled."""

    def __init__(self, toolbox: Any, context: Any, builder: Any, kinds: Any, arguments: Any, columns: int) -> None:
        from llvmlite import ir
        from numba import types as numba_types

        types = cast("Any", numba_types)
        self.cgutils, self.context, self.builder, self.ir, self.columns = toolbox.cgutils, context, builder, ir, columns
        self.number, self.real = context.get_value_type(types.intp), context.get_value_type(types.float64)

        # Vectors as long as a row of the tile; a GPU has none.
        self.whole = "nvptx" not in builder.module.triple and columns > 1
        self.kind = ir.VectorType(self.real, columns) if self.whole else self.real
        self.starts = [0] if self.whole else list(range(columns))
        self.arrays = [
            toolbox.make_array(each)(context, builder, value)
            for each, value in zip(kinds, arguments, strict=True)
            if isinstance(each, types.Array)
        ]

    def address(self, array: Any, i: Any, j: Any, more: int, kind: Any) -> Any:
        """Of the entry i, j + more; entries along a row lie side by side where it is a vector's."""
        builder, (down, along) = self.builder, self.cgutils.unpack_tuple(self.builder, array.strides, 2)
        offset = builder.add(builder.mul(i, down), builder.mul(builder.add(j, self.number(more)), along))
        start = builder.bitcast(array.data, self.ir.IntType(8).as_pointer())
        return builder.bitcast(builder.gep(start, [offset]), kind.as_pointer())

    def load(self, array: Any, i: Any, j: Any, more: int, kind: Any) -> Any:
        return self.builder.load(self.address(array, i, j, more, kind), align=8)

    def store(self, value: Any, array: Any, i: Any, j: Any, more: int) -> None:
        self.builder.store(value, self.address(array, i, j, more, self.kind), align=8)

    def spread(self, factor: Any) -> Any:
        """A number in all places of a vector."""
        if not self.whole:
            return factor
        ir, nothing, index = self.ir, self.ir.Constant(self.kind, self.ir.Undefined), self.ir.IntType(32)
        one = self.builder.insert_element(nothing, factor, index(0))
        return self.builder.shuffle_vector(
            one, nothing, ir.Constant(ir.VectorType(index, self.columns), [0] * self.columns)
        )

    def check(self, array: Any, row: Any, rows: int, column: Any, columns: int) -> None:
        """The last entry of a tile must be there, if bounds are checked."""
        if self.context.enable_boundscheck:
            down, along = self.cgutils.unpack_tuple(self.builder, array.shape, 2)
            for first, count, length in ((row, rows, down), (column, columns, along)):
                last = self.builder.add(first, self.number(count - 1))
                self.cgutils.do_boundscheck(self.context, self.builder, last, length)


def make_product(rows: int, columns: int, toolbox: Any) -> Any:
    """Numba's intrinsic of a product of so many rows and columns."""
    from numba import types as numba_types

    types = cast("Any", numba_types)

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, A: Any, a: Any, B: Any, b: Any, s: Any, out: Any, row: Any, at: Any) -> Any:
        place = types.intp

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            into = Lowering(toolbox, context, builder, signature.args, arguments, columns)
            (A, B, out), kind, number = into.arrays, into.kind, into.number
            _, a, _, b, s, _, row, at = arguments
            last = builder.sub(s, number(1))
            into.check(A, last, 1, a, rows)
            into.check(B, last, 1, b, columns)
            into.check(out, row, rows, at, columns)

            # The loop over the sum begins with zeros.
            before = builder.block
            loop, after = builder.append_basic_block("tile"), builder.append_basic_block("tiled")
            builder.branch(loop)
            builder.position_at_end(loop)
            p, places = builder.phi(number), [(r, c) for r in range(rows) for c in into.starts]
            sums = [builder.phi(kind) for _ in places]
            p.add_incoming(number(0), before)
            for each in sums:
                each.add_incoming(into.ir.Constant(kind, [0.0] * columns if into.whole else 0.0), before)

            # A row of B times an entry of A, for each row of the tile.
            pieces = {c: into.load(B, p, b, c, kind) for c in into.starts}
            factors = [into.spread(into.load(A, p, a, r, into.real)) for r in range(rows)]
            products = [builder.fmul(factors[r], pieces[c], flags=MAY_CONTRACT) for r, c in places]
            new = [builder.fadd(*each, flags=MAY_CONTRACT) for each in zip(sums, products, strict=True)]
            following = builder.add(p, number(1))
            p.add_incoming(following, loop)
            for each, value in zip(sums, new, strict=True):
                each.add_incoming(value, loop)
            builder.cbranch(builder.icmp_signed("<", following, s), loop, after)

            # Subtract the sums.
            builder.position_at_end(after)
            for (r, c), value in zip(places, new, strict=True):
                target = builder.add(row, number(r))
                into.store(builder.fsub(into.load(out, target, at, c, kind), value), out, target, at, c)
            return context.get_dummy_value()

        return types.void(A, place, B, place, place, out, place, place), lower

    return tile


def product_as_written(
    rows: int, columns: int, A: Any, a: int, B: Any, b: int, s: int, out: Any, row: int, at: int
) -> None:
    out[row : row + rows, at : at + columns] -= A[:s, a : a + rows].T @ B[:s, b : b + columns]


def product_tile(rows: int, columns: int) -> Any:
    """A kernel that subtracts one tile, out -= Aᵀ B: s >= 1 rows, columns of A from a on and of B from b on."""
    return built(partial(make_product, rows, columns), partial(product_as_written, rows, columns))


def make_solve(columns: int, divided: bool, toolbox: Any) -> Any:
    """Numba's intrinsic of a triangular solve for so many columns."""
    from numba import types as numba_types

    types = cast("Any", numba_types)

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, M: Any, first: Any, X: Any, row: Any, at: Any) -> Any:
        place = types.intp

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            into = Lowering(toolbox, context, builder, signature.args, arguments, columns)
            (M, X), number = into.arrays, into.number
            _, first, _, row, at = arguments
            into.check(M, first, SIX, first, SIX)
            into.check(X, row, SIX, at, columns)

            # Row after row, less those before it.
            for c in into.starts:
                solved: list[Any] = []
                for k in range(SIX):
                    here, target = builder.add(first, number(k)), builder.add(row, number(k))
                    value = into.load(X, target, at, c, into.kind)
                    for other, each in enumerate(solved):
                        factor = into.spread(into.load(M, here, first, other, into.real))
                        value = builder.fsub(value, builder.fmul(factor, each, flags=MAY_CONTRACT), flags=MAY_CONTRACT)
                    if divided:
                        value = builder.fmul(value, into.spread(into.load(M, here, first, k, into.real)))
                    solved.append(value)
                for k, value in enumerate(solved):
                    into.store(value, X, builder.add(row, number(k)), at, c)
            return context.get_dummy_value()

        return types.void(M, place, X, place, place), lower

    return tile


def solve_as_written(columns: int, divided: bool, M: Any, first: int, X: Any, row: int, at: int) -> None:
    for k in range(SIX):
        own = X[row + k, at : at + columns]
        own -= M[first + k, first : first + k] @ X[row : row + k, at : at + columns]
        if divided:
            own *= M[first + k, first + k]


def solve_tile(columns: int, divided: bool) -> Any:
    """A kernel for six rows and some columns of X: X = M⁻¹ X, M the lower triangle from (first, first) on.

    It has ones on its diagonal, or inverses (divided).
    """
    return built(partial(make_solve, columns, divided), partial(solve_as_written, columns, divided))


tile_6x6, tile_6x3, tile_6x1 = product_tile(6, 6), product_tile(6, 3), product_tile(6, 1)
tile_3x6, tile_3x3, tile_3x1 = product_tile(3, 6), product_tile(3, 3), product_tile(3, 1)
tile_1x6, tile_1x3, tile_1x1 = product_tile(1, 6), product_tile(1, 3), product_tile(1, 1)
solve_6, solve_3, solve_1 = solve_tile(6, False), solve_tile(3, False), solve_tile(1, False)
divide_6, divide_3, divide_1 = solve_tile(6, True), solve_tile(3, True), solve_tile(1, True)


@kernel
def solve_six(M, first, X, row, at, columns, divided):
    """X = M⁻¹ X for six rows of X and so many columns; M: the lower triangle from (first, first) on, as in a tile."""
    j, end = at, at + columns
    while j + 6 <= end:
        if divided:
            divide_6(M, first, X, row, j)
        else:
            solve_6(M, first, X, row, j)
        j += 6
    while j + 3 <= end:
        if divided:
            divide_3(M, first, X, row, j)
        else:
            solve_3(M, first, X, row, j)
        j += 3

    # Columns that are left, one by one.
    while j < end:
        if divided:
            divide_1(M, first, X, row, j)
        else:
            solve_1(M, first, X, row, j)
        j += 1


@kernel
def subtract_product(A, a, rows, B, b, columns, s, out, row, at):
    """out -= Aᵀ B: of s rows, so many columns of A from a and of B from b on; at this row and column of `out`."""
    # Strips of six rows, each by tiles as wide as fit.
    i = 0
    if s == 0:
        return
    while i + 6 <= rows:
        j = 0
        while j + 6 <= columns:
            tile_6x6(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 6
        while j + 3 <= columns:
            tile_6x3(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 3
        while j < columns:
            tile_6x1(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 1
        i += 6

    # Of three.
    while i + 3 <= rows:
        j = 0
        while j + 6 <= columns:
            tile_3x6(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 6
        while j + 3 <= columns:
            tile_3x3(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 3
        while j < columns:
            tile_3x1(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 1
        i += 3

    # The rows that are left, one by one.
    while i < rows:
        j = 0
        while j + 6 <= columns:
            tile_1x6(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 6
        while j + 3 <= columns:
            tile_1x3(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 3
        while j < columns:
            tile_1x1(A, a + i, B, b + j, s, out, row + i, at + j)
            j += 1
        i += 1
