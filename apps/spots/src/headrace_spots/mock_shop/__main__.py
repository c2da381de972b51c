"""Serve the shops that do not exist: `python -m headrace_spots.mock_shop --port 8080`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from headrace_spots.mock_shop.plans import DEMO
from headrace_spots.mock_shop.server import MockShop


async def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m headrace_spots.mock_shop")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--busy-every", type=int, default=0, help="answer each Nth request 429")
    chosen = parser.parse_args()
    async with MockShop(port=chosen.port, busy_every=chosen.busy_every) as shop:
        for plan in DEMO:
            print(shop.url(f"/{plan.slug}/"), plan.name, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
