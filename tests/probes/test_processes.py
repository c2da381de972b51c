"""Real processes: they say that they are well, that they are not, and why."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.model.status import Status
from tests.probes.conftest import Asked, ask, probes_of, samples_of
from tests.server.conftest import address_of
from tests.support.processes import Process, Processes, until
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    free_port,
    postgres_binaries,
    redis_binaries,
)

SHOP = '''
import asyncio
import time
from pathlib import Path

import headrace

app = headrace.App()


@app.task(lane="user:{user}")
async def add(user: str) -> int:
    return 1


@app.task(lane="user:{user}")
async def wait(user: str) -> None:
    await asyncio.sleep(60)


@app.task
async def block(until: str) -> None:
    """Block the event loop."""
    Path(until + ".began").touch()
    while not Path(until).exists():
        time.sleep(0.01)


@app.schedule("0 0 1 1 *")
@app.task
async def yearly() -> None: ...
'''
WORKER = ("worker", "--app", "shop", "--name", "w1")
CRON = ("dispatcher", "cron", "--app", "shop")
SERVER = ("server", "--app", "shop", "--port", "0", "--json")
ANY = ("--probes", "0")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    with Processes(tmp_path) as started:
        yield started


@pytest.fixture
async def app(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[headrace.App]:
    """The App of the processes, on their store."""
    monkeypatch.setenv("HEADRACE_URL", f"sqlite:///{processes.folder}/headrace.db")
    shop = runpy.run_path(str(processes.folder / "shop.py"))
    async with shop["app"] as made:
        yield made


async def asked(url: str, path: str) -> Asked:
    return await asyncio.to_thread(ask, f"{url}{path}")


async def ready(url: str) -> None:
    async def is_ready() -> bool:
        return (await asked(url, "/readyz")).status == 200

    await until(is_ready, f"{url}/readyz", 60)


async def not_ready(url: str, words: str) -> None:
    """Wait until it says so."""

    async def says_so() -> bool:
        answer = await asked(url, "/readyz")
        return answer.status == 503 and words in answer.reason

    await until(says_so, words, 60)


async def engine_is(url: str, *, up: bool) -> None:
    async def is_so() -> bool:
        found = samples_of((await asked(url, "/metrics")).body)
        return found["headrace_engine_up{}"] == up

    await until(is_so, f"headrace_engine_up {up}", 60)


@pytest.fixture(params=["postgres", "redis"])
def engine_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of this test's own, to be killed."""
    made: Server
    if request.param == "postgres":
        made = PostgresServer(postgres_binaries()["postgres"], name="probes")
    else:
        made = RedisServer(redis_binaries()["redis"], name="probes")
    made.start()
    yield made
    made.destroy()


@pytest.mark.timeout(240)
async def test_they_say_that_the_engine_is_gone_and_back(
    engine_server: Server, processes: Processes
) -> None:
    url = engine_server.url
    names = {"worker": WORKER, "server": SERVER}
    if isinstance(engine_server, RedisServer):
        names["cron"] = CRON
        # Its broker and its engine are one server here.
        (processes.folder / "queue.yaml").write_text(
            f"adapter: redis_streams\noptions: {{url: '{url}', streams: [orders]}}\n"
        )
        names["queue"] = ("dispatcher", "queue", "--app", "shop", "--config", "queue.yaml")
    started = {
        name: processes.headrace(*command, *ANY, HEADRACE_URL=url)
        for name, command in names.items()
    }
    at = {name: await probes_of(process) for name, process in started.items()}
    for each in at.values():
        await ready(each)
    await asyncio.to_thread(engine_server.kill)
    for name, each in at.items():
        await not_ready(each, "does not answer" if name == "server" else "times in a row")
        answer = await asked(each, "/readyz")
        assert str(engine_server.port) not in answer.reason
        assert (await asked(each, "/healthz")).status == 200
        await engine_is(each, up=False)
    await asyncio.to_thread(engine_server.start)
    for name, each in at.items():
        await ready(each)
        assert started[name].code is None
        await engine_is(each, up=True)
    for process in started.values():
        process.terminate()
    for process in started.values():
        assert await process.ended(60) == 0, process.said


async def test_a_worker_whose_engine_was_never_there_is_not_ready(processes: Processes) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    worker = processes.headrace(*WORKER, *ANY, HEADRACE_URL=url)
    at = await probes_of(worker)
    answer = await asked(at, "/readyz")
    assert answer.status == 503
    assert "not registered" in answer.reason
    assert (await asked(at, "/healthz")).status == 200
    assert samples_of((await asked(at, "/metrics")).body)["headrace_engine_up{}"] == 0


