"""Problems in the text format of Siconos: white space between numbers, a new line for each thing.

    dimension, contacts, W, q, mu                  local,   u = W r + q
    dimension, contacts, M, H, q, b, mu            global,  M v = H r + q,   u = Hᵀ v + b

A matrix begins with its kind and its numbers of rows and columns:

    0  dense: rows and columns once more, then all entries by columns
    1  blocks: number of blocks, of block rows and block columns; where each block row ends, and each block column; two
       lengths; pointers to the first block of each block row (one more than there are), and the block column of each
       block; then for each block its number and its entries by columns
    2  sparse: a number, then what CSparse prints: a line of its version; `triplet: M-by-N, ...` and lines `i j : x`, or
       `M-by-N, ...` and for each column a line `col j : locations a to b` and lines `i : x`

The law is Coulomb's on the circular cone, frames have the order n, t1(, t2). Dimension 5 is rolling friction in space:
two moments follow the forces of a contact, and after mu there are coefficients mu_r of rolling; in the plane it is
three and one. Sliding and rolling are bounded apart, |r_t| <= mu r_n and |m| <= mu_r r_n: `Coulomb(joint=False)`, with
rows of six directions, of which the turn about the normal is empty. `ignore=("rolling",)` leaves the moments out.

A problem is written with sparse matrices, and with as many digits as read back to the same numbers: global if its mass
is known. The format has no place for joints; a problem that has some is written as the local one that is left when
their impulses are eliminated, which has the same contact impulses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from stiction.errors import InvalidProblem
from stiction.problems.assemble import CONE, Source, errors_of, global_problem, local_problem, offset_of, reduced
from stiction.problems.contact import ContactProblem, with_ratio
from stiction.problems.laws import Coulomb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DENSE, BLOCKS, SPARSE = 0, 1, 2
AS_TRIPLETS = 1  # the storage of a sparse matrix that is written
ROLLING = 5  # the dimension of rolling friction in space
IN_SPACE = (0, 1, 2, 4, 5)  # where its rows stand among our six
APART = Coulomb(joint=False)  # its law
BEGINNING = re.compile(rb"\s*\d+[ \t]*\r?\n\s*\d+[ \t]*\r?\n\s*[012][ \t]*\r?\n")
SIZES = re.compile(r"\s*(triplet: )?(\d+)-by-(\d+), nzmax: (\S+) nnz: ([^\s,]+)")
TRIPLET = re.compile(r"\s*(\d+) (\d+) : (\S+)\s*$")
COLUMN = re.compile(r"\s*col (\d+) : locations (-?\d+) to (-?\d+)\s*$")
ENTRY = re.compile(r"\s*(\d+) : (\S+)\s*$")


def is_siconos(head: bytes) -> bool:
    """By the first bytes of a file: a dimension, a number of contacts, a kind of matrix, a line each."""
    return BEGINNING.match(head) is not None


def read(path: Path, ignore: tuple[str, ...] = ()) -> ContactProblem:
    """Read a local or global problem; `ignore` may name "rolling"."""
    text = Text(path)
    dim = text.whole("the dimension")
    if dim not in (2, 3, ROLLING):
        raise text.wrong(f"the dimension must be 2 or 3, or 5 with rolling friction, got {dim}")
    contacts = text.whole("the number of contacts")
    source = Source(f"load: {path}", path.stat().st_size)
    matrix = text.matrix("the first matrix")
    with errors_of(path):
        if text.matrix_follows(matrix.shape[0]):
            return _global(text, source, dim, contacts, matrix, ignore)
        return _local(text, source, dim, contacts, matrix, ignore)


def write(problem: ContactProblem, path: Path) -> None:
    """Write a problem; use `problem.save`, which never leaves half a file."""
    rolls = problem.rows.shape[1] > 3
    if rolls and problem.law.kind == "cone" and problem.law != APART:
        raise InvalidProblem(
            "save: in Siconos' text format sliding and rolling are bounded apart; save as .npz, or "
            "problem.with_law(Coulomb(joint=False))"
        )
    if problem.law not in (CONE, APART):
        raise InvalidProblem(
            f"save: Siconos' text format knows Coulomb's law on the circular cone only, not {problem.law}; "
            "save as .npz, or problem.with_law(Coulomb())"
        )
    if problem.slides:
        raise InvalidProblem("save: Siconos' text format has no place for known slip directions; save as .npz")
    if rolls and (problem.ratio is None or problem.ratio[:, 2].any()):
        raise InvalidProblem("save: Siconos' text format has rolling friction, but no torsion; save as .npz")
    if rolls and not all(np.array_equal(problem.ratio[:, a], problem.ratio[:, a + 1]) for a in (0, 3)):  # type: ignore[index]
        raise InvalidProblem("save: Siconos' text format has equal friction in all directions; save as .npz")
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.writelines(_lines(_without_joints(problem)))


def _without_joints(problem: ContactProblem) -> ContactProblem:
    """The problem itself, or in Delassus form if it has joints."""
    if not len(problem.joints):
        return problem
    if len(problem.contradicting_joints):
        raise InvalidProblem("save: joints that contradict each other cannot be eliminated; save as .npz")
    mass = scipy.sparse.block_diag(problem.mass_blocks).toarray()
    rows = np.ascontiguousarray(problem.dense_rows()[:, : problem.dim])
    source = Source("save: the problem without its joints", mass.nbytes + rows.nbytes)
    given = problem.friction if problem.rows.shape[1] == 3 else np.ones((problem.n, 5)) * problem.friction[:, None]
    local = reduced(source, mass, problem.velocity, rows, problem.joints, problem.joint_rate, offset_of(problem), given)
    return with_ratio(local, problem.ratio)


def _lines(problem: ContactProblem) -> Iterator[str]:
    (n, d), m, rolls = problem.rows.shape[:2], problem.m, problem.rows.shape[1] > 3
    taken = [*IN_SPACE] if rolls else [*range(problem.dim)]

    # Rows of rolling were multiplied by their coefficients over mu: as they were given, they are divided by them.
    per = np.ones((n, d))
    if rolls and problem.ratio is not None:
        per[:, 1:] = np.where(problem.ratio > 0.0, 1.0 / np.where(problem.ratio > 0.0, problem.ratio, 1.0), 0.0)
    per, dim = per[:, taken], len(taken)
    yield f"{dim}\n{n}\n"
    if problem.mass is None:
        assert problem.delassus is not None
        assert problem.offset is not None
        place, every = np.arange(d * n).reshape(n, d)[:, taken].ravel(), per.ravel()
        yield from _sparse_lines(every[:, None] * problem.delassus[np.ix_(place, place)] * every)
        yield _number_line(every * problem.offset[place])
    else:
        M = scipy.sparse.block_diag(problem.mass_blocks) if m else np.zeros((0, 0))
        yield from _sparse_lines(M)
        yield from _sparse_lines((per[:, :, None] * problem.dense_rows()[:, taken]).reshape(n * dim, m).T)
        yield _number_line(M @ problem.velocity)
        yield _number_line(per * offset_of(problem)[:, taken])
    yield _number_line(problem.friction)
    if rolls and problem.ratio is not None:
        yield _number_line(problem.friction * problem.ratio[:, 3])


def _sparse_lines(matrix: Any) -> Iterator[str]:
    """As CSparse prints triplets, but with all digits."""
    entries = scipy.sparse.coo_array(matrix)
    rows, columns = entries.shape
    yield f"{SPARSE}\n{rows}\n{columns}\n{AS_TRIPLETS}\nCSparse Version 3.1.9\n"
    yield f"triplet: {rows}-by-{columns}, nzmax: {entries.nnz} nnz: {entries.nnz}\n"
    for i, j, value in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True):
        yield f"    {i} {j} : {value!r}\n"


def _number_line(numbers: Array) -> str:
    return " ".join(map(repr, np.ravel(numbers).tolist())) + "\n"


def _local(text: Text, source: Source, dim: int, contacts: int, W: Any, ignore: tuple[str, ...]) -> ContactProblem:
    size = dim * contacts
    if W.shape != (size, size):
        raise text.wrong(f"{contacts} contacts of dimension {dim} need a matrix of {size} rows, got {W.shape}")
    q = text.numbers("q", size)
    friction, dim, kept, place, law = _friction(text, dim, contacts, ignore)
    W = scipy.sparse.coo_array(W.tocsr()[kept][:, kept])
    wide, every = np.zeros(dim * contacts), (dim * contacts, dim * contacts)
    wide[place] = q[kept]
    W = scipy.sparse.coo_array((W.data, (place[W.row], place[W.col])), every)
    return local_problem(source, W, wide, friction, dim, law)


def _global(text: Text, source: Source, dim: int, contacts: int, M: Any, ignore: tuple[str, ...]) -> ContactProblem:
    m = M.shape[0]
    if M.shape != (m, m):
        raise text.wrong(f"M must be square, got {M.shape}")
    H = text.matrix("H")
    if H.shape != (m, dim * contacts):
        raise text.wrong(f"H must have {m} rows and {dim * contacts} columns, got {H.shape}")
    f, w = text.numbers("q", m), text.numbers("b", dim * contacts)
    friction, dim, kept, place, law = _friction(text, dim, contacts, ignore)
    H, wide = scipy.sparse.coo_array(H.tocsc()[:, kept]), np.zeros(dim * contacts)
    wide[place] = w[kept]
    H = scipy.sparse.coo_array((H.data, (H.row, place[H.col])), (m, dim * contacts))
    return global_problem(source, M, H, f, wide, friction, dim, scipy.sparse.coo_array((m, 0)), np.zeros(0), law)


def _friction(
    text: Text, dim: int, contacts: int, ignore: tuple[str, ...]
) -> tuple[Array, int, NDArray[np.int64], NDArray[np.int64], Coulomb]:
    """Coefficients, our dimension, which rows are taken, where they go, and the law."""
    friction = text.numbers("mu", contacts)
    rolls = dim == ROLLING or (dim == 3 and text.left() in (contacts, contacts + 1) and not text.ends_with_flag())
    rolling = text.numbers("the coefficients of rolling", contacts) if rolls and contacts else np.zeros(contacts)
    if text.left() and not text.ends_with_flag():
        raise text.wrong("there are more numbers than the problem has", ahead=True)
    every = np.arange(dim * contacts).reshape(contacts, dim)
    if rolling.any() and "rolling" not in ignore:
        to = IN_SPACE if dim == ROLLING else (0, 1, 4)
        place = np.arange(6 * contacts).reshape(contacts, 6)[:, to]
        both = np.column_stack([friction, friction, np.zeros(contacts), rolling, rolling])
        return both, 6, every.ravel(), place.ravel(), APART
    if rolls:
        every, dim = every[:, : 3 if dim == ROLLING else 2], 3 if dim == ROLLING else 2
    return friction, dim, every.ravel(), np.arange(every.size), CONE


class Text:
    """The words of a file, one after the other, with the line that each stands in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.lines = path.read_text(encoding="ascii").splitlines()
        except OSError as error:
            raise InvalidProblem(
                f"load: cannot read {path} ({error.strerror}); check its kind and permissions"
            ) from error
        except UnicodeDecodeError as error:
            raise InvalidProblem(f"load: {path} is not text: byte {error.start} is none of ASCII") from None
        self.line = 0  # the next to be read
        self.words: list[str] = []  # of the line before it, those that are left, the last first

    def wrong(self, what: str, ahead: bool = False) -> InvalidProblem:
        """An error that names the line of the last word read, or of the next."""
        if ahead and not self.words:
            self.fill()
        return InvalidProblem(f"load: {self.path}, line {max(self.line, 1)}: {what}")

    def fill(self) -> bool:
        """Go to the next line that has words; returns whether there is one."""
        while not self.words and self.line < len(self.lines):
            self.words = self.lines[self.line].split()[::-1]
            self.line += 1
        return bool(self.words)

    def word(self, what: str) -> str:
        if not self.fill():
            raise self.wrong(f"the file ends where {what} should be; copy it anew")
        return self.words.pop()

    def whole(self, what: str) -> int:
        """A whole number of at least 0."""
        word = self.word(what)
        if not (word.isascii() and word.isdigit()):
            raise self.wrong(f"{what} must be a whole number of at least 0, got {word!r}")
        return int(word)

    def wholes(self, what: str, count: int) -> NDArray[np.int64]:
        """So many whole numbers; a file with fewer is refused before memory is allocated for them."""
        return np.array([self.whole(what) for _ in range(count)], np.int64)

    def numbers(self, what: str, count: int) -> Array:
        """So many finite numbers."""
        return np.array([self.number(what, self.word(what)) for _ in range(count)], np.float64)

    def number(self, what: str, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            raise self.wrong(f"{what} must hold numbers, got {word!r}") from None
        if not np.isfinite(value):
            raise self.wrong(f"{what} must hold finite numbers, got {word!r}")
        return value

    def left(self) -> int:
        """How many words are left."""
        return len(self.words) + sum(len(line.split()) for line in self.lines[self.line :])

    def ends_with_flag(self) -> bool:
        """Whether all that is left is one whole number, which older files end with."""
        return self.left() == 1 and self.fill() and self.words[-1].isdigit()

    def matrix_follows(self, rows: int) -> bool:
        """Whether the next three lines begin a matrix of so many rows, rather than a vector."""
        if self.words:
            return False
        ahead = [line.split() for line in self.lines[self.line :] if line.strip()][:3] if self.line else []
        alone = len(ahead) == 3 and all(len(words) == 1 and words[0].isdigit() for words in ahead)
        return alone and ahead[0][0] in "012" and int(ahead[1][0]) == rows

    def matrix(self, what: str) -> Any:
        """A sparse matrix of any kind."""
        kind = self.whole(f"the kind of {what}")
        rows, columns = self.whole(f"the rows of {what}"), self.whole(f"the columns of {what}")
        kinds = {DENSE: self.dense, BLOCKS: self.blocks, SPARSE: self.sparse}
        if kind not in kinds:
            raise self.wrong(f"the kind of {what} must be 0 (dense), 1 (blocks) or 2 (sparse), got {kind}")
        return kinds[kind](what, rows, columns)

    def dense(self, what: str, rows: int, columns: int) -> Any:
        again = self.whole(f"the rows of {what}"), self.whole(f"the columns of {what}")
        if again != (rows, columns):
            raise self.wrong(f"{what} has {rows} rows and {columns} columns at first, then {again[0]} and {again[1]}")
        if rows * columns > self.left():
            raise self.wrong(f"{what} has {rows} · {columns} entries, but the file only {self.left()} more numbers")
        return scipy.sparse.coo_array(self.numbers(what, rows * columns).reshape(columns, rows).T)

    def blocks(self, what: str, rows: int, columns: int) -> Any:
        count = self.whole(f"the number of blocks of {what}")
        high, wide = self.whole(f"the block rows of {what}"), self.whole(f"the block columns of {what}")
        ends = [self.wholes(f"where blocks of {what} end", number) for number in (high, wide)]
        for name, end, size in (("rows", ends[0], rows), ("columns", ends[1], columns)):
            if (np.diff(end, prepend=0) < 0).any() or (end[-1] if len(end) else 0) != size:
                raise self.wrong(f"the ends of blocks of {what} must rise to its {size} {name}")
        lengths = self.whole(f"the pointers of {what}"), self.whole(f"the blocks of {what}")
        pointers, places = (self.wholes(f"the places of blocks of {what}", length) for length in lengths)
        if lengths[1] < count or (places[:count] >= wide).any():
            raise self.wrong(f"{what} has {count} blocks, but their columns are not {count} numbers below {wide}")
        first = pointers[: high + 1]
        if count and (len(first) != high + 1 or first[0] != 0 or first[-1] != count or (np.diff(first) < 0).any()):
            raise self.wrong(f"the pointers of {what} must rise from 0 to its {count} blocks in {high + 1} steps")
        begins = [np.concatenate([[0], end])[:-1].astype(np.int64) for end in ends]
        sizes = [np.diff(end, prepend=0) for end in ends]
        values, row, column = [], [], []
        block_row = np.repeat(np.arange(high), np.diff(first)) if count else np.zeros(0, np.int64)
        for number, (i, j) in enumerate(zip(block_row, places[:count], strict=True)):
            if self.whole(f"the number of a block of {what}") != number:
                raise self.wrong(f"block {number} of {what} should begin here, with its number")
            a, b = sizes[0][i], sizes[1][j]
            values.append(self.numbers(what, int(a * b)))
            row.append(begins[0][i] + np.tile(np.arange(a), b))
            column.append(begins[1][j] + np.repeat(np.arange(b), a))
        if not values:
            return scipy.sparse.coo_array((rows, columns))
        return scipy.sparse.coo_array(
            (np.concatenate(values), (np.concatenate(row), np.concatenate(column))), (rows, columns)
        )

    def sparse(self, what: str, rows: int, columns: int) -> Any:
        self.whole(f"the storage of {what}")
        if not self.next_line(what).lstrip().startswith("CSparse"):
            raise self.wrong(f"{what} should begin with CSparse's line of its version")
        sizes = SIZES.match(self.next_line(what))
        if sizes is None:
            raise self.wrong(f"{what} should begin with its sizes, as in '3-by-3, nzmax: 9 nnz: 9'")
        if (int(sizes[2]), int(sizes[3])) != (rows, columns):
            raise self.wrong(f"{what} has {rows} rows and {columns} columns at first, then {sizes[2]} and {sizes[3]}")
        entries = self.triplets(what) if sizes[1] else self.by_column(what, columns)
        row, column, value = zip(*entries, strict=True) if entries else ((), (), ())
        for name, index, size in (("row", row, rows), ("column", column, columns)):
            if max(index, default=-1) >= size:
                raise self.wrong(f"{what} has an entry in {name} {max(index)}, but only {size} of them")
        stored = float(sizes[5])
        if abs(len(entries) - stored) > 1e-5 * stored:  # large numbers are printed with six digits
            raise self.wrong(f"{what} has {stored:g} entries by its sizes, but {len(entries)} lines of them")
        return scipy.sparse.coo_array((np.array(value, np.float64), (row, column)), (rows, columns))

    def next_line(self, what: str) -> str:
        if self.words:
            raise self.wrong(f"{what} should begin on a line of its own")
        while self.line < len(self.lines):
            self.line += 1
            if self.lines[self.line - 1].strip():
                return self.lines[self.line - 1]
        raise self.wrong(f"the file ends where {what} should be; copy it anew")

    def matched(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next line, if it is of that kind."""
        found = pattern.match(self.lines[self.line]) if self.line < len(self.lines) else None
        if found:
            self.line += 1
        return found

    def triplets(self, what: str) -> list[tuple[int, int, float]]:
        entries = []
        while found := self.matched(TRIPLET):
            entries.append((int(found[1]), int(found[2]), self.number(what, found[3])))
        return entries

    def by_column(self, what: str, columns: int) -> list[tuple[int, int, float]]:
        entries = []
        for j in range(columns):
            head = self.matched(COLUMN)
            if head is None or int(head[1]) != j:
                raise self.wrong(f"column {j} of {what} should begin after this, as in 'col {j} : locations 0 to 1'")
            for _ in range(int(head[3]) - int(head[2]) + 1):
                found = self.matched(ENTRY)
                if found is None:
                    raise self.wrong(f"an entry of column {j} of {what} should follow this, as in '0 : 1.5'")
                entries.append((int(found[1]), j, self.number(what, found[2])))
        return entries
