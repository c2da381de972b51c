"""Running until no job is left, for tests and batches."""

from __future__ import annotations

from headrace.errors import WorkerUnhealthy
from headrace.model.views import QueueView
from headrace.orchestrator.claiming.dispatcher import Dispatcher
from headrace.orchestrator.worker_parts import WorkerRuntime

BATCH = 500
# Other workers may be running jobs of the same queues; no signal tells when they are done.
POLL_SECONDS = 0.05


async def run_until_idle(runtime: WorkerRuntime) -> None:
    """Return when nothing that this worker serves is ready or running, but for queues that are
    paused or held, or whose rate is used up. Chunks do not wait for jobs that may come.
    """
    chunks = runtime.dispatcher.chunks
    chunks.eager = True
    try:
        await _run(runtime)
    finally:
        chunks.eager = False


async def _run(runtime: WorkerRuntime) -> None:
    dispatcher = runtime.dispatcher
    while True:
        while (await runtime.engine.promote_due(BATCH)).moved:
            pass
        dispatcher.on_work_signal()
        await _next_round(dispatcher)
        # Not before a claim has said so: jobs of a caller's transaction are not ready until a claim
        # has let them into their lanes.
        while not (dispatcher.idle and (dispatcher.queues_empty or dispatcher.draining)):
            await _next_round(dispatcher)
        claimed = runtime.telemetry.claimed
        # Another job may have waited for the last of them.
        await runtime.family_updates.flush()
        # The worker goes on during the check: a job claimed meanwhile may have made others ready.
        if not await _work_left(runtime) and claimed == runtime.telemetry.claimed:
            return


async def _next_round(dispatcher: Dispatcher) -> None:
    """Wait for a round. Raises if none will come: a dispatcher that gave up is idle as well."""
    await dispatcher.next_round(POLL_SECONDS)
    if not dispatcher.running:
        why = f": {dispatcher.last_error}" if dispatcher.failures else ""
        raise WorkerUnhealthy(f"the worker stopped before everything was done{why}")


async def _work_left(runtime: WorkerRuntime) -> bool:
    known = set(runtime.host.task_names())
    for view in await runtime.engine.queues():
        if runtime.queues and view.name not in runtime.queues:
            continue
        if view.running:
            return True
        if not view.paused and _ready(view, known) and not await _closed(runtime, view.name):
            return True
    return False


async def _closed(runtime: WorkerRuntime, queue: str) -> bool:
    """Return whether a queue is held, or its rate is used up: then nothing of it starts now."""
    return any(
        each.held_until is not None or each.next_at is not None
        for each in await runtime.engine.rates(queue=queue, lane="")
    )


def _ready(view: QueueView, known: set[str]) -> int:
    """Return how many ready jobs this worker knows. The others wait for workers that do."""
    return view.ready - sum(n for task, n in view.reserved.items() if task not in known)