async def test_a_worker_that_stops_is_not_ready(app: headrace.App, processes: Processes) -> None:
    worker = processes.headrace(*WORKER, *ANY)
    at = await probes_of(worker)
    await ready(at)
    job = await app.enqueue("wait", {"user": "somebody"})

    async def running() -> bool:
        return (await app.get(job.id)).status is Status.RUNNING

    await until(running)
    assert (await asked(at, "/readyz")).status == 200
    worker.terminate()
    await not_ready(at, "it stops")
    assert worker.code is None
    assert (await asked(at, "/healthz")).status == 200
    worker.terminate()
    await worker.ended()


async def test_a_blocked_loop_does_not_answer(app: headrace.App, processes: Processes) -> None:
    worker = processes.headrace(*WORKER, *ANY)
    at = await probes_of(worker)
    await ready(at)
    end = processes.folder / "end"
    job = await app.enqueue("block", {"until": str(end)})
    await until(Path(f"{end}.began").exists)
    for path in ("/healthz", "/readyz"):
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(ask, f"{at}{path}", timeout=0.5)
    end.touch()
    await app.result(job.id, timeout=30)
    await ready(at)
    assert (await asked(at, "/healthz")).status == 200


async def test_a_worker_has_its_own_metrics_without_a_server(
    app: headrace.App, processes: Processes
) -> None:
    """Under the names and labels that a server has for all workers."""
    worker = processes.headrace(*WORKER, *ANY)
    other = processes.headrace("worker", "--app", "shop", "--queues", "nothing", *ANY)
    server = processes.headrace(*SERVER, *ANY)
    at = await probes_of(worker)
    await ready(at)
    await ready(await probes_of(other))
    secret = "lane-of-somebody"
    jobs = [await app.enqueue("add", {"user": secret}) for _ in range(5)]
    await asyncio.gather(*(app.result(job.id, timeout=30) for job in jobs))
    held = await app.enqueue("wait", {"user": secret})
    done = "headrace_attempts_total{'outcome': 'completed', 'queue': 'default', 'task': 'add'}"

    async def counted(url: str) -> dict[str, float]:
        found: dict[str, float] = {}

        async def all_of_them() -> bool:
            nonlocal found
            found = samples_of((await asked(url, "/metrics")).body)
            return found.get(done) == 5

        await until(all_of_them)
        return found

    own, everybody = await counted(at), await counted(await address_of(server))
    probed = await counted(await probes_of(server))
    assert own["headrace_workers{'state': 'healthy'}"] == 1
    assert everybody["headrace_workers{'state': 'healthy'}"] == 2
    assert own["headrace_run_seconds_count{'queue': 'default', 'task': 'add'}"] == 5
    assert {name for name in own if "w1" in name} == {name for name in everybody if "w1" in name}
    assert own.keys() <= everybody.keys()
    assert done not in samples_of((await asked(await probes_of(other), "/metrics")).body)
    # What is shown to everybody has no lanes, whose names are made of arguments.
    assert any("headrace_lane_used" in name and secret in name for name in everybody)
    assert not [name for name in probed if "lane" in name]
    for url in (at, await probes_of(server)):
        text = (await asked(url, "/metrics")).body.decode()
        assert secret not in text
        assert held.id not in text
        assert (await asked(url, "/jobs")).status == 404


async def test_a_port_that_is_taken_is_one_clear_error(processes: Processes) -> None:
    first = processes.headrace(*WORKER, *ANY)
    taken = (await probes_of(first)).rpartition(":")[2]
    started = [processes.headrace(*each, HEADRACE_PROBES=taken) for each in (WORKER, CRON, SERVER)]
    for second in started:
        assert await second.ended() == 2, second.said
        assert f"cannot listen on 127.0.0.1:{taken}: Address already in use" in second.said
        assert "--probes or HEADRACE_PROBES" in second.said
        assert "Traceback" not in second.said
        assert "serves" not in second.said, "it must not take jobs before"
    bad = processes.headrace(*WORKER, "--probes", ":9100")
    assert await bad.ended() == 2
    assert 'write "9100"' in bad.said


async def test_up_answers_for_all_its_processes(processes: Processes) -> None:
    (processes.folder / "headrace.toml").write_text(f'probes = "{(port := free_port())}"\n')
    command = ("up", "--app", "shop", "--workers", "2", "--port", "0", "--json")
    up = processes.headrace(*command)
    at = f"http://127.0.0.1:{port}"

    def begun() -> bool:
        assert up.code is None, up.said
        return '"up"' in up.said

    await until(begun)
    await ready(at)

    async def both() -> bool:
        found = samples_of((await asked(at, "/metrics")).body)
        return found["headrace_workers{'state': 'healthy'}"] == 2

    await until(both, limit=60)
    assert "ended with code" not in up.said
    [child] = children_of(up)
    child.kill()
    await not_ready(at, "1 of 1 further worker processes have ended")
    up.terminate()
    await up.ended()
    lines = [json.loads(line) for line in up.said.splitlines() if line.startswith("{")]
    assert lines[-1]["event"] == "stopped"


def children_of(process: Process) -> list[Any]:
    import psutil  # type: ignore[import-untyped]

    found: list[Any] = psutil.Process(process.pid).children()
    return found
