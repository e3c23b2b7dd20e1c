"""Workers: where the chunks of a sweep are done, in this process or in others.

Each way is a generator: chunks in, pairs of a number and the bytes of a file out, in the order in which they are done.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import signal
import sys
from collections import Counter, deque
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from stiction.errors import InvalidProblem, StictionError
from stiction.sweeps.chunks import Chunk, Function, done
from stiction.sweeps.folder import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Done = tuple[int, bytes]
UNGUARDED = (
    "sweep: workers begin by reading the program that starts them, which must not start them again: put the call under "
    "`if __name__ == '__main__':`"
)
ENDED = 5.0  # s that a worker is given to end by itself


def here(chunks: Iterable[Chunk], function: Function) -> Iterator[Done]:
    """In this process, one after the other."""
    for chunk in chunks:
        yield chunk.number, done(chunk, function)


def on_cores(chunks: Iterable[Chunk], function: Function, workers: int, retries: int) -> Iterator[Done]:
    """Chunks in worker processes, any of which may end at any time.

    A chunk whose worker was killed is done again. A case that was running when its worker ended `retries` + 1 times is
    not tried again: it becomes a row with an error, and the rest of its chunk is done.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InvalidProblem(UNGUARDED)
    left, ends = deque(chunks), Counter[int]()
    sent = packed(function)
    team = [Worker(sent) for _ in range(min(workers, len(left)))]
    try:
        while left or any(worker.chunk is not None for worker in team):
            for worker in team:
                if worker.chunk is None and left:
                    worker.give(left.popleft())
            for place, worker in answering(team):
                answer = worker.answer()
                if answer is not None:
                    yield answer
                    continue
                # The worker has ended. What it was doing goes back to the front, and another takes its place.
                chunk, case = worker.chunk, worker.case
                if chunk is not None and case is None:
                    raise StictionError(worker.why())
                team[place] = Worker(sent)
                if chunk is not None and case is not None:
                    ends[case] += 1
                    if ends[case] > retries:
                        chunk = chunk._replace(lost={**chunk.lost, case: f"the worker ended: {worker.end()}"})
                    left.appendleft(chunk)
    finally:
        for worker in team:
            worker.dismiss()
        for worker in team:
            worker.close()


def answering(team: list[Worker]) -> list[tuple[int, Worker]]:
    """Workers that have answered or ended; waits for the first of them."""
    busy = {worker.pipe: (place, worker) for place, worker in enumerate(team) if worker.chunk is not None}
    return [busy[pipe] for pipe in wait(list(busy)) if isinstance(pipe, Connection)]


class Worker:
    """A process that does one chunk after the other.

    chunk: the one it works on, None if it has none
    case: index of its present case, None before the first
    """

    def __init__(self, sent: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.place = context.Value("q", -1, lock=False)
        self.pipe, other = context.Pipe()
        self.chunk: Chunk | None = None
        self.process = context.Process(target=work, args=(other, self.place, sent), daemon=True)
        try:
            self.process.start()
        except RuntimeError as error:  # of multiprocessing, where the program is not guarded
            raise InvalidProblem(UNGUARDED) from error
        other.close()

    @property
    def case(self) -> int | None:
        return None if self.place.value < 0 else int(self.place.value)

    def give(self, chunk: Chunk) -> None:
        self.chunk, self.place.value = chunk, -1
        with suppress(OSError):  # it has ended, which is seen when it is asked for the answer
            self.pipe.send(chunk)

    def answer(self) -> Done | None:
        """The chunk that it was given, or None if it has ended."""
        try:
            number, content = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(content, str):
            raise InvalidProblem(content)
        self.chunk = None
        return number, content

    def end(self) -> str:
        """How it ended."""
        self.process.join(ENDED)
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"exit status {code}"
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
        return f"killed by signal {-code}"

    def why(self) -> str:
        """About one that ended before it began with a case."""
        return (
            f"sweep: a worker ended before its first case ({self.end()}); if the program that calls sweep is a script, "
            "put the call under `if __name__ == '__main__':`"
        )

    def dismiss(self) -> None:
        """Let an idle worker end by itself, and end a busy one."""
        if self.chunk is not None:
            self.process.terminate()
        self.pipe.close()

    def close(self) -> None:
        self.process.join(ENDED)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


def work(pipe: Connection, place: Any, sent: bytes) -> None:
    """The loop of a worker, until nobody is left to answer to; Ctrl-C is for the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        function = pickle.loads(sent)
    except Exception as error:  # whatever importing a module of the user's raises
        with suppress(OSError, EOFError):
            number = pipe.recv().number
            pipe.send((number, f"sweep: a worker cannot import the function ({type(error).__name__}: {error})"))
        return

    def beginning(index: int) -> None:
        place.value = index

    with suppress(OSError, EOFError):
        while True:
            chunk = pipe.recv()
            pipe.send((chunk.number, done(chunk, function, beginning)))


def packed(function: Function) -> bytes:
    """A function as it is sent to workers: by name where they can find it, else by value if cloudpickle is there."""
    typed_in = getattr(function, "__module__", "") == "__main__" and not hasattr(sys.modules["__main__"], "__file__")
    try:
        if typed_in:
            raise pickle.PicklingError("it was typed in at a prompt or in a notebook")
        return pickle.dumps(function)
    except Exception as error:
        with suppress(ImportError):
            return bytes(importlib.import_module("cloudpickle").dumps(function))
        raise InvalidProblem(
            f"sweep: {name_of(function)} cannot be sent to workers ({error}); define it at the top of a module"
        ) from error
