"""How long a server takes for a page over a million finished jobs and many pending ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from bench.arena import execute
from bench.dashboard.build import ERRORS, FAILS, RARE, RARE_ERROR
from bench.dashboard.site import JOBS, NO_PAGE, NOW, Site, at_most, build, percentile, serving
from bench.figures import Finding
from bench.scenarios.stage import Stage

FINISHED = 1_000_000
PENDING = 100_000
# As often as an open page is looked at.
PACE_SECONDS = 0.5
ROUNDS = 60
WARM_UP = 2
MOST_MS = {"sqlite": 50.0, "postgres": 50.0, "redis": 100.0}
PAGES = {
    "Now": NOW,
    "Jobs": JOBS,
    "Jobs, failed": f"{JOBS}?status=failed",
    f"Jobs, by an error that one in {FAILS * 3 // 2} has": f"{JOBS}?error_type={ERRORS[0]}",
    f"Jobs, by an error that one in {FAILS * RARE:,} has": f"{JOBS}?error_type={RARE_ERROR}",
}


def large(stage: Stage) -> Iterator[Finding]:
    """Server time of each page, on one engine."""
    finished, pending = stage.jobs(FINISHED), stage.jobs(PENDING)
    with stage.fresh():
        seconds = build(stage, finished=finished, pending=pending)["seconds"]
        if stage.engine == "postgres":
            # As autovacuum does some minutes later.
            asyncio.run(execute(stage.arena.url, "VACUUM ANALYZE"))
        with serving(stage) as site:
            times = _times(site)
    for name, path in PAGES.items():
        case = f"{name}: server time over {finished:,} finished, {pending:,} pending, p95"
        found = times.get(path)
        bar = MOST_MS[stage.engine]
        if found is None:
            yield at_most(stage, case, None, bar, "ms", note=NO_PAGE)
            continue
        note = f"p50 {percentile(50, found):.1f} ms, longest {max(found):.0f} ms of {len(found)}"
        if path == JOBS:
            note += f"; the store was filled in {seconds:.0f} s"
        yield at_most(stage, case, percentile(95, found), bar, "ms", note=note)


def _times(site: Site) -> dict[str, list[float]]:
    """Milliseconds by path, as the server takes them: no network and no browser. The pages take
    turns at the pace of open ones, so that what is kept for a second is as old as in use.
    """
    there = [path for path in PAGES.values() if site.has(path)]
    rounds = WARM_UP + max(ROUNDS // site.stage.scale, 5)
    for _ in range(rounds):
        for path in there:
            began = time.monotonic()
            site.get(path)
            time.sleep(max(0.0, PACE_SECONDS / len(there) - (time.monotonic() - began)))
    counted = site.counts()["times"]
    # The first one was to see whether it is there.
    return {path: counted[path][1 + WARM_UP :] for path in there}
