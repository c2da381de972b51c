"""How fast queues fill and empty, and when what waits in them will be done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from headrace.monitor.series.records import MINUTE, STATES, Counts

# So many minutes are shown, and rates are those of the last few of them.
MINUTES = 60
RECENT = 10
# Outcomes after which a job leaves its queue for good.
FINAL = ("completed", "failed", "timeout", "cancelled")
READY, WAITING = STATES.index("ready"), STATES.index("waiting")
# A change below this share of what waits is none.
NOTICED = 0.001


class QueueFlow(msgspec.Struct, frozen=True, kw_only=True):
    """What went in and out of a queue. `pending` is by minute, None where nobody took a sample;
    rates are None until they are known. `shrinks` is by how many pending jobs a minute.
    """

    pending: Sequence[float | None] = ()
    in_per_minute: float | None = None
    out_per_minute: float | None = None
    shrinks: float | None = None

    def drain_seconds(self, pending: int) -> float | None:
        """Return how long so many jobs take if it goes on like this; None if they do not end."""
        if self.shrinks is None or self.shrinks * RECENT <= max(1.0, pending * NOTICED):
            return None
        return pending / self.shrinks * MINUTE.seconds

    def drain_words(self, pending: int) -> str:
        """Return when so many pending jobs will be done: "about 12 min", "growing"."""
        if not pending:
            return "nothing waits"
        if self.shrinks is None:
            return "not known yet"
        seconds = self.drain_seconds(pending)
        if seconds is not None:
            return f"about {_rounded(seconds)}"
        return (
            "growing" if -self.shrinks * RECENT >= max(1.0, pending * NOTICED) else "not shrinking"
        )


def _rounded(seconds: float) -> str:
    for unit, size, until in (("s", 1, 90), ("min", 60, 90 * 60), ("h", 3_600, 36 * 3_600)):
        if seconds < until:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{round(seconds / 86_400):,} d"


def flows(minutes: Mapping[float, Counts], end: float) -> dict[str, QueueFlow]:
    """Return the flow of every queue that had samples or attempts, from counts by minute."""
    begin = end - MINUTES * MINUTE.seconds
    counted = [minutes.get(begin + number * MINUTE.seconds) for number in range(MINUTES)]
    left: dict[str, list[int]] = defaultdict(lambda: [0] * MINUTES)
    for number, counts in enumerate(counted):
        for each in counts.attempts.tasks.values() if counts else ():
            outcomes = each.outcomes()
            left[each.queue][number] += sum(outcomes.get(name, 0) for name in FINAL)
    names = {name for counts in counted if counts for name in counts.depths} | left.keys()
    return {name: _flow(name, counted, left[name]) for name in names}


def _flow(name: str, counted: Sequence[Counts | None], left: Sequence[int]) -> QueueFlow:
    depths = [_depth(name, counts) for counts in counted]
    pending = [None if each is None else each[READY] + each[WAITING] for each in depths]
    sampled = [n for n in range(MINUTES - RECENT, MINUTES) if depths[n] is not None]
    if len(sampled) < 2:
        return QueueFlow(pending=pending, out_per_minute=sum(left[-RECENT:]) / RECENT)
    first, last = sampled[0], sampled[-1]
    length = last - first
    # Samples are taken at the beginning of their minutes.
    out = sum(left[first:last]) / length
    more = (sum(depths[last] or ()) - sum(depths[first] or ())) / length
    return QueueFlow(
        pending=pending,
        in_per_minute=max(out + more, 0.0),
        out_per_minute=out,
        shrinks=((pending[first] or 0.0) - (pending[last] or 0.0)) / length,
    )


def _depth(name: str, counts: Counts | None) -> list[float] | None:
    if counts is None or not counts.samples:
        return None
    depth = counts.depths.get(name)
    return [total / counts.samples for total in depth.total] if depth else [0.0] * len(STATES)
