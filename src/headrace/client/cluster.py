"""Verbs for what is around jobs: queues, lanes, workers, tasks, workflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.api_types.requests import ExecuteRequest, RunRetryRequest
from headrace.api_types.responses import (
    BegunAgain,
    ExecuteAnswer,
    QueuePaused,
    RunBegun,
    Running,
    RunningAnswer,
    TaskView,
)
from headrace.client.base import BaseClient, given, path_to
from headrace.model.ids import parse_id
from headrace.model.names import check_name, check_text
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView


class ClusterApi(BaseClient):
    """A server with its queues, lanes, workers, tasks and workflows."""

    async def running(self) -> Running:
        """What runs now, and how many jobs wait in each queue."""
        return (await self._get("/api/v2/jobs/running", RunningAnswer, "what runs now")).data

    async def queues(self) -> Sequence[QueueView]:
        """Every queue that has been used or paused, by name."""
        return await self._list("/queues", "queues", QueueView)

    async def pause(self, queue: str) -> None:
        """Stop handing out a queue's jobs. Running ones go on."""
        await self._send("POST", f"{path_to('queues', 'queue', queue)}/pause", QueuePaused)

    async def resume(self, queue: str) -> None:
        """Hand out a queue's jobs again."""
        await self._send("POST", f"{path_to('queues', 'queue', queue)}/resume", QueuePaused)

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
        *,
        version: int | str | None = None,
        key: str | None = None,
    ) -> RunBegun:
        """Begin a run. With a key, a second call makes no second run."""
        asked = ExecuteRequest(
            workflow_id=workflow_id, params=dict(params or {}), version=version, key=key
        )
        path = "/api/v2/workflows/execute"
        idempotent = key is not None
        answer = await self._send("POST", path, ExecuteAnswer, asked, idempotent=idempotent)
        return answer.data

    async def follow_run(self, job_id: str) -> RunView:
        """A run with the state of each of its steps."""
        return await self._get(f"/workflows/runs/{parse_id(job_id)}", RunView, "a run")

    async def retry_run(self, job_id: str, from_step: str | None = None) -> Sequence[str]:
        """Begin a finished run again: from a step, or what did not complete. Returns the steps."""
        path = f"/workflows/runs/{parse_id(job_id)}/retry"
        return (await self._send("POST", path, BegunAgain, RunRetryRequest(step=from_step))).steps
