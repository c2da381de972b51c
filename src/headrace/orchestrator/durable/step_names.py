"""Stable names for unnamed steps: enclosing stage plus occurrence number.

They are the same in every attempt, as long as the handler makes its steps in the same order.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextvars import ContextVar

# The stage that the caller is in, followed by a slash. Threads inherit it.
CURRENT_STAGE: ContextVar[str] = ContextVar("headrace_stage", default="")


class StepNames:
    """Counts the unnamed steps of one attempt."""

    __slots__ = ("_guard", "_seen")

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()
        self._guard = threading.Lock()

    def next(self, kind: str, name: str | None) -> str:
        """Return the name to record a step by: its own or its number, then the count of repeats."""
        step_name = CURRENT_STAGE.get() + (name or "")
        with self._guard:
            self._seen[kind, step_name] += 1
            count = self._seen[kind, step_name]
        return step_name if name and count == 1 else f"{step_name}#{count}"
