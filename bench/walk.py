"""`python -m bench.walk`: how many files and functions of Headrace a job and its like cross.

Whoever follows a job through the code has to open each of these files. Counted by a profiler in one
process, on SQLite, after everything has been warmed up. Left out is what runs anyway, whatever the
job: the thread that renews the lease, and the loops of upkeep.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import headrace
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.dispatchers.events.dispatcher import QueueDispatcher

ROOT = Path(__file__).parents[1]
SOURCE = str(ROOT / "src" / "headrace") + "/"
# Runs whatever the job, so it is no part of its walk.
THREADS_LEFT_OUT = ("headrace-lease",)
TASKS_LEFT_OUT = ("due", "sweep", "wake", "prune", "files", "replaced", "publish", "presence")
# A walk is repeated: what runs now and then (a look for lost replies) shows in one of them only.
REPEATS = 5
WAIT_SECONDS = 20.0

Walk = dict[str, set[str]]


class Recorder:
    """Notes each function of Headrace that is called while it records."""

    def __init__(self) -> None:
        self._calls: set[tuple[str, str]] | None = None

    def install(self) -> None:
        """Must come before threads are started: each has a profiler of its own."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def uninstall(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)

    @contextmanager
    def recording(self, walk: Walk) -> Iterator[None]:
        calls = self._calls = set()
        try:
            yield
        finally:
            self._calls = None
            for file, function in calls:
                walk.setdefault(file, set()).add(function)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        calls = self._calls
        if calls is None or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(SOURCE) and not _left_out(frame):
            calls.add((code.co_filename.removeprefix(SOURCE), code.co_qualname))


def _left_out(frame: FrameType) -> bool:
    caller = frame.f_back
    if caller is not None and caller.f_code.co_filename == __file__:
        return frame.f_code.co_qualname == "Dispatcher.idle"  # asked by this program itself
    if threading.current_thread().name in THREADS_LEFT_OUT:
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.get_name().removeprefix("headrace ") in TASKS_LEFT_OUT


async def smallest(walk_once: Callable[[], Awaitable[Walk]]) -> Walk:
    """The walk with the fewest functions: the others met something that is done now and then."""
    walks = []
    for _ in range(REPEATS + 1):
        walks.append(await walk_once())
        await asyncio.sleep(0.02)  # such as what a server reads when it starts
    del walks[0]
    return min(walks, key=lambda walk: sum(map(len, walk.values())))


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not true():  # noqa: ASYNC110 - what it waits for sends no signal
            await asyncio.sleep(0.001)


