"""Products of matrices whose sides are short and known only when they are there: out -= Aᵀ B.

Compilers make long loops fast, and loops of known length; a product of 6 × 6 takes five times as long as it must. So
tiles of six, three and one rows and columns are written out in vectors, of which the sum stays in registers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from stiction.arrays.compiled import built, kernel

MAY_CONTRACT = ("contract", "reassoc")


def make_tile(rows: int, columns: int, toolbox: Any) -> Any:
    """Numba's intrinsic of a tile of so many rows and columns."""
    from llvmlite import ir
    from numba import types as numba_types

    types: Any = numba_types
    cgutils, make_array = toolbox.cgutils, toolbox.make_array

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def tile(typing: Any, A: Any, a: Any, B: Any, b: Any, s: Any, out: Any, row: Any, at: Any) -> Any:
        place = types.intp

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            # Arrays, and addresses of their entries; those of B and `out` lie side by side along a row.
            number, real = context.get_value_type(place), context.get_value_type(types.float64)
            vector = ir.VectorType(real, columns)
            arrays = [
                make_array(kind)(context, builder, value)
                for kind, value in zip(signature.args, arguments, strict=True)
                if isinstance(kind, types.Array)
            ]
            _, a, _, b, s, _, row, at = arguments

            def address(array: Any, i: Any, j: Any, kind: Any) -> Any:
                down, along = cgutils.unpack_tuple(builder, array.strides, 2)
                offset = builder.add(builder.mul(i, down), builder.mul(j, along))
                start = builder.bitcast(array.data, ir.IntType(8).as_pointer())
                return builder.bitcast(builder.gep(start, [offset]), kind.as_pointer())

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
            p, sums = builder.phi(number), [builder.phi(vector) for _ in range(rows)]
            p.add_incoming(number(0), before)
            for each in sums:
                each.add_incoming(ir.Constant(vector, [0.0] * columns), before)

            # A row of B times an entry of A, for each row of the tile.
            piece = builder.load(address(arrays[1], p, b, vector), align=8)
            new = []
            for r, each in enumerate(sums):
                factor = builder.load(address(arrays[0], p, builder.add(a, number(r)), real))
                one = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.IntType(32)(0))
                spread = ir.Constant(ir.VectorType(ir.IntType(32), columns), [0] * columns)
                wide = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), spread)
                new.append(builder.fadd(each, builder.fmul(wide, piece, flags=MAY_CONTRACT), flags=MAY_CONTRACT))
            following = builder.add(p, number(1))
            p.add_incoming(following, loop)
            for each, value in zip(sums, new, strict=True):
                each.add_incoming(value, loop)
            builder.cbranch(builder.icmp_signed("<", following, s), loop, after)

            # Subtract the sums.
            builder.position_at_end(after)
            for r, value in enumerate(new):
                target = address(arrays[2], builder.add(row, number(r)), at, vector)
                builder.store(builder.fsub(builder.load(target, align=8), value), target, align=8)
            return context.get_dummy_value()

        return types.void(A, place, B, place, place, out, place, place), lower

    return tile


def tile_as_written(
    rows: int, columns: int, A: Any, a: int, B: Any, b: int, s: int, out: Any, row: int, at: int
) -> None:
    out[row : row + rows, at : at + columns] -= A[:s, a : a + rows].T @ B[:s, b : b + columns]


def tile_of(rows: int, columns: int) -> Any:
    """The kernel of a tile: out -= Aᵀ B for columns of A from a, of B from b on, s >= 1 rows of both."""
    return built(partial(make_tile, rows, columns), partial(tile_as_written, rows, columns))


tile_6x6, tile_6x3, tile_6x1 = tile_of(6, 6), tile_of(6, 3), tile_of(6, 1)
tile_3x6, tile_3x3, tile_3x1 = tile_of(3, 6), tile_of(3, 3), tile_of(3, 1)
tile_1x6, tile_1x3, tile_1x1 = tile_of(1, 6), tile_of(1, 3), tile_of(1, 1)


@kernel
def subtract_product(A, a, rows, B, b, columns, s, out, row, at):
    """out -= Aᵀ B: of s rows, so many columns of A from a and of B from b on; at this row and column of `out`."""
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
