"""What `doctor` learns from the server."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.engine.postgres.connection.migrate import NEWEST
from headrace.engine.postgres.engine import PostgresEngine
from headrace.engine.postgres.report import findings
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_worker, claim, enqueue

HEALTHY: dict[str, Any] = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
    "connections": 5,
    "max_connections": 100,
    "oldest_transaction": None,
}


async def test_the_report_is_about_this_server(postgres: PostgresEngine) -> None:
    report = await postgres.report()
    assert (report.engine, report.schema_version) == ("postgres", NEWEST)
    assert 15 <= int(report.server_version.split(".")[0]) <= 18
    found = {finding.subject: finding for finding in report.findings}
    # Servers for tests do not wait for the disk.
    assert (found["fsync"].level, found["full_page_writes"].level) == ("error", "error")
    assert "fsync = on" in found["fsync"].remedy
    assert found["synchronous_commit"].level == "ok"
    assert found["clock"].level == "ok"


def test_a_healthy_server_gives_no_reason_for_concern() -> None:
    assert {finding.level for finding in findings(HEALTHY, 0.1)} == {"ok"}


@pytest.mark.parametrize(
    ("subject", "change", "skew"),
    [
        ("synchronous_commit", {"synchronous_commit": "off"}, 0.0),
        ("autovacuum", {"autovacuum": "off"}, 0.0),
        ("connections", {"connections": 90}, 0.0),
        ("transactions", {"oldest_transaction": 4000.0}, 0.0),
        ("clock", {}, -5.0),
    ],
)
def test_each_concern_comes_with_its_remedy(
    subject: str, change: dict[str, Any], skew: float
) -> None:
    [concern] = [each for each in findings({**HEALTHY, **change}, skew) if each.level != "ok"]
    assert concern.subject == subject
    assert concern.remedy


async def test_the_audit_finds_what_is_wrong(postgres: PostgresEngine, raw: Raw) -> None:
    worker = await a_worker(postgres)
    for _ in range(2):
        await enqueue(postgres, lane="l", key=None)
    [job] = await claim(postgres, worker)
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    for damage, repair, subject in (
        ("UPDATE lane SET used = 5", "UPDATE lane SET used = 1", "lane"),
        ("UPDATE lane SET width = 2", "UPDATE lane SET width = 1", "lane"),
        (
            f"INSERT INTO job_key VALUES ('k', 't', '{'0' * 32}')",
            "DELETE FROM job_key",
            "key",
        ),
        (
            "UPDATE job SET holder = -holder WHERE state = 3",
            "UPDATE job SET holder = -holder WHERE state = 3",
            "job",
        ),
    ):
        await raw.execute(damage)
        [finding] = await postgres.audit()
        assert (finding.level, finding.subject) == ("error", subject)
        assert finding.remedy
        await raw.execute(repair)
        assert await postgres.audit() == []
    assert job.lane == "l"
