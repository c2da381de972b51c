"""The same verbs for code without a loop."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import headrace
from headrace import JobFilter, Status
from headrace.client import SyncClient, sync
from headrace.errors import HeadraceError
from headrace.model.ids import new_id
from tests.client.conftest import Served
from tests.support.forks import forked, held_by_another

ELSEWHERE = "elsewhere"


def test_all_verbs_block_and_answer(served: Served) -> None:
    with sync.Client(served.url) as client:
        job = client.enqueue("add", {"a": 1, "b": 2})
        assert client.result(job.id, timeout=20) == 3
        assert [each.status for each in client.events(job.id)] == [Status.COMPLETED]
        job, created = client.enqueue_or_find("add", {"a": 3}, key="k", queue=ELSEWHERE)
        assert created
        assert len(client.enqueue_many(client.job("add", {"a": 1}) for _ in range(10))) == 10
        assert len(client.list(limit=5).jobs) == 5
        assert client.why(job.id)
        assert client.cancel(job.id).status is Status.CANCELLED
        with pytest.raises(headrace.JobConflict):
            client.cancel(job.id)
        assert client.retry(job.id).status is Status.PENDING
        with pytest.raises(headrace.JobNotFound):
            client.get(new_id())
        with pytest.raises(headrace.ResultTimeout):
            client.result(job.id, timeout=0.05)
        assert client.bulk("cancel", JobFilter(queues=(ELSEWHERE,))).changed == 1
        client.pause(ELSEWHERE)
        assert [queue.paused for queue in client.queues() if queue.name == ELSEWHERE] == [True]
        client.resume(ELSEWHERE)
        assert client.lanes() == []
        assert client.entries(job.id) == []
        assert client.artifacts(job.id) == []
        assert len(client.workers()) == 1
        assert "add" in [task.name for task in client.tasks()]
        assert set(client.running().queued) == {"default", ELSEWHERE}


def test_it_has_every_verb_with_the_same_arguments() -> None:
    def verbs(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(verb).parameters)
            for name, verb in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert verbs(SyncClient) == verbs(headrace.Client)


def test_many_threads_share_it(one_server: Served) -> None:
    with SyncClient(one_server.url) as client, ThreadPoolExecutor(8) as threads:
        made = list(
            threads.map(lambda n: client.enqueue("add", {"a": n}, queue=ELSEWHERE).id, range(100))
        )
        assert len(set(made)) == 100
        assert client.queues()[0].ready == 100
    assert "headrace-client" not in [thread.name for thread in threading.enumerate()]


def test_a_stream_can_be_left(one_server: Served) -> None:
    with SyncClient(one_server.url) as client:
        job = client.enqueue("add", {"a": 1}, queue=ELSEWHERE)
        changes = client.events(job.id)
        assert next(changes).status is Status.PENDING
        changes.close()  # type: ignore[attr-defined]
        assert client.get(job.id).status is Status.PENDING


def test_it_can_be_used_again_after_it_was_closed(one_server: Served) -> None:
    client = SyncClient(one_server.url)
    client.close()
    assert client.list().jobs == []
    client.close()
    assert client.list().jobs == []
    client.close()


async def test_it_refuses_to_block_a_loop() -> None:
    with pytest.raises(HeadraceError, match="would block the event loop"):
        SyncClient("http://127.0.0.1:1").get(new_id())


class Interrupted(Exception):
    pass


def test_an_interrupted_caller_leaves_no_request_behind(one_server: Served) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with SyncClient(one_server.url) as client:
            job = client.enqueue("add", {"a": 1}, queue=ELSEWHERE)
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))

            def wait() -> None:
                timer.start()
                client.result(job.id)

            with pytest.raises(Interrupted):
                wait()
            timer.join()
            assert client.get(job.id).status is Status.PENDING
            loop = client._thread._loop
            assert loop is not None
            end = time.monotonic() + 10
            while len(asyncio.all_tasks(loop)) > 0:
                assert time.monotonic() < end, "the request goes on"
                time.sleep(0.01)
            client.cancel(job.id)  # or the server would wait for its end when it stops
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_forked_child_starts_afresh(one_server: Served) -> None:
    client = SyncClient(one_server.url)
    client.enqueue("add", {"a": 1}, queue=ELSEWHERE)
    child = os.fork()
    if child == 0:
        try:
            client.enqueue("add", {"a": 2}, queue=ELSEWHERE)
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, outcome = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(outcome) == 0
    assert len(client.list().jobs) == 2
    client.close()


def test_a_child_that_was_forked_while_others_were_at_it_starts_afresh(
    one_server: Served,
) -> None:
    client = SyncClient(one_server.url)
    client.list()
    with held_by_another(client._thread._current().lock):
        assert forked(lambda: client.enqueue("add", {"a": 2}, queue=ELSEWHERE)) == 0
    assert len(client.list().jobs) == 1
    client.close()


def test_closing_tells_those_who_wait_in_other_threads(one_server: Served) -> None:
    client = SyncClient(one_server.url)
    job = client.enqueue("add", {"a": 1}, queue=ELSEWHERE)
    told: list[Exception] = []

    def wait() -> None:
        try:
            client.result(job.id)
        except HeadraceError as error:
            told.append(error)

    waiters = [threading.Thread(target=wait) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    loop = client._thread._loop
    assert loop is not None
    end = time.monotonic() + 10
    while len(asyncio.all_tasks(loop)) < 3:
        assert time.monotonic() < end, "nobody waits"
        time.sleep(0.01)
    client.close()
    for waiter in waiters:
        waiter.join(10)
    assert [type(error) for error in told] == [headrace.EngineUnavailable] * 3
    assert all("closed while this was under way" in str(error) for error in told)
    assert client.cancel(job.id).status is Status.CANCELLED
    client.close()


SEVERAL_LOOPS = """
import asyncio, sys, headrace

client = headrace.Client(sys.argv[1])
for _ in range(2):
    asyncio.run(client.list())


async def elsewhere():
    await client.list()
    try:
        await asyncio.to_thread(asyncio.run, client.list())
    except headrace.HeadraceError as error:
        print(error)


asyncio.run(elsewhere())
"""


def test_one_client_serves_one_loop_after_the_other(one_server: Served) -> None:
    # A process of its own: a loop that ends without `close` leaves connections to be collected.
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL_LOOPS, one_server.url],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "in use on another event loop" in done.stdout
