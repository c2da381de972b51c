"""Forking, as programs do it that know nothing of threads."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LIMIT = 20


def forked(work: Callable[[], Any]) -> int:
    """Do something in a forked child, and answer its exit code; it is killed if that takes long."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, outcome = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(outcome)


@contextmanager
def held_by_another(lock: Any) -> Iterator[None]:
    """Another thread holds the lock meanwhile."""
    taken, given_back = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            given_back.wait(LIMIT)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(LIMIT)
    try:
        yield
    finally:
        given_back.set()
        thread.join()
