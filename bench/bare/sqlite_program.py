"""SQLite: the statements of insert, claim and settle on one connection."""

from __future__ import annotations

import asyncio
import json
import time

from bench.bare.bare import BATCH, Bare, number_in, parts
from bench.program import main, recorder
from headrace.engine.sqlite.claim import SMALL
from headrace.engine.sqlite.connection.address import parse_address
from headrace.engine.sqlite.connection.opening import connect
from headrace.engine.sqlite.insert import store_rows
from headrace.engine.sqlite.sql import query
from headrace.model.ids import new_id


class Sqlite(Bare):
    async def open(self) -> None:
        self.connection = connect(parse_address(self.url))

    async def close(self) -> None:
        self.connection.close()

    async def enqueue_many(self, numbers: range) -> None:
        seen = query("queue_seen")
        for part in parts(numbers):
            now = time.time()
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute(seen, ("default", now))
            store_rows(
                self.connection,
                [
                    (
                        *(number + 1, new_id(), 2, 0, "default", "", 1, 1, now, now, "touch", ""),
                        *(4, 600.0, "retry", "code", b'{"number":%d}' % number, ""),
                    )
                    for number in part
                ],
            )
            self.connection.execute("COMMIT")

    def worker(self) -> None:
        worker = asyncio.run(self.registered())
        asyncio.run(self.open())
        record = recorder()
        look, complete, remove = query("settle_look"), query("complete"), query("finish_remove")
        claimable, claim = query("claimable"), query("claim")
        execute = self.connection.execute
        done: list[str] = []
        while True:
            now = time.time()
            execute("BEGIN IMMEDIATE")
            if done:
                [(text, _)] = execute(look, (json.dumps(done),)).fetchall()
                found = {row[1]: "null" for row in json.loads(text)}
                execute(complete, (now, json.dumps(found)))
                execute(remove, (json.dumps(list(found)),))
            [(text,)] = execute(claimable, (SMALL, SMALL, now, "default", BATCH)).fetchall()
            rows = json.loads(text)
            execute(claim, (worker, now, json.dumps([row[16] for row in rows])))
            execute("COMMIT")
            for row in rows:
                record.start(number_in(row[5].encode()))
            done = [row[0] for row in rows]
            if not done:
                time.sleep(0.01)


if __name__ == "__main__":
    main(Sqlite)
