"""Series over time, as they are returned."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypedDict

import msgspec

StepName = Literal["minute", "hour", "day"]


class SeriesOptions(TypedDict, total=False):
    """Which series: of a task, of a queue, from when to when, in steps of a minute, hour or day."""

    task: str | None
    queue: str | None
    since: datetime | None
    until: datetime | None
    step: StepName


class Percentiles(msgspec.Struct, kw_only=True):
    """Seconds that half, 95 % and 99 % of attempts did not exceed, as far as buckets tell."""

    p50: float
    p95: float
    p99: float


class DepthView(msgspec.Struct, kw_only=True):
    """Jobs of the queues, by state: on average over the samples of the time, and the most."""

    ready: float
    waiting: float
    scheduled: float
    running: float
    most_ready: int
    most_waiting: int
    most_scheduled: int
    most_running: int


class SeriesPoint(msgspec.Struct, kw_only=True):
    """What was done in the minute, hour or day that begins at `at`. `outcomes` counts attempts;
    `wait` and `run` are None if there were none, `depth` if nobody took a sample.
    """

    at: datetime
    outcomes: dict[str, int] = {}
    wait: Percentiles | None = None
    run: Percentiles | None = None
    depth: DepthView | None = None


class ErrorInSeries(msgspec.Struct, kw_only=True):
    """How often attempts at a task failed with an error. Failures with one cause share a
    `fingerprint`. It is empty for those that were not told apart (their type is "(others)"), and
    over HTTP where no failure is left that tells what is to be hidden in its message.
    """

    task: str
    type: str
    fingerprint: str
    count: int


class SeriesView(msgspec.Struct, kw_only=True):
    """Points from `since` to `until`, none left out. `errors` are those of the whole time, the most
    frequent first.
    """

    step: StepName
    since: datetime
    until: datetime
    points: list[SeriesPoint]
    errors: list[ErrorInSeries] = []
