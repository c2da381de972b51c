"""Huey on Redis or SQLite with 10 worker threads. It acknowledges nothing."""

from __future__ import annotations

import os

from huey import RedisHuey, SqliteHuey

from bench.program import BlockingProgram, main, recorder

RECORD = recorder() if "BENCH_RECORD" in os.environ else None
url = os.environ["BENCH_URL"]
huey = (
    SqliteHuey(filename=url.removeprefix("sqlite:///"))
    if url.startswith("sqlite")
    else RedisHuey(url=url)
)


@huey.task()
def touch(number: int) -> None:
    RECORD.start(number)


class HueyProgram(BlockingProgram):
    def send(self, number: int) -> None:
        touch(number)

    def worker(self) -> None:
        consumer = huey.create_consumer(workers=10, periodic=False)
        consumer.run()


if __name__ == "__main__":
    main(HueyProgram)
