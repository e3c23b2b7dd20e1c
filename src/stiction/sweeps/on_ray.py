"""Chunks as tasks of Ray, on this machine or on a cluster.

Tables return to the driver, which alone writes files, so that no folder needs to be shared. Ray starts a task again
whose worker was killed; a chunk that fails nevertheless is done case by case, so that one case does not cost the rest.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from stiction import __version__
from stiction.errors import StictionError
from stiction.optional import ray
from stiction.sweeps.chunks import Chunk, Function, done

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stiction.sweeps.workers import Done

AHEAD = 4  # chunks for each processor that are handed to Ray at once


def versions() -> str:
    return f"stiction {__version__} on Python {platform.python_version()}"


def task(chunk: Chunk, function: Function, asked: str) -> Any:
    """A chunk's table, or the versions of a worker that differ from those of the driver."""
    return done(chunk, function) if versions() == asked else versions()


def on_ray(
    chunks: Iterable[Chunk], function: Function, workers: int | None, retries: int, address: str | None
) -> Iterator[Done]:
    """On Ray as it runs already, at an address, or begun here with so many workers."""
    package = ray()
    begun = not package.is_initialized()
    if begun:
        try:
            package.init(
                address=address, num_cpus=None if address else workers, include_dashboard=None if address else False,
                log_to_driver=False, configure_logging=False,
            )  # fmt: skip
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise StictionError(
                f"sweep: no Ray cluster at {address!r} ({reason}); start one: ray start --head"
            ) from error
    try:
        remote = package.remote(num_cpus=1, max_retries=retries)(task)
        sent = package.put(function)
        yield from gathered(package, remote, sent, list(chunks))
    finally:
        if begun:
            package.shutdown()


def gathered(package: Any, remote: Any, sent: Any, left: list[Chunk]) -> Iterator[Done]:
    """Hand chunks to Ray as it gets through with them."""
    left.reverse()
    most = AHEAD * max(1, int(package.cluster_resources().get("CPU", 1)))
    going: dict[Any, Chunk] = {}
    while left or going:
        while left and len(going) < most:
            chunk = left.pop()
            going[remote.remote(chunk, sent, versions())] = chunk
        ready, _ = package.wait(list(going))
        for each in ready:
            chunk = going.pop(each)
            yield chunk.number, result(package, remote, sent, each, chunk)


def result(package: Any, remote: Any, sent: Any, reference: Any, chunk: Chunk) -> bytes:
    """The table of a chunk; where its worker was killed again and again, each case is tried alone."""
    try:
        found = package.get(reference)
    except package.exceptions.WorkerCrashedError:
        lost = dict(chunk.lost)
        for index, case in enumerate(chunk.cases, chunk.first):
            alone = Chunk(chunk.number, index, [case], chunk.types, {})
            try:
                package.get(remote.remote(alone, sent, versions()))
            except package.exceptions.WorkerCrashedError:
                lost[index] = "the worker ended: killed"
        found = package.get(remote.remote(chunk._replace(lost=lost), sent, versions()))
    except package.exceptions.RayError as error:
        reason = " ".join(str(error).split())
        raise StictionError(
            f"sweep: a worker of Ray cannot do its work ({reason[:300]}); install stiction[cluster] and the module of "
            "the function on every node"
        ) from error
    if isinstance(found, str):
        raise StictionError(
            f"sweep: a worker of Ray has {found}, but this is {versions()}; install the same on every node"
        )
    return bytes(found)
