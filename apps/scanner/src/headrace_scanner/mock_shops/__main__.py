"""Serve the shops that do not exist: `python -m headrace_scanner.mock_shops --port 8080`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from headrace_scanner.mock_shops.server import PATHS, MockShops


async def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m headrace_scanner.mock_shops")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--slow", type=float, default=0.2, help="seconds that each answer takes")
    chosen = parser.parse_args()
    async with MockShops(port=chosen.port, slow_seconds=chosen.slow, drift=True) as shops:
        print(f"HEADRACE_SCANNER_SHOPS={shops.url}", flush=True)
        for name in PATHS:
            print(shops.page(name, "1001"), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
