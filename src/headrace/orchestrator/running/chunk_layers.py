"""Middleware around the jobs of a chunk: layers of its own for each job, and one call for all.

The handler is called when every job has come through its layers, or has ended in them. Then each
gets its answer as if a handler of its own had returned or raised it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import NotRetryable
from headrace.orchestrator.middleware import Chain
from headrace.orchestrator.running.chunk_attempt import ChunkAnswer, ChunkAttempt, ChunkMember
from headrace.task import Task

if TYPE_CHECKING:
    from headrace.orchestrator.running.chunk_calls import ChunkCalls


class ChunkLayers:
    """One chunk, in a worker with middleware."""

    def __init__(
        self,
        calls: ChunkCalls,
        chain: Chain,
        call: ChunkAttempt,
        task: Task[..., Any],
        members: Sequence[ChunkMember],
    ) -> None:
        self.calls = calls
        self.chain = chain
        self.call = call
        self.task = task
        self.members = members
        # Those that have neither come to the handler nor ended.
        self._on_their_way = set(members)
        self._all_came = asyncio.Event()

    async def run(self) -> None:
        """Run the layers and the handler to their end."""
        tasks = [asyncio.ensure_future(self._through(member)) for member in self.members]
        for member, task in zip(self.members, tasks, strict=True):
            member.task = task
        try:
            await self._all_came.wait()
            came = [each for each in self.members if each.waiter is not None and not each.over]
            if came:
                await self.calls.call_handler(self.call, self.task, came)
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            if self.call.reason is None:
                raise
        finally:
            self.call.unanswered()
            running = [each for each in tasks if not each.done()]
            for each in running:
                each.cancel()
            if running:
                await asyncio.wait(running)

    async def _through(self, member: ChunkMember) -> None:
        """Take one job through its layers, and settle it by what they make of its answer."""
        self.calls.executor.enter_member(member)
        context = member.seen_as.context
        try:
            answer = ChunkAnswer(await self.chain(lambda: self._next(member), member.job, context))
        except BaseException as error:  # also SystemExit must not end the worker
            if not member.in_its_task():
                raise
            answer = ChunkAnswer(error=error)
        self.calls.settle(member, self.calls.outcome_of(member, self.task, answer))
        self._came(member)

    async def _next(self, member: ChunkMember) -> Any:
        if member.waiter is not None:
            raise NotRetryable(
                f"call_next was called twice for job {member.job.id}: one call serves the whole "
                "chunk, and cannot be repeated for one of its jobs; fail the job instead"
            )
        member.waiter = asyncio.get_running_loop().create_future()
        self._came(member)
        answer: ChunkAnswer = await member.waiter
        if answer.error is not None:
            # All jobs may have the same error: what another's layers have added is not its story.
            raise answer.error.with_traceback(answer.traceback)
        return answer.value

    def _came(self, member: ChunkMember) -> None:
        self._on_their_way.discard(member)
        if not self._on_their_way:
            self._all_came.set()
