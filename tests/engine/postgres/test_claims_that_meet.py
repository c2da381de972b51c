"""Claims over several queues that meet: none hides from another what it does not take."""

from __future__ import annotations

from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.outcome import Reserved
from tests.engine.conftest import Opener
from tests.engine.postgres.conftest import Raw
from tests.engine.postgres.test_lock_order import inside, meeting
from tests.support.verbs import a_job, a_worker, claim, settle

__all__ = ["inside"]


async def test_a_claim_that_meets_another_takes_all_that_it_locks(
    postgres: PostgresEngine, open_another: Opener, inside: Raw
) -> None:
    one, two = await a_worker(postgres, "one"), await a_worker(postgres, "two")
    other = await open_another()
    # The stranger sees those who are connected when it first looks.
    assert await claim(postgres, one) == []
    wanted = [a_job(queue="urgent", priority=9) for _ in range(2)]
    rest = [a_job(queue=f"q{n}", priority=p) for p in (3, 2, 1) for n in range(5)]
    await postgres.insert([*wanted, *rest])
    async with inside.transaction():
        # A stranger takes the best jobs, as a claim does, and has the first worker wait with what
        # it has found instead.
        await inside.execute("SELECT FROM job WHERE queue = 'urgent' FOR UPDATE")
        await inside.execute("SELECT FROM worker WHERE id = $1 FOR UPDATE", one)
        first = await meeting(inside, claim(postgres, one, 2))
        second = await claim(other, two, 30)
    assert {job.id for job in await first} == {job.id for job in rest[:2]}
    assert [job.id for job in second] == [job.id for job in rest[2:]]
    assert {job.id for job in await claim(postgres, one, 30)} == {job.id for job in wanted}


async def test_what_another_claim_takes_is_made_up_for_from_all_queues_by_priority(
    postgres: PostgresEngine, inside: Raw
) -> None:
    worker = await a_worker(postgres)
    await postgres.insert(
        [a_job(queue=f"q{n % 4}", priority=-(n // 4), args=b"%d" % n) for n in range(32)]
    )
    async with inside.transaction():
        # All of one queue, and the best of another, which has more.
        await inside.execute("SELECT FROM job WHERE queue = 'q0' FOR UPDATE")
        await inside.execute("SELECT FROM job WHERE queue = 'q1' AND priority = 0 FOR UPDATE")
        jobs = await claim(postgres, worker, 12)
    taken = [int(bytes(job.args)) for job in jobs]
    assert len(taken) == 12
    assert not {n for n in taken if n % 4 == 0 or n == 1}
    # The best two of each queue are among them, whatever else makes up for the missing ones.
    assert {5, 9, 2, 6, 3, 7} <= set(taken)


async def test_a_claim_with_reserved_jobs_makes_up_for_what_others_take(
    postgres: PostgresEngine, inside: Raw
) -> None:
    stranger = await a_worker(postgres, "stranger", tasks=("mine",))
    reserved = [a_job(queue=f"q{n}", task="theirs", priority=8) for n in range(2)]
    await postgres.insert(reserved)
    for job in await claim(postgres, stranger, 2):
        await settle(postgres, job, Reserved())
    urgent = a_job(queue="urgent", priority=9)
    rest = [a_job(queue=f"q{n}") for n in range(3)]
    await postgres.insert([urgent, *rest])
    knows = await a_worker(postgres, "knows")
    async with inside.transaction():
        # All of one queue, and all that is reserved of another, which has more.
        await inside.execute("SELECT FROM job WHERE queue = 'urgent' FOR UPDATE")
        await inside.execute("SELECT FROM job WHERE queue = 'q0' AND reserved FOR UPDATE")
        jobs = await claim(postgres, knows, 3)
    assert {job.id for job in jobs} == {reserved[1].id, rest[0].id, rest[1].id}
    left = {urgent.id, reserved[0].id, rest[2].id}
    assert {job.id for job in await claim(postgres, knows, 9)} == left


async def test_a_claim_of_one_queue_with_reserved_jobs_makes_up_for_what_others_take(
    postgres: PostgresEngine, inside: Raw
) -> None:
    stranger = await a_worker(postgres, "stranger", tasks=("mine",))
    reserved = a_job(task="theirs", priority=8)
    await postgres.insert([reserved])
    [job] = await claim(postgres, stranger, 1)
    await settle(postgres, job, Reserved())
    rest = [a_job() for _ in range(3)]
    await postgres.insert(rest)
    knows = await a_worker(postgres, "knows")
    async with inside.transaction():
        await inside.execute("SELECT FROM job WHERE reserved FOR UPDATE")
        jobs = await claim(postgres, knows, 1, ["default"])
    assert [job.id for job in jobs] == [rest[0].id]
