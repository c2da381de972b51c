"""Schedules, dead letters, keys and the audit: through a Client, and on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.admin.keys import create_key
from headrace.client import AccessDenied, NotFound, sync
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from tests.client.conftest import Served
from tests.client.test_remote_cli import RemoteCli


@pytest.fixture
def admin(one_server: Served) -> Iterator[sync.Client]:
    """Somebody who may do everything."""
    _, secret = one_server.call(create_key(one_server.app, name="boss", scope="admin"))
    with sync.Client(one_server.url, api_key=secret) as client:
        yield client


@pytest.fixture
def cli(one_server: Served, tmp_path: Path) -> RemoteCli:
    return RemoteCli(tmp_path, one_server)


def set_aside(served: Served, count: int) -> list[str]:
    ids = [f"kafka:orders/new:0:{n}" for n in range(count)]
    letters = [
        RejectedMessage(
            Message(body=b'{"handler_name": "broken", "params": {}}', topic="orders/new", key=key),
            "UnknownTask",
            "it was not there",
        )
        for key in ids
    ]
    served.call(DeadLetters(served.app).keep("kafka", letters))
    return ids


def test_schedules(admin: sync.Client) -> None:
    made = admin.put_schedule(
        "nightly", "0 3 * * *", "add", tz="Asia/Seoul", params={"a": 1}, allow_overlap=False
    )
    assert (made.words, made.origin, len(made.next)) == ("at 03:00 every day", "api", 5)
    assert made.next[0].local.utcoffset() is not None
    assert [each.name for each in admin.schedules()] == ["nightly"]
    assert not admin.enable_schedule("nightly", False).enabled
    assert admin.enable_schedule("nightly").enabled
    job = admin.trigger_schedule("nightly")
    assert job.source == "api"
    admin.trigger_schedule("nightly", force=True)
    assert {run.triggered for run in admin.schedule("nightly").last_runs} == {True}
    assert len(admin.next_times("nightly", 7).next) == 7
    admin.remove_schedule("nightly")
    with pytest.raises(headrace.UnknownSchedule, match='no schedule is called "nightly"'):
        admin.schedule("nightly")
    with pytest.raises(headrace.InvalidInput, match="is not valid"):
        admin.put_schedule("bad", "now and then", "add", params={"a": 1})
    assert admin.dispatchers() == []


def test_dead_letters(one_server: Served, admin: sync.Client) -> None:
    ids = set_aside(one_server, 5)
    first = admin.dead_letters(limit=3)
    rest = admin.dead_letters(cursor=first.cursor, topic="orders/new")
    assert [each.id for each in first.dead_letters + rest.dead_letters] == ids
    shown = admin.dead_letter(ids[0])
    assert (shown.raw, shown.reason) == (
        b'{"handler_name": "broken", "params": {}}',
        "it was not there",
    )
    replayed = admin.replay_dead_letter(ids[0])
    assert admin.get(replayed.job_id).task == "broken"
    with pytest.raises(NotFound):
        admin.dead_letter(ids[0])
    admin.remove_dead_letter(ids[1])
    assert len(admin.dead_letters().dead_letters) == 3


async def test_keys_and_the_audit(one_server: Served) -> None:
    async with headrace.Client(one_server.url) as anybody:
        boss = await anybody.create_key("boss", "admin")
        with pytest.raises(AccessDenied):
            await anybody.keys()
    async with headrace.Client(one_server.url, api_key=boss.secret) as client:
        made = await client.create_key("ci", "write", queues=["mail"], rate=5, user="ada")
        assert (made.scope, list(made.queues), made.rate, made.user) == (
            "write",
            ["mail"],
            5,
            "ada",
        )
        assert (await client.revoke_key(made.id)).revoked_at is not None
        assert [key.name for key in await client.keys() if key.revoked_at is None] == ["boss"]
        with pytest.raises(NotFound):
            await client.revoke_key("0" * 16)
        page = await client.audit(limit=2)
        assert [entry.action for entry in page.entries] == ["key.revoke", "key.create"]
        assert (page.entries[0].who, page.entries[0].target) == ("boss", made.id)
        older = await client.audit(cursor=page.cursor)
        assert [entry.who for entry in older.entries] == ["local"]


def test_the_command_line_asks_the_server(one_server: Served, cli: RemoteCli) -> None:
    added = cli("schedules", "add", "nightly", "0 3 * * *", "add", "a=1", "--tz", "Asia/Seoul")
    assert added.out == "Schedule nightly runs add at 03:00 every day, Asia/Seoul.\n"
    assert "works on the engine" not in added.err
    again = cli("schedules", "add", "nightly", "0 4 * * *", "add", "a=1", code=2)
    assert "exists already" in again.err
    assert (
        "has its own"
        in cli("schedules", "add", "x", "0 4 * * *", "add", "a=1", "--config", "c.yaml", code=2).err
    )
    cli("schedules", "add", "nightly", "0 4 * * *", "add", "a=1", "--replace")
    job_id = cli("schedules", "trigger", "nightly").out.strip()
    shown = cli("schedules", "show", "nightly").out
    assert job_id in shown
    assert "at 04:00 every day" in shown
    [listed] = cli("schedules", "list", "--json").json["schedules"]
    assert (listed["name"], listed["last_runs"][0]["job_id"]) == ("nightly", job_id)
    assert "nightly" in cli("schedules", "list").out
    assert len(cli("schedules", "next", "nightly", "-n", "3", "--json").json["next"]) == 3
    cli("schedules", "disable", "nightly")
    cli("schedules", "remove", "nightly")
    assert "no schedule is called" in cli("schedules", "show", "nightly", code=2).err
    ids = set_aside(one_server, 3)
    assert ids[2] in cli("dead-letters", "list", "--topic", "orders/new").out
    assert "it was not there" in cli("dead-letters", "show", ids[0]).out
    assert "job " in cli("dead-letters", "replay", ids[0]).out
    assert "no dead letter" in cli("dead-letters", "remove", ids[0], code=1).err
    cli("dead-letters", "remove", "--all", "--yes")
    assert cli("dead-letters", "list", "--json").json["dead_letters"] == []
    assert cli("dispatcher", "list", "--json").json["dispatchers"] == []
    assert "name the engine" in cli("prune", code=2).err
    key = cli("keys", "create", "boss", "--scope", "admin", "--json").json
    assert "HEADRACE_API_KEY" in cli("keys", "list", code=1).err
    as_boss = {"HEADRACE_API_KEY": key["secret"]}
    other = cli("keys", "create", "ci", **as_boss).out.strip()
    assert other.startswith("hr_")
    assert "is revoked" in cli("keys", "revoke", other.split("_")[1], **as_boss).out
    assert "revoked" in cli("keys", "list", **as_boss).out
