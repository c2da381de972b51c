"""Pruning: found on the reader, checked again by the writer, and not held up by what is spared."""

from __future__ import annotations

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.engine.sqlite.upkeep import prune
from tests.engine.sqlite.conftest import writer_of
from tests.support.verbs import a_job, enqueue


async def finished(engine: SqliteEngine, count: int, **fields: object) -> list[str]:
    inserted = await engine.insert([a_job(**fields) for _ in range(count)])
    ids = [each.id for each in inserted]
    await engine.cancel(ids)
    return ids


async def test_many_spared_children_hold_nobody_else_up(sqlite_engine: SqliteEngine) -> None:
    parent = await enqueue(sqlite_engine)
    children = await finished(sqlite_engine, 20, parent=parent)
    others = await finished(sqlite_engine, 10)
    assert await sqlite_engine.prune(keep=0, limit=3) == 3
    assert await sqlite_engine.prune(older_than=-1, limit=3) == 3
    assert await sqlite_engine.prune(keep=0) == 4
    assert await sqlite_engine.get(others) == []
    assert len(await sqlite_engine.get(children)) == 20


async def test_spared_children_count_among_those_that_are_kept(
    sqlite_engine: SqliteEngine,
) -> None:
    parent = await enqueue(sqlite_engine)
    older = await finished(sqlite_engine, 2)
    await finished(sqlite_engine, 3, parent=parent)
    newer = await finished(sqlite_engine, 2)
    assert await sqlite_engine.prune(keep=5) == 2
    assert await sqlite_engine.get(older) == []
    assert await sqlite_engine.prune(keep=1) == 1
    assert [job.id for job in await sqlite_engine.get(newer)] == newer[1:]


async def test_what_runs_again_in_the_meantime_is_not_pruned(sqlite_engine: SqliteEngine) -> None:
    writer = writer_of(sqlite_engine)
    again, parent, twice, gone = await finished(sqlite_engine, 4)
    [child] = await finished(sqlite_engine, 1, parent=parent)

    def find(transaction: Transaction) -> list[tuple[int, str]]:
        return prune.find_old(transaction, older_than=None, keep=0, limit=100)

    found = await writer.run(find)
    assert [job_id for _, job_id in found] == [again, parent, twice, gone, child]
    assert await sqlite_engine.rerun([again, parent, twice]) == [again, parent, twice]
    # It has finished again since, so it is not what was found.
    await sqlite_engine.cancel([twice])
    assert await writer.run(lambda it: prune.prune(it, found)) == 1
    left = {job.id for job in await sqlite_engine.get([again, parent, twice, gone, child])}
    assert left == {again, parent, twice, child}
