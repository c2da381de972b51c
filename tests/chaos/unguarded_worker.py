"""A worker with one of its guards switched off, which `CHAOS_GUARD` names: `--app` of a run.

The judge has to catch each of them.
"""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

import headrace
from chaos import program
from headrace.clock import Clock
from headrace.engine.base import Engine, LeaseKeeper
from headrace.engine.open import Migrate, open_engine
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange
from headrace.model.worker import Renewal, WorkerStats
from headrace.orchestrator.claiming.reconcile import Reconciler, Reconciliation
from headrace.orchestrator.durable.stages import Stages
from headrace.orchestrator.running.attempt import monotonic


class Unaware:
    """A lease keeper that never tells its worker that the lease is lost."""

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper

    def renew(self, stats: WorkerStats) -> Renewal:
        return msgspec.structs.replace(self._keeper.renew(stats), alive=True)

    def close(self) -> None:
        self._keeper.close()


def unaware(engine: Engine) -> None:
    """The worker goes on with jobs that are not its own any more."""
    keeper = engine.keeper
    replace(engine, keeper=lambda worker, lease: Unaware(keeper(worker, lease)))


def without_token(engine: Engine) -> None:
    """An outcome counts whoever it comes from, as if there were no token to check."""
    unaware(engine)
    exchange = engine.exchange

    async def overwrite(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        jobs = await engine.get([each.job_id for each in settlements]) if settlements else []
        tokens = {job.id: job.token for job in jobs}
        forged = [
            msgspec.structs.replace(each, token=tokens.get(each.job_id, each.token))
            for each in settlements
        ]
        return await exchange(forged, **claim)

    replace(engine, exchange=overwrite)


def without_refusal(engine: Engine) -> None:
    """Every outcome is taken, as if a job could end twice."""
    unaware(engine)
    exchange = engine.exchange

    async def take_all(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        return msgspec.structs.replace(await exchange(settlements, **claim), refused=())

    replace(engine, exchange=take_all)


def without_haste(engine: Engine) -> None:
    """After an outage the worker takes its time."""
    exchange = engine.exchange

    async def dawdle(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        try:
            return await exchange(settlements, **claim)
        except headrace.EngineError:
            await asyncio.sleep(20)
            raise

    replace(engine, exchange=dawdle)


def without_stages() -> None:
    """Stages are run again by every attempt."""

    async def run(self: Stages, name: str, call: functools.partial[Any], **_: Any) -> Any:
        return await call()

    replace(Stages, run=run)


def without_reconciling() -> None:
    """Every job that is leased to the worker looks forgotten, also those that it runs."""

    async def compare(self: Reconciler, worker_id: str, held: object) -> Reconciliation:
        self._reply_lost = False
        self.due_at = monotonic() + self.lease_seconds / 4
        return Reconciliation(await self.engine.claimed_by(worker_id))

    replace(Reconciler, compare=compare)


def without_stop() -> None:
    """The worker does not stop when it is told to."""

    async def stay(self: headrace.JobOrchestrator, **_: Any) -> None:
        await asyncio.sleep(60)

    replace(headrace.JobOrchestrator, stop=stay)


def without_family() -> None:
    """Something that the worker has started outlives it."""
    subprocess.Popen(["sleep", "60"], start_new_session=True)


ENGINE_GUARDS: dict[str, Callable[[Engine], None]] = {
    "token": without_token,
    "refusal": without_refusal,
    "haste": without_haste,
}
GUARDS: dict[str, Callable[[], None]] = {
    "stages": without_stages,
    "reconcile": without_reconciling,
    "stop": without_stop,
    "family": without_family,
}


def replace(target: object, **methods: Any) -> None:
    """Put other methods in place of a class's or an object's own."""
    for name, method in methods.items():
        getattr(target, name)  # a guard that was renamed would not be taken away
        setattr(target, name, method)


def open_unguarded(url: str, *, clock: Clock | None = None, migrate: Migrate = "auto") -> Engine:
    engine = open_engine(url, clock=clock, migrate=migrate)
    if guard in ENGINE_GUARDS:
        ENGINE_GUARDS[guard](engine)
    return engine


guard = os.environ.get("CHAOS_GUARD", "")
replace(program, open_engine=open_unguarded)
if guard in GUARDS:
    GUARDS[guard]()
app = program.make_app()
