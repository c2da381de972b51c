"""Opening, closing, looking after the store."""

from __future__ import annotations

import asyncio

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.engine.stored_text import redacted
from headrace.errors import HeadraceError, InvalidSetting
from tests.support.verbs import enqueue, the_job


async def test_many_processes_may_open_a_new_store_at_once(engine_url: str) -> None:
    engines = [open_engine(engine_url) for _ in range(6)]
    await asyncio.gather(*(engine.open() for engine in engines))
    job_id = await enqueue(engines[0])
    assert (await the_job(engines[5], job_id)).id == job_id
    await asyncio.gather(*(engine.close() for engine in engines))


async def test_a_store_survives_closing(engine_url: str) -> None:
    first = open_engine(engine_url)
    await first.open()
    job_id = await enqueue(first, lane="l", key="k")
    await first.close()
    await first.close()
    second = open_engine(engine_url)
    await second.open()
    assert (await the_job(second, job_id)).key == "k"
    assert await second.audit() == []
    await second.close()


async def test_the_report_tells_version_and_clock(engine: Engine) -> None:
    report = await engine.report()
    assert report.engine == engine.name
    assert report.server_version[0].isdigit()
    assert report.schema_version >= 1
    assert abs(report.clock_skew) < 5
    assert report.findings
    assert all(f.level == "ok" or f.remedy for f in report.findings)


@pytest.mark.parametrize("url", ["", "mysql://x/y", "nonsense", "http://127.0.0.1/"])
def test_a_url_of_unknown_form_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"sqlite:///path\.db"):
        open_engine(url)


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:hidden@127.0.0.1:1/x", "redis://:hidden@127.0.0.1:1/0"],
)
async def test_a_missing_server_is_named_without_its_password(url: str) -> None:
    engine = open_engine(url, clock=Clock())
    with pytest.raises(HeadraceError) as caught:
        await engine.open()
    assert "127.0.0.1:1" in str(caught.value)
    assert "hidden" not in str(caught.value)
    await engine.close()


def test_redacted_urls_keep_everything_but_the_password() -> None:
    assert redacted("redis://u:p@h:1/0") == "redis://u:***@h:1/0"
    assert redacted("sqlite:///a.db") == "sqlite:///a.db"
