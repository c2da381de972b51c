"""`kill -9` between the outcome and the delivery: the event arrives at least once, under one id."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.job import JobFilter
from headrace.model.status import Status
from tests.conftest import Servers, store_url
from tests.publishing.conftest import publishing
from tests.publishing.receiver import Answer, Receiver
from tests.support.processes import Process, Processes, until

PROGRAM = "tests.publishing.program:app"


@pytest.mark.parametrize("engine", ["sqlite", "postgres", "redis"])
async def test_an_event_survives_its_workers(
    engine: str, servers: Servers, tmp_path: Path, receiver: Receiver
) -> None:
    url = store_url(engine, servers, tmp_path)

    def a_worker(programs: Processes, *options: str) -> Process:
        return programs.headrace(
            *("worker", "--app", PROGRAM, "--url", url, *options),
            HEADRACE_LEASE_SECONDS="1",
            HEADRACE_ALLOW_PRIVATE_WEBHOOKS="true",
        )

    async with publishing(url) as app:
        with Processes(tmp_path) as programs:
            await app.put_destination("crm", "webhook", {"url": receiver.url, "timeout": 60})

            async def process(document: str) -> object:
                return document

            app.task("process")(process)
            job = await app.enqueue("process", {"document": "d1"})
            # Killed after the outcome, before anybody has looked at the event.
            first = a_worker(programs, "--queues", "default")

            async def over() -> bool:
                return (await app.get(job.id)).status.final

            await until(over, "the outcome")
            first.kill()
            event_id = (await app.get(job.id)).result
            assert (await app.get(event_id)).status is Status.PENDING
            # Killed when the receiver has the event, and has not answered.
            receiver.answers = [Answer(hang=True)]
            second = a_worker(programs)
            await until(lambda: receiver.requests, "the first delivery")
            second.kill()
            third = a_worker(programs)
            await until(lambda: len(receiver.requests) >= 2, "the second delivery")

            async def delivered() -> bool:
                page = await app.list(JobFilter(tasks=("headrace.deliver",)))
                return [each.status for each in page.jobs] == [Status.COMPLETED]

            await until(delivered, "the end of the delivery")
            third.terminate()
        assert set(receiver.ids) == {event_id}
        assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
        published = await app.get(event_id)
        assert published.status is Status.COMPLETED
