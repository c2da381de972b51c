"""Where claims begin to look while dead rows pile up in front of the ready jobs."""

from __future__ import annotations

from time import monotonic

from headrace.engine.postgres.claim_cursor import Line
from headrace.engine.postgres.engine import PostgresEngine
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_worker, claim, complete, enqueue, retry


def test_quick_looks_always_begin_at_the_front() -> None:
    line = Line()
    line.found(1.0, begun=0, first=7, short=False, spent=0.0)
    assert line.begin(1.0) == 0


def test_after_a_slow_look_the_next_ones_begin_where_it_ended() -> None:
    line = Line()
    line.found(10.0, begun=0, first=700, short=False, spent=0.2)
    assert line.begin(10.0) == 700
    line.found(10.1, begun=700, first=1_300, short=False, spent=0.0)
    assert line.begin(13.9) == 1_300
    assert line.begin(14.1) == 0, "a twentieth of the time is for looks at everything"


def test_who_finds_too_little_looks_at_everything_sooner() -> None:
    line = Line()
    line.found(10.0, begun=0, first=700, short=False, spent=0.2)
    line.found(10.3, begun=700, first=None, short=True, spent=0.0)
    assert line.begin(10.7) == 700
    assert line.begin(10.9) == 0


def test_when_looking_is_quick_again_everything_is_as_before() -> None:
    line = Line()
    line.found(10.0, begun=0, first=700, short=False, spent=0.2)
    line.found(15.0, begun=0, first=900, short=False, spent=0.0)
    assert line.begin(15.0) == 0


async def test_a_job_that_is_ready_again_in_front_is_found_by_the_look_at_everything(
    postgres: PostgresEngine, raw: Raw
) -> None:
    worker = await a_worker(postgres)
    early = await enqueue(postgres)
    [job] = await claim(postgres, worker)
    late = [await enqueue(postgres) for _ in range(3)]
    schema = postgres.address.quoted_schema
    first = await raw.fetchval(f"SELECT min(seq) FROM {schema}.job WHERE state = 2")
    line = postgres._lines[None]
    line.found(monotonic(), begun=0, first=first, short=False, spent=60.0)
    assert await retry(postgres, job)
    claimed = await claim(postgres, worker, limit=2)
    assert [each.id for each in claimed] == late[:2]
    # Fewer than it has room for: it looks at everything, when that is not too often.
    line.found(monotonic() - 300.0, begun=0, first=first, short=False, spent=60.0)
    claimed += await claim(postgres, worker, limit=5)
    claimed += await claim(postgres, worker, limit=5)
    assert [each.id for each in claimed] == [*late[:2], late[2], early]
    for each in claimed:
        assert await complete(postgres, each)
