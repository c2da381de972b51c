"""The verbs that look at everything around jobs, and steer queues."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from headrace.api_types.responses import Running, RunningAnswer, TaskView
from headrace.client.base import Remote, given
from headrace.client.job_codec import decode, decode_list
from headrace.model.names import check_name, check_text
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker


class Surroundings(Remote):
    """A server with its queues, lanes, workers and tasks."""

    async def running(self) -> Running:
        """What runs now, and how many wait in each queue."""
        content = await self._read("/api/v2/jobs/running")
        return decode(content, RunningAnswer, "what runs now").data

    async def queues(self) -> Sequence[QueueView]:
        """Every queue that has been used or paused, by name."""
        return decode_list(await self._read("/queues"), "queues", QueueView, "a list of queues")

    async def pause(self, queue: str) -> None:
        """Stop handing out a queue's jobs. Running ones go on."""
        await self._post(f"/queues/{_name('queue', queue)}/pause")

    async def resume(self, queue: str) -> None:
        """Hand out a queue's jobs again."""
        await self._post(f"/queues/{_name('queue', queue)}/resume")

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[LaneView]:
        """Lanes with holders or waiting jobs, the most waiting first."""
        params = given(
            {
                "queue": None if queue is None else check_name("queue", queue),
                "lane": None if lane is None else check_text("lane", lane),
                "limit": limit,
            }
        )
        return decode_list(await self._read("/lanes", params), "lanes", LaneView, "a list of lanes")

    async def workers(self) -> Sequence[Worker]:
        """Workers, alive ones first, then by name."""
        return decode_list(await self._read("/workers"), "workers", Worker, "a list of workers")

    async def metrics(self) -> str:
        """Numbers for Prometheus, as its text format has them."""
        return (await self._read("/metrics")).decode()

    async def tasks(self) -> Sequence[TaskView]:
        """The tasks that the server knows, with their arguments as JSON schema."""
        return decode_list(await self._read("/tasks"), "tasks", TaskView, "a list of tasks")


def _name(kind: str, name: str) -> str:
    return quote(check_name(kind, name), safe="")
