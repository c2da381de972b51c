"""What may be said of a breaker, and what counts as a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.breakers import audit
from headrace.model.limits.breaker import Breaker, FailureTimes
from headrace.model.limits.lane import WIDTH_LIMIT
from headrace.orchestrator.isolation.error_transport import describe, rebuild
from headrace.server.auth import audit_pages

USUAL: dict[str, Any] = {"failures": 20, "within": 60, "pause": 30}
BREAKER = Breaker(**USUAL)


@pytest.fixture
def app(tmp_path: Path) -> headrace.App:
    return headrace.App(f"sqlite:///{tmp_path}/breakers.db")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("failures", 0),
        ("failures", 1_001),
        ("failures", 2.5),
        ("failures", True),
        ("within", 0),
        ("within", float("nan")),
        ("within", 10**7),
        ("pause", 0.5),
        ("pause", "30"),
        ("pause", 10**7),
        ("ignore", ValueError),
        ("ignore", (3,)),
        ("ignore", ("no name",)),
        ("count_retry_later", 1),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(headrace.InvalidSetting, match=f"breaker {field}.*got"):
        Breaker(**{**USUAL, field: value})


def test_a_task_has_a_lane_of_its_own_for_its_breaker(app: headrace.App) -> None:
    @app.task(breaker=BREAKER)
    def call() -> None: ...

    @app.task(breaker=BREAKER, rate="10/m")
    def slowly() -> None: ...

    @app.task
    def plain() -> None: ...

    job = call.job()
    assert (job.lane, job.width, job.hold, job.rate) == ("task:call", WIDTH_LIMIT, False, None)
    assert slowly.job().rate is not None
    assert app.task_breakers == {"call": BREAKER, "slowly": BREAKER}


def test_a_breaker_beside_a_lane_is_refused_with_a_remedy(app: headrace.App) -> None:
    with pytest.raises(headrace.InvalidSetting, match=r"headrace\.Lane\('x', breaker=…\)"):
        app.task(lane="x", breaker=BREAKER)


@pytest.mark.parametrize("wrong", [30, {"failures": 3}])
def test_what_is_no_breaker_is_refused_with_a_remedy(app: headrace.App, wrong: Any) -> None:
    remedy = r"breaker=headrace\.Breaker\(failures=20"
    with pytest.raises(headrace.InvalidSetting, match=remedy):
        app.task(breaker=wrong)
    with pytest.raises(headrace.InvalidSetting, match=remedy):
        headrace.Lane("x", breaker=wrong)


def test_a_job_cannot_bring_a_breaker_that_workers_do_not_know(app: headrace.App) -> None:
    @app.task
    def call() -> None: ...

    with pytest.raises(headrace.InvalidSetting, match="has no breaker"):
        call.options(lane=headrace.Lane("x", breaker=BREAKER))


class OurError(ValueError):
    pass


def test_errors_that_do_not_count() -> None:
    assert BREAKER.counts(ValueError())
    assert not BREAKER.counts(headrace.RetryLater(delay=1))
    assert not BREAKER.counts(headrace.RateLimited(after=1))
    assert Breaker(**USUAL, count_retry_later=True).counts(headrace.RateLimited(after=1))
    by_class, by_name = (
        Breaker(**USUAL, ignore=(ValueError,)),
        Breaker(**USUAL, ignore=("OurError",)),
    )
    assert not by_class.counts(OurError())
    assert not by_name.counts(OurError())
    assert by_name.counts(ValueError())


def test_errors_of_a_child_process_count_as_here() -> None:
    ignoring = Breaker(**USUAL, ignore=(ValueError,))
    assert not ignoring.counts(rebuild(describe(OurError("bad"))))
    assert not BREAKER.counts(rebuild(describe(headrace.RateLimited(after=1))))
    assert BREAKER.counts(rebuild(describe(OurError("bad"))))


def test_only_so_many_failures_are_kept_and_only_those_that_matter() -> None:
    breaker = Breaker(failures=3, within=10, pause=1)
    kept = FailureTimes(10.0).adding(breaker, [1.0, 5.0], 6.0)
    assert kept.times == (1.0, 5.0)
    assert kept.adding(breaker, [11.5], 12.0).times == (5.0, 11.5)
    assert kept.adding(breaker, [6.0, 7.0, 6.5], 8.0).times == (6.0, 6.5, 7.0)
    assert not kept.over(14.0)
    assert kept.over(15.0)


def test_workers_write_the_audit_log_that_servers_read() -> None:
    assert (audit.KIND, audit.CHANGE) == (audit_pages.KIND, audit_pages.CHANGE)
