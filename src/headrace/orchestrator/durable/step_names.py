"""Where a handler is: inside of which stage, and what it has come to for the how-manieth time.

Steps without a name of their own are known by this. It is the same in every attempt, as long as
the handler takes the same way.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextvars import ContextVar

# The stage that the caller is in, with a slash at its end. It follows calls into threads.
CURRENT_STAGE: ContextVar[str] = ContextVar("headrace_stage", default="")


class StepNames:
    """Counts the steps of one attempt."""

    __slots__ = ("_guard", "_seen")

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()
        self._guard = threading.Lock()

    def next(self, kind: str, name: str | None) -> str:
        """The name that this step is kept by: its own or its number, then the count of repeats."""
        step_name = CURRENT_STAGE.get() + (name or "")
        with self._guard:
            self._seen[kind, step_name] += 1
            count = self._seen[kind, step_name]
        return step_name if name and count == 1 else f"{step_name}#{count}"
