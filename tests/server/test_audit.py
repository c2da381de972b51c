"""Every change over HTTP is written down; the list of routes that make one is the real one."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

import headrace
from headrace.admin import bulk
from headrace.admin.bulk import BulkRecord
from headrace.admin.keys import create_key
from headrace.api_types.responses import AuditEntry
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from headrace.model.ids import first_id
from headrace.model.job import JobFilter
from headrace.server.auth import audit, audit_pages
from headrace.server.auth.caller import Caller
from tests.server.conftest import a_key, bearer, client_of, problem, run_jobs
from tests.server.test_guard import ROUTES
from tests.support.processes import until

ADD = {"task": "add", "args": {"a": 1, "b": 1}}
CHANGES = {
    ("POST", "/jobs"): "jobs.create",
    ("POST", "/jobs/batch"): "jobs.create",
    ("POST", "/jobs/bulk"): "jobs.cancel",
    ("POST", "/jobs/{job_id}/cancel"): "job.cancel",
    ("POST", "/jobs/{job_id}/retry"): "job.retry",
    ("POST", "/jobs/{job_id}/copy"): "job.copy",
    ("DELETE", "/bulk/{bulk_id}"): "bulk.stop",
    ("POST", "/bulk/{bulk_id}/resume"): "bulk.resume",
    ("POST", "/jobs/{job_id}/events/{event}"): "job.signal",
    ("POST", "/queues/{name}/pause"): "queue.pause",
    ("POST", "/queues/{name}/resume"): "queue.resume",
    ("PUT", "/queues/{name}/rate"): "rate.set",
    ("DELETE", "/queues/{name}/rate"): "rate.remove",
    ("PUT", "/queues/{name}/hold"): "rate.hold",
    ("DELETE", "/queues/{name}/hold"): "rate.release",
    ("POST", "/breakers/open"): "breaker.open",
    ("POST", "/breakers/close"): "breaker.close",
    ("PUT", "/schedules/{name}"): "schedule.put",
    ("POST", "/schedules/{name}/enable"): "schedule.enable",
    ("POST", "/schedules/{name}/disable"): "schedule.disable",
    ("POST", "/schedules/{name}/trigger"): "schedule.trigger",
    ("DELETE", "/schedules/{name}"): "schedule.remove",
    ("POST", "/dead-letters/{letter_id}/replay"): "dead-letter.replay",
    ("DELETE", "/dead-letters/{letter_id}"): "dead-letter.remove",
    ("POST", "/api/v2/workflows/execute"): "workflow.execute",
    ("POST", "/workflows/runs/{job_id}/retry"): "workflow.retry",
    ("POST", "/artifacts/keep"): "artifact.keep",
    ("POST", "/artifacts/release"): "artifact.release",
    ("PUT", "/destinations/{name}"): "destination.put",
    ("POST", "/destinations/{name}/enable"): "destination.enable",
    ("POST", "/destinations/{name}/disable"): "destination.disable",
    ("POST", "/destinations/{name}/rotate"): "destination.rotate",
    ("POST", "/destinations/{name}/test"): "destination.test",
    ("POST", "/destinations/{name}/test-alert"): "alert.test",
    ("DELETE", "/destinations/{name}"): "destination.remove",
    ("PUT", "/alert-rules/{name}"): "alert-rule.put",
    ("POST", "/alert-rules/{name}/silence"): "alert.silence",
    ("POST", "/alert-rules/{name}/unsilence"): "alert.unsilence",
    ("DELETE", "/alert-rules/{name}"): "alert-rule.remove",
    ("POST", "/keys"): "key.create",
    ("DELETE", "/keys/{key_id}"): "key.revoke",
}


def test_no_route_that_changes_something_is_left_out() -> None:
    assert {(method, path) for method, path, _ in ROUTES if method != "GET"} == set(CHANGES)


async def test_every_route_that_changes_something_writes_it_down(local_app: headrace.App) -> None:
    @local_app.task(breaker=headrace.Breaker(failures=3, within=60, pause=30))
    async def call() -> None: ...

    made = await a_key(local_app)
    async with client_of(local_app, made) as client:
        expected: dict[str, str] = {}

        async def change(method: str, path: str, body: object = None, **values: str) -> Any:
            where = path.format_map(values)
            answer = await client.request(method, where, json=body)
            assert answer.is_success, answer.text
            expected[CHANGES[method, path]] = next(iter(values.values()), "")
            return answer.json() if answer.content else None

        first = (await change("POST", "/jobs", ADD))["job_id"]
        await change("POST", "/jobs/batch", {"jobs": [ADD, ADD]})
        copied = await client.post(f"/jobs/{first}/copy")
        expected["job.copy"] = copied.json()["job_id"]
        await change("POST", "/jobs/{job_id}/events/{event}", 1, job_id=first, event="approved")
        await change("POST", "/jobs/{job_id}/cancel", {"reason": "enough"}, job_id=first)
        await change("POST", "/jobs/{job_id}/retry", job_id=first)
        await change("POST", "/jobs/bulk", {"action": "cancel", "filter": {"task": ["add"]}})
        begun = await _bulk_elsewhere(local_app, made)
        await change("DELETE", "/bulk/{bulk_id}", bulk_id=begun)
        await change("POST", "/bulk/{bulk_id}/resume", bulk_id=begun)
        for verb in ("pause", "resume"):
            await change("POST", f"/queues/{{name}}/{verb}", name="q")
        for noun, body in (("rate", {"rate": "10/m"}), ("hold", {"for": 60})):
            await change("PUT", f"/queues/{{name}}/{noun}", body, name="q")
            await change("DELETE", f"/queues/{{name}}/{noun}", name="q")
        for verb in ("open", "close"):
            await change("POST", f"/breakers/{verb}", {"queue": "q", "lane": "task:call"})
            expected[f"breaker.{verb}"] = "q/task:call"

        nightly = {"expression": "0 3 * * *", "task": "add", "params": {"a": 1, "b": 2}}
        await change("PUT", "/schedules/{name}", nightly, name="nightly")
        for verb in ("disable", "enable"):
            await change("POST", f"/schedules/{{name}}/{verb}", name="nightly")
        await change("POST", "/schedules/{name}/trigger", name="nightly")
        await change("DELETE", "/schedules/{name}", name="nightly")

        replayed, removed = await _two_letters(local_app, client)
        await change("POST", "/dead-letters/{letter_id}/replay", letter_id=replayed)
        await change("DELETE", "/dead-letters/{letter_id}", letter_id=removed)

        asked = {"workflow_id": "sums", "params": {"a": 1}}
        begun = await change("POST", "/api/v2/workflows/execute", asked)
        await run_jobs(local_app)
        run = begun["data"]["job_id"]
        await change("POST", "/workflows/runs/{job_id}/retry", {"from": "end"}, job_id=run)

        put = await local_app.artifacts.put("a.txt", b"hello")
        claim = {"path": put.path, "owner": "tests"}
        await change("POST", "/artifacts/keep", claim)
        await change("POST", "/artifacts/release", claim)

        hook = {"kind": "webhook", "options": {"url": "https://crm.example.com/hooks"}}
        await change("PUT", "/destinations/{name}", hook, name="crm")
        for verb in ("disable", "enable", "rotate", "test", "test-alert"):
            await change("POST", f"/destinations/{{name}}/{verb}", name="crm")

        rule = {"kind": "queue_length", "above": 1_000, "to": ["crm"]}
        await change("PUT", "/alert-rules/{name}", rule, name="long")
        await change("POST", "/alert-rules/{name}/silence", {"for": 60}, name="long")
        await change("POST", "/alert-rules/{name}/unsilence", name="long")
        await change("DELETE", "/alert-rules/{name}", name="long")
        await change("DELETE", "/destinations/{name}", name="crm")

        other = (await change("POST", "/keys", {"name": "second"}))["id"]
        await change("DELETE", "/keys/{key_id}", key_id=other)

        entries: list[dict[str, Any]] = []

        async def all_written() -> bool:
            entries[:] = (await client.get("/audit?limit=100")).json()["entries"]
            return {entry["action"] for entry in entries} == set(CHANGES.values())

        await until(all_written)
    targets = {entry["action"]: entry["target"] for entry in entries}
    assert {action: target for action, target in expected.items() if target} == {
        action: targets[action] for action, target in expected.items() if target
    }
    assert {entry["who"] for entry in entries} == {"test admin"}
    assert all(entry["key_id"] in made for entry in entries)


async def _bulk_elsewhere(app: headrace.App, key: str) -> str:
    """A bulk action of this key that another server does, so that it can be stopped in time."""
    record = BulkRecord(
        action="cancel",
        filter=JobFilter(tasks=("none",)),
        cutoff=app.clock.utcnow(),
        who="test admin",
        key_id=key.split("_")[1],
        made_at=app.clock.utcnow(),
        owner="another server",
        beat=await app.engine.now(),
    )
    return (await bulk.start(app.engine, record)).id


async def test_what_is_written_down_is_read_in_pages(local: httpx.AsyncClient) -> None:
    job_id = (await local.post("/jobs", json=ADD)).json()["job_id"]
    await local.post("/jobs/batch", json={"jobs": [ADD] * 30})
    await local.post(f"/jobs/{job_id}/cancel", json={"reason": "enough"})
    found: list[dict[str, Any]] = []

    async def all_written() -> bool:
        found[:] = (await local.get("/audit?limit=100")).json()["entries"]
        return bool(sum(entry.get("count", 1) for entry in found) == 31 + 1)

    await until(all_written)
    cancel = next(entry for entry in found if entry["action"] == "job.cancel")
    assert (cancel["target"], cancel["who"]) == (job_id, "local")
    assert cancel["detail"] == {"reason": "enough"}
    first = (await local.get("/audit?limit=1")).json()
    rest = (await local.get("/audit", params={"cursor": first["cursor"]})).json()
    assert [*first["entries"], *rest["entries"]] == found
    assert rest["cursor"] is None
    problem(await local.get("/audit?cursor=nonsense"), 422)


async def test_what_was_refused_is_not_written_down(local_app: headrace.App) -> None:
    weak = await a_key(local_app, "read")
    strong = await a_key(local_app)
    async with client_of(local_app) as client:
        problem(await client.post("/queues/q/pause", headers=bearer(weak)), 403)
        problem(await client.delete("/schedules/none", headers=bearer(strong)), 404)
        assert (await client.get("/audit", headers=bearer(strong))).json()["entries"] == []


async def test_the_log_of_changes_is_bounded(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_RECORDS", 20)
    monkeypatch.setattr(audit, "TRIM_EVERY", 10)
    async with client_of(local_app) as client:
        for _ in range(45):
            await client.post("/queues/q/pause")
        shown = (await client.get("/audit?limit=1000")).json()["entries"]
    assert 20 <= len(shown) <= 30


async def test_both_lines_of_the_log_are_bounded(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_RECORDS", 5)
    monkeypatch.setattr(audit, "TRIM_EVERY", 2)
    log, caller = audit.AuditLog(local_app), Caller(name="somebody", scope="admin")
    for _ in range(20):
        log.enqueued(caller, "add", "1")
        await log.changed(caller, "queue.pause", "q")
        await log._write_all()
    await log.close()
    keys = [record.key for record in await local_app.engine.record_list(audit_pages.KIND)]
    for line in (audit_pages.CHANGE, audit_pages.ENQUEUE):
        assert sum(key.startswith(line) for key in keys) <= 5 + 2, line


async def test_entries_are_found_by_who_action_target_and_time(local_app: headrace.App) -> None:
    _, ada = await create_key(local_app, name="ada", scope="admin")
    _, bob = await create_key(local_app, name="bob", scope="admin")
    async with client_of(local_app) as client:
        job_id = (await client.post("/jobs", json=ADD, headers=bearer(ada))).json()["job_id"]
        await client.post("/queues/mail/pause", headers=bearer(ada))
        await client.post("/queues/mail/resume", headers=bearer(bob))
        await client.post("/queues/other/pause", headers=bearer(bob))

        async def found(**params: str) -> list[tuple[str, str, str]]:
            answer = await client.get("/audit", params=params, headers=bearer(ada))
            assert answer.status_code == 200, answer.text
            return [
                (each["who"], each["action"], each["target"]) for each in answer.json()["entries"]
            ]

        async def enqueued() -> bool:
            return await found(target=job_id) == [("ada", "jobs.create", "add")]

        await until(enqueued)
        assert await found(who="bob") == [
            ("bob", "queue.pause", "other"),
            ("bob", "queue.resume", "mail"),
        ]
        assert await found(who=bob.split("_")[1]) == await found(who="bob")
        assert await found(action="queue.pause") == [
            ("bob", "queue.pause", "other"),
            ("ada", "queue.pause", "mail"),
        ]
        assert len(await found(action="queue")) == 3
        assert await found(target="mail", who="ada") == [("ada", "queue.pause", "mail")]
        assert await found(action="que") == []
        now = datetime.now(UTC)
        assert len(await found(since=(now - timedelta(minutes=5)).isoformat())) == 4
        assert await found(until=(now - timedelta(minutes=5)).isoformat()) == []
        problem(await client.get("/audit?since=now", headers=bearer(ada)), 422)


async def test_the_log_is_read_backwards_in_bounded_parts(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries of a moment, an hour and a month ago: all, once, in order, whatever the pages."""
    engine, now = local_app.engine, time.time()
    expected = []
    ages: list[float] = [*(90 * 86_400 + n for n in range(30)), *(3_600 + n for n in range(40))]
    ages += [n / 1_000 for n in range(50)]
    for number, age in enumerate(sorted(ages, reverse=True)):
        prefix = audit_pages.CHANGE if number % 3 else audit_pages.ENQUEUE
        at = datetime.fromtimestamp(now - age, UTC)
        key = f"{first_id(now - age)[:24]}{number:012x}"
        entries = [
            AuditEntry(at=at, action="queue.pause", target=f"{number}.{each}", who="ada")
            for each in range(2)
        ]
        await engine.record_put(audit_pages.KIND, prefix + key, msgspec.json.encode(entries))
        expected += [entry.target for entry in entries]
    expected.reverse()
    log = audit.AuditLog(local_app)
    asked: list[int] = []
    real = engine.record_list

    async def counted(kind: str, **options: Any) -> Any:
        asked.append(options["limit"])
        return await real(kind, **options)

    monkeypatch.setattr(engine, "record_list", counted)
    for page, most in ((500, 2_000), (16, 20)):
        monkeypatch.setattr(audit_pages, "PAGE", page)
        monkeypatch.setattr(audit_pages, "MOST_READ", most)
        for limit in (3, 1_000):
            found, cursor, first = [], None, True
            while first or cursor is not None:
                first = False
                asked.clear()
                answer = await log.read(cursor=cursor, limit=limit)
                assert len(asked) < (30 if page == 500 else 100)
                found += [entry.target for entry in answer.entries]
                cursor = answer.cursor
            assert found == expected
    wanted = audit_pages.AuditFilter(target="3.1")
    answer = await log.read(wanted, cursor=None, limit=5)
    while not answer.entries:
        assert answer.cursor is not None
        answer = await log.read(wanted, cursor=answer.cursor, limit=5)
    assert [entry.target for entry in answer.entries] == ["3.1"]


async def _two_letters(app: headrace.App, client: httpx.AsyncClient) -> tuple[str, str]:
    body = b'{"handler_name": "add", "params": {"a": 1, "b": 2}}'
    messages = [Message(body=body, topic="orders", key=f"kafka:orders:0:{n}") for n in range(2)]
    await DeadLetters(app).keep(
        "kafka", [RejectedMessage(each, "Odd", "it was odd") for each in messages]
    )
    letters = (await client.get("/dead-letters")).json()["dead_letters"]
    first, second = sorted(letter["id"] for letter in letters)
    return first, second
