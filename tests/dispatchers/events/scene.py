"""A scene for dispatchers: a store, a topic, and dispatchers on both, here or as processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

import headrace
from headrace.dispatchers.events.adapter import QueueAdapter
from headrace.dispatchers.events.dead_letters import DeadLetter, DeadLetters
from headrace.dispatchers.events.dispatcher import QueueDispatcher
from headrace.model.job import Job
from tests.dispatchers.events import program
from tests.support.processes import Process, Processes, until


def message(handler: str = "work", **params: Any) -> bytes:
    """A message that asks for a job."""
    return msgspec.json.encode({"handler_name": handler, "params": params})


def numbered(count: int, start: int = 0) -> list[bytes]:
    """Messages that can be told apart by their number."""
    return [message(number=number) for number in range(start, start + count)]


class Scene:
    """An App on a store of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.app = program.register(headrace.App(url))
        self.letters = DeadLetters(self.app)

    @asynccontextmanager
    async def dispatcher(
        self, adapter: QueueAdapter, **options: Any
    ) -> AsyncIterator[QueueDispatcher]:
        """A dispatcher in this process."""
        made = QueueDispatcher(self.app, adapter, **options)
        await made.start()
        try:
            yield made
        finally:
            await made.stop()

    def process(
        self, processes: Processes, config: Path, *arguments: str, **environment: str
    ) -> Process:
        """A dispatcher as people start it."""
        return processes.headrace(
            *("dispatcher", "queue", "--config", str(config)),
            *("--app", "tests.dispatchers.events.program"),
            *arguments,
            **{"HEADRACE_URL": self.url, **environment},
        )

    def config(self, adapter: str, options: dict[str, Any], **settings: Any) -> Path:
        """A queue.yaml. JSON is YAML."""
        path = self.folder / f"queue-{len(list(self.folder.glob('queue-*')))}.yaml"
        content = {"adapter": adapter, "options": options, **settings}
        path.write_bytes(msgspec.json.format(msgspec.json.encode(content)))
        return path

    async def jobs(self) -> list[Job]:
        """Every job there is."""
        found: list[Job] = []
        cursor = None
        while True:
            page = await self.app.list(cursor=cursor, limit=1_000)
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found

    async def numbers(self) -> Counter[int]:
        """How often each number became a job."""
        return Counter(job.args["number"] for job in await self.jobs())

    async def count(self) -> int:
        """How many jobs there are."""
        queues = await self.app.engine.queues()
        return sum(queue.ready + queue.waiting for queue in queues)

    async def has_jobs(self, count: int, limit: float = 30.0) -> None:
        """Wait until there are so many jobs."""

        async def enough() -> bool:
            return await self.count() >= count

        await until(enough, f"{count} jobs", limit)

    async def has_letters(self, count: int, limit: float = 30.0) -> list[DeadLetter]:
        """Wait until so many messages are set aside."""

        async def enough() -> bool:
            return len([letter async for letter in self.letters.every()]) >= count

        await until(enough, f"{count} dead letters", limit)
        return [letter async for letter in self.letters.every()]
