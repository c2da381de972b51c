"""Three evaluators on one store, and real receivers: HTTP and SMTP on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.alerts.evaluate import Evaluator
from headrace.clock import Clock
from headrace.model.alerts.notice import ALERT_TYPE
from headrace.model.job import Job, JobFilter
from headrace.publishing.tasks import ALERT, ALERTS
from tests.conftest import Servers, store_url
from tests.publishing.receiver import Receiver, a_receiver

ENGINES = ("sqlite", "postgres", "redis")
EVALUATORS = 3


class Alerts:
    """A store with a rule's receiver "ops", and evaluators as three servers have them."""

    def __init__(
        self, apps: list[headrace.App], clock: Clock, receiver: Receiver, secret: str
    ) -> None:
        self.apps = apps
        self.app = apps[0]
        self.engine = apps[0].engine
        self.clock = clock
        self.receiver = receiver
        self.secret = secret
        self.evaluators = [Evaluator(app, app._publishing) for app in apps]

    async def rule(self, name: str = "rule", **fields: Any) -> None:
        """Add a rule, or change it."""
        kind = fields.pop("kind")
        await self.app.put_alert_rule(name, kind, fields.pop("to", "ops"), **fields)

    async def round(self) -> None:
        """Let all evaluate at once, twice, so that the second sees what the first has done."""
        for _ in range(2):
            await asyncio.gather(*(each.round() for each in self.evaluators))

    async def deliver(self) -> None:
        """Deliver what is due, as a server does."""
        if all(each.status.final for each in await self.jobs()):
            return
        await headrace.JobOrchestrator(
            self.app, queues=[ALERTS], max_workers=4, name="delivering"
        ).run_until_idle()

    async def told(self) -> list[str]:
        """Evaluate, deliver, and return what the receiver was told so far, by the status."""
        await self.round()
        await self.deliver()
        return [each["data"]["status"] for each in self.events]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events that the receiver has got; each is signed."""
        found = [each.verified(self.secret) for each in self.receiver.requests]
        assert all(each["type"] == ALERT_TYPE for each in found)
        return found

    async def jobs(self) -> list[Job]:
        """All deliveries that were ever made."""
        return (await self.app.list(JobFilter(tasks=(ALERT,)))).jobs


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    return store_url(request.param, servers, tmp_path)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with a_receiver() as made:
        yield made


def an_app(url: str, clock: Clock, folder: Path) -> headrace.App:
    """An App with tasks that complete and fail."""
    app = headrace.App(
        url, clock=clock, allow_private_webhooks=True, artifacts=str(folder / "files")
    )

    @app.task(queue="mail", retries=0)
    async def broken() -> None:
        raise ValueError("it broke")

    @app.task(queue="mail")
    async def fine(text: str = "") -> None:
        return None

    return app


@pytest.fixture
async def alerts(
    url: str, clock: Clock, receiver: Receiver, tmp_path: Path
) -> AsyncIterator[Alerts]:
    apps = [an_app(url, clock, tmp_path) for _ in range(EVALUATORS)]
    for app in apps:
        await app.open()
    made = await apps[0].put_destination(
        "ops", "webhook", {"url": receiver.url}, types=[ALERT_TYPE]
    )
    assert made.secret is not None
    yield Alerts(apps, clock, receiver, made.secret)
    assert await apps[0].engine.audit() == []
    for app in apps:
        await app.close()
