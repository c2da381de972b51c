"""A hundred documents at once: all complete, few connections, and a stop in the middle loses
nothing.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import asyncpg
import psutil
import pytest
import redis
from ingest_support.office import make_docx
from ingest_support.pdf import text_pdf
from ingest_support.running import File, Running, kill, wait_for
from tests.support.servers import free_port

from app.conftest import Stores

COUNT = 100
MOST_CONNECTIONS = 5
LIMIT = 110.0
# A look at all documents is work for the server.
PAUSE = 0.5


def a_file(number: int) -> File:
    text = f"Parcel {number} weighs {number} kilograms. It is sent to depot {number % 7}."
    if number % 3 == 0:
        return f"parcel {number}.pdf", text_pdf(text)
    if number % 3 == 1:
        return f"parcel {number}.docx", make_docx(text)
    return f"parcel {number}.txt", text.encode()


class Connections:
    """The connections of a worker to the engine, as the engine's server counts them."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.most = 0

    def look(self, worker: subprocess.Popen[bytes]) -> None:
        """Count those of the process now. A file has none."""
        if self.running.url.startswith("sqlite"):
            return
        ports = {each.laddr.port for each in psutil.Process(worker.pid).net_connections("tcp")}
        self.most = max(self.most, len(self._ports() & ports))

    def _ports(self) -> set[int]:
        if self.running.url.startswith("redis"):
            with redis.Redis.from_url(self.running.url.partition("?")[0]) as client:
                return {int(each["addr"].rpartition(":")[2]) for each in client.client_list()}
        return asyncio.run(self._postgres_ports())

    async def _postgres_ports(self) -> set[int]:
        connection = await asyncpg.connect(self.running.url.partition("?")[0])
        try:
            # Tables of a bundle have connections of their own.
            rows = await connection.fetch(
                "SELECT client_port FROM pg_stat_activity "
                "WHERE application_name LIKE 'headrace %' AND client_port IS NOT NULL"
            )
        finally:
            await connection.close()
        return {row["client_port"] for row in rows}


class Watched:
    """What was shown of each document, in the order in which it was seen."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.seen: dict[str, list[tuple[str, int, str]]] = {}

    def look(self) -> int:
        """Look at all documents; return how many are not completed."""
        shown = self.running.client.get("/documents", params={"limit": 500}).json()["documents"]
        for each in shown:
            state = (each["status"], each["progress"], each["updated_at"])
            states = self.seen.setdefault(each["document_id"], [])
            if not states or states[-1] != state:
                states.append(state)
        return sum(each["status"] != "completed" for each in shown)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("engine", "stop"), [("sqlite", "kill"), ("postgres", "kill"), ("redis", "terminate")]
)
def test_a_hundred_documents_at_once(
    engine: str, stop: str, stores: Stores, tmp_path: Path
) -> None:
    running = Running(tmp_path, stores.url(engine, tmp_path), free_port())
    try:
        running.start_server()
        accepted = running.add(*(a_file(number) for number in range(COUNT)), path="/parcels")
        ids = [each["document_id"] for each in accepted]
        assert len(set(ids)) == COUNT
        watched, connections = Watched(running), Connections(running)
        assert watched.look() == COUNT
        assert {states[0][:2] for states in watched.seen.values()} == {("processing", 0)}

        def work(worker: subprocess.Popen[bytes], left: int) -> None:
            def so_few() -> bool:
                connections.look(worker)
                return watched.look() <= left

            told = f"at most {left} left"
            wait_for(so_few, told, lambda: running.log("worker")[-3000:], LIMIT, pause=PAUSE)

        worker = running.start_worker()
        work(worker, COUNT // 2)
        if stop == "kill":
            kill(worker)
        else:
            worker.terminate()
            assert worker.wait(LIMIT) == 0
        work(running.start_worker(), 0)
        assert (engine != "sqlite") <= connections.most <= MOST_CONNECTIONS
        judge(running, watched, ids)
    finally:
        running.stop()


def judge(running: Running, watched: Watched, ids: list[str]) -> None:
    """Every document has come from 0 to 100, none is lost or there twice."""
    assert sorted(watched.seen) == sorted(ids)
    for states in watched.seen.values():
        assert states[-1][:2] == ("completed", 100)
        times = [updated_at for _, _, updated_at in states]
        assert times == sorted(times)
    unfinished = set(ids)

    def over() -> bool:
        ended = [each for each in unfinished if running.job(each)["status"] == "completed"]
        unfinished.difference_update(ended)
        return not unfinished

    wait_for(over, "the end of all jobs", lambda: str(unfinished))
    info = running.client.get("/info").json()
    assert (info["documents"], info["chunks"]) == (COUNT, COUNT)
    hits = running.search("How heavy is parcel 42?", k=100)
    assert len({hit["document_id"] for hit in hits}) == len(hits) == COUNT
