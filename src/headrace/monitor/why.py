"""Why is it not running, and what does it wait for? In words, the most telling reason first."""

from __future__ import annotations

import shlex
from datetime import datetime

from headrace.breakers.store import open_breaker
from headrace.engine.base import Viewing
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent
from headrace.model.job import Job, JobFilter
from headrace.model.limits.rate import RateView
from headrace.model.sealed import key_of_args
from headrace.model.status import ACTIVE, State
from headrace.model.worker import Worker
from headrace.monitor.rates import RatesReader, with_holds
from headrace.monitor.words import close_command, plural

# Beyond this many, nobody needs to know exactly.
MOST = 1_000
# A time of day that is further away is told with its date.
NEAR_SECONDS = 12 * 3_600.0


async def why(engine: RatesReader, job: Job, now: float) -> list[str]:
    """The reasons, in words."""
    match job.state:
        case State.SCHEDULED:
            return [
                *[await _sentence(engine, job, each) for each in job.awaits],
                *(await _parked(engine, job, now) if job.parked else _scheduled(job, now)),
                *_expires(job),
            ]
        case State.RUNNING:
            asked = ["It was asked to stop."] if job.cancel_requested else []
            since = f" since {job.started_at:%H:%M:%S} UTC" if job.started_at else ""
            stage = f", in stage {job.stage!r}" if job.stage else ""
            return [f"It is running on worker {job.worker!r}{since}{stage}.", *asked]
        case State.WAITING | State.READY:
            return [*await _pending(engine, job, now), *_expires(job)]
        case _:
            ended = f" at {job.completed_at:%Y-%m-%d %H:%M:%S} UTC" if job.completed_at else ""
            error = f": {job.error}" if job.error else ""
            return [
                f"It is finished: {job.status}{ended}{error}.",
                f"Run it again with: headrace jobs retry {job.id}",
            ]


def _scheduled(job: Job, now: float) -> list[str]:
    seconds = job.run_at.timestamp() - now
    when = f"in {seconds:.0f} s" if seconds >= 1 else "now"
    due = "goes on without it" if job.awaits else "is due"
    reasons = [f"It {due} at {job.run_at:%Y-%m-%d %H:%M:%S} UTC ({when})."]
    if job.attempt:
        reasons.append(
            f"Attempt {job.attempt} of {job.max_attempts} failed: {job.error or 'no reason kept'}."
        )
    if seconds < -5:
        reasons.append("Its time has passed: no worker is running that would move it on.")
    return reasons


async def _stopped(engine: RatesReader, job: Job) -> list[str]:
    """What the breaker of its lane says, if that is open."""
    found = None if job.lane is None else await open_breaker(engine, (job.queue, job.lane))
    if found is None:
        return []
    view = found.view
    told = f"The circuit breaker of lane {view.lane!r} is open since {view.since:%H:%M:%S} UTC"
    then = (
        f"Job {view.trial} is tried now"
        if view.phase == "trial"
        else f"One job is tried at {view.until:%H:%M:%S} UTC"
    )
    return [f"{told}: {view.cause}. {then}. Close it with: {close_command(view)}"]


async def _parked(engine: RatesReader, job: Job, now: float) -> list[str]:
    """When a job may start that waits for the rate of its lane, and what it waits for."""
    paused = await _paused(engine, job)
    if stopped := await _stopped(engine, job):
        return [*stopped, *paused]
    starts = f"It may start at {_clock(job.run_at, now)}"
    for key in await _keys(engine, job.queue, job.lane):
        if key.held_until is not None:
            return [*paused, f"{starts}: lane {key.lane!r} is held {_held(key, now)}"]
        if key.rate is not None:
            by = ", set by an operator" if key.by_operator else ""
            return [*paused, f"{starts}: {key.rate.words} for {key.lane}{by}."]
    return [*paused, f"{starts}."]


async def _paused(engine: RatesReader, job: Job) -> list[str]:
    return [
        f"Queue {job.queue!r} is paused. Resume it with: headrace queues resume {job.queue}"
        for queue in await engine.queues()
        if queue.name == job.queue and queue.paused
    ]


async def _closed(engine: RatesReader, job: Job, now: float) -> list[str]:
    """What the rates of its queue and its lane say, if they let nothing start now."""
    keys = await _keys(engine, job.queue, "")
    if job.lane is not None:
        keys += await _keys(engine, job.queue, job.lane)
    reasons = []
    for key in keys:
        name = f"Lane {key.lane!r}" if key.lane else f"Queue {key.queue!r}"
        if key.held_until is not None:
            reasons.append(f"{name} is held {_held(key, now)}")
        elif key.next_at is not None and key.rate is not None:
            starts = _clock(key.next_at, now)
            reasons.append(f"{name} may start the next job at {starts}: {key.rate.words}.")
    return reasons


