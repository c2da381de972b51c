"""Whether a worker takes jobs, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.orchestrator.running.attempt import monotonic

if TYPE_CHECKING:
    from headrace.orchestrator.worker_parts import WorkerRuntime


def is_healthy(runtime: WorkerRuntime) -> bool:
    """Return whether the engine is reached and the lease is renewed."""
    lapsed = monotonic() - runtime.lease_thread.renewed_at > runtime.renewal_seconds
    return (
        runtime.dispatcher.healthy
        and runtime.lease_thread.alive
        and not (lapsed or runtime.lease_thread.hung)
    )


def trouble_of(runtime: WorkerRuntime) -> str | None:
    """Return why it takes no jobs now, in words; None if it does."""
    if (trouble := runtime.dispatcher.trouble) is not None:
        return trouble
    if runtime.lease_thread.hung:
        return "a handler has blocked the event loop for too long"
    if not is_healthy(runtime):
        return f"its lease of {runtime.settings.lease_seconds:g} s could not be renewed in time"
    if runtime.dispatcher.worker_id is None:
        return "its lease was lost, and it has not registered with the engine again yet"
    return None
