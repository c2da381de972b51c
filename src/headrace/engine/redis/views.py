"""What people see of queues, lanes and workers."""

from __future__ import annotations

import asyncio
import heapq
import struct
from collections.abc import AsyncIterator, Sequence

import msgspec

from headrace.engine.bounded_reads import SHORT_BYTES
from headrace.engine.redis.codec import StoredWorker, at, seen
from headrace.engine.redis.connection.store import RedisStore
from headrace.model.job import Job
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker, WorkerStats

# How many lanes one script looks at: a millisecond or two of the server's time.
_LANES_AT_ONCE = 100
_HOLDERS_AT_ONCE = 1_000
_BEAT = struct.Struct("<dd")
_info = msgspec.msgpack.Decoder(StoredWorker).decode
_stats = msgspec.msgpack.Decoder(WorkerStats).decode


class Viewing(RedisStore):
    """See `headrace.engine.base.Viewing`."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        if not ids:
            return []
        return seen(await self.run("get", *ids))

    async def get_part(self, ids: Sequence[str], most_bytes: int) -> tuple[list[Job], list[str]]:
        if not ids:
            return [], []
        looked_at, *parts = await self.run("get_part", min(SHORT_BYTES, most_bytes), 0, *ids)
        rest = list(ids[looked_at:])
        if rest:
            answer = await self.run_by(self._large, "get_part", most_bytes, 1, *rest)
            rest = rest[answer[0] :]
            parts += answer[1:]
        return seen(parts), rest

    async def queues(self) -> list[QueueView]:
        answer = await self.run("queues")
        views = {}
        for n in range(0, len(answer), 8):
            name, paused, scheduled, waiting, ready, running, age, left = answer[n : n + 8]
            reserved = {left[i].decode(): left[i + 1] for i in range(0, len(left), 3)}
            ages = [float(each) for each in (age, *left[2::3]) if each]
            views[name.decode()] = QueueView(
                name=name.decode(),
                paused=paused == b"1",
                scheduled=int(scheduled),
                waiting=int(waiting),
                ready=int(ready) + sum(reserved.values()),
                running=int(running),
                oldest_age=max(ages, default=None),
                reserved=reserved,
            )
        if any(view.waiting for view in views.values()):
            async for lane in self._lanes(None, ages=True):
                view = views.get(lane.queue)
                if view is not None and lane.oldest_age is not None:
                    view.oldest_age = max(view.oldest_age or 0.0, lane.oldest_age)
        return [views[name] for name in sorted(views)]

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[LaneView]:
        if queue is not None and lane is not None:
            return await self._lane(queue, lane)
        found = [
            (-view.waiting, view.queue, view.lane)
            async for view in self._lanes(queue, ages=False)
            if lane is None or view.lane == lane
        ]
        # Sent together: each is a script of its own, but nobody waits for a trip in between.
        chosen = heapq.nsmallest(limit, found)
        views = await asyncio.gather(*(self._lane(in_queue, name) for _, in_queue, name in chosen))
        return [view for some in views for view in some]

    async def workers(self) -> list[Worker]:
        answer = await self.run("workers")
        workers = []
        for n in range(0, len(answer), 4):
            name, _, rest = answer[n + 1].partition(b"\0")
            (started,) = struct.unpack_from("<d", rest)
            info, stats = _info(rest[8:]), _stats(answer[n + 2][_BEAT.size :])
            heartbeat, lease = _BEAT.unpack_from(answer[n + 2])
            workers.append(
                Worker(
                    id=info.id,
                    name=name.decode(),
                    host=info.host,
                    pid=info.pid,
                    version=info.version,
                    queues=info.queues,
                    slots=info.slots,
                    running=stats.running,
                    memory_bytes=stats.memory_bytes,
                    cpu_percent=stats.cpu_percent,
                    healthy=stats.healthy,
                    alive=answer[n + 3] == b"1",
                    started_at=at(started),
                    heartbeat_at=at(heartbeat),
                    lease_until=at(lease),
                    tasks=info.tasks,
                    schema_version=info.schema_version,
                )
            )
        workers.sort(key=lambda worker: worker.started_at, reverse=True)
        return sorted(workers, key=lambda worker: (not worker.alive, worker.name))

    async def _lane(self, queue: str, lane: str) -> list[LaneView]:
        name = f"{queue}\0{lane}"
        start, end = f"[{name}\0", f"({name}\1"
        views = _lane_views(await self.run("lanes", start, end, 1, _HOLDERS_AT_ONCE, 1))
        for view in views:
            # Of a very wide lane only the first thousand are from one moment.
            while len(view.holders) < view.used:
                page = ("BYLEX", "LIMIT", len(view.holders), _HOLDERS_AT_ONCE)
                members = await self._link.call("ZRANGE", self.key("places"), start, end, *page)
                if not members:
                    break
                view.holders += tuple(member.decode()[len(name) + 18 :] for member in members)
        return views

    async def _lanes(self, queue: str | None, *, ages: bool) -> AsyncIterator[LaneView]:
        """Every lane, or every lane of a queue, in bounded steps and without holders."""
        start, end = ("-", "+") if queue is None else (f"[{queue}\0", f"({queue}\1")
        while True:
            answer = await self.run("lanes", start, end, _LANES_AT_ONCE, 0, int(ages))
            views = _lane_views(answer)
            for view in views:
                yield view
            if len(views) < _LANES_AT_ONCE:
                return
            start = f"[{views[-1].queue}\0{views[-1].lane}\1"


def _lane_views(answer: list[bytes]) -> list[LaneView]:
    views = []
    for n in range(0, len(answer), 6):
        name, width, used, waiting, age, holders = answer[n : n + 6]
        queue, lane = name.decode().split("\0")
        views.append(
            LaneView(
                queue=queue,
                lane=lane,
                width=int(width),
                used=int(used),
                waiting=int(waiting),
                holders=tuple(holders.decode().split("\0")) if holders else (),
                oldest_age=float(age) if age else None,
            )
        )
    return views
