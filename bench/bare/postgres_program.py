"""PostgreSQL: the functions `insert_alike` and `exchange` through asyncpg."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from bench.bare.bare import BATCH, Bare, number_in, parts
from bench.program import main, recorder
from headrace.engine.postgres.sql import query
from headrace.model.ids import new_id

INSERT = query("insert_alike")
EXCHANGE = query("exchange")


class Postgres(Bare):
    async def open(self) -> None:
        self.connection: Any = await asyncpg.connect(
            self.url,
            server_settings={
                "search_path": "headrace",
                "plan_cache_mode": "force_generic_plan",
                "jit": "off",
            },
        )
        await self.connection.execute(query("ensure_queues"), 0.0, ["default"])

    async def close(self) -> None:
        await self.connection.close()

    async def enqueue_many(self, numbers: range) -> None:
        for part in parts(numbers):
            await self.connection.fetch(
                INSERT,
                0.0,
                [new_id() for _ in part],
                [b'{"number":%d}' % number for number in part],
                *(None, None),
                *("touch", "default", 0, 0.0, None, 1, True, 4, 600.0, False, "code"),
            )

    def worker(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        worker = await self.registered()
        await self.open()
        record = recorder()
        ids: list[str] = []
        tokens: list[int] = []
        nothing: list[None] = []
        while True:
            rows = await self.connection.fetch(
                EXCHANGE,
                *(0.0, ids, tokens, nothing, nothing, [b"null"] * len(ids)),
                *(nothing, nothing, nothing, nothing, False, worker, None, BATCH, 0),
                *(nothing, nothing, nothing, nothing, None),
            )
            ids, tokens = [], []
            for row in rows:
                if row[2] is not None:
                    record.start(number_in(row[5]))
                    ids.append(row[0])
                    tokens.append(row[1])
            if not ids:
                await asyncio.sleep(0.01)


if __name__ == "__main__":
    main(Postgres)
