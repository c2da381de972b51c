"""Leasing ready jobs to workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from headrace.engine.rows import claimed
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rates.rated_claim import RatedClaim, make_due_ready
from headrace.engine.sqlite.rows import Claimable, decode_claimable
from headrace.engine.sqlite.sql import sql
from headrace.engine.sqlite.upkeep.expire import expire
from headrace.model.job import ClaimedJob

# Arguments of more bytes than this are not worth the detour through JSON.
SMALL = 4_096
# So many jobs whose time to start is over a claim cancels at most; it passes over the others.
EXPIRE_AT_MOST = 500
# What `worker.offered` is where there are no reserved jobs for a worker.
NOTHING = "[]"

# A queue and a task of reserved jobs.
_Line = tuple[str, str]
_decode_lines = msgspec.json.Decoder(list[_Line]).decode


def claim(
    transaction: Transaction,
    worker_id: str,
    queues: Sequence[str] | None,
    limit: int,
    free: int | None = None,
) -> tuple[list[ClaimedJob], float | None]:
    """Lease up to `limit` ready jobs to a living worker, by priority, then arrival; also answers in
    how many seconds one may start that has to wait. At most `free` of them have a rate.
    """
    connection, now = transaction.connection, transaction.now
    alive = connection.execute(sql.worker_alive, (worker_id,)).fetchone() if limit > 0 else None
    if alive is None:
        return [], None
    known, look_at, rated = alive
    # They would be in the way of others, and keep their places in lanes.
    late = look_at is not None and look_at <= now and _expired_are_left(transaction)
    if rated:
        make_due_ready(transaction)
    names = _open_queues(transaction, queues)
    next_in: float | None = None
    left: set[str] = set()
    offered = [] if known == NOTHING else _offered(transaction, worker_id, known)
    if rated:
        lines = _open(transaction, offered, queues)
        rated_claim = RatedClaim(transaction, worker_id, queues, limit, free)
        best, empty, left, next_in = rated_claim.choose(names, lines)
        _offer_less(transaction, worker_id, offered, empty)
        found = _read_chosen(transaction, best)
    elif len(names) == 1 and not offered and not late:
        found = _read(transaction, sql.claimable, (now, *names, limit))
    else:
        keys = _lines(names, _open(transaction, offered, queues), limit, now if late else None)
        best, empty = _best(transaction, keys, limit)
        _offer_less(transaction, worker_id, offered, empty)
        found = _read_chosen(transaction, best)
    if len(found) < limit:
        # Nothing is left in these queues: nobody has to be told of what this call made ready.
        transaction.made_ready -= names - transaction.reserved - left
    if not found:
        return [], next_in
    found.sort(key=Claimable.place)
    chosen = msgspec.json.encode([each.seq for each in found]).decode()
    connection.execute(sql.claim, (worker_id, now, chosen))
    return _complete(transaction, found), next_in


def _offer_less(
    transaction: Transaction, worker_id: str, offered: list[_Line], empty: set[tuple[Any, ...]]
) -> None:
    """Lines without jobs are offered no more: who reserves a job for one of them again has every
    worker look.
    """
    if not empty.isdisjoint(offered):
        _offer(transaction, worker_id, [line for line in offered if line not in empty])


def _expired_are_left(transaction: Transaction) -> bool:
    """Cancel jobs that have not started in time; answers whether there are more of them."""
    return expire(transaction, EXPIRE_AT_MOST).next_in == 0.0


def _lines(
    names: Iterable[str], offered: Iterable[_Line], limit: int, now: float | None
) -> list[tuple[str, tuple[Any, ...]]]:
    """The statements, with their values, for the ready jobs of some queues and the reserved jobs
    that are offered; with `now` without those whose time to start is over.
    """
    if now is None:
        return [(sql.claimable_keys, (name, limit)) for name in names] + [
            (sql.reserved_keys, (*line, limit)) for line in offered
        ]
    return [(sql.claimable_keys_in_time, (name, now, limit)) for name in names] + [
        (sql.reserved_keys_in_time, (*line, now, limit)) for line in offered
    ]


def _open_queues(transaction: Transaction, queues: Sequence[str] | None) -> set[str]:
    """Return the queues to look at: of these, or those with ready jobs; none that is paused.

    A queue's row tells only that it is paused, so a million queues that were used once cost
    nothing.
    """
    execute = transaction.connection.execute
    if queues is None:
        return {name for (name,) in execute(sql.queues_ready)}
    asked = msgspec.json.encode(queues).decode()
    return {name for (name,) in execute(sql.queues_named, (asked,))}


def _read(transaction: Transaction, statement: str, asked: tuple[Any, ...]) -> list[Claimable]:
    """What claimable.sql or claimable_chosen.sql answers."""
    execute = transaction.connection.execute
    [(text,)] = execute(statement, (SMALL, SMALL, *asked)).fetchall()
    try:
        return decode_claimable(text)
    except msgspec.DecodeError:
        # Arguments that are no text. Leave out all of them: `_complete` reads them as they are.
        [(text,)] = execute(statement, (-1, -1, *asked)).fetchall()
        return decode_claimable(text)


def _read_chosen(transaction: Transaction, seqs: list[int]) -> list[Claimable]:
    chosen = msgspec.json.encode(seqs).decode()
    return _read(transaction, sql.claimable_chosen, (transaction.now, chosen))


def _complete(transaction: Transaction, found: list[Claimable]) -> list[ClaimedJob]:
    """Jobs as a worker needs them, with the arguments that were left out."""
    jobs = [each.claimed() for each in found]
    large = {each.seq: job for each, job in zip(found, jobs, strict=True) if each.args is None}
    if large:
        asked = msgspec.json.encode(list(large)).decode()
        for seq, args, meta in transaction.connection.execute(sql.claimable_large, (asked,)):
            large[seq].args, large[seq].meta = args, meta
    return jobs


def _offered(transaction: Transaction, worker_id: str, known: str | None) -> list[_Line]:
    """The lines of reserved jobs that a worker may claim from. What is found out is kept: it takes
    all tasks that the worker knows, and all lines, and most claims find nothing new.
    """
    if known is not None:
        return _decode_lines(known)
    lines = transaction.connection.execute(sql.reserved_lines, (worker_id,)).fetchall()
    _offer(transaction, worker_id, lines)
    return lines


def _offer(transaction: Transaction, worker_id: str, lines: list[_Line]) -> None:
    text = msgspec.json.encode(lines).decode()
    transaction.connection.execute(sql.worker_offer, (text, worker_id))


def _open(
    transaction: Transaction, offered: list[_Line], queues: Sequence[str] | None
) -> list[_Line]:
    """Those of the asked queues that are not paused."""
    if not offered:
        return []
    asked = list({queue for queue, _ in offered}) if queues is None else queues
    names = _open_queues(transaction, asked)
    return [line for line in offered if line[0] in names]


def _best(
    transaction: Transaction, lines: Iterable[tuple[str, tuple[Any, ...]]], limit: int
) -> tuple[list[int], set[tuple[Any, ...]]]:
    """The best ready jobs of several lines, each a statement with its values and the limit, by
    priority, then arrival; and the values of those that are empty.
    """
    best: list[tuple[int, int]] = []
    empty: set[tuple[Any, ...]] = set()
    for statement, values in lines:
        line: list[tuple[int, int]] = []
        found = False
        for priority, seq in transaction.connection.execute(statement, values):
            found = True
            if len(best) == limit and (-priority, seq) > best[-1]:
                break
            line.append((-priority, seq))
        if not found:
            empty.add(values[:-1])
        best = sorted(best + line)[:limit]
    return [seq for _, seq in best], empty


def claimed_by(transaction: Transaction, worker_id: str) -> list[ClaimedJob]:
    """The jobs that are leased to a worker."""
    return [
        claimed(row, cancel_requested=bool(row[14]))
        for row in transaction.connection.execute(sql.held, (worker_id,))
    ]
