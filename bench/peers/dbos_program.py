"""DBOS with its queue polled every 10 ms; jobs come from its client."""

from __future__ import annotations

import os
import threading

from dbos import DBOS, DBOSClient, DBOSConfig

from bench.program import BlockingProgram, main, recorder

RECORD = recorder() if "BENCH_RECORD" in os.environ else None
URL = os.environ["BENCH_URL"]
config: DBOSConfig = {
    "name": "bench",
    "system_database_url": URL,
    "run_admin_server": False,
    "log_level": "ERROR",
}


@DBOS.workflow(name="touch")
def touch(number: int) -> None:
    RECORD.start(number)


class DbosProgram(BlockingProgram):
    async def open(self) -> None:
        self.client = DBOSClient(system_database_url=URL)

    async def close(self) -> None:
        self.client.destroy()

    async def setup(self) -> None:
        DBOS(config=config)
        DBOS.launch()
        await DBOS.register_queue_async("bench", polling_interval_sec=0.01, worker_concurrency=100)
        DBOS.destroy()

    def send(self, number: int) -> None:
        self.client.enqueue({"queue_name": "bench", "workflow_name": "touch"}, number)

    def worker(self) -> None:
        DBOS(config=config)
        DBOS.launch()
        threading.Event().wait()


if __name__ == "__main__":
    main(DbosProgram)
