"""What it costs a drain that somebody looks: nobody, a tab, one reader and fifty, in turns.

Server and worker are one process, as `headrace up` has it: what is rendered is taken from the
worker. A tab is a real browser on the same machine, and takes its part of the processor as well;
readers only read its stream.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from tests.support.browser import find_browser

from bench.dashboard.browser import NONE_FOUND, browsing, new_page, unfinished
from bench.dashboard.program import READY
from bench.dashboard.site import JOBS, NOW, PROGRAM, Site, at_most, serving
from bench.figures import Finding
from bench.recorder import Ticks
from bench.scenarios.stage import Stage

JOBS_COUNT = 60_000
TURNS = 5
COUNT_SECONDS = 10.0
NOBODY, TAB, ONE, FIFTY = "nobody", "a tab", "1 reader", "50 readers"
READERS = {ONE: 1, FIFTY: 50}
LEAST_RATE = 0.95
MOST_KB = 15.0
MOST_CALLS = 1.1
MOST_LATE_SECONDS = 1.0
PATIENCE_SECONDS = 20.0
UNFINISHED = "?status=pending&status=running"


@dataclass
class Drain:
    """One drain: jobs a second; what was asked of the store and sent for readers, a second."""

    rate: float
    calls: float
    kilobytes: float
    late: float | None = None
    # The most records of series that one worker has written in one minute.
    records: int = 0


Drains = dict[str, list[Drain]]


def live(stage: Stage) -> Iterator[Finding]:
    """All kinds in turns; which one begins changes from turn to turn."""
    kinds = [NOBODY, ONE, FIFTY] if find_browser() is None else [NOBODY, TAB, ONE, FIFTY]
    drains: Drains = {kind: [] for kind in kinds}
    for turn in range(stage.runs(TURNS)):
        first = turn % len(kinds)
        for kind in kinds[first:] + kinds[:first]:
            drains[kind].append(drain(stage, kind))
    yield from judged(stage, drains)


def drain(stage: Stage, kind: str) -> Drain:
    """Let the worker of an `up` work off all jobs, while somebody looks."""
    count = max(stage.jobs(JOBS_COUNT) // Ticks.EVERY, 2) * Ticks.EVERY
    with stage.fresh():
        ticks = stage.ticks(count)
        stage.fill("tick", count)
        with serving(stage, "up") as site, contextlib.ExitStack() as open_:
            # What a person has open: Now, or else the list of what is unfinished.
            path = NOW if site.has(NOW) else JOBS + UNFINISHED
            page = None
            if kind in READERS:
                open_.enter_context(reading(site, READERS[kind], path.removeprefix("/ui")))
            elif kind == TAB:
                # Inside of the store: while a browser is there, asyncio runs nothing else here.
                browser = open_.enter_context(browsing())
                assert browser is not None
                page = open_.enter_context(new_page(browser))
                page.goto(site.url + path)
                page.wait_for_selector('#stream-state[data-state="live"]')
            before, began = site.counts(), time.monotonic()
            site.start_working()
            stage.until(lambda: ticks.count >= count, site.process)
            after, seconds = site.counts(), ticks.at(count) - ticks.at(0)
            if kind in READERS:
                # A drain is over after a look or two, which is too few to compare.
                until = began + max(COUNT_SECONDS / stage.scale, 1.0)
                stage.until(lambda: time.monotonic() >= until, site.process)
                after, seconds = site.counts(), time.monotonic() - began
            found = Drain(
                ticks.rate(0, count),
                (after["calls"] - before["calls"]) / seconds,
                (after["bytes"] - before["bytes"]) / 1_000 / seconds,
            )
            if page is not None:
                end = time.monotonic() + PATIENCE_SECONDS
                while unfinished(page) and time.monotonic() < end:
                    pass
                found.late = time.monotonic() - ticks.at(count)
        if kind == NOBODY:
            found.records = stage.arena.call(PROGRAM, "minutes")["most"]
    return found


@contextlib.contextmanager
def reading(site: Site, count: int, view: str) -> Iterator[None]:
    """So many open streams of one view."""
    stage = site.stage
    options = ("--count", count, "--view", view)
    with stage.arena.process(PROGRAM, "read", *options) as process:
        stage.until((stage.arena.folder / READY).exists, process)
        yield


def judged(stage: Stage, drains: Drains) -> Iterator[Finding]:
    """The figures of all drains: medians of their turns."""
    base = median(each.rate for each in drains[NOBODY])
    for kind in (TAB, ONE, FIFTY):
        yield _rate(stage, kind, drains, base)
    tab = drains.get(TAB) or drains[ONE]
    note = "" if TAB in drains else f"of a reader: {NONE_FOUND}"
    sent = median(each.kilobytes for each in tab)
    yield at_most(stage, "sent to a tab while jobs drain", sent, MOST_KB, "KB/s", note=note)
    one, fifty = (median(each.calls for each in drains[kind]) for kind in (ONE, FIFTY))
    yield Finding(
        scenario="dashboard",
        engine=stage.engine,
        case="the store is asked for 50 readers of one view",
        value=fifty,
        unit="calls/s",
        reference=one,
        ratio=fifty / one if one else None,
        bar=f"as for one (≤ {MOST_CALLS:.0%})",
        met=fifty <= MOST_CALLS * one if one else None,
        note="compared with one reader; counted in the server, without those of the worker",
    )
    late = [each.late for each in drains.get(TAB, []) if each.late is not None]
    case = "the tab's last number is right after the last start by"
    yield at_most(
        *(stage, case, max(late, default=None), MOST_LATE_SECONDS, "s"),
        note=f"longest of {len(late)}" if late else NONE_FOUND,
    )
    most = max(each.records for each in drains[NOBODY])
    case = "records of series that one worker writes in one minute, at most"
    yield at_most(stage, case, most, 1, "record")


def _rate(stage: Stage, kind: str, drains: Drains, base: float) -> Finding:
    turns = drains.get(kind)
    judged = kind == TAB
    rates = [each.rate for each in turns or ()]
    rate = median(rates) if rates else None
    ratio = None if rate is None else rate / base
    spread = [each.rate for each in drains[NOBODY]]
    return Finding(
        scenario="dashboard",
        engine=stage.engine,
        case=f"drain while {kind} looks" if judged else f"drain with {kind} of one view",
        value=rate,
        unit="jobs/s",
        reference=base,
        ratio=ratio,
        bar=f"≥ {LEAST_RATE:.0%} of nobody" if judged else "",
        met=ratio >= LEAST_RATE if judged and ratio is not None else None,
        note=(
            f"single turns {min(rates):,.0f} to {max(rates):,.0f}, "
            f"nobody {min(spread):,.0f} to {max(spread):,.0f}"
            if rates
            else NONE_FOUND
        ),
    )