class Walks:
    """The walks, on one App with one worker."""

    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self.folder = folder
        self.recorder = recorder
        self.app = headrace.App(f"sqlite:///{folder}/walk.db")
        self.stage_walk: Walk = {}
        self.ran = 0
        app = self.app

        @app.task("touch")
        async def touch(number: int) -> None:
            self.ran += 1

        @app.task("staged")
        async def staged(ctx: headrace.Context) -> None:
            with recorder.recording(self.stage_walk):
                await ctx.stage("one", _step, 1)
            self.ran += 1

        self.touch, self.staged = touch, staged

    async def measure(self) -> dict[str, Walk]:
        """Each walk by its name."""
        async with self.app, headrace.JobOrchestrator(self.app, max_workers=4) as worker:
            self.worker = worker
            walks = {
                "job": await smallest(self.job),
                "stage": await smallest(self.stage),
            }
        walks["POST /jobs"] = await self.post()
        walks["cron firing"] = await self.cron()
        walks["event message"] = await self.event()
        return walks

    def _idle(self) -> bool:
        runtime = self.worker._runtime
        return runtime is not None and runtime.dispatcher.idle

    async def job(self) -> Walk:
        """Enqueued, claimed, run, settled, read."""
        await until(self._idle)
        walk: Walk = {}
        with self.recorder.recording(walk):
            ran = self.ran
            job = await self.touch.enqueue(1)
            await until(lambda: self.ran > ran and self._idle())
            job = await self.app.get(job.id)
        assert job.status == "completed"
        return walk

    async def stage(self) -> Walk:
        """One stage of a job, inside of its handler."""
        await until(self._idle)
        self.stage_walk = {}
        ran = self.ran
        await self.staged.enqueue()
        await until(lambda: self.ran > ran and self._idle())
        return self.stage_walk

    async def post(self) -> Walk:
        """A job that is handed in over HTTP, from the request to the response."""
        import httpx

        import headrace.server

        api = headrace.server.create(self.app)
        transport = httpx.ASGITransport(api, client=("127.0.0.1", 1))

        async def once() -> Walk:
            walk: Walk = {}
            with self.recorder.recording(walk):
                response = await client.post("/jobs", json={"task": "touch", "args": {"number": 1}})
            assert response.is_success, response.text
            return walk

        async with (
            api.router.lifespan_context(api),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:3989") as client,
        ):
            return await smallest(once)

    async def cron(self) -> Walk:
        """A minute has come: its job is made and stored."""
        self.app.add_schedule(
            "touch", "* * * * *", params={"number": 1}, name="walk", allow_overlap=True
        )
        dispatcher = CronDispatcher(self.app)

        async def jobs() -> int:
            return sum(view.ready for view in await self.app.engine.queues())

        async def once() -> Walk:
            before = await jobs()
            self.app.clock.advance(60.0)
            walk: Walk = {}
            with self.recorder.recording(walk):
                while await dispatcher.tick() < 0.01:
                    pass
            assert await jobs() == before + 1
            return walk

        async with self.app:
            await dispatcher.sync()
            while await dispatcher.tick() < 0.01:
                pass
            try:
                return await smallest(once)
            finally:
                await dispatcher.stop()

    async def event(self) -> Walk:
        """A message of a broker (here a folder): received, parsed, stored, completed."""
        inbox = self.folder / "inbox"
        inbox.mkdir()
        dispatcher = QueueDispatcher(self.app, _folder_adapter()(folder=str(inbox)))
        numbers = iter(range(1_000))

        async def once() -> Walk:
            walk: Walk = {}
            path = inbox / f"{next(numbers):06}.json"
            body = json.dumps({"handler_name": "touch", "params": {"number": 1}})
            part = path.with_suffix(".part")
            part.write_text(body)
            stored = dispatcher.counts.stored
            with self.recorder.recording(walk):
                part.rename(path)
                await until(lambda: dispatcher.counts.stored > stored and not path.exists())
            return walk

        async with self.app, dispatcher:
            return await smallest(once)


async def _step(number: int) -> int:
    return number


def _folder_adapter() -> Any:
    """The adapter of the examples: a broker that needs no server."""
    file = ROOT / "examples" / "folder_adapter.py"
    spec = importlib.util.spec_from_file_location("folder_adapter", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FolderAdapter


def measure() -> dict[str, Walk]:
    """All walks, in a store of their own."""
    recorder = Recorder()
    recorder.install()
    try:
        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(Walks(Path(folder), recorder).measure())
    finally:
        recorder.uninstall()


def counts(walk: Walk) -> dict[str, int]:
    return {"files": len(walk), "functions": sum(map(len, walk.values()))}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.walk", description=__doc__)
    parser.add_argument("--json", action="store_true", help="files and functions by name, as JSON")
    parser.add_argument("--files", action="store_true", help="name the files as well")
    options = parser.parse_args()
    walks = measure()
    if options.json:
        shown = {
            name: counts(walk) | {"by_file": {file: sorted(walk[file]) for file in sorted(walk)}}
            for name, walk in walks.items()
        }
        print(json.dumps(shown, indent=2))
        return 0
    print(f"{'walk':<16}{'files':>6}{'functions':>11}")
    for name, walk in walks.items():
        count = counts(walk)
        print(f"{name:<16}{count['files']:>6}{count['functions']:>11}")
        if options.files:
            for file in sorted(walk):
                print(f"    {file:<50} {', '.join(sorted(walk[file]))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
