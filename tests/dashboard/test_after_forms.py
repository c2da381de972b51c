"""Reads are kept for all who look; who has sent a form is never shown what was before it."""

from __future__ import annotations

from tests.dashboard.conftest import Site
from tests.dashboard.scenes import failed_jobs, unreachable
from tests.dashboard.visits import Visitor, visitor
from tests.support.verbs import a_job, a_worker, claim

SPIKE = "failed in the last 5 minutes"
ACT = "/trial/act"


async def test_failures(site: Site) -> None:
    """On Errors and on Now they are kept for seconds, and shown while they are read anew."""
    async with visitor(site) as somebody:
        await failed_jobs(site.app.engine, "send", unreachable(2))
        assert "2 failures of send" in await somebody.get("/errors")
        assert SPIKE not in await somebody.words("/")
        await failed_jobs(site.app.engine, "send", unreachable(28))
        await somebody.send(ACT)
        assert "30 failures of send" in await somebody.get("/errors")
        assert SPIKE in await somebody.words("/")


async def test_a_refused_form_may_have_done_something(site: Site) -> None:
    async with visitor(site) as somebody:
        await failed_jobs(site.app.engine, "send", unreachable(2))
        assert "2 failures of send" in await somebody.get("/errors")
        await failed_jobs(site.app.engine, "send", unreachable(3))
        await somebody.send("/queues/mail/pause", status=422, **{"for": "ever"})
        assert "5 failures of send" in await somebody.get("/errors")


async def test_alerts(site: Site) -> None:
    async with visitor(site) as somebody:
        assert "too-long" not in await somebody.words("/alerts")
        await site.app.put_alert_rule("too-long", "queue_length", "ops", above=9)
        await somebody.send(ACT)
        assert "too-long" in await somebody.words("/alerts")


async def test_who_changed_a_job(site: Site) -> None:
    engine = site.app.engine
    await engine.insert([a_job(task="add")])
    [job] = await claim(engine, await a_worker(engine), 1)
    async with visitor(site) as somebody:
        await _looks(somebody, job.id, changed=False)
        # It goes on running until it notices.
        await somebody.send(f"/jobs/{job.id}/cancel")
        await _looks(somebody, job.id, changed=True)


async def _looks(somebody: Visitor, job_id: str, *, changed: bool) -> None:
    page = await somebody.get(f"/jobs/{job_id}")
    assert ('<tr id="audit-1">' in page) is changed
