"""Running until nothing is left to do, for tests and batches."""

from __future__ import annotations

from headrace.errors import WorkerUnhealthy
from headrace.model.views import QueueView
from headrace.orchestrator.claiming.dispatcher import Dispatcher
from headrace.orchestrator.runtime import WorkerRuntime

BATCH = 500
# Others may be running jobs of the same queues; there is no signal for when they are done.
LOOK_AGAIN = 0.05


async def run_until_idle(runtime: WorkerRuntime) -> None:
    """Return when nothing that this worker serves is ready or running."""
    dispatcher = runtime.dispatcher
    while True:
        while (await runtime.engine.due(BATCH)).moved:
            pass
        dispatcher.on_work_signal()
        await _next_round(dispatcher)
        while not dispatcher.idle:
            await _next_round(dispatcher)
        claimed = runtime.telemetry.claimed
        # The last of them may have been what another waits for.
        await runtime.family_updates.flush()
        # While we look the worker goes on: what it took meanwhile may have left more to do.
        if not await _work_left(runtime) and claimed == runtime.telemetry.claimed:
            return


async def _next_round(dispatcher: Dispatcher) -> None:
    """Raises if none will come: one that gave up has nothing in hand, and is not done."""
    await dispatcher.next_round(LOOK_AGAIN)
    if not dispatcher.running:
        why = f": {dispatcher.last_error}" if dispatcher.failures else ""
        raise WorkerUnhealthy(f"the worker stopped before everything was done{why}")


async def _work_left(runtime: WorkerRuntime) -> bool:
    known = set(runtime.host.task_names())
    return any(
        view.running or (not view.paused and _ready(view, known))
        for view in await runtime.engine.queues()
        if not runtime.queues or view.name in runtime.queues
    )


def _ready(view: QueueView, known: set[str]) -> int:
    """How many jobs are ready that this worker knows. Others wait for one that knows them."""
    return view.ready - sum(n for task, n in view.reserved.items() if task not in known)
