"""What the parts of the scenario share: a running server, its pages, and how a figure is judged."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.dashboard.build import FAILS
from bench.dashboard.meter import COUNTS
from bench.dashboard.program import GO, PLACE
from bench.figures import Finding
from bench.scenarios.stage import Stage

PROGRAM = "bench.dashboard.program"
NOW, JOBS = "/ui/", "/ui/jobs"
NO_PAGE = "there is no such page"
BUILD_SECONDS = 1_800.0


class Site:
    """A server that is running in a process of its own."""

    def __init__(self, stage: Stage, process: subprocess.Popen[bytes]) -> None:
        self.stage = stage
        self.process = process
        self.url = (stage.arena.folder / PLACE).read_text()

    def get(self, path: str) -> tuple[int, str]:
        """The status and the body of a page."""
        # Each by a connection of its own: servers close those that rest for some seconds.
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Accept": "text/html"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def has(self, path: str) -> bool:
        """Whether there is such a page, and not one that leads elsewhere."""
        return self.get(path)[0] == 200

    def counts(self) -> dict[str, Any]:
        """What the server's meter shows."""
        found: dict[str, Any] = json.loads(self.get(COUNTS)[1])
        return found

    def start_working(self) -> None:
        """Have the worker of an `up` begin."""
        (self.stage.arena.folder / GO).touch()


@contextlib.contextmanager
def serving(stage: Stage, verb: str = "serve", *, port: int = 0, **settings: str) -> Iterator[Site]:
    """A server over the store that is on stage. It is killed at the end, unless it works."""
    place: Path = stage.arena.folder / PLACE
    place.unlink(missing_ok=True)
    with stage.arena.process(
        *(PROGRAM, verb, "--port", port), environment=settings, stop=verb == "up"
    ) as process:
        stage.until(place.exists, process)
        yield Site(stage, process)


def build(stage: Stage, *, finished: int, pending: int = 0, fails: int = FAILS) -> dict[str, Any]:
    """Fill the store that is on stage; answers a job that failed, and the seconds."""
    answer = stage.arena.call(
        *(PROGRAM, "build", "--finished", finished, "--pending", pending, "--fails", fails),
        limit=BUILD_SECONDS,
    )
    stage.arena.come_to_rest()
    return answer


def at_most(
    stage: Stage, case: str, value: float | None, bar: float, unit: str, **more: Any
) -> Finding:
    """A figure that must not be above a bar; None if it could not be measured."""
    return Finding(
        scenario="dashboard",
        engine=stage.engine,
        case=case,
        value=value,
        unit=unit,
        bar=f"≤ {bar:,g} {unit}",
        met=None if value is None else value <= bar,
        **more,
    )


def percentile(percent: int, values: Sequence[float]) -> float:
    """The value that so many of a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]