async def _keys(engine: RatesReader, queue: str, lane: str | None) -> list[RateView]:
    return await with_holds(engine, await engine.rates(queue=queue, lane=lane))


def _held(key: RateView, now: float) -> str:
    """Until when, by whom and why, and how to end it."""
    until = "" if key.held_until is None else f"until {_clock(key.held_until, now)}"
    by = f" by {key.held_by}" if key.held_by else ""
    why = f": {key.held_reason}" if key.held_reason else ""
    lane = f" --lane {shlex.quote(key.lane)}" if key.lane else ""
    return f"{until}{by}{why}. End that with: headrace rates release {key.queue}{lane}"


def _clock(moment: datetime, now: float) -> str:
    """A time of day, with its date if that is not near."""
    far = abs(moment.timestamp() - now) > NEAR_SECONDS
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if far else f"{moment:%H:%M:%S} UTC"


def _expires(job: Job) -> list[str]:
    if job.expires_at is None:
        return []
    return [f"It is cancelled if it has not started by {job.expires_at:%Y-%m-%d %H:%M:%S} UTC."]


async def _pending(engine: RatesReader, job: Job, now: float) -> list[str]:
    reasons = await _stopped(engine, job)
    reasons += await _paused(engine, job)
    reasons += await _closed(engine, job, now)
    serving = [worker for worker in await engine.workers() if serves(worker, job.queue)]
    if not serving:
        reasons.append(
            f"No worker serves queue {job.queue!r}. "
            f"Start one with: headrace worker --app … --queues {job.queue}"
        )
    elif not any(knows(worker, job.task) for worker in serving):
        reasons.append(_no_one_can_run(job))
    if job.state is State.WAITING and job.lane is not None:
        for lane in await engine.lanes(queue=job.queue, lane=job.lane):
            holders = ", ".join(lane.holders[:3]) + (" …" if len(lane.holders) > 3 else "")
            reasons.append(
                f"Lane {lane.lane!r} (width {lane.width}) is held by {holders}; "
                f"{plural(lane.waiting, 'job')} {'waits' if lane.waiting == 1 else 'wait'} for it."
            )
    if not reasons:
        serving = [worker for worker in serving if knows(worker, job.task)]
        free = sum(max(worker.slots - worker.running, 0) for worker in serving)
        slots = sum(worker.slots for worker in serving)
        reasons.append(
            f"It may run now: {plural(len(serving), 'worker')} for queue {job.queue!r}, with "
            f"{free} of {slots} slots free at the last heartbeat."
        )
    return reasons


def _no_one_can_run(job: Job) -> str:
    key = key_of_args(job.args_json)
    if key is not None:
        return (
            f"No worker that serves queue {job.queue!r} can run it: its arguments are sealed with "
            f"key {key!r}. Start one that knows task {job.task!r} and has this key."
        )
    return (
        f"No worker that serves queue {job.queue!r} knows task {job.task!r}. "
        "Start one whose --app registers it, or correct the task's name."
    )


def knows(worker: Worker, task: str) -> bool:
    """Whether a worker has this task."""
    return worker.tasks is None or task in worker.tasks


def serves(worker: Worker, queue: str) -> bool:
    """Whether a worker lives and takes jobs of this queue."""
    return worker.alive and (not worker.queues or queue in worker.queues)


async def _sentence(engine: Viewing, job: Job, awaited: Awaited) -> str:
    match awaited:
        case AwaitedEvent(name=name):
            return (
                f"It waits for event {name!r}. "
                f"Deliver it with: headrace jobs signal {job.id} {name!r}"
            )
        case AwaitedChildren(group=group, left=left):
            unfinished = JobFilter(statuses=tuple(sorted(ACTIVE)), parent=job.id, group=group)
            page = await engine.list_jobs(unfinished, limit=MOST)
            count = f"{len(page.jobs)}" if page.cursor is None else f"more than {MOST}"
            noun = "child" if count == "1" else "children"
            named = "" if group is None else f" of group {group!r}"
            until = f", until {left} are left" if left else ""
            return f"It waits for {count} {noun}{named}{until}."


def waits_for(awaits: tuple[Awaited, ...]) -> str:
    """E.g. "event 'approved' or children of group 'pages'". Empty if it waits for nothing."""
    return " or ".join(map(_one, awaits))


def _one(awaited: Awaited) -> str:
    match awaited:
        case AwaitedEvent(name=name):
            return f"event {name!r}"
        case AwaitedChildren(group=group, left=left):
            which = "its children" if group is None else f"children of group {group!r}"
            return which if not left else f"{which}, until {left} are left"
