"""What a child process does to itself before it loads anything: it must not outlive its worker,
not be ended by signals that are meant for it, and not take more memory than it may.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from headrace.errors import InvalidSetting

_PARENT_DEATH_SIGNAL = 1
# What counts on Linux is memory that was written to, not address space that was reserved:
# every thread reserves far more than it ever uses.
_KIND = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS


def protect(parent: int) -> None:
    """End with the worker, whatever happens; leave it to the worker when to end before that."""
    faulthandler.enable()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not SIG_IGN: programs that a handler starts would inherit that.
        signal.signal(number, _leave_it_to_the_worker)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        with contextlib.suppress(OSError):
            # If the machine runs out of memory, a child is a smaller loss than the worker.
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    if os.getppid() != parent:
        end_group()


def end_group() -> None:
    """End this process and those it has started, now."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def cap_memory(limit: int) -> None:
    """From now on an allocation that would go beyond `limit` bytes raises MemoryError."""
    _, hard = resource.getrlimit(_KIND)
    try:
        resource.setrlimit(_KIND, (limit, hard))
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidSetting(f"memory_limit {limit} cannot be set: {error}") from None


def is_capped() -> bool:
    """Whether this process has less memory than it could have."""
    soft, hard = resource.getrlimit(_KIND)
    return soft != hard


@contextlib.contextmanager
def uncapped() -> Iterator[None]:
    """A moment without the cap, for telling that it was reached."""
    soft, hard = resource.getrlimit(_KIND)
    resource.setrlimit(_KIND, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(_KIND, (soft, hard))


@contextlib.contextmanager
def no_alarm_left() -> Iterator[None]:
    """An alarm that a job has set and not taken back would ring in the next one."""
    before, _ = signal.getitimer(signal.ITIMER_REAL)
    try:
        yield
    finally:
        if not before:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _leave_it_to_the_worker(signum: int, frame: FrameType | None) -> None:
    """A signal to the whole group or service: the worker decides when its children end."""
