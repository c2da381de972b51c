"""What a server does for alerts: it stores declared rules, evaluates, and delivers.

Delivering needs no worker: the server serves the queue of alerts by a small orchestrator of its
own, over the connections that the server has, and one more for the lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import re
import secrets
import socket

from headrace.alerts.declared_rules import DeclaredAlerts
from headrace.alerts.evaluate import Evaluator
from headrace.errors import MissingDriver
from headrace.loops.loop import Loop, around
from headrace.orchestrator import JobOrchestrator
from headrace.publishing.tasks import ALERTS, Publishing
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.alerts")

EVERY = 5.0
# Without rules it is only looked whether there are any.
EVERY_WITHOUT = 15.0
SLOTS = 4
# What most receivers are sent by takes long to import.
SENDER = "headrace.publishing.chat"
GRACE = 5.0


class AlertLoop(Loop):
    """Evaluates the rules of an App's store, and delivers what is to be told."""

    name = "alerts"

    def __init__(self, host: AppLike, publishing: Publishing, declared: DeclaredAlerts) -> None:
        super().__init__()
        self._host = host
        self._declared = declared
        self._stored = False
        self.evaluator = Evaluator(host, publishing)
        self.orchestrator = JobOrchestrator(host, queues=[ALERTS], max_workers=SLOTS, name=_name())

    async def tick(self) -> float:
        """Evaluate once."""
        await self._host.open()
        if not self._stored:
            await self._declared.store()
            self._stored = True
        if not await self.evaluator.round():
            return around(EVERY_WITHOUT)
        await self.deliver()
        return around(EVERY)

    async def deliver(self) -> None:
        """Begin to deliver, if that has not begun, or has given up."""
        if not self.orchestrator.running or self.orchestrator.failure is not None:
            # Here and now, and not on the event loop of the server when the first alert is sent.
            with contextlib.suppress(MissingDriver):
                await asyncio.to_thread(importlib.import_module, SENDER)
            await self.orchestrator.start()

    async def stop(self, patience: float = 5.0) -> None:
        """End after the round that is under way, and release what is not delivered yet."""
        await super().stop(patience)
        await self.orchestrator.stop(grace=GRACE)


def _name() -> str:
    # Not that of the settings: `headrace up` has a worker of that name.
    host = re.sub(r"[^A-Za-z0-9_.:-]", "-", socket.gethostname()).lstrip(".:-") or "host"
    return f"{host[:80]}-{os.getpid()}-alerts-{secrets.token_hex(3)}"
