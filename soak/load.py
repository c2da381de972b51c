"""A program that uses everything: `python -m soak.load SEED RATE MESSAGES URL …`, until SIGTERM.

Jobs through an App and over HTTP, with and without keys; lanes, queues and tasks that are used for
a while and then never again; uploads, event streams that are dropped, reads, signals, cancels,
messages for the event dispatcher, schedules that come and go. What is restarted meanwhile makes
requests fail: they are counted, and the load goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import msgspec

import headrace
from headrace.loops.free_memory import memory_given_back
from soak.program import app
from soak.tasks import CONTENT, name_of

# Of so many requests, how many are of each task.
SHARES = {
    "plain": 36,
    "threaded": 12,
    "laned": 14,
    "shaky": 6,
    "staged": 8,
    "told": 4,
    "napping": 4,
    "waiting": 4,
    "parent": 4,
    "filing": 4,
    "isolated": 2,
    "failing": 1,
    "late": 1,
}
# Of so many requests those with a lane have the same one, which is never used again.
LANE_REQUESTS = 300
# Seconds between two of each kind.
NEW_QUEUE, NEW_TASK, NEW_SCHEDULE = 15.0, 30.0, 45.0
CANCEL, STREAM, UPLOAD, MESSAGE, READ, LETTERS = 2.0, 4.0, 3.0, 1.0, 1.0, 20.0
BAD_MESSAGES = 0.05
# Of each kind. A server that does not answer must not collect requests without end.
MOST_UNDER_WAY = 20
TROUBLE = (headrace.HeadraceError, httpx.HTTPError, OSError, TimeoutError)


class Load:
    """Sends requests until it is told to stop."""

    def __init__(self, clients: list[headrace.Client], seed: int, messages: Path) -> None:
        self.clients = clients
        self.messages = messages
        self.chance = random.Random(seed)
        self.stopping = asyncio.Event()
        self.recent: deque[str] = deque(maxlen=50)
        self.numbers = itertools.count(1)
        self.names = itertools.count()
        # Names are new also after this program was started again.
        self.era = f"{os.getpid():x}"

    @property
    def client(self) -> headrace.Client:
        """One of the servers."""
        return self.chance.choice(self.clients)

    async def run(self, rate: float) -> None:
        """Everything at once."""
        names, shares = list(SHARES), list(SHARES.values())

        async def one_of_all() -> None:
            [task] = self.chance.choices(names, shares)
            await self.request(task)

        paces: list[tuple[Callable[[], Awaitable[None]], float]] = [
            (one_of_all, 1 / rate),
            (self.new_queue, NEW_QUEUE),
            (self.new_task, NEW_TASK),
            (self.schedule, NEW_SCHEDULE),
            (self.cancel, CANCEL),
            (self.stream, STREAM),
            (self.stream_all, STREAM * 3),
            (self.upload, UPLOAD),
            (self.message, MESSAGE),
            (self.read, READ),
            (self.letters, LETTERS),
        ]
        async with asyncio.TaskGroup() as group:
            for act, pause in paces:
                group.create_task(self._again_and_again(act, pause))

    async def request(self, task: str) -> None:
        """One job: through the App or over HTTP, sometimes with a key, or for later."""
        number = next(self.numbers)
        args: dict[str, object] = {"number": number}
        if task == "laned":
            args["lane"] = f"lane {self.era} {number // LANE_REQUESTS}"
        if task in ("plain", "threaded", "isolated"):
            args["seconds"] = self.chance.expovariate(50)
        key = f"key {self.era} {number}" if self.chance.random() < 0.3 else None
        delay = self.chance.uniform(0.5, 3) if self.chance.random() < 0.1 else None
        for _ in range(2 if key and self.chance.random() < 0.3 else 1):
            if self.chance.random() < 0.5:
                job = await app.enqueue(task, args, key=key, delay=delay)
            elif delay is None:
                job = await self.client.enqueue(task, args, key=key)
            else:
                job = await self.client.enqueue(task, args, key=key, delay=delay)
        self.recent.append(job.id)
        if task == "waiting" and self.chance.random() < 0.8:
            await self.client.signal(job.id, "go", {"by": number})

    async def new_queue(self) -> None:
        """A queue that is used once."""
        number = next(self.numbers)
        await app.enqueue("plain", {"number": number}, queue=f"queue-{self.era}-{number}")

    async def new_task(self) -> None:
        """A task that has not been used yet."""
        await self.client.enqueue(name_of(next(self.names)), {"number": next(self.numbers)})

    async def schedule(self) -> None:
        """A schedule that comes, is triggered, and goes."""
        name, client = f"schedule-{self.era}-{next(self.numbers)}", self.client
        await client.put_schedule(name, "0 3 * * *", "plain", params={"number": 0})
        try:
            await client.trigger_schedule(name)
        finally:
            await app.schedules.remove(name)  # also if that server has gone

    async def cancel(self) -> None:
        """A job that is cancelled while it runs, or before it may."""
        delay = self.chance.choice([None, 60.0])
        number = next(self.numbers)
        job = await app.enqueue("long", {"number": number}, delay=delay)
        await self._pause(0.5)
        with contextlib.suppress(headrace.JobConflict):
            await self.client.cancel(job.id, "not wanted any more")

    async def stream(self) -> None:
        """The changes of one job, to the end or not."""
        job = await self.client.enqueue("told", {"number": next(self.numbers)})
        wanted = self.chance.randint(1, 4)
        async with asyncio.timeout(10):
            async with contextlib.aclosing(self.client.events(job.id)) as changes:
                async for _ in changes:
                    wanted -= 1
                    if wanted == 0:
                        return

    async def stream_all(self) -> None:
        """The changes of all jobs, for a moment."""
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(2),
                contextlib.aclosing(self.client.events()) as changes,
            ):
                async for _ in changes:
                    pass

    async def upload(self) -> None:
        """A job with a file."""
        job = await self.client.enqueue("ingest", files={"file": ("some.txt", CONTENT)})
        self.recent.append(job.id)

    async def message(self) -> None:
        """A message for the event dispatcher. Some make no job."""
        number = next(self.numbers)
        body = msgspec.json.encode({"handler_name": "plain", "params": {"number": number}})
        if self.chance.random() < BAD_MESSAGES:
            body = b"not a message"
        part = self.messages / f"{self.era}-{number}.part"
        part.write_bytes(body)
        part.rename(part.with_suffix(".json"))

    async def read(self) -> None:
        """What people and pages look at."""
        if self.recent:
            job_id = self.chance.choice(self.recent)
            await self.client.get(job_id)
            await self.client.why(job_id)
            await self.client.result(job_id, timeout=0.1)
        await self.client.list(limit=20)

    async def letters(self) -> None:
        """Look at what was set aside, and throw it away, as people do who run the place."""
        for letter in (await self.client.dead_letters()).dead_letters:
            await self.client.remove_dead_letter(letter.id)

    async def _again_and_again(self, act: Callable[[], Awaitable[None]], pause: float) -> None:
        """Begin one after the other at an even pace, however long each takes.

        If a pause began only when the last one had ended, a busy machine would get fewer jobs, and
        what is kept of the last jobs would grow as soon as it is less busy.
        """
        loop = asyncio.get_running_loop()
        at = loop.time()
        async with asyncio.TaskGroup() as group:
            under_way: set[asyncio.Task[None]] = set()
            while not self.stopping.is_set():
                if len(under_way) < MOST_UNDER_WAY:
                    task = group.create_task(self._attempt(act))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                at += self.chance.uniform(0, 2 * pause)
                await self._pause(max(0.0, at - loop.time()))

    async def _attempt(self, act: Callable[[], Awaitable[None]]) -> None:
        # A server that is restarted, a job that failed, one that was pruned: all in order.
        with contextlib.suppress(*TROUBLE):
            await act()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)


async def main(seed: int, rate: float, messages: Path, urls: list[str]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = [headrace.Client(url, retries=1, timeout=5.0) for url in urls]
        for client in clients:
            await stack.enter_async_context(client)
        load = Load(clients, seed, messages)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, load.stopping.set)
        with memory_given_back():  # as our own programs do
            await load.run(rate)
    await app.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
