"""The programs of the scenario `http`: our server, a bare one of the same shape, and the load.

The bare one is what FastAPI gives somebody who stores nothing: a route that decodes the same body
into the same kind of model, and answers with a job of the same shape from memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import uvicorn
from fastapi import FastAPI, Request, Response

import headrace
from headrace.admin.keys import create_key
from headrace.api_types.requests import FASTEST, JobRequest
from headrace.loops.sockets import bind, url_of
from headrace.model.ids import new_id
from headrace.model.job import Job
from headrace.model.status import State
from headrace.server.listen import BACKLOG, HttpServer, listening
from headrace.server.responses import Answers
from headrace.task.redact import Redactor

BODY = {"task": "send", "args": {"to": "ada@example.com", "subject": "Hello", "number": 7}}
KNOWN = 1_000
PATIENCE = 60.0


def make_app() -> headrace.App:
    app = headrace.App(os.environ["BENCH_URL"])

    @app.task
    async def send(to: str, subject: str, number: int) -> None: ...

    return app


# --- servers ---------------------------------------------------------------------------------


async def serve_ours(place: Path) -> None:
    """As it is used: with keys, of which the load has one."""
    app = make_app()
    async with app, listening(app, host="127.0.0.1", port=0) as url:
        _, key = await create_key(app, name="bench", scope="write", rate=FASTEST)
        _tell(place, url, key)
        await asyncio.get_running_loop().create_future()


async def serve_bare(place: Path) -> None:
    sock = bind("127.0.0.1", 0)
    _tell(place, url_of(sock), "none")
    # With the same settings as ours.
    config = uvicorn.Config(bare(), log_config=None, access_log=False, backlog=BACKLOG)
    await HttpServer(config).serve(sockets=[sock])


def bare() -> FastAPI:
    """Two routes without a store, a key, a limit or an audit."""
    api = FastAPI()
    decoder = msgspec.json.Decoder(JobRequest)
    shown = Answers(Redactor(())).job
    jobs: dict[str, Job] = {}

    @api.post("/jobs", status_code=202)
    async def create(request: Request) -> Response:
        asked = decoder.decode(await request.body())
        now = datetime.now(UTC)
        job = Job(
            id=new_id(),
            task=asked.task,
            queue=asked.queue or "default",
            state=State.READY,
            args_json=msgspec.json.encode(asked.args),
            created_at=now,
            run_at=now,
        )
        if len(jobs) < KNOWN:
            jobs[job.id] = job
        place = {"Location": f"/jobs/{job.id}"}
        return Response(msgspec.json.encode(shown(job)), 202, place, "application/json")

    @api.get("/jobs/{job_id}")
    async def show(job_id: str) -> Response:
        found = shown(jobs[job_id])
        return Response(msgspec.json.encode(found), media_type="application/json")

    return api


def _tell(place: Path, url: str, key: str) -> None:
    part = place.with_suffix(".part")
    part.write_text(json.dumps({"url": url, "key": key}))
    part.rename(place)


async def work() -> None:
    """Run what was handed in, until told to stop."""
    async with make_app() as app, headrace.JobOrchestrator(app):
        await asyncio.get_running_loop().create_future()


# --- the load --------------------------------------------------------------------------------


class Asking(asyncio.Protocol):
    """One connection that sends the next request as soon as the last was answered."""

    def __init__(self, requests: Iterator[bytes], done: Callable[[bytes], None]) -> None:
        self._requests = requests
        self._done = done
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer = data = self._buffer + data if self._buffer else data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        at = data.find(b"content-length: ", 0, end)
        size = int(data[at + 16 : data.index(b"\r", at)])
        if len(data) < end + 4 + size:
            return
        self._buffer = b""
        if not data.startswith(b"HTTP/1.1 20"):
            self.over.set_exception(RuntimeError(data[:500].decode("utf-8", "replace")))
            return
        self._done(data[end + 4 :])
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(error or RuntimeError("the server closed the connection"))

    def _next(self) -> None:
        assert self._transport is not None
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)
        elif not self.over.done():
            self.over.set_result(None)


class Caller:
    """Somebody with a key and many connections."""

    def __init__(self, place: Path, connections: int) -> None:
        told = json.loads(place.read_text())
        self.host, _, port = told["url"].removeprefix("http://").partition(":")
        self.port = int(port)
        self.ids: list[str] = []
        self._connections = connections
        self._head = (
            f"Host: {self.host}:{port}\r\nAuthorization: Bearer {told['key']}\r\n"
            "Content-Type: application/json\r\nAccept: */*\r\n"
        )

    def post(self) -> bytes:
        """Hand in a job."""
        body = json.dumps(BODY).encode()
        line = f"POST /jobs HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        return line.encode() + body

    def get(self, path: str) -> bytes:
        """Read something."""
        return f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode()

    async def ask(
        self, requests: Iterator[bytes], done: Callable[[bytes], None] = lambda _: None
    ) -> float:
        """Send all, and answer the seconds that it took."""
        loop = asyncio.get_running_loop()
        began = time.perf_counter()
        opened = await asyncio.gather(
            *(
                loop.create_connection(lambda: Asking(requests, done), self.host, self.port)
                for _ in range(self._connections)
            )
        )
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(each.over for _, each in opened))
        seconds = time.perf_counter() - began
        for transport, _ in opened:
            transport.close()
        return seconds

    async def begin(self) -> None:
        """Hand in some jobs, to be read later. The first requests of a server are not measured."""

        def remember(answer: bytes) -> None:
            self.ids.append(json.loads(answer)["job_id"])

        await self.ask(iter([self.post()] * KNOWN), remember)


async def load(caller: Caller, count: int) -> dict[str, float]:
    """Jobs handed in, then jobs read, each `count` times."""
    await caller.begin()
    posting = await caller.ask(iter([caller.post()] * count))
    gets = [caller.get(f"/jobs/{job_id}") for job_id in caller.ids]
    reading = await caller.ask(gets[index % KNOWN] for index in range(count))
    return {"post": count / posting, "get": count / reading}


async def follow(caller: Caller, ready: Path) -> dict[str, int]:
    """A stream of events for each of the jobs, read to its end. Says when all are open."""
    await caller.begin()
    opened = 0

    async def one(job_id: str) -> list[str]:
        nonlocal opened
        reader, writer = await asyncio.open_connection(caller.host, caller.port)
        writer.write(caller.get(f"/jobs/{job_id}/events"))
        seen: list[str] = []
        while line := await reader.readline():
            if line.startswith(b"data: "):
                seen.append(json.loads(line[6:])["status"])
                if len(seen) == 1:
                    opened += 1
                    if opened == KNOWN:
                        await asyncio.to_thread(ready.touch)
            elif line == b"0\r\n":
                break  # the last chunk
        writer.close()
        return seen

    async with asyncio.timeout(PATIENCE):
        told = await asyncio.gather(*map(one, caller.ids))
    whole = ["pending", "running", "completed"]
    return {"streams": len(told), "whole": sum(each == whole for each in told)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["ours", "bare", "work", "load", "follow"])
    parser.add_argument("--place", type=Path, default=Path("place"))
    parser.add_argument("--ready", type=Path, default=Path("ready"))
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    match options.verb:
        case "ours":
            asyncio.run(serve_ours(options.place))
        case "bare":
            asyncio.run(serve_bare(options.place))
        case "work":
            asyncio.run(work())
        case "load":
            caller = Caller(options.place, options.connections)
            print(json.dumps(asyncio.run(load(caller, options.count))))
        case _:
            caller = Caller(options.place, options.connections)
            print(json.dumps(asyncio.run(follow(caller, options.ready))))


if __name__ == "__main__":
    main()
