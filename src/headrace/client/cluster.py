"""Verbs for what is around jobs: queues, workers, workflows, schedules, dead letters, keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack, cast
from urllib.parse import quote

from headrace.api_types.filters import moment_text
from headrace.api_types.monitoring import ErrorGroups, Summary
from headrace.api_types.requests import (
    ExecuteRequest,
    KeyLimits,
    KeyRequest,
    PauseRequest,
    PutOptions,
    RunOptions,
    RunRetryRequest,
    ScheduleRequest,
    ScheduleSettings,
    Scope,
    TriggerRequest,
)
from headrace.api_types.responses import (
    AuditPage,
    BegunAgain,
    DeadLetterPage,
    DeadLetterRemoved,
    DeadLetterView,
    DispatcherView,
    ExecuteAnswer,
    KeyView,
    NewKey,
    QueuePaused,
    Replayed,
    RunBegun,
    Running,
    RunningAnswer,
    ScheduleRemoved,
    ScheduleTimes,
    ScheduleView,
    TaskView,
)
from headrace.api_types.series import SeriesOptions, SeriesView
from headrace.client.base import BaseClient, given, path_to
from headrace.model.ids import parse_id
from headrace.model.job import Job
from headrace.model.names import check_name, check_text
from headrace.model.times import check_aware
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView


class ClusterApi(BaseClient):
    """A server with what is around its jobs. Changes to schedules, dead letters and keys need a key
    of scope admin.
    """

    async def summary(self) -> Summary:
        """How things are, and what is wrong in sentences, at most a second old."""
        return await self._get("/summary", Summary, "a summary")

    async def errors(
        self,
        *,
        queues: Sequence[str] = (),
        tasks: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> ErrorGroups:
        """The newest failed jobs in groups by task, type of the error and fingerprint. Times are
        those at which they finished.
        """
        params = given(
            queue=[check_name("queue", each) for each in queues] or None,
            task=[check_name("task", each) for each in tasks] or None,
            since=None if since is None else check_aware(since, "since").isoformat(),
            until=None if until is None else check_aware(until, "until").isoformat(),
        )
        return await self._get("/errors", ErrorGroups, "errors in groups", params)

    async def running(self) -> Running:
        """What runs now, and how many jobs wait in each queue."""
        return (await self._get("/api/v2/jobs/running", RunningAnswer, "what runs now")).data

    async def queues(self) -> Sequence[QueueView]:
        """Every queue that has been used or paused, by name."""
        return await self._list("/queues", "queues", QueueView)

    async def pause(
        self,
        queue: str,
        *,
        reason: str | None = None,
        until: datetime | None = None,
        duration: float | None = None,
    ) -> QueuePaused:
        """Start no more jobs of a queue. Running ones go on. Workers resume it at `until`, or after
        `duration` seconds.
        """
        asked = PauseRequest(reason=reason, until=until, duration=duration)
        path = f"{path_to('queues', 'queue', queue)}/pause"
        return await self._send("POST", path, QueuePaused, asked)

    async def resume(self, queue: str) -> QueuePaused:
        """Hand out a queue's jobs again."""
        return await self._send("POST", f"{path_to('queues', 'queue', queue)}/resume", QueuePaused)

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[LaneView]:
        """Lanes with holders or waiting jobs, the most waiting first."""
        params = given(
            queue=None if queue is None else check_name("queue", queue),
            lane=None if lane is None else check_text("lane", lane),
            limit=limit,
        )
        return await self._list("/lanes", "lanes", LaneView, params)

    async def workers(self) -> Sequence[Worker]:
        """Workers, alive ones first, then by name."""
        return await self._list("/workers", "workers", Worker)

    async def series(self, **wanted: Unpack[SeriesOptions]) -> SeriesView:
        """What was done by minute, hour or day, and how deep queues were."""
        since, until = moment_text(wanted.get("since")), moment_text(wanted.get("until"))
        params = given(**{**wanted, "since": since, "until": until})
        return await self._get("/metrics/series", SeriesView, "a series", params)

    async def metrics(self) -> str:
        """Metrics in the text format of Prometheus."""
        return (await self._content("/metrics")).decode()

    async def tasks(self) -> Sequence[TaskView]:
        """The tasks that the server knows, with their arguments as JSON schema."""
        return await self._list("/tasks", "tasks", TaskView)

    # -- workflows -----------------------------------------------------------------------------

    async def workflows(self) -> Sequence[Workflow]:
        """The newest version of each workflow."""
        return await self._list("/workflows", "workflows", Workflow)

    async def workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow:
        """One workflow with its steps. Raises `UnknownWorkflow`."""
        params = given(version=None if version is None else str(version))
        path = path_to("workflows", "workflow", workflow_id)
        return await self._get(path, Workflow, "a workflow", params)

    async def run_workflow(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunBegun:
        """Begin a run. With a key, a second call makes no second run."""
        asked = ExecuteRequest(workflow_id=workflow_id, params=dict(params or {}), **options)
        path = "/api/v2/workflows/execute"
        idempotent = asked.key is not None
        answer = await self._send("POST", path, ExecuteAnswer, asked, idempotent=idempotent)
        return answer.data

    async def follow_run(self, job_id: str) -> RunView:
        """A run with the state of each of its steps."""
        return await self._get(f"/workflows/runs/{parse_id(job_id)}", RunView, "a run")

    async def retry_run(self, job_id: str, from_step: str | None = None) -> Sequence[str]:
        """Begin a finished run again: from a step, or what did not complete. Returns the steps."""
        path = f"/workflows/runs/{parse_id(job_id)}/retry"
        return (await self._send("POST", path, BegunAgain, RunRetryRequest(step=from_step))).steps

    # -- schedules -----------------------------------------------------------------------------

    async def schedules(self) -> Sequence[ScheduleView]:
        """Every schedule in words, with its next times and its last jobs."""
        return await self._list("/schedules", "schedules", ScheduleView)

    async def schedule(self, name: str) -> ScheduleView:
        """One schedule. Raises `UnknownSchedule`."""
        return await self._get(_schedule(name), ScheduleView, "a schedule")

    async def put_schedule(
        self, name: str, expression: str, task: str, **options: Unpack[PutOptions]
    ) -> ScheduleView:
        """Add a schedule, or change the one of this name. It fires from its next time on."""
        params = dict(options.pop("params", None) or {})
        settings = cast("ScheduleSettings", options)
        asked = ScheduleRequest(expression=expression, task=task, params=params, **settings)
        return await self._send("PUT", _schedule(name), ScheduleView, asked, idempotent=True)

    async def remove_schedule(self, name: str) -> None:
        """Remove a schedule. Jobs that it has made stay."""
        await self._send("DELETE", _schedule(name), ScheduleRemoved, None)

    async def enable_schedule(self, name: str, enabled: bool = True) -> ScheduleView:
        """Enable or disable a schedule. Times while it was disabled are not made up for."""
        verb = "enable" if enabled else "disable"
        return await self._send("POST", f"{_schedule(name)}/{verb}", ScheduleView, idempotent=True)

    async def trigger_schedule(self, name: str, *, force: bool = False) -> Job:
        """Make a job of a schedule now; with `force` also while one of it is unfinished."""
        return await self._change_job(f"{_schedule(name)}/trigger", TriggerRequest(force=force))

    async def next_times(self, name: str, count: int = 5) -> ScheduleTimes:
        """When a schedule fires next."""
        path = f"{_schedule(name)}/next"
        return await self._get(path, ScheduleTimes, "times of a schedule", {"count": count})

    # -- dispatchers and dead letters ----------------------------------------------------------

    async def dispatchers(self) -> Sequence[DispatcherView]:
        """Cron and event dispatchers, and how far behind they are."""
        return await self._list("/dispatchers", "dispatchers", DispatcherView)

    async def dead_letters(
        self, *, topic: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> DeadLetterPage:
        """Messages that made no job, by id, with the reason but without the message itself."""
        params = given(topic=topic, cursor=cursor, limit=limit)
        return await self._get("/dead-letters", DeadLetterPage, "dead letters", params)

    async def dead_letter(self, letter_id: str) -> DeadLetterView:
        """One message with its content. Raises `NotFound`."""
        return await self._get(_letter(letter_id), DeadLetterView, "a dead letter")

    async def replay_dead_letter(self, letter_id: str) -> Replayed:
        """Try a message again. It is gone once its job is stored; if it makes none, it stays."""
        # Replaying twice makes one job, but the second time nothing is found.
        return await self._send("POST", f"{_letter(letter_id)}/replay", Replayed)

    async def remove_dead_letter(self, letter_id: str) -> None:
        """Remove a message for good."""
        await self._send("DELETE", _letter(letter_id), DeadLetterRemoved, None)

    # -- keys and the audit --------------------------------------------------------------------

    async def keys(self) -> Sequence[KeyView]:
        """All keys, also revoked ones; never their secrets."""
        return await self._list("/keys", "keys", KeyView)

    async def create_key(
        self, name: str, scope: Scope = "read", **limits: Unpack[KeyLimits]
    ) -> NewKey:
        """Make a key. Its secret is in the answer, and never shown again."""
        asked = KeyRequest(name=name, scope=scope, **limits)
        return await self._send("POST", "/keys", NewKey, asked)

    async def revoke_key(self, key_id: str) -> KeyView:
        """Revoke a key: it is refused from now on. Revoking twice is fine."""
        return await self._send(
            "DELETE", f"/keys/{quote(key_id, safe='')}", KeyView, None, idempotent=True
        )

    async def audit(
        self,
        *,
        who: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> AuditPage:
        """Changes that were made over the API, the newest first. `who` is the name, the id or the
        user of a key; `action` is one ("queue.pause") or all of a noun ("queue"). A page may be
        short although there are more: its cursor says.
        """
        params = given(
            who=who,
            action=action,
            target=target,
            since=None if since is None else check_aware(since, "since").isoformat(),
            until=None if until is None else check_aware(until, "until").isoformat(),
            cursor=cursor,
            limit=limit,
        )
        return await self._get("/audit", AuditPage, "a list of changes", params)


def _schedule(name: str) -> str:
    return path_to("schedules", "schedule", name)


def _letter(letter_id: str) -> str:
    return f"/dead-letters/{quote(check_text('dead letter', letter_id))}"
