"""What `headrace workflows` asks for: of an App, or of a server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from headrace.app import App
from headrace.cli.session import Session
from headrace.model.job import Job

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.workflows.model import Workflow
    from headrace.workflows.steps import RunView


class WorkflowVerbs(Protocol):
    """Workflows, wherever they are."""

    def now(self) -> datetime:
        """The time that ages are counted from."""

    async def all(self) -> Sequence[Workflow]:
        """The newest version of each."""

    async def find(self, workflow_id: str, version: str | None) -> Workflow:
        """One of them."""

    async def run(
        self, workflow_id: str, params: dict[str, Any], *, version: str | None, key: str | None
    ) -> Job:
        """Begin a run."""

    async def get(self, job_id: str) -> Job:
        """The job of a run."""

    async def result(self, job_id: str, timeout: float | None) -> Any:
        """Wait for a run."""

    async def look(self, run_id: str) -> RunView:
        """A run with its steps."""

    async def again(self, run_id: str, from_step: str | None) -> Sequence[str]:
        """Begin a run again."""


class DirectWorkflows:
    """The verbs on an App."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._workflows = app.workflows  # tells how to install what is missing
        self.get = app.get
        self.result = app.result

    def now(self) -> datetime:
        return self._app.clock.utcnow()

    async def all(self) -> Sequence[Workflow]:
        return self._workflows.all()

    async def find(self, workflow_id: str, version: str | None) -> Workflow:
        return self._workflows.find(workflow_id, version)

    async def run(
        self, workflow_id: str, params: dict[str, Any], *, version: str | None, key: str | None
    ) -> Job:
        return await self._workflows.run(workflow_id, params, version=version, key=key)

    async def look(self, run_id: str) -> RunView:
        return await self._workflows.look(await self._app.get(run_id))

    async def again(self, run_id: str, from_step: str | None) -> Sequence[str]:
        return await self._workflows.retry(await self._app.get(run_id), from_step)


class RemoteWorkflows:
    """The verbs on a server, which knows its workflows."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.all = client.workflows
        self.find = client.workflow
        self.get = client.get
        self.result = client.result
        self.look = client.follow_run
        self.again = client.retry_run

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def run(
        self, workflow_id: str, params: dict[str, Any], *, version: str | None, key: str | None
    ) -> Job:
        begun = await self._client.run_workflow(workflow_id, params, version=version, key=key)
        return await self._client.get(begun.job_id)


@asynccontextmanager
async def workflow_verbs(
    session: Session, name: str | None = None, *, tasks: bool = True
) -> AsyncIterator[WorkflowVerbs]:
    """On the server of API_URL, or on the App. That of the built-in tour needs no name. Without
    `tasks` any store will do.
    """
    if session.remote:
        async with session.client() as client:
            yield RemoteWorkflows(client)
    elif tasks:
        async with session.load_app(name) as app:
            yield DirectWorkflows(app)
    else:
        async with session.store() as app:
            yield DirectWorkflows(app)
