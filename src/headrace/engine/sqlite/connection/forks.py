"""No connection is carried over a fork.

SQLite keeps an account of the locks that a process has on a file. A fork copies the account and not
the locks. So a child that opens the same file again takes locks for its own that it does not have,
and waits without end for those that a connection of its parent had at that moment; and the parent,
which sees no lock of the child, removes the log under it. SQLite's mutexes are copied as well, in
whatever state they are.

What holds at every moment: between `before` and `after` of a fork no registered thread has a
connection to a file, nor uses SQLite, and none begins to. Where that cannot be had in time the fork
goes ahead, and the child refuses to use SQLite. Without a fork nothing of this is done.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from headrace.errors import EngineUnavailable

log = logging.getLogger("headrace.engine")

# A fork waits so long for what is under way. A transaction takes milliseconds.
REST_SECONDS = 5.0
LOOK_SECONDS = 0.05

CARRIED_OVER = (
    "This process was forked while its parent was busy with SQLite, and cannot use SQLite safely. "
    "Fork again, or start processes by spawn instead of fork."
)


class ForkPause:
    """A thread is asked to rest: it says so once it does, and goes on when the rest is over."""

    __slots__ = ("_began", "_over")

    def __init__(self) -> None:
        self._began = threading.Event()
        self._over = threading.Event()

    @property
    def over(self) -> bool:
        """Whether the fork is done, or did not wait."""
        return self._over.is_set()

    def take(self) -> None:
        """From the thread: it has closed what it had open. Returns when the fork is done."""
        self._began.set()
        self._over.wait()

    def end(self) -> None:
        """The fork is done."""
        self._over.set()

    def began(self, thread: PausableThread, limit: float) -> bool:
        """Wait until the thread rests, or has ended."""
        while not self._began.wait(min(LOOK_SECONDS, max(limit - time.monotonic(), 0))):
            if not thread.is_alive():
                return True
            if time.monotonic() >= limit:
                return False
        return True


class PausableThread(Protocol):
    """A thread that uses SQLite."""

    def pause_for_fork(self, rest: ForkPause) -> None:
        """Let it rest after what is under way. Takes no lock: anybody may hold one who forks."""

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""

    def is_current(self) -> bool:
        """Whether this is called from it."""


class _Forks:
    """The threads of this process, and the fork that is under way."""

    def __init__(self) -> None:
        # Held from `before` to `after`. No thread begins or ends to use SQLite meanwhile.
        self.lock = threading.Lock()
        self.threads: set[PausableThread] = set()
        self.holder: int | None = None
        self.carried_over = False


class _Fork:
    """What one call of `fork` has to undo."""

    def __init__(self) -> None:
        self.rests: list[tuple[PausableThread, ForkPause]] = []
        self.locked = False
        self.at_rest = False


_forks = _Forks()
# By the thread that forks. A signal handler may fork while its thread is forking.
_under_way = threading.local()


def _stack() -> list[_Fork]:
    stack: list[_Fork] = getattr(_under_way, "stack", [])
    return stack


def enter(thread: PausableThread) -> None:
    """Before a thread uses SQLite: from now on forks wait for it."""
    with _forks.lock:
        _forks.threads.add(thread)


def leave(thread: PausableThread) -> None:
    """After it has closed everything."""
    # No lock: a fork that has just asked it sees that it ends.
    _forks.threads.discard(thread)


@contextmanager
def held_up() -> Iterator[None]:
    """Nobody forks meanwhile. Raises in a child that was forked while SQLite was in use."""
    if _forks.carried_over:
        raise EngineUnavailable(CARRIED_OVER)
    with _forks.lock:
        yield


def _before() -> None:
    fork = _Fork()
    _under_way.stack = [*_stack(), fork]
    limit = time.monotonic() + REST_SECONDS
    if _forks.holder == threading.get_ident() or not _forks.lock.acquire(timeout=REST_SECONDS):
        return
    fork.locked, _forks.holder = True, threading.get_ident()
    for thread in tuple(_forks.threads):
        if thread.is_current():
            return
        fork.rests.append((thread, rest := ForkPause()))
        thread.pause_for_fork(rest)
    fork.at_rest = all(rest.began(thread, limit) for thread, rest in fork.rests)


def _after_in_parent() -> None:
    # Nothing there: this was imported while another thread forked.
    if not (stack := _stack()):
        return
    fork = stack.pop()
    for _, rest in fork.rests:
        rest.end()
    if fork.locked:
        _forks.holder = None
        _forks.lock.release()
    if not fork.at_rest:
        log.warning(
            "process %d was forked while SQLite was in use for more than %g s; the child refuses "
            "to use SQLite",
            os.getpid(),
            REST_SECONDS,
        )


def _after_in_child() -> None:
    global _forks  # noqa: PLW0603 - the lock and the threads are the parent's
    stack = _stack()
    carried_over = _forks.carried_over or not all(fork.at_rest for fork in stack)
    stack.clear()
    _forks = _Forks()
    _forks.carried_over = carried_over


os.register_at_fork(
    before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
