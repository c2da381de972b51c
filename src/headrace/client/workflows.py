"""Workflows over HTTP: look at them, run them, follow a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from headrace.api_types.requests import ExecuteRequest, RunRetryRequest
from headrace.api_types.responses import BegunAgain, ExecuteAnswer, RunBegun
from headrace.client.admin import Administration
from headrace.client.job_codec import decode, decode_list
from headrace.loop_thread import LoopThread
from headrace.model.ids import parse_id
from headrace.model.names import check_name
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView


class Runs(Administration):
    """The workflows of a server."""

    async def workflows(self) -> Sequence[Workflow]:
        """The newest version of each workflow."""
        return decode_list(await self._read("/workflows"), "workflows", Workflow, "workflows")

    async def workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow:
        """One workflow with its steps. Raises `UnknownWorkflow`."""
        params = {} if version is None else {"version": str(version)}
        path = f"/workflows/{quote(check_name('workflow', workflow_id), safe='')}"
        return decode(await self._read(path, params), Workflow, "a workflow")

    async def run_workflow(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        version: int | str | None = None,
        key: str | None = None,
    ) -> RunBegun:
        """Begin a run. With a key, asking again makes no second one."""
        asked = ExecuteRequest(
            workflow_id=workflow_id, params=dict(params or {}), version=version, key=key
        )
        path = "/api/v2/workflows/execute"
        return (await self._change("POST", path, ExecuteAnswer, asked, safe=key is not None)).data

    async def follow_run(self, job_id: str) -> RunView:
        """A run with the state of each of its steps."""
        return decode(await self._read(f"/workflows/runs/{parse_id(job_id)}"), RunView, "a run")

    async def retry_run(self, job_id: str, from_step: str | None = None) -> Sequence[str]:
        """Begin a finished run again: from a step, or what did not complete. Answers the steps."""
        path = f"/workflows/runs/{parse_id(job_id)}/retry"
        return (await self._change("POST", path, BegunAgain, RunRetryRequest(step=from_step))).steps


class SyncRuns:
    """The verbs of `Runs`, blocking."""

    _runs: Runs
    _thread: LoopThread

    def workflows(self) -> Sequence[Workflow]:
        """The newest version of each workflow."""
        return self._thread.run(self._runs.workflows())

    def workflow(self, workflow_id: str, version: int | str | None = None) -> Workflow:
        """One workflow with its steps."""
        return self._thread.run(self._runs.workflow(workflow_id, version))

    def run_workflow(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        version: int | str | None = None,
        key: str | None = None,
    ) -> RunBegun:
        """Begin a run."""
        asked = self._runs.run_workflow(workflow_id, params, version=version, key=key)
        return self._thread.run(asked)

    def follow_run(self, job_id: str) -> RunView:
        """A run with the state of each of its steps."""
        return self._thread.run(self._runs.follow_run(job_id))

    def retry_run(self, job_id: str, from_step: str | None = None) -> Sequence[str]:
        """Begin a finished run again."""
        return self._thread.run(self._runs.retry_run(job_id, from_step))
