"""The program of a run, with two leaks: memory of the worker, and a record for each job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from soak.program import app

import headrace.app_lifecycle as opening_module
from headrace.engine.base import Engine
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange

__all__ = ["app"]

LOST_BYTES = 200_000
lost: list[bytes] = []


def leaking(engine: Engine) -> Engine:
    """Every settled job costs memory that is never given back, and a record that nobody deletes."""
    exchange = engine.exchange

    async def exchange_and_leak(settlements: Sequence[Settlement], **claim: Any) -> Exchange:
        for each in settlements:
            lost.append(b"x" * LOST_BYTES)
            await engine.record_put("leak", f"{each.job_id} {each.token}", b"{}")
        return await exchange(settlements, **claim)

    setattr(engine, "exchange", exchange_and_leak)  # noqa: B010
    return engine


_open: Callable[..., Engine] = getattr(opening_module, "open_engine")  # noqa: B009


def open_leaking(url: str, **options: Any) -> Engine:
    return leaking(_open(url, **options))


# Commands open the engine of the App anew, with their own settings.
setattr(opening_module, "open_engine", open_leaking)  # noqa: B010
