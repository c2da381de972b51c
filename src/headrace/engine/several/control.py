"""What people do to jobs and queues: each job in its store, a queue in all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from headrace.engine.base import Engine
from headrace.engine.several.store.members import SeveralMembers
from headrace.model.limits.rate import Rate
from headrace.model.views import Delivery, RecordChange


class Steering(SeveralMembers):
    """What people do to jobs and queues."""

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        """Cancel jobs, wherever they are."""
        answers = await self.ask_homes(ids, lambda engine, share: engine.cancel(share, reason))
        found = {each: now for answer in answers.values() for each, now in answer.items()}
        await self._none_missing(ids, found)
        return {each: found[each] for each in ids if each in found}

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        """Run finished jobs again, and scheduled ones now."""
        return await self._moved(ids, lambda engine, share: engine.rerun(share))

    async def rerun_unchanged(self, tokens: Mapping[str, int]) -> list[str]:
        """Run those again that were not run since."""
        return await self._moved(
            list(tokens),
            lambda engine, share: engine.rerun_unchanged({each: tokens[each] for each in share}),
        )

    async def signal(self, job_id: str, event: str, body: bytes) -> Delivery:
        """Deliver an event to a job."""
        home = (await self.locate([job_id])).get(job_id)
        if home is None:
            return "unknown"
        return await home.ask(lambda engine: engine.signal(job_id, event, body))

    async def rerun_without(
        self, job_id: str, names: Sequence[tuple[str, str]], *, token: int,
        record: RecordChange | None = None,
    ) -> bool:  # fmt: skip
        """Run a finished job again without some of its entries; the record goes with the job."""
        home = (await self.locate([job_id])).get(job_id)
        if home is None:
            return False
        return await home.ask(
            lambda engine: engine.rerun_without(job_id, names, token=token, record=record)
        )

    async def set_rate(self, queue: str, lane: str, rate: Rate | None) -> None:
        """Set the rate of a lane in the store of its queue: it counts what starts there."""
        await self.home_of(queue).ask(lambda engine: engine.set_rate(queue, lane, rate))

    async def hold_lane(self, queue: str, lane: str, seconds: float) -> None:
        """Start nothing of a lane, or of a queue in any store, for so long."""
        if lane:
            await self.home_of(queue).ask(lambda engine: engine.hold_lane(queue, lane, seconds))
            return
        await self._everywhere(lambda engine: engine.hold_lane(queue, lane, seconds))

    async def pause(self, queue: str, paused: bool) -> None:
        """Stop or resume claims from a queue in all stores. If one does not answer, the others have
        done it, and this raises: repeat it.
        """
        await self._everywhere(lambda engine: engine.pause(queue, paused))

    async def _everywhere(self, call: Callable[[Engine], Awaitable[None]]) -> None:
        found = await asyncio.gather(
            *(member.ask(call) for member in self.members), return_exceptions=True
        )
        for each in found:
            if isinstance(each, BaseException):
                raise each

    async def _moved(
        self, ids: Sequence[str], call: Callable[[Engine, list[str]], Awaitable[list[str]]]
    ) -> list[str]:
        answers = await self.ask_homes(ids, call)
        found = {each for answer in answers.values() for each in answer}
        await self._none_missing(ids, found)
        return [each for each in ids if each in found]

    async def _none_missing(
        self, ids: Sequence[str], found: Mapping[str, object] | set[str]
    ) -> None:
        """Raise `StoreUnavailable` if one that was left out may be in a store that is away."""
        if self.missing and len(found) < len(ids):
            await self.locate([each for each in ids if each not in found])
