"""Lanes of width 1: one owner at a time, in the order of the requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from chaos.history import History
from chaos.journal import Line


def overlaps(history: History, begins: Sequence[Line]) -> Iterator[tuple[Line, Line]]:
    """Attempts at different jobs of a lane that ran at the same time, both with a valid token."""
    running: Line | None = None
    until = float("-inf")
    for begin in sorted(begins, key=lambda line: line.at):
        end = history.valid_until(begin)
        if end <= begin.at:
            continue  # it had lost its job before it began
        if running is not None and begin.at < until and begin.job != running.job:
            yield running, begin
        if end > until:
            running, until = begin, end


def order(history: History, lane: str) -> Iterator[tuple[str, str]]:
    """Pairs of jobs of a lane of which the later one began first."""
    asked = [job for job, line in history.acknowledged.items() if line.lane == lane]
    firsts = [
        (min(each.at for each in history.begins[job]), job)
        for job in asked
        if job in history.begins
    ]
    for (at, earlier), (later_at, later) in pairwise(firsts):
        if later_at < at:
            yield earlier, later
