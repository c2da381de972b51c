"""Three real servers on one store, without any worker: one message, one resolution."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace.client import Client
from headrace.clock import Clock
from headrace.errors import UnknownAlertRule, UnknownDestination
from headrace.model.alerts.notice import ALERT_TYPE
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.publishing.tasks import ALERT
from headrace.server.listen import listening
from tests.alerts.conftest import an_app
from tests.conftest import Servers, store_url
from tests.orchestrator.test_connections import MOST, count_on_postgres, count_on_redis
from tests.publishing.receiver import Answer, Receiver
from tests.support.processes import HEADRACE, Process, Processes, until
from tests.support.verbs import a_worker, claim, complete, enqueue

PROGRAM = "tests.alerts.program:app"


def a_server(programs: Processes, url: str) -> Process:
    return programs.headrace(
        *("server", "--app", PROGRAM, "--url", url, "--port", "0"),
        HEADRACE_LEASE_SECONDS="4",
        HEADRACE_ALLOW_PRIVATE_WEBHOOKS="true",
    )


@pytest.mark.timeout(400)
async def test_three_servers_of_which_some_are_killed(
    url: str, receiver: Receiver, tmp_path: Path, clock: Clock
) -> None:
    async with an_app(url, clock, tmp_path) as app:
        made = await app.put_destination("ops", "webhook", {"url": receiver.url, "timeout": 60})
        assert made.secret is not None
        for _ in range(3):
            await enqueue(app.engine, queue="mail")
        # Killed while the receiver has the message, and has not answered.
        receiver.answers = [Answer(hang=True)]
        with Processes(tmp_path) as programs:
            servers = [a_server(programs, url) for _ in range(3)]
            await until(lambda: receiver.requests, "the message", 180)
            [worker] = {job.worker for job in await deliveries(app)}
            victim = next(each for each in servers if f"-{each.pid}-alerts-" in str(worker))
            victim.kill()
            # Another server delivers it, under the same id.
            await until(lambda: len(receiver.requests) == 2, "the second try", 180)
            assert len({each.headers["webhook-id"] for each in receiver.requests}) == 1
            mender = await a_worker(app.engine, queues=("mail",))
            for job in await claim(app.engine, mender, 3, ["mail"]):
                await complete(app.engine, job)
            await app.engine.retire(mender)
            await until(lambda: len(receiver.requests) == 3, "the resolution", 180)

            async def over() -> bool:
                statuses = [job.status for job in await deliveries(app)]
                return statuses == [Status.COMPLETED] * 2

            await until(over, "the end of the deliveries", 60)
            rest = [each for each in servers if each is not victim]
            for each in rest:
                each.terminate()
            assert [await each.ended() for each in rest] == [0, 0]
        told = [each.verified(made.secret)["data"]["status"] for each in receiver.requests]
        assert told == ["firing", "firing", "resolved"]
        # They were no workers for anything else, and have retired.
        alive = [each.name for each in await app.engine.workers() if each.alive]
        assert alive == []


async def deliveries(app: headrace.App) -> list[headrace.Job]:
    return (await app.list(JobFilter(tasks=(ALERT,)))).jobs


@contextlib.asynccontextmanager
async def a_client(app: headrace.App) -> AsyncIterator[Client]:
    async with listening(app, port=0) as url, Client(url) as client:
        yield client


@pytest.fixture
async def app(tmp_path: Path, clock: Clock) -> AsyncIterator[headrace.App]:
    async with an_app(f"sqlite:///{tmp_path}/alerts.db", clock, tmp_path) as app:
        yield app


async def test_the_verbs_of_a_client(app: headrace.App, receiver: Receiver) -> None:
    async with a_client(app) as client:
        await client.put_destination("ops", "webhook", {"url": receiver.url}, types=[ALERT_TYPE])
        made = await client.put_alert_rule("long", "queue_length", "ops", above=2, for_="1m")
        assert (made.for_, made.above, made.origin, made.problem) == (60, 2, "api", None)
        assert await client.alert_rule("long") == await app.alert_rule("long")
        assert await client.alert_rules() == await app.alert_rules()
        job = await client.test_receiver("ops")
        # The server delivers it: there is no worker.
        await until(lambda: receiver.requests, "the test")
        assert receiver.requests[0].event["data"]["status"] == "test"
        assert job.task == ALERT
        silence = await client.silence_alert("long", duration=60, reason="known", subject="mail")
        assert (silence.subject, silence.reason) == ("mail", "known")
        assert silence.by is not None
        assert await client.unsilence_alert("long", subject="mail")
        assert not await client.unsilence_alert("long")
        await client.put_alert_rule("long", "queue_length", "ops", above=0)
        await app.enqueue("fine")
        # A change over the API is evaluated at once, and others within seconds.
        await until(lambda: len(receiver.requests) == 2, "the alert")
        [alert] = await client.alerts()
        assert (alert.rule, alert.phase, alert.told) == ("long", "firing", ["ops"])
        await client.remove_alert_rule("long")
        await until(lambda: len(receiver.requests) == 3, "the end")
        with pytest.raises(UnknownAlertRule):
            await client.alert_rule("long")
        with pytest.raises(UnknownDestination):
            await client.test_receiver("nobody")
        page = await client.audit(limit=50)
        done = {each.action for each in page.entries}
        assert {"alert-rule.put", "alert-rule.remove", "alert.silence", "alert.test"} <= done


async def test_keys_for_some_queues_see_no_alerts(app: headrace.App) -> None:
    await app.put_alert_rule("long", "queue_length", "ops", above=2)
    await app.create_key("admin", "admin")
    bound = await app.create_key("bound", "admin", queues=["mail"])
    reader = await app.create_key("reader", "read")
    async with listening(app, port=0) as url:
        async with Client(url, api_key=bound.secret) as client:
            for verb in (client.alerts, client.alert_rules):
                with pytest.raises(headrace.client.AccessDenied):
                    await verb()
        async with Client(url, api_key=reader.secret) as client:
            assert len(await client.alert_rules()) == 1
            for change in (
                client.remove_alert_rule("long"),
                client.silence_alert("long", duration=60),
                client.test_receiver("ops"),
            ):
                with pytest.raises(headrace.client.AccessDenied):
                    await change


async def run(folder: Path, *words: str, code: int = 0, **environment: Any) -> str:
    with Processes(folder) as programs:
        process = programs.headrace("alerts", *words, **environment)
        assert await process.ended(180) == code, process.said
        return process.said


@pytest.mark.timeout(400)
async def test_the_command_line(app: headrace.App, tmp_path: Path, receiver: Receiver) -> None:
    assert HEADRACE.exists()
    here: dict[str, Any] = {"HEADRACE_URL": app.settings.url}
    await app.put_destination("ops", "slack", {"url": receiver.url})
    said = await run(
        tmp_path, "add", "late", "queue_age", "above=10m", "queues=mail", "--to", "ops", **here
    )
    assert "queue_age" in said
    listed = msgspec.json.decode(await run(tmp_path, "list", "--json", **here))
    assert [each["above"] for each in listed["alert_rules"]] == [600]
    async with listening(app, port=0) as url:
        silent, shown = await asyncio.gather(
            run(tmp_path, "silence", "late", "--for", "2h", "--reason", "known", API_URL=url),
            run(tmp_path, "test", "ops", API_URL=url),
        )
        assert "is silent until" in silent
        assert shown
        await until(lambda: receiver.requests, "the test")
        assert "known" in await run(tmp_path, "show", "late", API_URL=url)
    path = tmp_path / "alerts.yaml"
    path.write_text("rules:\n  late:\n    kind: queue_age\n    above: soon\n    to: ops\n")
    wrong = await run(tmp_path, "check", str(path), code=1)
    assert "above 'soon' is not a span of time" in wrong
    assert "alerts.yaml line 4" in wrong


@pytest.mark.parametrize("name", ["postgres", "redis"])
async def test_evaluating_and_delivering_needs_few_connections(
    name: str, servers: Servers, tmp_path: Path, clock: Clock, receiver: Receiver
) -> None:
    """A server with rules holds no more than a worker does."""
    url = store_url(name, servers, tmp_path)

    async def count() -> int:
        if name == "postgres":
            return await count_on_postgres(url)
        return await asyncio.to_thread(count_on_redis, url)

    before = await count()
    async with an_app(url, clock, tmp_path) as app:
        await app.put_destination("ops", "webhook", {"url": receiver.url})
        loop = app.alert_loop()
        await loop.tick()
        assert not loop.orchestrator.running  # there is no rule
        await app.put_alert_rule("long", "queue_length", "ops", above=0)
        await enqueue(app.engine, queue="mail")
        await loop.tick()
        await until(lambda: receiver.requests, "the message")
        assert await count() - before <= MOST
        await loop.stop()


async def test_a_worker_and_a_server_in_one_process(
    url: str, tmp_path: Path, clock: Clock, receiver: Receiver
) -> None:
    """As `headrace up` has them: each does its own work, and jobs of neither are lost."""
    async with an_app(url, clock, tmp_path) as app:
        await app.put_destination("ops", "webhook", {"url": receiver.url})
        await app.put_alert_rule("long", "dead_letters", "ops", above=5)
        loop = app.alert_loop()
        async with headrace.JobOrchestrator(app, queues=["mail"], name="up"):
            await loop.tick()
            jobs = await app.enqueue_many([app.job("fine") for _ in range(30)])
            tests = [await app.test_receiver("ops") for _ in range(5)]

            async def over() -> bool:
                found = await app.engine.get([each.id for each in (*jobs, *tests)])
                return all(each.status is Status.COMPLETED for each in found)

            await until(over, "the end of all jobs", 60)
            done = await app.engine.get([each.id for each in tests])
            assert {each.worker for each in done} == {loop.orchestrator.worker_name}
            await loop.stop()
        assert len(receiver.requests) == len(tests)
