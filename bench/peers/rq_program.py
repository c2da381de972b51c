"""RQ on Redis with its SimpleWorker, which does not fork."""

from __future__ import annotations

import os
import sys

import redis
import rq

from bench.program import BlockingProgram, main, recorder

RECORD = recorder() if "BENCH_RECORD" in os.environ else None


def touch(number: int) -> None:
    RECORD.start(number)


class RqProgram(BlockingProgram):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        # Jobs name their function by module; as a script this module has another name.
        sys.modules["bench.peers.rq_program"] = sys.modules["__main__"]
        self.queue = rq.Queue(connection=redis.Redis.from_url(url))

    def send(self, number: int) -> None:
        self.queue.enqueue("bench.peers.rq_program.touch", number)

    def send_many(self, numbers: range) -> None:
        for begin in range(0, len(numbers), 1_000):
            self.queue.enqueue_many(
                [
                    rq.Queue.prepare_data("bench.peers.rq_program.touch", (number,))
                    for number in numbers[begin : begin + 1_000]
                ]
            )

    def worker(self) -> None:
        rq.SimpleWorker([self.queue], connection=self.queue.connection).work(logging_level="ERROR")


if __name__ == "__main__":
    main(RqProgram)
