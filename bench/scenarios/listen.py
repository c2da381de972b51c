"""What it costs a drain that somebody follows all jobs over HTTP: nobody and one reader, in turns.

Server and worker are one process, as `headrace up` has it: what the stream costs is taken from the
worker. The reader reads `GET /events` as fast as it comes. What it is told must be everything, or a
gap in place of what was missed.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from statistics import median
from urllib.parse import urlsplit

from bench.dashboard.site import serving
from bench.figures import Finding
from bench.recorder import Ticks
from bench.scenarios.stage import Stage

JOBS = 30_000
TURNS = 3
LEAST_SHARE = 0.8
PATIENCE_SECONDS = 120.0


def listen(stage: Stage) -> Iterator[Finding]:
    """One question on one engine."""
    count = max(stage.jobs(JOBS) // Ticks.EVERY, 2) * Ticks.EVERY
    alone: list[float] = []
    followed: list[float] = []
    late: list[float] = []
    silent = 0
    for turn in range(stage.runs(TURNS)):
        for heard in (False, True) if turn % 2 == 0 else (True, False):
            rate, reader = drain(stage, count, heard=heard)
            (followed if heard else alone).append(rate)
            if reader is not None:
                late.append(reader.late)
                silent += not reader.whole(count)
    ours, nobody = median(followed), median(alone)
    yield Finding(
        scenario="listen",
        engine=stage.engine,
        case=f"{count:,} jobs drained while one reader follows all of them",
        value=ours,
        unit="jobs/s",
        reference=nobody,
        ratio=ours / nobody,
        bar=f"≥ {LEAST_SHARE:.0%} of the rate without a reader",
        met=ours / nobody >= LEAST_SHARE,
        note=f"the last change arrived {median(late):.1f} s after the last start",
    )
    yield Finding(
        scenario="listen",
        engine=stage.engine,
        case=f"{count:,} jobs drained, streams that missed a change without a gap",
        value=silent,
        unit="streams",
        bar="none",
        met=not silent,
    )


def drain(stage: Stage, count: int, *, heard: bool) -> tuple[float, Reader | None]:
    """Let the worker of an `up` work off all jobs, while somebody follows them or nobody does."""
    with stage.fresh():
        ticks = stage.ticks(count)
        stage.fill("tick", count)
        with serving(stage, "up") as site, contextlib.ExitStack() as open_:
            reader = open_.enter_context(Reader(site.url)) if heard else None
            site.start_working()
            stage.until(lambda: ticks.count >= count, site.process)
            if reader is not None:
                reader.wait(count, since=ticks.at(count))
            return ticks.rate(0, count), reader


class Reader:
    """Reads the stream of all jobs in a thread, and counts."""

    def __init__(self, url: str) -> None:
        self.completed = self.gaps = 0
        self.late = 0.0
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._connection.request("GET", "/events", headers={"Accept": "text/event-stream"})
        self._answer = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Reader:
        # The stream has begun when its first line is there.
        self._answer.readline()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            if self._connection.sock is not None:
                self._connection.sock.shutdown(2)
        self._thread.join(10)
        self._connection.close()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for line in iter(self._answer.readline, b""):
                if line.startswith(b"event: gap"):
                    self.gaps += 1
                elif line.startswith(b"data: ") and b'"status":"completed"' in line:
                    self.completed += 1

    def whole(self, count: int) -> bool:
        """Whether it was told everything, or that something was missed."""
        return self.completed >= count or self.gaps > 0

    def wait(self, count: int, since: float) -> None:
        """Wait until it was told everything, or of a gap."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.whole(count) and time.monotonic() < end:
            time.sleep(0.05)
        self.late = max(time.monotonic() - since, 0.0)
