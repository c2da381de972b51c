"""Where claims begin to look while dead rows pile up in front of the ready jobs."""

from __future__ import annotations

from time import monotonic

from headrace.engine.postgres.connection.claim_memory import ClaimCursor
from headrace.engine.postgres.engine import PostgresEngine
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_worker, claim, complete, enqueue, retry


def test_quick_scans_always_begin_at_the_front() -> None:
    cursor = ClaimCursor()
    cursor.scanned(1.0, start=0, first_seq=7, short=False, seconds=0.0)
    assert cursor.start(1.0) == 0


def test_one_slow_scan_changes_nothing() -> None:
    """It may have met a busy machine, and jobs in front of what it found must not wait for that."""
    cursor = ClaimCursor()
    cursor.scanned(10.0, start=0, first_seq=700, short=False, seconds=0.2)
    assert cursor.start(10.0) == 0
    cursor.scanned(10.1, start=0, first_seq=700, short=False, seconds=0.0)
    cursor.scanned(10.2, start=0, first_seq=700, short=False, seconds=0.2)
    assert cursor.start(10.2) == 0


def a_slow_cursor() -> ClaimCursor:
    cursor = ClaimCursor()
    cursor.scanned(9.8, start=0, first_seq=700, short=False, seconds=0.2)
    cursor.scanned(10.0, start=0, first_seq=700, short=False, seconds=0.2)
    return cursor


def test_after_slow_scans_the_next_ones_begin_where_they_found_jobs() -> None:
    cursor = a_slow_cursor()
    assert cursor.start(10.0) == 700
    cursor.scanned(10.1, start=700, first_seq=1_300, short=False, seconds=0.0)
    assert cursor.start(13.9) == 1_300
    assert cursor.start(14.1) == 0, "a twentieth of the time is for full scans"


def test_a_short_claim_brings_the_next_full_scan_forward() -> None:
    cursor = a_slow_cursor()
    cursor.scanned(10.3, start=700, first_seq=None, short=True, seconds=0.0)
    assert cursor.start(10.7) == 700
    assert cursor.start(10.9) == 0


def test_after_a_quick_full_scan_claims_begin_at_the_front_again() -> None:
    cursor = a_slow_cursor()
    cursor.scanned(15.0, start=0, first_seq=900, short=False, seconds=0.0)
    assert cursor.start(15.0) == 0


async def test_a_retry_behind_the_claim_cursor_is_found_by_the_full_scan(
    postgres: PostgresEngine, raw: Raw
) -> None:
    worker = await a_worker(postgres)
    early = await enqueue(postgres)
    [job] = await claim(postgres, worker)
    late = [await enqueue(postgres) for _ in range(3)]
    schema = postgres.address.quoted_schema
    first = await raw.fetchval(f"SELECT min(seq) FROM {schema}.job WHERE state = 2")
    cursor = postgres._cursors[None]
    cursor.scanned(monotonic(), start=0, first_seq=first, short=False, seconds=60.0)
    cursor.scanned(monotonic(), start=0, first_seq=first, short=False, seconds=60.0)
    assert await retry(postgres, job)
    claimed = await claim(postgres, worker, limit=2)
    assert [each.id for each in claimed] == late[:2]
    # Fewer than it has room for: a full scan, when that is not too often.
    cursor.scanned(monotonic() - 300.0, start=0, first_seq=first, short=False, seconds=60.0)
    claimed += await claim(postgres, worker, limit=5)
    claimed += await claim(postgres, worker, limit=5)
    assert [each.id for each in claimed] == [*late[:2], late[2], early]
    for each in claimed:
        assert await complete(postgres, each)
