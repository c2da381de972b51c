"""PostgreSQL: a loop over tables and statements of its own, which Headrace does not share.

As a queue in one file could be: what Headrace promises of plain jobs holds here as well (a job is
kept until it is finished and has a token, finished ones and their results go to a history that is
ordered by time, all of it synced at each commit), and nothing else. It settles a batch and claims
the next in one statement on one connection.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import asyncpg

from bench.bare.bare import BATCH, number_in, parts
from bench.program import Program, main, recorder
from headrace.model.ids import new_ids

SCHEMA = """
CREATE TABLE waiting (
    id uuid PRIMARY KEY,
    place bigint GENERATED ALWAYS AS IDENTITY,
    queued_at timestamptz NOT NULL DEFAULT now(),
    begun_at timestamptz,
    seconds double precision NOT NULL DEFAULT 600,
    attempt integer NOT NULL DEFAULT 0,
    token integer NOT NULL DEFAULT 0,
    runs_at integer,
    importance smallint NOT NULL DEFAULT 0,
    line text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    body bytea NOT NULL
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX waiting_next ON waiting (line, importance DESC, place) WHERE runs_at IS NULL;
CREATE TABLE ended (
    id uuid PRIMARY KEY,
    queued_at timestamptz NOT NULL,
    begun_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    attempt integer NOT NULL,
    line text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    answer bytea
);
CREATE INDEX ended_by_time ON ended (ended_at);
"""
INSERT = """
INSERT INTO waiting (id, line, name, body)
SELECT new.id, $2, $3, new.body FROM unnest($1::uuid[], $4::bytea[]) AS new (id, body)
"""
TRIP = """
WITH gone AS (
    DELETE FROM waiting w
    USING unnest($1::uuid[], $2::integer[], $3::bytea[]) AS o (id, token, answer)
    WHERE w.id = o.id AND w.token = o.token
    RETURNING w.id, w.queued_at, w.begun_at, w.attempt, w.line, w.name, w.body, o.answer
), kept AS (
    INSERT INTO ended (id, queued_at, begun_at, ended_at, attempt, line, name, body, answer)
    SELECT id, queued_at, begun_at, clock_timestamp(), attempt, line, name, body, answer FROM gone
)
UPDATE waiting w
SET runs_at = 1, begun_at = clock_timestamp(), attempt = w.attempt + 1, token = w.token + 1
WHERE w.ctid = ANY (ARRAY(
    SELECT n.ctid FROM waiting n WHERE n.line = $4 AND n.runs_at IS NULL
    ORDER BY n.importance DESC, n.place LIMIT $5 FOR UPDATE SKIP LOCKED
))
RETURNING w.id, w.token, w.body, w.attempt, w.name
"""
LINE = "default"
NAME = "touch"
PAUSE_SECONDS = 0.01


class Independent(Program):
    async def open(self) -> None:
        # Statistics of a table that is new or was just filled lead to plans that read all of it.
        self.connection: Any = await asyncpg.connect(
            self.url,
            server_settings={
                "plan_cache_mode": "force_generic_plan",
                "jit": "off",
                "enable_seqscan": "off",
                "enable_hashjoin": "off",
                "enable_mergejoin": "off",
            },
        )

    async def close(self) -> None:
        await self.connection.close()

    async def setup(self) -> None:
        await self.open()
        await self.connection.execute(SCHEMA)
        await self.close()

    async def enqueue_many(self, numbers: range) -> None:
        insert = await self.connection.prepare(INSERT)
        for part in parts(numbers):
            bodies = [b'{"number":%d}' % number for number in part]
            await insert.fetch(new_ids(len(part)), LINE, NAME, bodies)

    def worker(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        await self.open()
        record = recorder()
        trip = await self.connection.prepare(TRIP)
        ids: list[UUID] = []
        tokens: list[int] = []
        while True:
            rows = await trip.fetch(ids, tokens, [b"null"] * len(ids), LINE, BATCH)
            ids, tokens = [], []
            for row in rows:
                record.start(number_in(row[2]))
                ids.append(row[0])
                tokens.append(row[1])
            if not ids:
                await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(Independent)
