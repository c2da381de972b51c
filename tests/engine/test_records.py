"""The versioned record store."""

from __future__ import annotations

import asyncio

import pytest

from headrace.engine.base import Engine
from headrace.errors import RecordConflict
from tests.engine.conftest import Opener


async def test_a_record_comes_back_with_its_version(engine: Engine) -> None:
    assert await engine.record_get("schedule", "nightly") is None
    made = await engine.record_put("schedule", "nightly", b'{"a":1}')
    assert (made.version, made.body) == (1, b'{"a":1}')
    changed = await engine.record_put("schedule", "nightly", b'{"a":2}')
    assert changed.version == 2
    read = await engine.record_get("schedule", "nightly")
    assert read == changed


async def test_a_version_guards_a_change(engine: Engine) -> None:
    await engine.record_put("k", "a", b"1", version=0)
    with pytest.raises(RecordConflict):
        await engine.record_put("k", "a", b"2", version=0)
    await engine.record_put("k", "a", b"2", version=1)
    with pytest.raises(RecordConflict):
        await engine.record_put("k", "a", b"3", version=1)
    with pytest.raises(RecordConflict):
        await engine.record_put("k", "none", b"3", version=4)
    record = await engine.record_get("k", "a")
    assert record is not None
    assert (record.version, record.body) == (2, b"2")


async def test_deleting_is_guarded_too(engine: Engine) -> None:
    await engine.record_put("k", "a", b"1")
    with pytest.raises(RecordConflict):
        await engine.record_delete("k", "a", version=7)
    assert await engine.record_delete("k", "a", version=1)
    assert not await engine.record_delete("k", "a")
    assert await engine.record_get("k", "a") is None


async def test_records_are_listed_by_key_within_their_kind(engine: Engine) -> None:
    for key in ("b", "a", "ä", "c"):
        await engine.record_put("k", key, key.encode())
    await engine.record_put("other", "z", b"z")
    assert [record.key for record in await engine.record_list("k")] == ["a", "b", "c", "ä"]
    assert [r.key for r in await engine.record_list("k", after="a", limit=2)] == ["b", "c"]
    assert await engine.record_list("nothing") == []


async def test_keys_are_in_the_order_of_their_bytes(engine: Engine) -> None:
    keys = ["A", "Z", "a", "a ", "a-b", "a.b", "aB", "ab", "b", "~", "é", "레", "\uffee", "🎡"]
    assert keys == sorted(keys, key=str.encode)
    for key in reversed(keys):
        await engine.record_put("k", key, b"1")
    seen, after = [], ""
    while page := await engine.record_list("k", after=after, limit=4):
        seen += [record.key for record in page]
        after = seen[-1]
    assert seen == keys


async def test_racing_writers_make_each_version_once(engine: Engine, open_another: Opener) -> None:
    other = await open_another()

    async def count(each: Engine) -> None:
        done = 0
        while done < 10:
            record = await each.record_get("k", "n")
            value = int(record.body) if record else 0
            version = record.version if record else 0
            try:
                await each.record_put("k", "n", str(value + 1).encode(), version=version)
                done += 1
            except RecordConflict:
                continue

    await asyncio.gather(count(engine), count(other), count(engine))
    record = await engine.record_get("k", "n")
    assert record is not None
    assert (record.body, record.version) == (b"30", 30)
