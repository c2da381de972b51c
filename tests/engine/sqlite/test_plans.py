"""Query plans: the verbs find their rows by index, however many others there are.

The plan must be the same on an empty table, on a large one, and after somebody ran ANALYZE.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

import pytest

from headrace.engine.sql_files import queries
from headrace.engine.sqlite import insert
from headrace.engine.sqlite.connection.address import SqliteAddress
from headrace.engine.sqlite.connection.migrate import prepare
from headrace.engine.sqlite.connection.opening import connect
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import query
from tests.support.verbs import a_job

BY_SEQ = "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"
BY_EXPIRY = "SEARCH expiry USING INTEGER PRIMARY KEY (rowid=?)"
BY_ID = "SEARCH job USING INDEX sqlite_autoindex_job_1 (id=?)"

# What each statement on the way of a job has to use.
EXPECTED = {
    "claimable": "SEARCH job USING INDEX job_ready (queue=?)",
    "claimable_keys": "SEARCH job USING COVERING INDEX job_ready (queue=?)",
    "claimable_keys_in_time": "SEARCH job USING COVERING INDEX job_ready (queue=?)",
    "claimable_chosen": BY_SEQ,
    "claimable_large": BY_SEQ,
    "claim": BY_SEQ,
    "settle_look": BY_ID,
    "complete": BY_SEQ,
    "finish": BY_SEQ,
    "finish_remove": BY_SEQ,
    "requeue": BY_SEQ,
    "note": BY_ID,
    "due": "SEARCH job USING INDEX job_due (run_at<?)",
    "due_next": "SEARCH job USING COVERING INDEX job_due",
    "due_move": BY_SEQ,
    "promote": "SEARCH job USING COVERING INDEX job_waiting (queue=? AND lane=?)",
    "promote_chosen": BY_SEQ,
    "best_waiting": "SEARCH job USING COVERING INDEX job_waiting (queue=? AND lane=?)",
    "worst_head": "SEARCH job USING INDEX job_head (queue=? AND lane=?)",
    "put_back": BY_SEQ,
    "lanes_look": "SEARCH job USING COVERING INDEX job_waiting (queue=? AND lane=?)",
    "lanes_look_heads": "SEARCH job USING INDEX job_head (queue=? AND lane=?)",
    "held": "SEARCH job USING INDEX job_running (worker=?)",
    "lost": "SCAN job USING INDEX job_running",
    "cancelling": "SCAN job USING INDEX job_cancelling",
    "worker_cancelling": "SEARCH job USING INDEX job_cancelling (worker=?)",
    "worker_remove": "SEARCH job USING INDEX job_running (worker=?)",
    "cancel_look": BY_ID,
    "cancel_ask": BY_SEQ,
    "rerun_scheduled_look": BY_ID,
    "rerun_look": "SEARCH history USING INDEX sqlite_autoindex_history_1 (id=?)",
    "ready_exists": "SCAN job USING COVERING INDEX job_ready",
    "known_ids": "SEARCH history USING COVERING INDEX sqlite_autoindex_history_1 (id=?)",
    "get_unfinished": BY_ID,
    "get_finished": "SEARCH history USING INDEX sqlite_autoindex_history_1 (id=?)",
    "get_unfinished_brief": BY_ID,
    "get_finished_brief": "SEARCH history USING INDEX sqlite_autoindex_history_1 (id=?)",
    "list_unfinished": "SEARCH job USING INDEX sqlite_autoindex_job_1 (id<?)",
    "list_in_states": BY_SEQ,
    "in_states_count": "SCAN job USING COVERING INDEX job_due",
    "list_finished": "SEARCH history USING INDEX sqlite_autoindex_history_1 (id<?)",
    "list_unsuccessful": "SEARCH history USING INDEX history_unsuccessful (state=? AND id<?)",
    "list_window": "SEARCH history USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "list_unfinished_keyed": "SEARCH job_key USING PRIMARY KEY (key=?)",
    "list_finished_keyed": "SEARCH job_key USING PRIMARY KEY (key=?)",
    "list_unfinished_children": "SEARCH job USING INDEX job_child (parent=?)",
    "list_finished_children": "SEARCH history USING INDEX history_child (parent=? AND id<?)",
    "suspended": "SEARCH suspended USING COVERING INDEX sqlite_autoindex_suspended_1 (id>?)",
    "suspend_end": "SEARCH suspended USING INTEGER PRIMARY KEY (rowid=?)",
    "wake_look": "SEARCH suspended USING INDEX sqlite_autoindex_suspended_1 (id=?)",
    "wake_event": "SEARCH entry USING COVERING INDEX sqlite_autoindex_entry_1 "
    "(job_id=? AND kind=? AND name=?)",
    "wake_children": "SEARCH job USING COVERING INDEX job_child (parent=?)",
    "wake_group": "SEARCH job USING COVERING INDEX job_child (parent=? AND group_name=?)",
    "signal_look": BY_ID,
    "forget": "SEARCH entry USING INDEX sqlite_autoindex_entry_1 (job_id=? AND kind=? AND name=?)",
    "due_at": BY_SEQ,
    "finished": "SEARCH history USING INDEX sqlite_autoindex_history_1 (id=?)",
    "prune_again": "SEARCH history USING INTEGER PRIMARY KEY (rowid=?)",
    "prune_artifacts": "SEARCH entry USING COVERING INDEX sqlite_autoindex_entry_1 "
    "(job_id=? AND kind=?)",
    "queues_ready": "SEARCH job USING COVERING INDEX job_ready (queue>?)",
    "queues_named": "SEARCH queue USING PRIMARY KEY (name=?)",
    "queues_unused": "SEARCH job USING COVERING INDEX job_ready (queue=?)",
    "queue_forget": "SEARCH queue USING PRIMARY KEY (name=?)",
    "resumed": "SEARCH queue USING COVERING INDEX queue_resumed (resumed>?)",
    "lanes_idle": "SEARCH lane USING PRIMARY KEY ((queue,lane)>(?,?))",
    "lane_forget": "SEARCH lane USING PRIMARY KEY (queue=? AND lane=?)",
    "queue_ready": "SCAN job USING COVERING INDEX job_ready",
    "queue_reserved": "SCAN job USING COVERING INDEX job_reserved",
    "reserved_keys": "SEARCH job USING COVERING INDEX job_reserved (queue=? AND task=?)",
    "reserved_lines": "SEARCH job USING COVERING INDEX job_reserved (queue=? AND task>?)",
    "reserve_next": "SEARCH job USING INDEX job_ready (queue=?)",
    "reserved_exists": "SEARCH job USING COVERING INDEX job_reserved (queue=? AND task=?)",
    "reserved_keys_in_time": "SEARCH job USING COVERING INDEX job_reserved (queue=? AND task=?)",
    "worker_alive": "SEARCH worker USING PRIMARY KEY (id=?)",
    "expiry_due": "SEARCH expiry USING COVERING INDEX expiry_look (look_at<?)",
    "expiry_next": "SEARCH expiry USING COVERING INDEX expiry_look",
    "expiry_forget": BY_EXPIRY,
    "expiry_resume": BY_EXPIRY,
    "expiry_put_off": BY_EXPIRY,
    "key_holder": "SEARCH job_key USING PRIMARY KEY (key=? AND task=?)",
    "debounce": BY_SEQ,
    "lane_waiting": "SEARCH job USING INDEX job_waiting (queue=? AND lane=?)",
    "worker_offer": "SEARCH worker USING PRIMARY KEY (id=?)",
    "queue_waiting": "SCAN job USING COVERING INDEX job_waiting",
    "queue_running": "SCAN job USING INDEX job_running",
    "queue_scheduled": "SCAN job USING COVERING INDEX job_due",
    "prune_parent": "SEARCH history USING INDEX sqlite_autoindex_history_1 (id=?)",
    "unfinished": "SEARCH job USING COVERING INDEX sqlite_autoindex_job_1 (id=?)",
    "history_beyond": "SEARCH history USING INTEGER PRIMARY KEY (rowid>?)",
    "prune_old": "SEARCH history USING INTEGER PRIMARY KEY (rowid>?)",
    "history_at": "SEARCH history USING INTEGER PRIMARY KEY (rowid>?)",
    "history_last": "SEARCH history",
    "history_count": "SCAN history USING COVERING INDEX sqlite_autoindex_history_1",
    "rate_read": "SEARCH rate USING PRIMARY KEY (queue=? AND lane=?)",
    "rates_idle": "SEARCH rate USING PRIMARY KEY ((queue,lane)>(?,?))",
    "rate_forget": "SEARCH rate USING PRIMARY KEY (queue=? AND lane=?)",
    "rate_of_job": BY_SEQ,
    "rated_ready": "SEARCH job USING INDEX job_ready (queue=?)",
    "rated_reserved": "SEARCH job USING INDEX job_reserved (queue=? AND task=?)",
    "park": BY_SEQ,
    "unpark": BY_SEQ,
    "parked_due": "SEARCH job USING INDEX job_parked (run_at<?)",
    "parked_next": "SCAN job USING INDEX job_parked",
    "parked_again": "SEARCH job USING INDEX job_parked_line (queue=? AND lane=?)",
    "parked_line": "SEARCH job USING INDEX job_parked_line (queue=? AND lane=?)",
    "parked_until": BY_SEQ,
    "rate_delete": "SEARCH rate USING PRIMARY KEY (queue=? AND lane=?)",
    "rates_ahead": "SEARCH rate USING PRIMARY KEY ((queue,lane)>(?,?))",
    "lane_holders": "SCAN job USING INDEX job_running",
}

# A walk over a whole table is right only where the whole store is checked, or oldest come first.
WALKS = {"audit_places"}


@pytest.fixture(scope="module", params=["empty", "large", "analysed"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sqlite3.Connection]:
    address = SqliteAddress(tmp_path_factory.mktemp("plans") / "jobs.db", "off")
    connection = connect(address)
    prepare(connection, address)
    if request.param != "empty":
        fill(connection)
    if request.param == "analysed":
        connection.execute("ANALYZE")
        connection.close()
        connection = connect(address)
    yield connection
    connection.close()


def fill(connection: sqlite3.Connection) -> None:
    """Many jobs in every state, so that a wrong index would tempt the planner."""
    jobs = [
        a_job(
            queue=f"q{n % 3}",
            lane=f"l{n % 500}" if n % 2 else None,
            delay=60 if n % 7 == 0 else 0,
            key=f"k{n}" if n % 5 == 0 else None,
            parent=f"p{n % 40}" if n % 11 == 0 else None,
            group=f"g{n % 3}" if n % 11 == 0 else None,
            expires_in=60.0 if n % 4 == 0 else None,
        )
        for n in range(20_000)
    ]
    connection.execute("BEGIN")
    insert.insert(Transaction(connection, 1.0), jobs)
    connection.execute(
        "UPDATE job SET state = 3, token = 1, worker = 'w' || (seq % 4), started_at = 1.0 "
        "WHERE state = 2 AND seq % 3 = 0"
    )
    connection.execute(
        "INSERT INTO suspended SELECT seq, id, '[]' FROM job WHERE state = 0 AND seq % 2 = 0"
    )
    connection.execute("COMMIT")


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    statement = query(name)
    body = re.sub(r"--.*", "", statement)
    names = re.findall(r":(\w+)", body)
    numbers = [int(number) for number in re.findall(r"\?(\d+)", body)]
    values = dict.fromkeys(names) if names else (None,) * max(numbers, default=body.count("?"))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_statement_uses_its_index(connection: sqlite3.Connection, name: str) -> None:
    assert EXPECTED[name] in plan(connection, name)


def test_no_statement_walks_over_all_jobs(connection: sqlite3.Connection) -> None:
    walkers = {
        name
        for name in queries("headrace.engine.sqlite")
        if any(re.fullmatch(r"SCAN (job|history|entry)", step) for step in plan(connection, name))
    }
    assert walkers == WALKS


def test_every_statement_says_what_it_does() -> None:
    for name, text in queries("headrace.engine.sqlite").items():
        assert text.startswith("-- "), name
        assert text.rstrip().endswith(";"), name
