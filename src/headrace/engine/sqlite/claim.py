"""Leasing ready jobs to workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.queues import open_queues
from headrace.engine.sqlite.rows import Claimable, claimed, decode_claimable
from headrace.engine.sqlite.sql import query
from headrace.model.job import ClaimedJob

CLAIM = query("claim")
CLAIMABLE = query("claimable")
CLAIMABLE_KEYS = query("claimable_keys")
CLAIMABLE_CHOSEN = query("claimable_chosen")
CLAIMABLE_LARGE = query("claimable_large")
RESERVED_LINES = query("reserved_lines")
RESERVED_KEYS = query("reserved_keys")
WORKER_ALIVE = query("worker_alive")
HELD = query("held")

# Arguments of more bytes than this are not worth the detour through JSON.
SMALL = 4_096


def claim(
    transaction: Transaction, worker_id: str, queues: Sequence[str] | None, limit: int
) -> list[ClaimedJob]:
    """Lease up to `limit` ready jobs to a living worker, by priority, then arrival."""
    connection, now = transaction.connection, transaction.now
    alive = connection.execute(WORKER_ALIVE, (worker_id,)).fetchone() if limit > 0 else None
    if alive is None:
        return []
    names = open_queues(transaction, queues)
    reserved = connection.execute(RESERVED_LINES, (worker_id,)).fetchall() if alive[0] else []
    reserved = [line for line in reserved if queues is None or line[0] in queues]
    if len(names) == 1 and not reserved:
        found = _read(transaction, CLAIMABLE, (*names, limit, now))
    else:
        lines = [(CLAIMABLE_KEYS, (name, limit)) for name in names]
        lines += [(RESERVED_KEYS, (*line, limit)) for line in reserved]
        chosen = msgspec.json.encode(_best(transaction, lines, limit)).decode()
        found = _read(transaction, CLAIMABLE_CHOSEN, (chosen, now))
    if len(found) < limit:
        # Nothing is left in these queues: nobody has to be told of what this call made ready.
        transaction.made_ready -= names - transaction.reserved
    if not found:
        return []
    found.sort(key=Claimable.place)
    chosen = msgspec.json.encode([each.seq for each in found]).decode()
    connection.execute(CLAIM, (worker_id, now, chosen))
    return _complete(transaction, found)


def _read(transaction: Transaction, statement: str, asked: tuple[Any, ...]) -> list[Claimable]:
    """What claimable.sql or claimable_chosen.sql answers."""
    execute = transaction.connection.execute
    [(text,)] = execute(statement, (*asked, SMALL)).fetchall()
    try:
        return decode_claimable(text)
    except msgspec.DecodeError:
        # Arguments that are no text. Leave out all of them: `_complete` reads them as they are.
        [(text,)] = execute(statement, (*asked, -1)).fetchall()
        return decode_claimable(text)


def _complete(transaction: Transaction, found: list[Claimable]) -> list[ClaimedJob]:
    """Jobs as a worker needs them, with the arguments that were left out."""
    jobs = [each.claimed() for each in found]
    large = {each.seq: job for each, job in zip(found, jobs, strict=True) if each.args is None}
    if large:
        asked = msgspec.json.encode(list(large)).decode()
        for seq, args, meta in transaction.connection.execute(CLAIMABLE_LARGE, (asked,)):
            large[seq].args, large[seq].meta = args, meta
    return jobs


def _best(
    transaction: Transaction, lines: Iterable[tuple[str, tuple[Any, ...]]], limit: int
) -> list[int]:
    """The best ready jobs of several lines, each a statement with its values, by priority, then
    arrival.
    """
    best: list[tuple[int, int]] = []
    for statement, values in lines:
        line: list[tuple[int, int]] = []
        for priority, seq in transaction.connection.execute(statement, values):
            if len(best) == limit and (-priority, seq) > best[-1]:
                break
            line.append((-priority, seq))
        best = sorted(best + line)[:limit]
    return [seq for _, seq in best]


def held(transaction: Transaction, worker_id: str) -> list[ClaimedJob]:
    """The jobs that are leased to a worker."""
    return [claimed(row) for row in transaction.connection.execute(HELD, (worker_id,))]
