"""Keys: made, listed, revoked; and what is written down about it."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import httpx
import pytest

import headrace
from headrace.admin.keys import Key, create_key, list_keys, revoke_key
from headrace.errors import InvalidInput, InvalidSetting
from headrace.loops.sockets import bind
from headrace.server.auth import keys
from headrace.server.listen import check_reach, is_loopback, listening
from tests.server.conftest import a_key, bearer, client_of, problem
from tests.support.processes import until
from tests.support.servers import free_port


async def test_a_key_is_made_used_and_revoked(client: httpx.AsyncClient, app: headrace.App) -> None:
    made = await client.post("/keys", json={"name": "ci", "scope": "admin", "queues": []})
    assert made.status_code == 201
    secret = made.json()["secret"]
    # The first key closes the server.
    problem(await client.get("/keys"), 401)
    headers = bearer(secret)
    [listed] = (await client.get("/keys", headers=headers)).json()["keys"]
    assert listed == {name: value for name, value in made.json().items() if name != "secret"}
    other = (await client.post("/keys", json={"name": "second"}, headers=headers)).json()
    assert (other["scope"], other["user"]) == ("read", None)
    revoked = await client.delete(f"/keys/{other['id']}", headers=headers)
    assert revoked.json()["revoked_at"] is not None
    problem(await client.get("/jobs", headers=bearer(other["secret"])), 401)
    problem(await client.delete("/keys/" + "0" * 16, headers=headers), 404, "key-not-found")
    # What is stored is no key.
    for record in await app.engine.record_list("key"):
        assert secret.split("_", 2)[2].encode() not in record.body
    entries = (await client.get("/audit", headers=headers)).json()["entries"]
    assert [entry["action"] for entry in entries] == ["key.revoke", "key.create", "key.create"]
    assert [entry["who"] for entry in entries] == ["ci", "ci", "local"]


async def test_the_first_key_closes_the_server_also_while_keys_are_being_read(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a read has seen that began before the key was made says nothing any more."""
    has_read, may_answer = asyncio.Event(), asyncio.Event()

    async def slowly(app: headrace.App) -> list[Key]:
        found = await list_keys(app)
        if not has_read.is_set():
            has_read.set()
            await may_answer.wait()
        return found

    monkeypatch.setattr(keys, "list_keys", slowly)
    ring = keys.Keyring(local_app)
    waiting = asyncio.ensure_future(ring.exist())
    await has_read.wait()
    await a_key(local_app)
    ring.forget()
    assert await asyncio.wait_for(ring.exist(), 60)
    may_answer.set()
    assert await waiting
    assert await ring.exist()


async def test_a_server_that_had_keys_is_never_open_again(local_app: headrace.App) -> None:
    key = await a_key(local_app)
    await revoke_key(local_app, key.split("_")[1])
    async with client_of(local_app) as client:
        problem(await client.get("/jobs"), 401)


async def test_a_key_revoked_elsewhere_is_refused_within_two_seconds(
    local_app: headrace.App,
) -> None:
    key = await a_key(local_app)
    async with client_of(local_app, key) as client:
        assert (await client.get("/jobs")).status_code == 200
        await revoke_key(local_app, key.split("_")[1])
        revoked = asked = time.monotonic()

        async def refused() -> bool:
            nonlocal asked
            now = time.monotonic()
            if (await client.get("/jobs")).status_code == 401:
                return True
            asked = now
            return False

        await until(refused)
        # The last one that was let in, however long its answer took.
        assert asked - revoked < keys.LONGEST_TRUST + 0.5


async def test_many_requests_read_the_keys_seldom(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await a_key(local_app)
    read = local_app.engine.record_list
    reads: list[str] = []

    async def counted(kind: str, **options: object) -> object:
        reads.append(kind)
        return await read(kind, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(local_app.engine, "record_list", counted)
    began = time.monotonic()
    async with client_of(local_app, key) as client:
        wrong = [bearer(f"hr_{number:016x}_" + "A" * 43) for number in range(100)]
        await asyncio.gather(*(client.get("/tasks", headers=each) for each in wrong))
        for _ in range(100):
            assert (await client.get("/tasks")).status_code == 200
    # Wrong ids make it look a little more often, in case a key was made just now.
    assert reads.count("key") <= 2 + (time.monotonic() - began) / keys.NEW_AFTER


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "root"},
        {"name": ""},
        {"name": "a\nb"},
        {"queues": ["no spaces"]},
        {"user": ""},
        {"rate": 0},
        {"rate": -1},
        {"rate": float("nan")},
    ],
)
async def test_a_key_that_makes_no_sense_is_refused(
    local_app: headrace.App, fields: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        await create_key(local_app, **({"name": "x"} | fields))  # type: ignore[arg-type]
    assert await list_keys(local_app) == []


async def test_a_server_listens_beyond_this_machine_only_with_keys(
    local_app: headrace.App,
) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        assert is_loopback(host)
        await check_reach(local_app, host)
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        assert not is_loopback(host)
        with pytest.raises(InvalidSetting, match="headrace keys create"):
            await check_reach(local_app, host)
    with pytest.raises(InvalidSetting, match="headrace keys create"):
        async with listening(local_app, host="0.0.0.0", port=0):
            raise AssertionError("it must not listen")
    await a_key(local_app)
    async with listening(local_app, host="0.0.0.0", port=0) as url:
        assert url.startswith("http://0.0.0.0:")


def test_a_port_that_is_taken_is_told_clearly() -> None:
    port = free_port()
    with bind("127.0.0.1", port) as first:
        first.listen()
        with pytest.raises(InvalidSetting, match=f"127.0.0.1:{port}.*--port"):
            bind("127.0.0.1", port)
    with pytest.raises(InvalidSetting, match="not an address"):
        bind("no.such.host.invalid", port)


async def test_a_wrong_secret_takes_as_long_as_an_unknown_id(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await a_key(local_app)
    known, revoked = key.split("_")[1], await a_key(local_app)
    await revoke_key(local_app, revoked.split("_")[1])
    ring = keys.Keyring(local_app)
    assert await ring.find(key) is not None
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("headrace.server.auth.keys.asyncio.sleep", sleep)
    for wrong in (f"hr_{known}_" + "A" * 43, "hr_" + "0" * 16 + "_" + "A" * 43, revoked):
        assert await ring.find(wrong) is None
        assert len(waited) == 1
        waited.clear()
    assert await ring.find(key) is not None
    assert not waited


async def test_a_batch_costs_as_many_requests_as_it_has_jobs(
    local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = bearer(await a_key(local_app, "write", rate=5))
    job = {"task": "add", "args": {"a": 1, "b": 2}}

    # A bucket fills with time, of which a busy machine takes as much as it likes.
    now = time.monotonic()
    monkeypatch.setattr(keys, "time", SimpleNamespace(monotonic=lambda: now))

    async def batch(jobs: int) -> httpx.Response:
        return await client.post("/jobs/batch", json={"jobs": [job] * jobs}, headers=slow)

    async with client_of(local_app) as client:
        told = problem(await batch(1_000), 422, "invalid-input")
        assert "at most 10" in told["detail"]
        answers = [await batch(8) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [202, 429, 429, 429]
    assert int(answers[1].headers["retry-after"]) >= 1
    stored = (await local_app.list(limit=1_000)).jobs
    assert len(stored) == 8 * sum(answer.status_code == 202 for answer in answers)
