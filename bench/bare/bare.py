"""What the bare programs share."""

from __future__ import annotations

from collections.abc import Iterator

from bench.program import Program
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.model.ids import new_id
from headrace.model.worker import WorkerInfo

BATCH = 200
INSERT_BATCH = 1_000
PREFIX = len(b'{"number":')


def number_in(args: bytes) -> int:
    """The number of a job, cut out of its arguments."""
    return int(args[PREFIX:-1])


def parts(numbers: range) -> Iterator[range]:
    for begin in range(0, len(numbers), INSERT_BATCH):
        yield numbers[begin : begin + INSERT_BATCH]


class Bare(Program):
    """Uses the engine for its schema and a living worker only."""

    async def prepared(self) -> Engine:
        engine = open_engine(self.url)
        await engine.open()
        return engine

    async def setup(self) -> None:
        engine = await self.prepared()
        await engine.close()

    async def registered(self) -> str:
        """A worker that lives longer than any run."""
        engine = await self.prepared()
        worker = WorkerInfo(id=new_id(), name="bare", host="here", pid=1, version="0")
        await engine.register(worker, 3_600.0)
        await engine.close()
        return worker.id
