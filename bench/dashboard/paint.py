"""What a browser sees: the first paint beside that of a bare page, its weight, and scrolling."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from playwright.sync_api import Browser

from bench.dashboard.browser import NONE_FOUND, SCROLL_SECONDS, Visit, browsing, scroll, visit
from bench.dashboard.meter import BARE, BARE_LIST
from bench.dashboard.site import JOBS, NO_PAGE, NOW, Site, at_most, build, percentile, serving
from bench.figures import Finding
from bench.scenarios.stage import Stage
from headrace.server.dashboard import assets

MATCHING = 10_000
LOADS = 20
MOST_OVER_MS = 60.0
MOST_REQUESTS = 4
MOST_KB = 60.0
MOST_FRAME_MS = 20.0
MOST_ROWS = 1_000
ROWS = 100
MOST_SCRIPT_KB, MOST_STYLE_KB = 25.0, 20.0


def seen(stage: Stage) -> Iterator[Finding]:
    """First paint, weight and scrolling, over a store with ten thousand finished jobs."""
    script, style = len(assets.files()["headrace.js"]), len(assets.style_sheet())
    yield at_most(stage, "headrace.js, as it is sent", script / 1_000, MOST_SCRIPT_KB, "KB")
    yield at_most(stage, "headrace.css, as it is sent", style / 1_000, MOST_STYLE_KB, "KB")
    with stage.fresh():
        failed = build(stage, finished=stage.jobs(MATCHING))["failed"]
        # What has to be on each page as it comes: rows, or the error of the job.
        pages = {
            "Now": (NOW, 'id="queue-default"'),
            "Jobs": (JOBS, "data-row"),
            "Job": (f"{JOBS}/{failed}", failed),
        }
        with serving(stage) as site, browsing() as browser:
            yield from _painted(site, browser, pages)
            yield from _scrolled(site, browser)


def _painted(
    site: Site, browser: Browser | None, pages: dict[str, tuple[str, str]]
) -> Iterator[Finding]:
    stage = site.stage
    there = {name: each for name, each in pages.items() if site.has(each[0])}
    loads: dict[str, list[Visit]] = {name: [] for name in (BARE, *there)}
    if browser is not None:
        visit(browser, site.url + BARE)  # a browser's very first page
        for _ in range(max(LOADS // stage.scale, 2)):
            for name, visits in loads.items():
                path = BARE if name == BARE else there[name][0]
                visits.append(visit(browser, site.url + path))
    for name, (_, data) in pages.items():
        case = f"{name}, first contentful paint, cold, over a bare page"
        if name not in there or browser is None:
            note = NO_PAGE if name not in there else NONE_FOUND
            yield at_most(stage, case, None, MOST_OVER_MS, "ms", note=note)
            continue
        yield from _judged(stage, case, data, loads[name], loads[BARE])
    if browser is not None and "Jobs" in there:
        yield from _weighed(stage, loads["Jobs"])


def _judged(
    stage: Stage, case: str, data: str, ours: list[Visit], bare: list[Visit]
) -> Iterator[Finding]:
    name = case.partition(",")[0]
    paint, base = (median(each.paint for each in loads) for loads in (ours, bare))
    whole = all(data in each.html for each in ours)
    found = at_most(
        stage,
        case,
        paint - base,
        MOST_OVER_MS,
        "ms",
        reference=base,
        note=(
            f"median of {len(ours)}: {paint:.0f} ms, {min(each.paint for each in ours):.0f} to "
            f"{max(each.paint for each in ours):.0f}; bare {base:.0f} ms; "
            f"{'with' if whole else '**without**'} data in that paint"
        ),
    )
    found.met = bool(found.met) and whole
    yield found
    requests = max(each.requests for each in ours)
    yield at_most(stage, f"{name}, to the whole page", requests, MOST_REQUESTS, "requests")


def _weighed(stage: Stage, loads: list[Visit]) -> Iterator[Finding]:
    rows = loads[-1].html.count(" data-row")
    size = max(each.bytes for each in loads) / 1_000
    case = f"Jobs, list of {rows}, with script and style sheet"
    found = at_most(stage, case, size, MOST_KB, "KB", note="cold; with headers")
    found.met = bool(found.met) and rows == min(ROWS, stage.jobs(MATCHING))
    yield found


def _scrolled(site: Site, browser: Browser | None) -> Iterator[Finding]:
    stage = site.stage
    case = f"scrolling {stage.jobs(MATCHING):,} jobs, 400 px a frame"
    if browser is None:
        yield at_most(stage, f"{case}, p95", None, MOST_FRAME_MS, "ms a frame", note=NONE_FOUND)
        yield at_most(stage, f"{case}, most in the page", None, MOST_ROWS, "rows", note=NONE_FOUND)
        return
    seconds = SCROLL_SECONDS / min(stage.scale, 8)
    found = scroll(browser, site.url + JOBS, seconds)
    bare = scroll(browser, site.url + BARE_LIST, seconds)
    base = percentile(95, bare.frames)
    note = (
        f"{len(found.frames)} frames in {seconds:g} s, p50 {percentile(50, found.frames):.1f} ms, "
        f"longest {max(found.frames):.0f} ms; {found.way:,.0f} px of way; "
        f"a page of 10,000 bare paragraphs: p95 {base:.1f} ms, longest {max(bare.frames):.0f} ms"
    )
    p95 = percentile(95, found.frames)
    yield at_most(
        stage, f"{case}, p95", p95, MOST_FRAME_MS, "ms a frame", reference=base, note=note
    )
    yield at_most(stage, f"{case}, most in the page", found.rows, MOST_ROWS, "rows")
