"""What the server did for a statement, in its own words.

The server explains each statement with what it really did, also those inside functions. A plan
that walks or sorts the backlog shows by the number of rows that it touches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine

BATCH = 50
# No node of any plan may touch more rows than this, while there are up to half a million jobs. It
# leaves room for entries of rows that have just been moved on and are not cleared away yet.
MOST_ROWS = 20 * BATCH

EXPLAIN = (
    "&session_preload_libraries=auto_explain&auto_explain.log_min_duration=0"
    "&auto_explain.log_analyze=on&auto_explain.log_timing=off"
    "&auto_explain.log_nested_statements=on&auto_explain.log_format=json"
    "&auto_explain.log_level=warning"
)


class Plans:
    """Hears what the server did, and judges it."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, _connection: Any, message: Any) -> None:
        head, _, text = message.message.partition("plan:\n")
        assert head.startswith("duration"), message.message
        plan = msgspec.json.decode(text)
        # The driver asks once per connection how arrays of each type are sent.
        if "typeinfo_tree" not in plan["Query Text"]:
            self.heard.append((plan["Query Text"], plan["Plan"]))

    def judge(self, verb: str, *, large: bool) -> None:
        assert self.heard, f"{verb}: nothing was explained"
        for statement, plan in self.heard:
            # Reading a small table whole is the best way to look at it, where it is no hot path.
            if not large and "FROM unfinished_job e" in statement:
                continue
            for node in nodes(plan):
                where = f"{verb}: {node['Node Type']} in {statement[:300]}"
                rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                rows += node.get("Rows Removed by Join Filter", 0)
                touched = rows * node["Actual Loops"]
                assert touched <= MOST_ROWS, f"{where} touched {touched} rows"
                if large and node["Node Type"] == "Seq Scan":
                    assert node["Relation Name"] in ("queue", "worker", "lane_admission"), where
        self.heard.clear()


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@asynccontextmanager
async def explained(engine_url: str) -> AsyncIterator[tuple[PostgresEngine, Plans]]:
    """An engine whose every statement is explained; with new connections, so with new plans."""
    engine = PostgresEngine(engine_url + EXPLAIN, clock=Clock())
    plans = Plans()
    for link in (engine._exchanges, engine._common, engine._views):
        async with link.hold() as connection:
            connection.add_log_listener(plans)
    plans.heard.clear()
    yield engine, plans
    for link in (engine._exchanges, engine._common, engine._views):
        async with link.hold() as connection:
            connection.remove_log_listener(plans)
    await engine.close()
