"""Does a figure grow with the jobs that have been, or has it come to rest?

Only the second half of a run counts, and of each process that is replaced the second half of its
life, but not its first few thousand jobs: before that, caches fill. The slope is the median of the
slopes between all pairs of points (Theil and Sen), which a few odd ones cannot move. What it adds
over the judged part is compared with a bound; what is kept of recent jobs follows the load up and
down, so the level has to be above that of the quarter before as well. Processes that are replaced
are judged twice: while they live, and by what each has at the end of its life compared with those
before it. Figures that are bound to grow for a while, because Headrace keeps something for a day,
are judged by what is left when the day is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import combinations
from statistics import median
from typing import Literal

from soak.series import Point, Series

Verdict = Literal["flat", "grows", "kept", "too short"]

# The least that is judged: jobs that end while it is looked at, points of a life, and lives.
LEAST_JOBS = 800.0
# A process that is replaced is not judged before so many jobs have ended in its life.
WARM_UP = 5_000.0
LEAST_POINTS = 6
LEAST_LIVES = 4
# Of two processes, the later one has more in so many cases if each leaves the next one more.
MOST_RISING = 0.8
# More points than this tell nothing more, and take long.
MOST_POINTS = 150


@dataclass(frozen=True)
class Bound:
    """A figure grows if the judged part adds more than this, or than this share of its level."""

    least: float
    share: float = 0.0

    def at(self, level: float) -> float:
        """The most that may be added to a figure of this level."""
        return max(self.least, self.share * level)


BOUNDS = {
    "MB": Bound(1.0, 0.03),
    "blocks": Bound(5_000, 0.03),
    "count": Bound(3.0),
    "rows": Bound(25.0, 0.1),
    "store MB": Bound(8.0, 0.25),
}

# What is kept for longer than most runs last, or up to a limit: how long, and the most that may be
# left when that is over.
KEPT = {
    "*queue": ("a day after its last job", 10.0),
    "*queues": ("a day after its last job", 10.0),
    "*worker": ("a day after its death", 10.0),
    "*workers": ("a day after its death", 10.0),
    "*dead": ("a day after its death", 10.0),
    "*record dispatcher": ("a day after its death", 10.0),
    "*record schedule-state": ("a day after its schedule", 10.0),
    "*record handed-in-artifacts": ("an hour", 10.0),
    # One a minute for a day and one an hour for two weeks, of each worker and one server.
    "*record series-minutes": ("24 hours, then one an hour", 25 * 60 * 20.0),
    "*record series-hours": ("14 days, then one a day", 15 * 24.0),
    "*record series-days": ("400 days", 401.0),
    "files artifact": ("those of uploads an hour", 10.0),
    "*record audit": ("the last 5,000 of both kinds", 10_600.0),
}


@dataclass(frozen=True)
class Judgement:
    """What a series has done. `per_thousand` is the slope for each 1,000 jobs."""

    name: str
    unit: str
    first: float
    last: float
    per_thousand: float
    added: float
    bound: float
    verdict: Verdict
    # How many processes it is about, and what one after the other adds.
    lives: int = 1
    across: float = 0.0
    kept: str = ""
    # A day later; None if nobody has looked.
    left: float | None = None


def judge(
    series: Series, left: Mapping[str, float] | None = None, *, least_jobs: float = LEAST_JOBS
) -> Judgement:
    """Judge one series. `left` is what remains a day later, by name."""
    lives = series.lives()
    judged = [late(life, WARM_UP) for life in lives] if len(lives) > 1 else [late(series.points)]
    judged = [thinned(each) for each in judged if len(each) >= LEAST_POINTS]
    points = [point for life in judged for point in life]
    slope = median_slope(judged)
    longest = max((life[-1].jobs - life[0].jobs for life in judged), default=0.0)
    level = median(point.value for point in points or series.points)
    bound = BOUNDS[series.unit].at(level)
    ends = ends_of(lives)
    across = growth_over(ends)
    added = slope * longest
    kept, most = kept_for(series)
    # Tables that vanish when they are empty are not in `left`.
    remains = None if left is None or series.unit != "rows" else left.get(series.what, 0.0)
    verdict: Verdict = "flat"
    if remains is not None and remains > max(most, BOUNDS["rows"].least):
        verdict = "grows"
    elif across > bound or (longest >= least_jobs and added > bound and risen(lives, bound)):
        verdict = "kept" if kept else "grows"
    elif longest < least_jobs and len(ends) < LEAST_LIVES:
        verdict = "too short"
    return Judgement(
        series.name,
        series.unit,
        first=median(point.value for point in (points or series.points)[:5]),
        last=median(point.value for point in (points or series.points)[-5:]),
        per_thousand=slope * 1_000,
        added=added,
        bound=bound,
        verdict=verdict,
        lives=len(lives),
        across=across,
        kept=kept,
        left=remains,
    )


def late(points: Sequence[Point], warm_up: float = 0.0) -> Sequence[Point]:
    """The second half, by jobs, but for those of the warm-up."""
    first, last = points[0].jobs, points[-1].jobs
    begin = max((first + last) / 2, first + warm_up)
    return [point for point in points if point.jobs >= begin]


def risen(lives: Sequence[Sequence[Point]], bound: float) -> bool:
    """Whether a figure has more in the second half of a run than in the quarter before.

    One that has grown in all that time has three quarters of what the second half adds. Lives of
    processes begin anew, so they are not compared in this way.
    """
    if len(lives) > 1:
        return True
    [points] = lives
    first, last = points[0].jobs, points[-1].jobs
    begin, middle = first + (last - first) / 4, (first + last) / 2
    before = [point.value for point in points if begin <= point.jobs < middle]
    after = [point.value for point in points if point.jobs >= middle]
    return not before or median(after) - median(before) > bound / 2


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """Not too many, evenly spread."""
    step = max(1, -(-len(points) // MOST_POINTS))
    return points[::step]


def median_slope(lives: Iterable[Sequence[Point]]) -> float:
    """The median of the slopes between two points of one process; 0 if nothing ever ended."""
    slopes = [
        (second.value - first.value) / (second.jobs - first.jobs)
        for life in lives
        for first, second in combinations(life, 2)
        if second.jobs > first.jobs
    ]
    return median(slopes) if slopes else 0.0


def ends_of(lives: Sequence[Sequence[Point]]) -> list[Point]:
    """What each process had at the end of its life.

    Of the lives that are much shorter than the others nothing is known. The first is always
    shorter, since its turn to be replaced comes sooner.
    """
    usual = median(life[-1].jobs - life[0].jobs for life in lives)
    return [
        Point(life[-1].jobs, median(point.value for point in life[-5:]), 0)
        for life in lives[1:]
        if life[-1].jobs - life[0].jobs >= usual / 2 and len(life) >= LEAST_POINTS
    ]


def growth_over(ends: Sequence[Point]) -> float:
    """What the last process has more than the first one; nothing if there were too few.

    They are few and differ by chance: most have to have more than those before them.
    """
    pairs = list(combinations(ends, 2))
    rising = sum(later.value > earlier.value for earlier, later in pairs)
    if len(ends) < LEAST_LIVES or rising < MOST_RISING * len(pairs):
        return 0.0
    return median_slope([ends]) * (ends[-1].jobs - ends[0].jobs)


def kept_for(series: Series) -> tuple[str, float]:
    """How long Headrace keeps what a series counts, and the most that may be left then."""
    if series.of == "store":
        for pattern, kept in KEPT.items():
            if fnmatch(series.what, pattern):
                return kept
    return "", 0.0
