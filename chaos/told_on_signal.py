"""What a worker was doing, for one that does nothing: SIGUSR1 has it told to its log."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import traceback
from types import FrameType


def tell_on_signal() -> None:
    """From now on SIGUSR1 prints every task and every thread of this process."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR1, _tell)


def _tell(_: int, frame: FrameType | None) -> None:
    lines = ["--- tasks"]
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        tasks = set()
    for task in tasks:
        at = [f"{each.f_code.co_name}:{each.f_lineno}" for each in task.get_stack(limit=4)]
        lines.append(f"{task.get_name()} {' > '.join(at)}")
    lines.append("--- threads")
    frames = sys._current_frames()
    for thread in threading.enumerate():
        found = frames.get(thread.ident or 0)
        stack = traceback.extract_stack(found)[-3:] if found is not None else []
        at = [f"{each.name}:{each.lineno}" for each in stack]
        lines.append(f"{thread.name} {' > '.join(at)}")
    print("\n".join(lines), file=sys.stderr, flush=True)
