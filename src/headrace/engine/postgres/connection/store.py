"""What every group of verbs uses: the connections of one process, and its clock."""

from __future__ import annotations

from collections.abc import Collection

from headrace.clock import Clock
from headrace.engine.postgres.connection.address import parse_address
from headrace.engine.postgres.connection.claim_memory import (
    ClaimCursor,
    ClaimedLanes,
    VacuumAfterClaims,
)
from headrace.engine.postgres.connection.connection import LOOK_UP, Link, Rows
from headrace.engine.postgres.connection.connector import Connection, Connector
from headrace.engine.postgres.notify import Signals
from headrace.engine.postgres.sql import sql

VIEW_SECONDS = 120.0
VIEW_IDLE_SECONDS = 10.0
LISTEN_SECONDS = 10.0


class Store:
    """Connections by purpose, each opened at its first use.

    `exchanges` is the worker's: no exchange waits behind another verb. `common` is for all short
    verbs and for signals. `views` is for what may take long; it closes again when it is not needed,
    and so does `doubts`, which stores jobs whose keys may be taken by an open transaction (see
    `insert`). A process that only enqueues has one connection, a worker has two and that of its
    lease.
    """

    name = "postgres"

    def __init__(self, url: str, *, clock: Clock, migrate: bool = True) -> None:
        self.clock = clock
        self._may_migrate = migrate
        self.address = parse_address(url)
        self.connector = connector = Connector(self.address)
        self._exchanges = Link(
            connector,
            "exchange",
            settings={"plan_cache_mode": "force_generic_plan", **LOOK_UP},
        )
        self._common = Link(connector, "common", settings=LOOK_UP)
        # One core at a time: more would be taken from the verbs that others wait for.
        self._views = Link(
            connector,
            "views",
            timeout=VIEW_SECONDS,
            idle_seconds=VIEW_IDLE_SECONDS,
            settings={"max_parallel_workers_per_gather": "0"},
        )
        self._doubts = Link(connector, "keys", settings=LOOK_UP, idle_seconds=VIEW_IDLE_SECONDS)
        self._links = [self._exchanges, self._common, self._doubts, self._views]
        self._signals = Signals(self._common, self._link_for_wakeups())
        self._vacuum = VacuumAfterClaims(self._views)
        # Whether the jobs claimed last had lanes: the next settlements probably have them too.
        self._lanes_seen = False
        self._claimed_lanes = ClaimedLanes()
        # (task, key) of jobs that cannot be stored yet, with how many calls wait for it.
        self._in_doubt: dict[tuple[str, str], int] = {}
        # By the queues that are asked for.
        self._cursors: dict[tuple[str, ...] | None, ClaimCursor] = {}
        self._exchanges.on_open = self._reset_cursors

    def _link_for_wakeups(self) -> Link | None:
        """A connection of their own, past the pooler, if HEADRACE_URL says where."""
        if self.connector.wakeups is None:
            return None
        link = Link(self.connector.wakeups, "listen", timeout=LISTEN_SECONDS)
        self._links.append(link)
        return link

    async def _fetch_in_queues(
        self, link: Link, queues: Collection[str], statement: str, *arguments: object
    ) -> Rows:
        """Run a statement that stores jobs in these queues.

        For views and for `prune` it is written down that the queues are used, to the hour. Nothing
        depends on it: where it is lost, in a fail-over, the jobs are there all the same.
        """
        return await link.repeated(self._run_in_queues, link, queues, statement, *arguments)

    async def _run_in_queues(
        self,
        connection: Connection,
        link: Link,
        queues: Collection[str],
        statement: str,
        *arguments: object,
    ) -> Rows:
        hour = self.clock.now() // 3600
        if link.seen_in != hour:
            link.seen_in, link.seen = hour, set()
        if not link.seen.issuperset(queues):
            fresh = set(queues) - link.seen
            await link.run(connection, sql.ensure_queues, self.clock.offset, sorted(fresh))
            link.seen |= fresh
        return await link.run(connection, statement, *arguments)

    async def _reset_cursors(self, _connection: Connection) -> None:
        for cursor in self._cursors.values():
            cursor.reset()
