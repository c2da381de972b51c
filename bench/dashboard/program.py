"""The programs of the scenario `dashboard`, each a process of its own.

`serve` is a server alone, `up` one with a worker in the same process, as `headrace up` has it; both
are metered, and tell their address. `read` opens streams as browsers do. `worker` is a worker that
writes its series far more often than in use, or never.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import quote, urlsplit

from bench.dashboard.build import FAILS, build
from bench.dashboard.meter import Meter, install
from headrace.loops.free_memory import keep_what_is_loaded
from headrace.monitor.counters import worker_metrics
from headrace.monitor.series import write
from headrace.monitor.series.records import DEPTHS, MINUTE
from headrace.orchestrator.worker_program import run_worker
from headrace.server.listen import listening

PLACE, GO, READY = "place", "go", "ready"
LOOK_SECONDS = 0.01
# Seconds. A worker that is to write often does so whenever it looks at its counters.
LOOK_AT_COUNTERS = 0.5
OFTEN = dataclasses.replace(MINUTE, seconds=LOOK_AT_COUNTERS / 2)


def tell(name: str, text: str = "") -> None:
    """Write a file that is whole as soon as it is there."""
    part = Path(f"{name}.part")
    part.write_text(text)
    part.rename(name)


def wait_for(name: str) -> None:
    """Wait until there is a file."""
    while not Path(name).exists():
        time.sleep(LOOK_SECONDS)


async def serve(*, work: bool, port: int = 0) -> int:
    """Serve the App, and work off its jobs from the moment that this is asked for."""
    import headrace
    from bench.scenarios.program import app

    async with app, listening(app, host="127.0.0.1", port=port) as url:
        keep_what_is_loaded()  # as `headrace server` and `headrace up` do
        tell(PLACE, url)
        if not work:
            await asyncio.get_running_loop().create_future()
        await asyncio.to_thread(wait_for, GO)
        return await run_worker(headrace.JobOrchestrator(app))


async def read(count: int, view: str, url: str) -> None:
    """Hold streams of one view open until told to stop. Says when all have begun."""
    place, begun = urlsplit(url), 0
    asked = (
        f"GET /ui/stream?view={quote(view, safe='')} HTTP/1.1\r\n"
        f"Host: {place.netloc}\r\nAccept: text/event-stream\r\n\r\n"
    )

    async def one() -> None:
        nonlocal begun
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(asked.encode())
        if b" 200 " not in (head := await reader.readuntil(b"\r\n\r\n")):
            raise RuntimeError(head.decode())
        begun += 1
        if begun == count:
            tell(READY)
        while await reader.read(65_536):
            pass
        raise RuntimeError("the server has ended a stream")

    async with asyncio.TaskGroup() as readers:
        for _ in range(count):
            readers.create_task(one())


async def work(*, series: bool) -> int:
    """Work off jobs, and write series often or never."""
    from bench.scenarios import program

    worker_metrics.PAUSE = LOOK_AT_COUNTERS
    if series:
        write.MINUTE = OFTEN  # type: ignore[attr-defined]
    else:
        write.MinuteWriter.write = write.MinuteWriter.finish = _write_nothing  # type: ignore[assignment,method-assign]
    return await program.work()


async def _write_nothing(*_: object) -> None: ...


async def minutes() -> dict[str, int]:
    """How many records of series there are, and the most of one worker and minute."""
    from bench.scenarios.program import app

    async with app:
        listed = await app.engine.record_list(MINUTE.kind, limit=1_000)
    found = Counter(each.key.partition("~")[0] for each in listed if not each.key.endswith(DEPTHS))
    return {"records": found.total(), "most": max(found.values(), default=0)}


async def filled(finished: int, pending: int, fails: int) -> dict[str, object]:
    from bench.scenarios.program import app

    return await build(app, finished=finished, pending=pending, fails=fails)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["build", "serve", "up", "read", "worker", "minutes"])
    for name in ("finished", "pending", "count", "port"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--fails", type=int, default=FAILS)
    parser.add_argument("--view", default="/")
    parser.add_argument("--series", action="store_true")
    given = parser.parse_args()
    match given.verb:
        case "build":
            made = asyncio.run(filled(given.finished, given.pending, given.fails))
            print(json.dumps(made), flush=True)
        case "minutes":
            print(json.dumps(asyncio.run(minutes())), flush=True)
        case "read":
            asyncio.run(read(given.count, given.view, Path(PLACE).read_text()))
        case "worker":
            sys.exit(asyncio.run(work(series=given.series)))
        case verb:
            # Before the App is made.
            install(Meter())
            sys.exit(asyncio.run(serve(work=verb == "up", port=given.port)))


if __name__ == "__main__":
    main()
