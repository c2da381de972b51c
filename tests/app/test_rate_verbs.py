"""Rates and holds as operators change and see them, on each engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace
import headrace.sync
from headrace.model.limits.rate import Rate, RateView, as_rate
from headrace.monitor import rates as shown_rates
from headrace.monitor.timeline import timeline
from tests.support.verbs import a_worker

LANE = "host:example.com/ü x"


def crawler(app: headrace.App, **limits: Any) -> headrace.Task[..., Any]:
    """A task with a lane for each host."""

    @app.task(lane=headrace.Lane("host:{host}", **({"width": 9} | limits)))
    async def fetch(host: str) -> None: ...

    return fetch


async def run(app: headrace.App) -> None:
    """Start what may start."""
    await headrace.JobOrchestrator(app).run_until_idle()


async def the_rate(app: headrace.App, lane: str = "host:example.com") -> RateView:
    """The one that there is."""
    [found] = await app.rates(queue="default", lane=lane)
    return found


async def test_a_rate_that_is_set_counts_until_it_is_removed(app: headrace.App) -> None:
    assert await app.rates() == []
    fetch = crawler(app, rate="1000/s")
    await fetch.enqueue("example.com")
    said = await the_rate(app)
    assert (said.rate, said.by_operator) == (as_rate("1000/s"), False)
    changed = await app.set_rate("default", "10/m", lane="host:example.com", burst=2)
    assert changed.rate == Rate(10, 60, 2)
    assert changed == await the_rate(app)
    assert changed.by_operator
    for _ in range(4):
        await fetch.enqueue("example.com")
    await run(app)
    found = await the_rate(app)
    assert found.waiting == 3
    assert found.next_at is not None
    removed = await app.remove_rate("default", lane="host:example.com")
    assert (removed.rate, removed.by_operator) == (as_rate("1000/s"), False)
    # Once more is fine, and so is a lane that nobody knows.
    again = await app.remove_rate("default", lane="host:example.com")
    assert (again.rate, again.waiting) == (removed.rate, 3)
    await run(app)
    assert not (await app.list(headrace.JobFilter(statuses=(headrace.Status.SCHEDULED,)))).jobs
    nobody = await app.remove_rate("default", lane="nobody")
    assert nobody == RateView(queue="default", lane="nobody", rate=None)


async def test_the_rate_of_a_queue_counts_for_all_its_jobs(app: headrace.App) -> None:
    jobs = [await app.enqueue("add", {"a": 1, "b": 2}) for _ in range(3)]
    view = await app.set_rate("default", "1/h")
    assert (view.queue, view.lane, view.waiting) == ("default", "", 3)
    assert await app.rates(lane="") == [view]
    assert await app.rates(lane="other") == []
    await run(app)
    done = [(await app.get(job.id)).status.value for job in jobs]
    assert done == ["completed", "pending", "pending"]
    reasons = " ".join(await app.why(jobs[2].id))
    assert "Queue 'default' may start the next job at " in reasons
    assert "1 an hour." in reasons
    await app.remove_rate("default")
    await run(app)
    assert await app.rates() == []
    assert (await app.get(jobs[2].id)).status == "completed"


async def test_a_hold_says_who_and_why_until_it_ends(app: headrace.App) -> None:
    fetch = crawler(app)
    job = await fetch.enqueue("example.com")
    place: dict[str, Any] = {"lane": "host:example.com"}
    held = await app.hold("default", **place, duration=600, reason="they asked", by="ada")
    assert (held.rate, held.held_by, held.held_reason) == (None, "ada", "they asked")
    assert held.held_until is not None
    left = (held.held_until - app.clock.utcnow()).total_seconds()
    assert 590 < left <= 601
    assert await the_rate(app) == held
    for _ in range(2):  # not claimed yet, then parked
        [reason] = [each for each in await app.why(job.id) if "held" in each]
        assert f"is held until {held.held_until:%H:%M:%S} UTC by ada: they asked. " in reason
        assert reason.endswith("headrace rates release default --lane host:example.com")
        await run(app)
    parked = await app.get(job.id)
    assert parked.status == "scheduled"
    last = timeline(parked, [], app.clock.utcnow())[-1]
    assert last.words.startswith("waits for the rate of lane 'host:example.com'")
    # A second one replaces the first.
    until = datetime.now(UTC) + timedelta(days=3)
    held = await app.hold("default", **place, until=until)
    assert (held.held_by, held.held_reason) == (None, None)
    assert held.held_until is not None
    assert abs((held.held_until - until).total_seconds()) < 5
    assert f"{until:%Y-%m-%d}" in " ".join(await app.why(job.id))
    ended = await app.release_hold("default", **place)
    assert ended.held_until is None
    assert await app.rates() == []
    await run(app)
    assert (await app.get(job.id)).status == "completed"
    assert (await app.release_hold("default", **place)).held_until is None


async def test_a_hold_of_a_queue(app: headrace.App) -> None:
    job = await app.enqueue("add", {"a": 1, "b": 2})
    await app.hold("default", duration=60, by="ada")
    await run(app)
    reasons = " ".join(await app.why(job.id))
    assert "Queue 'default' is held until " in reasons
    assert "UTC by ada. End that with: headrace rates release default" in reasons
    await app.release_hold("default")
    await run(app)
    assert (await app.get(job.id)).status == "completed"


async def test_who_held_a_lane_is_not_said_of_a_hold_that_a_job_asked_for(
    app: headrace.App,
) -> None:
    await app.hold("default", lane=LANE, duration=5, reason="mine", by="ada")
    await app.engine.hold_lane("default", LANE, 50)
    [view] = await app.rates()
    assert view.held_until is not None
    assert (view.held_by, view.held_reason) == (None, None)


async def test_what_was_said_of_holds_that_are_over_is_forgotten(app: headrace.App) -> None:
    for number in range(3):
        await app.hold("default", lane=f"lane {number}", duration=5, reason="short")
    app.clock.advance(5 + 61)
    await app.hold("other", duration=5)
    kept = await app.engine.record_list(shown_rates.HOLD)
    assert [each.key for each in kept] == ["other/"]


async def test_running_jobs_do_not_wait(app: headrace.App) -> None:
    fetch = crawler(app, rate="1/h", burst=2)
    for _ in range(4):
        await fetch.enqueue("example.com")
    worker = await a_worker(app.engine)
    claimed = await app.engine.exchange([], worker_id=worker, limit=9)
    assert len(claimed.jobs) == 2
    assert (await the_rate(app)).waiting == 2


async def test_many_lanes_are_not_all_counted(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = crawler(app, rate="1/h")
    for host in ("a", "a", "b"):
        await fetch.enqueue(host)
    await app.set_rate("default", "1/s", lane="idle")
    found = {each.lane: each.waiting for each in await app.rates()}
    assert found == {"host:a": 2, "host:b": 1, "idle": 0}
    monkeypatch.setattr(shown_rates, "MOST_LANES", 1)
    found = {each.lane: each.waiting for each in await app.rates()}
    # Engines name one lane; of the others nothing is known.
    assert sorted(found.values(), key=str) in ([1, None, None], [2, None, None])


async def test_lists_are_bounded_and_by_name(app: headrace.App) -> None:
    for lane in ("b", "", "a"):
        await app.set_rate("mail", "1/s", lane=lane)
    await app.set_rate("default", "1/s", lane="z")
    names = [(each.queue, each.lane) for each in await app.rates()]
    assert names == [("default", "z"), ("mail", ""), ("mail", "a"), ("mail", "b")]
    assert [each.lane for each in await app.rates(queue="mail", limit=2)] == ["", "a"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda app: app.set_rate("default", "ten"), "rate 'ten' cannot be read; write"),
        (lambda app: app.set_rate("default", None), "to take a rate back, remove it"),
        (lambda app: app.set_rate("default", "1/s", burst=0), "burst must be a whole number"),
        (lambda app: app.set_rate("de fault", "1/s"), "queue name 'de fault' is not valid"),
        (lambda app: app.set_rate("default", "1/s", lane="a\nb"), "control character"),
        (lambda app: app.hold("default"), "a hold has an end: give `until` or a duration"),
        (lambda app: app.hold("default", duration=-1), "duration must be between 0"),
        (lambda app: app.hold("default", duration=1, reason="a\nb"), "reason must be one line"),
        (
            lambda app: app.hold("default", until=datetime(2020, 1, 1, tzinfo=UTC)),
            "has passed; choose a time to come",
        ),
        (
            lambda app: app.hold("default", until=datetime(2090, 1, 1, tzinfo=UTC), duration=1),
            "a hold has an `until` or a duration, not both",
        ),
        (lambda app: app.rates(limit=0), "limit must be between 1 and"),
    ],
)
async def test_what_cannot_be_is_refused_with_a_remedy(change: Any, told: str) -> None:
    async with headrace.App("sqlite:///:memory:") as app:
        with pytest.raises(headrace.InvalidInput, match=told):
            await change(app)
        assert await app.rates() == []


@pytest.mark.parametrize(
    "text", ["10/m", "1/5s", "0.5/h", "1000/d", "1000000/s", "3/90m", "7/2d", "0.000001/s"]
)
def test_a_rate_is_written_as_it_is_read(text: str) -> None:
    rate = as_rate(text, 3)
    assert as_rate(rate.text, 3) == rate
    assert "e" not in rate.text
    assert as_rate("1000000/s").words == "1000000 a second"


def test_odd_spans_are_written_by_the_second() -> None:
    assert Rate(1, 0.5, 1).text == "2/s"
    assert Rate(10, 60, 1).text == "10/m"
    assert Rate(1, 86_400, 1).text == "1/d"
    assert Rate(1, 172_800, 1).text == "1/2d"


def test_verbs_for_code_without_an_event_loop(tmp_path: Any) -> None:
    with headrace.sync.App(f"sqlite:///{tmp_path}/jobs.db") as app:
        assert app.set_rate("default", "10/m", lane="x").rate == Rate(10, 60, 1)
        assert app.hold("default", lane="x", duration=60).held_until is not None
        assert [each.lane for each in app.rates()] == ["x"]
        assert app.release_hold("default", lane="x").held_until is None
        assert app.remove_rate("default", lane="x").rate is None
