"""What a child process sets up before it loads anything: it ends with its worker, ignores the
signals that are meant for the worker, and is limited in memory.
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
# On Linux memory that is written to counts, not reserved address space: every thread reserves far
# more than it ever uses.
_KIND = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS


def protect(parent: int) -> None:
    """End when the worker ends, however it does, and ignore signals until then."""
    faulthandler.enable()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not SIG_IGN: programs that a handler starts would inherit that.
        signal.signal(number, _ignore)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        with contextlib.suppress(OSError):
            # If the machine runs out of memory, a child is a smaller loss than the worker.
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    if os.getppid() != parent:
        end_group()


def end_group() -> None:
    """Kill this process and those that it has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def cap_memory(limit: int) -> None:
    """Make every allocation beyond `limit` bytes raise MemoryError."""
    _, hard = resource.getrlimit(_KIND)
    try:
        resource.setrlimit(_KIND, (limit, hard))
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidSetting(f"memory_limit {limit} cannot be set: {error}") from None


def is_capped() -> bool:
    """Return whether memory is limited."""
    soft, hard = resource.getrlimit(_KIND)
    return soft != hard


@contextlib.contextmanager
def uncapped() -> Iterator[None]:
    """Lift the limit for a moment, to report that it was reached."""
    soft, hard = resource.getrlimit(_KIND)
    resource.setrlimit(_KIND, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(_KIND, (soft, hard))


@contextlib.contextmanager
def no_alarm_left() -> Iterator[None]:
    """Clear an alarm that a job has set and left: it would interrupt the next one."""
    before, _ = signal.getitimer(signal.ITIMER_REAL)
    try:
        yield
    finally:
        if not before:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _ignore(signum: int, frame: FrameType | None) -> None:
    """Do nothing: the signal is for the whole service, and the worker ends its children."""
