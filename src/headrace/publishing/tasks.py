"""The built-in tasks: one job for each event, which makes one for each destination that wants it.

So each destination has retries and failed jobs of its own, and one that is down holds up no other.
"""

from __future__ import annotations

import logging
from typing import Any

from headrace.errors import NotRetryable
from headrace.model.durable.context import Context
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.names import check_text
from headrace.model.policy import TaskPolicy
from headrace.model.retry import RetryPolicy
from headrace.publishing.deliver import Deliveries
from headrace.publishing.destinations import Destination
from headrace.publishing.events import (
    EventTypes,
    PublishedEvent,
    check_event_type,
    delivery_id,
    lane_of,
)
from headrace.publishing.sender import DestinationGone
from headrace.publishing.store import DestinationRecords
from headrace.task import Task
from headrace.task.app_like import AppLike
from headrace.task.encrypted import seal_arguments

log = logging.getLogger("headrace.publishing")

PUBLISH = "headrace.publish"
DELIVER = "headrace.deliver"
ALERT = "headrace.alert"
QUEUE = "events"
"""The queue of both tasks. Workers that serve only some queues have to name it."""
ALERTS = "headrace.alerts"
"""The queue of alerts that are delivered. Servers serve it, so that no worker is needed."""
# No destination can be called so: the lane of an event before it is sent to any.
ALL = "*"
# Sharing out needs the engine alone.
SHARING = RetryPolicy(retries=1_000, base=1.0, maximum=60.0)
# 5 s, 15 s, 45 s … up to six hours apart: about 16 hours with ten retries.
DELIVERING = RetryPolicy(retries=10, base=5.0, factor=3.0, maximum=21_600.0, jitter=0.1)
# 5 s, 10 s, 20 s … up to five minutes apart: about 16 hours, and soon after the receiver is back.
ALERTING = RetryPolicy(retries=200, base=5.0, factor=2.0, maximum=300.0, jitter=0.1)
# Beside the time limit of the destination itself: for the engine, and for a slow machine.
MARGIN_SECONDS = 60.0


class Publishing:
    """What an App needs to publish events and to deliver them."""

    def __init__(self, host: AppLike) -> None:
        self.types = EventTypes()
        self.records = DestinationRecords(host)
        self.deliveries = Deliveries(host.settings)
        self._host = host
        # Which of their jobs are sealed depends on the event, not on the task.
        sharing = TaskPolicy(queue=QUEUE, retry=SHARING, encrypt=False)
        delivering = TaskPolicy(queue=QUEUE, retry=DELIVERING, encrypt=False)
        alerting = TaskPolicy(queue=ALERTS, retry=ALERTING, encrypt=False)
        self.publish_task: Task[..., Any] = Task(
            self._publish, name=PUBLISH, policy=sharing, sink=host
        )
        self.deliver_task: Task[..., Any] = Task(
            self._deliver, name=DELIVER, policy=delivering, sink=host
        )
        self.alert_task: Task[..., Any] = Task(
            self._deliver, name=ALERT, policy=alerting, sink=host
        )

    def task(self, name: str) -> Task[..., Any] | None:
        """Return one of the built-in tasks."""
        tasks = (self.publish_task, self.deliver_task, self.alert_task)
        return next((each for each in tasks if each.name == name), None)

    def event_job(
        self,
        event_type: str,
        body: bytes,
        key: str | None,
        job_id: str | None,
        *,
        sealed: bool = False,
    ) -> NewJob:
        """Return the job of an event, whose id is the event's. Events of one key stay in order:
        in one lane here, and in one lane for each destination after it. With `sealed` the event is
        stored sealed, here and on its way to each destination.
        """
        check_event_type(event_type)
        if key is not None:
            check_text("key", key)
        event = PublishedEvent(
            id=new_id(),
            type=event_type,
            time=self._host.clock.utcnow(),
            key=key,
            job_id=job_id,
            data=self.types.data(event_type, body),
        )
        job = self.publish_task.job(event)
        job.id = event.id
        if key is not None:
            job.lane = lane_of(ALL, key)
        if sealed:
            seal_arguments(job, self._host.sealing)
        return job

    def delivery_job(
        self, destination: Destination, event: PublishedEvent, *, sealed: bool = False
    ) -> NewJob:
        """Return the job that delivers an event to a destination; always with the same id."""
        job = self.deliver_task.job(destination.name, event)
        job.max_attempts = destination.retries + 1
        job = self._addressed(job, destination, event)
        if sealed:
            seal_arguments(job, self._host.sealing)
        return job

    def alert_job(self, destination: Destination, event: PublishedEvent) -> NewJob:
        """The same for an alert, which is tried again more often."""
        return self._addressed(self.alert_task.job(destination.name, event), destination, event)

    def _addressed(self, job: NewJob, destination: Destination, event: PublishedEvent) -> NewJob:
        job.id = delivery_id(event.id, destination.name)
        job.timeout = destination.typed_options.timeout + MARGIN_SECONDS
        if event.key is not None:
            job.lane = lane_of(destination.name, event.key)
        return job

    async def _publish(self, ctx: Context, event: PublishedEvent) -> dict[str, str]:
        wanting = [each for each in await self.records.all() if each.wants(event.type)]
        sealed = getattr(ctx, "sealed", False)
        jobs = [self.delivery_job(each, event, sealed=sealed) for each in wanting]
        if jobs:
            ctx.then(*jobs)
        return {each.name: job.id for each, job in zip(wanting, jobs, strict=True)}

    async def _deliver(self, ctx: Context, destination: str, event: PublishedEvent) -> str:
        stored = await self.records.find(destination)
        if stored is None:
            ctx.log.info("Destination %s was removed: event %s is dropped", destination, event.id)
            return "dropped: the destination was removed"
        if not stored.destination.enabled:
            raise NotRetryable(
                f"destination {destination!r} is disabled ({stored.destination.reason}); enable "
                f"it: headrace destinations enable {destination}, then retry this job"
            )
        try:
            await self.deliveries.send(stored, event)
        except DestinationGone as error:
            # What a receiver answers may quote the event.
            said = "it wants no more events" if getattr(ctx, "sealed", False) else error
            reason = f"{said}; nothing is sent there any more"
            await self.records.enable(destination, False, reason)
            log.error("Destination %s is disabled: %s", destination, reason)  # noqa: TRY400
            raise NotRetryable(f"destination {destination!r} is disabled: {reason}") from None
        return "delivered"
