"""What pages ask of the store: once for all who look, and while nobody waits for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from typing import Any

import pytest

from headrace.api_types.monitoring import Summary
from headrace.engine.base import Engine
from headrace.model.views import QueueView
from headrace.monitor import snapshot
from headrace.monitor.findings import summary
from headrace.monitor.findings.summary import Summaries
from tests.dashboard.conftest import MakeSite, Site
from tests.dashboard.scenes import failed_jobs, unreachable
from tests.dashboard.test_front_page import shown
from tests.dashboard.test_session import client
from tests.dashboard.test_stream import stream
from tests.support.processes import until
from tests.support.verbs import a_job


class Counted:
    """An engine that counts what is asked of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def counted(*given: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return found(*given, **named)

        return counted


async def test_looks_within_a_second_ask_the_store_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy this machine is.
    monkeypatch.setattr("headrace.monitor.cached_reads.TIMES", 1e9)
    # What the server saw when it began does not count.
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 0.0)
    await failed_jobs(site.app.engine, "send", unreachable(30))
    counted = Counted(site.app.engine)
    monkeypatch.setattr(site.app, "_engine", counted)
    await shown(site)
    first = Counter(counted.calls)
    assert first["list_jobs"] >= 1
    assert first["queues"] >= 1
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 60.0)
    await shown(site)
    await shown(site, "/errors?within=hour")
    more = counted.calls - first
    assert not {name for name in more if name not in ("now", "record_list")}, more
    # Whether there are keys is asked more often.
    assert more["record_list"] <= 2, more


async def test_who_opens_it_does_not_wait_for_the_store(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless what was read last is old. The stream, which looks twice a second, does wait."""
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(summary, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(summary, "OPENED_SECONDS", 1e9)
    opened, at_opening = list[str](), Summaries.at_opening

    async def counted(summaries: Summaries, queues: Collection[str] = ()) -> Summary:
        opened.append("summary")
        return await at_opening(summaries, queues)

    monkeypatch.setattr(Summaries, "at_opening", counted)
    site = await make_site()
    asked, go_on = list[str](), asyncio.Event()
    queues = site.app.engine.queues

    async def waiting() -> list[QueueView]:
        asked.append("queues")
        await go_on.wait()
        return await queues()

    await shown(site)
    monkeypatch.setattr(site.app.engine, "queues", waiting)
    await site.app.engine.insert([a_job(task="send", queue="mail")])
    async with asyncio.timeout(30):
        for _ in range(3):
            assert "queues/mail" not in await shown(site)
    # One read for all of them.
    assert asked == ["queues"]
    go_on.set()
    async with client(site) as browser, stream(browser, "/") as heard:
        await heard.until("queues/mail")
    assert len(opened) == 4


async def test_failures_are_grouped_anew_with_rests(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.server.dashboard.shared_reads.ERRORS_SECONDS", 0.0)
    monkeypatch.setattr("headrace.server.dashboard.shared_reads.ERRORS_MEANWHILE", 1e9)
    monkeypatch.setattr("headrace.monitor.cached_reads.TIMES", 0.0)
    monkeypatch.setattr("headrace.monitor.errors.PAGE", 2)
    monkeypatch.setattr("headrace.monitor.errors.GENTLY", 1e9)  # a rest that does not end
    site = await make_site()
    await failed_jobs(site.app.engine, "send", unreachable(5))
    counted = Counted(site.app.engine)
    monkeypatch.setattr(site.app, "_engine", counted)
    await shown(site, "/errors")
    whole = counted.calls["list_jobs"]
    assert whole >= 3
    try:
        # Nobody waits, and nothing but one page was asked.
        assert "5 failures of send" in await shown(site, "/errors")
        assert "5 failures of send" in await shown(site, "/errors")
        await until(lambda: counted.calls["list_jobs"] > whole, "the first page")
        assert "5 failures of send" in await shown(site, "/errors")
        assert counted.calls["list_jobs"] == whole + 1
    finally:
        for task in asyncio.all_tasks():
            if task.get_name() == "headrace read":
                task.cancel()
