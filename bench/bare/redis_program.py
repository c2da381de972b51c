"""Redis: the scripts `insert` and `exchange` through redis-py with hiredis."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import redis.asyncio

from bench.bare.bare import BATCH, Bare, number_in, parts
from bench.program import main, recorder
from headrace.engine.redis.codec import insert_arguments
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.store import call_of
from headrace.engine.redis.scripts import script
from headrace.model.ids import new_id
from headrace.model.job import NewJob


class Redis(Bare):
    async def open(self) -> None:
        self.client: Any = redis.asyncio.Redis.from_url(self.url, single_connection_client=True)
        await self.client.initialize()
        self.address = RedisAddress.parse(self.url)
        for name in ("insert", "exchange"):
            await self.client.script_load(script(name).source)

    async def close(self) -> None:
        await self.client.aclose()

    async def _call(self, name: str, *arguments: Any) -> Any:
        command = call_of(script(name), self.address)
        return await self.client.execute_command(*command, "0.0", *arguments)

    async def enqueue_many(self, numbers: range) -> None:
        for part in parts(numbers):
            jobs = [
                NewJob(id=new_id(), task="touch", args=b'{"number":%d}' % number) for number in part
            ]
            arguments, _ = insert_arguments(jobs)
            await self._call("insert", *arguments)

    def worker(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        worker = await self.registered()
        await self.open()
        record = recorder()
        settled: list[Any] = []
        while True:
            answer = await self._call("exchange", worker, BATCH, "", -1, *settled)
            settled = []
            for n in range(1, len(answer), 3):
                args = msgspec.msgpack.decode(answer[n + 2])[0]
                record.start(number_in(args))
                token = int.from_bytes(answer[n + 1][4:8], "little")
                settled += [answer[n], token, 4, 0, b"null", ""]
            if not settled:
                await asyncio.sleep(0.01)


if __name__ == "__main__":
    main(Redis)
