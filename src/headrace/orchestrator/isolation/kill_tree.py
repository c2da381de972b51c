"""Kills a child process with all that it has started, without blocking the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable

from headrace.orchestrator.isolation.supervisor import descendants, end_all, exists

log = logging.getLogger("headrace.orchestrator.isolation")


async def off_loop(call: Callable[[], object]) -> None:
    """Call in a thread of its own: handlers may hang in all threads of the loop's pool."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def work() -> None:
        try:
            call()
        except Exception:
            log.exception("processes that a handler started may still run")
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(over.set)

    try:
        threading.Thread(target=work, name="headrace-end", daemon=True).start()
    except RuntimeError:  # no thread can be started: the loop has to wait
        work()
    await over.wait()


def kill_all(supervisor: int) -> None:
    """Kill a supervisor and what is below it. What is started meanwhile is found by its marker."""
    below = descendants(supervisor)
    with contextlib.suppress(ProcessLookupError):
        os.kill(supervisor, signal.SIGKILL)
    end_all(lambda: {pid: began for pid, began in below.items() if exists(pid, began)})
