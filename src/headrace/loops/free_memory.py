"""Give memory back to the machine while a program runs.

glibc keeps what a program has freed, except at the end of its heap: a worker that runs for weeks
would look as if it leaked, and one that has read a large file would stay large.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
from collections.abc import Callable, Iterator

EVERY_SECONDS = 60.0


def keep_what_is_loaded() -> None:
    """Have the garbage collector pass over what there is by now: modules, routes, settings. For
    programs that have started: looking through all of that again holds up their event loop for as
    long as some pages take.
    """
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def memory_given_back(every: float = EVERY_SECONDS) -> Iterator[None]:
    """Give back what is free now and then, until the block ends."""
    trim = _malloc_trim()
    if trim is None:
        yield
        return
    task = asyncio.ensure_future(_give_back(trim, every))
    try:
        yield
    finally:
        task.cancel()


async def _give_back(trim: Callable[[int], int], every: float) -> None:
    while True:
        await asyncio.sleep(every)
        # In a thread: with a heap of gigabytes it takes long enough to hold up the loop.
        await asyncio.to_thread(trim, 0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return glibc's function, or None with another C library."""
    import ctypes  # noqa: PLC0415 - only programs that run for long need it

    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found
