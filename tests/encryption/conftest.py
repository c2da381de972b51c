"""Apps with keys on each engine, servers whose files can be searched, and workers."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import headrace
from tests.orchestrator.conftest import Worker, clock, until, worker

__all__ = ["Worker", "clock", "until", "worker"]

Make = Callable[..., headrace.App]


def new_key() -> str:
    """Return a key as it stands in a setting."""
    return base64.b64encode(os.urandom(32)).decode()


K1, K2 = new_key(), new_key()
BOTH = f"k2:{K2},k1:{K1}"


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes Apps with the task `pay`, and closes them."""
    made: list[headrace.App] = []

    def make(url: str, keys: str | None = f"k1:{K1}", **settings: Any) -> headrace.App:
        settings.setdefault("artifacts", str(tmp_path / "artifacts"))
        settings.setdefault("lease_seconds", 5.0)
        app = headrace.App(url, encryption_keys=keys, **settings)
        made.append(app)

        @app.task("pay", encrypt=True)
        async def pay(ctx: headrace.Context, card: str, amount: int = 1) -> dict[str, Any]:
            return {"card": card, "amount": amount}

        @app.task("plain")
        async def plain(text: str = "") -> str:
            return text

        return app

    yield make
    for app in made:
        await app.close()
