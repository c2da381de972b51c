"""Dramatiq on Redis, one process with 10 threads."""

from __future__ import annotations

import os
import threading

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.program import BlockingProgram, main, recorder

RECORD = recorder() if "BENCH_RECORD" in os.environ else None
broker = RedisBroker(url=os.environ["BENCH_URL"])
dramatiq.set_broker(broker)


@dramatiq.actor
def touch(number: int) -> None:
    RECORD.start(number)


class DramatiqProgram(BlockingProgram):
    def send(self, number: int) -> None:
        touch.send(number)

    def worker(self) -> None:
        worker = dramatiq.Worker(broker, worker_threads=10)
        worker.start()
        threading.Event().wait()


if __name__ == "__main__":
    main(DramatiqProgram)
