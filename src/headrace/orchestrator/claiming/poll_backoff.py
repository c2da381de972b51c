"""When an idle worker looks for jobs: at a signal, and now and then in case one was lost. Pure."""

from __future__ import annotations

SHORTEST = 0.05
LONGEST = 1.0
# No signal can come now, so that looking is the only way to hear of a job.
LONGEST_WITHOUT_SIGNALS = 0.25
# Signals of jobs in other queues, or that others were faster to take, come in crowds.
SIGNAL_BURST = 0.1
SIGNAL_PAUSE = 0.001
LONGEST_SIGNAL_PAUSE = 0.05


class PollBackoff:
    """Remembers how long nothing was there, and for whom the signals were."""

    __slots__ = ("_empty_at", "_pause", "_signal_pause", "ignore_signals_until", "next")

    def __init__(self) -> None:
        # When to look without a signal, and until when signals are not worth a look.
        self.next = 0.0
        self.ignore_signals_until = 0.0
        self._pause = SHORTEST
        self._signal_pause = 0.0
        self._empty_at = 0.0

    def found(self, now: float) -> None:
        """There were jobs: look again soon."""
        self._pause = SHORTEST
        self._signal_pause = self.ignore_signals_until = 0.0
        self.next = now + self._pause

    def empty(self, now: float, *, listening: bool, asked: bool = True) -> None:
        """There was nothing: look less often, and the less so the more signals were for others.

        `asked` is False when the trip was made for another reason, and cost nothing extra.
        """
        if asked:
            crowded = now - self._empty_at < SIGNAL_BURST
            self._signal_pause = (
                min(max(self._signal_pause * 2, SIGNAL_PAUSE), LONGEST_SIGNAL_PAUSE)
                if crowded
                else 0.0
            )
            self._empty_at = now
            self.ignore_signals_until = now + self._signal_pause
        self._pause = min(self._pause * 2, LONGEST if listening else LONGEST_WITHOUT_SIGNALS)
        self.next = now + self._pause
