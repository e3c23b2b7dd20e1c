"""Files that appear whole or not at all, and archives that are refused before they fill the memory.

A file is written beside its destination, under a name that nobody else has, brought to the disk and renamed: readers
see the old file or the new one, whatever happens in between.
"""

from __future__ import annotations

import os
import secrets
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stiction.errors import StictionError

# What is unpacked may take this many bytes, or, of a larger file, this many times its own size. Matrices with many
# zeros shrink a hundredfold; what grows further was made to grow.
ROOM, GROWTH = 1 << 26, 100


class Part:
    """A new file beside a destination, whose place it takes with `finish`; `discard` removes it."""

    def __init__(self, destination: Path) -> None:
        self.destination = destination
        if destination.is_dir():
            raise IsADirectoryError(21, "is a folder")
        # The suffix stays last: writers of films and figures choose their format by it.
        self.path = destination.with_name(f".{destination.stem[:40]}-{secrets.token_hex(8)}.part{destination.suffix}")
        # O_EXCL: neither an existing file nor a link that somebody laid there is ever written to.
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))

    def finish(self) -> None:
        """Bring the file to the disk and give it its name."""
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())
        self.path.replace(self.destination)
        sync_folder(self.destination.parent)

    def discard(self) -> None:
        """Remove the file, if it still has its own name."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring a change of names to the disk, where the system can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextmanager
def written_whole(
    path: Path, what: str, error: type[StictionError] = InvalidProblem, advice: str = ""
) -> Iterator[Path]:
    """A file to write, which takes the name `path` when the block has ended well.

    what: the word with which the message of an unwritable file begins
    """
    try:
        part = Part(path)
        try:
            yield part.path
            part.finish()
        finally:
            part.discard()
    except OSError as cause:
        raise error(unwritable(path, what, cause, advice)) from cause


def unwritable(path: Path, what: str, cause: OSError, advice: str = "") -> str:
    """The message about a file that cannot be written, in one line."""
    reason = " ".join(str(cause.strerror or cause).split())
    return f"{what}: cannot write {path} ({reason}){advice}"


def check_growth(name: str, given: int, size: int) -> None:
    """Raise if something grows, when it is unpacked, beyond all proportion to the file that holds it.

    name: the file or the part of it that is named in the message
    given, size: bytes of the file, and of what it says that it holds
    """
    if size > max(ROOM, GROWTH * given):
        raise InvalidProblem(
            f"{name} takes {given:,} bytes and says that it holds {size:,}: refused, lest it fill the memory"
        )


def check_archive(name: str, archive: zipfile.ZipFile, given: int) -> None:
    """The same of all members of an archive together."""
    check_growth(name, given, sum(member.file_size for member in archive.infolist()))
