"""Celery on Redis with threads; gossip, mingle and heartbeat off, prefetch 16."""

from __future__ import annotations

import os

from celery import Celery

from bench.program import BlockingProgram, main, recorder

RECORD = recorder() if "BENCH_RECORD" in os.environ else None
url = os.environ["BENCH_URL"]
app = Celery("bench", broker=url, backend=url)
app.conf.worker_prefetch_multiplier = 16
app.conf.task_ignore_result = True


@app.task(name="touch")
def touch(number: int) -> None:
    RECORD.start(number)


class CeleryProgram(BlockingProgram):
    def send(self, number: int) -> None:
        touch.delay(number)

    def send_many(self, numbers: range) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            for number in numbers:
                touch.apply_async((number,), producer=producer)

    def worker(self) -> None:
        app.worker_main(
            [
                "worker",
                "--pool=threads",
                "--concurrency=10",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
                "--loglevel=error",
            ]
        )


if __name__ == "__main__":
    main(CeleryProgram)
