"""Products of matrices whose sides are short and known only when they are there: out -= Aᵀ B.

Compilers make long loops fast, and loops of known length; a product of 6 × 6 takes five times as long as it must. So
tiles of six, three and one rows and columns are written out in vectors, of which the sum stays in registers.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from stiction.arrays.compiled import built, kernel

MAY_CONTRACT = ("contract", "reassoc")


def make_tile(rows: int, columns: int, toolbox: Any) -> Any:
    """Numba's intrinsic of a tile of so many rows and columns."""
    from llvmlite import ir
    from numba import types as numba_types

    types, cgutils, make_array = cast("Any", numba_types), toolbox.cgutils, toolbox.make_array

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, A: Any, a: Any, B: Any, b: Any, s: Any, out: Any, row: Any, at: Any) -> Any:
        place = types.intp

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            # Vectors as long as a row of the tile; a GPU has none.
            number, real = context.get_value_type(place), context.get_value_type(types.float64)
            whole = "nvptx" not in builder.module.triple and columns > 1
            kind = ir.VectorType(real, columns) if whole else real
            starts = [0] if whole else list(range(columns))

            # Arrays, and addresses of their entries; those of B and `out` lie side by side along a row.
            arrays = [
                make_array(each)(context, builder, value)
                for each, value in zip(signature.args, arguments, strict=True)
                if isinstance(each, types.Array)
            ]
            _, a, _, b, s, _, row, at = arguments

            def address(array: Any, i: Any, j: Any, more: int, kind: Any) -> Any:
                down, along = cgutils.unpack_tuple(builder, array.strides, 2)
                offset = builder.add(builder.mul(i, down), builder.mul(builder.add(j, number(more)), along))
                start = builder.bitcast(array.data, ir.IntType(8).as_pointer())
                return builder.bitcast(builder.gep(start, [offset]), kind.as_pointer())

            def spread(factor: Any) -> Any:
                if not whole:
                    return factor
                nothing, index = ir.Constant(kind, ir.Undefined), ir.IntType(32)
                one = builder.insert_element(nothing, factor, index(0))
                return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(index, columns), [0] * columns))

            # The last entries must be there.
            if context.enable_boundscheck:
                ends = builder.sub(s, number(1)), builder.add(row, number(rows - 1))
                widths = (a, rows), (b, columns), (at, columns)
                for array, end, (first, width) in zip(arrays, (ends[0], *ends), widths, strict=True):
                    down, along = cgutils.unpack_tuple(builder, array.shape, 2)
                    cgutils.do_boundscheck(context, builder, end, down)
                    cgutils.do_boundscheck(context, builder, builder.add(first, number(width - 1)), along)

            # The loop over the sum begins with zeros.
            before = builder.block
            loop, after = builder.append_basic_block("tile"), builder.append_basic_block("tiled")
            builder.branch(loop)
            builder.position_at_end(loop)
            p, places = builder.phi(number), [(r, c) for r in range(rows) for c in starts]
            sums = [builder.phi(kind) for _ in places]
            p.add_incoming(number(0), before)
            for each in sums:
                each.add_incoming(ir.Constant(kind, [0.0] * columns if whole else 0.0), before)

            # A row of B times an entry of A, for each row of the tile.
            pieces = {c: builder.load(address(arrays[1], p, b, c, kind), align=8) for c in starts}
            factors = [spread(builder.load(address(arrays[0], p, a, r, real))) for r in range(rows)]
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
                target = address(arrays[2], builder.add(row, number(r)), at, c, kind)
                builder.store(builder.fsub(builder.load(target, align=8), value), target, align=8)
            return context.get_dummy_value()

        return types.void(A, place, B, place, place, out, place, place), lower

    return tile


def tile_as_written(
    rows: int, columns: int, A: Any, a: int, B: Any, b: int, s: int, out: Any, row: int, at: int
) -> None:
    out[row : row + rows, at : at + columns] -= A[:s, a : a + rows].T @ B[:s, b : b + columns]


def tile_of(rows: int, columns: int) -> Any:
    """A kernel that subtracts one tile, out -= Aᵀ B: s >= 1 rows, columns of A from a on and of B from b on."""
    return built(partial(make_tile, rows, columns), partial(tile_as_written, rows, columns))


tile_6x6, tile_6x3, tile_6x1 = tile_of(6, 6), tile_of(6, 3), tile_of(6, 1)
tile_3x6, tile_3x3, tile_3x1 = tile_of(3, 6), tile_of(3, 3), tile_of(3, 1)
tile_1x6, tile_1x3, tile_1x1 = tile_of(1, 6), tile_of(1, 3), tile_of(1, 1)


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
