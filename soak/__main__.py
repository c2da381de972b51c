"""`make soak`: load real processes for a long time, and find what grows with the jobs."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from chaos.stores import ENGINES

from soak.driver import Result, run
from soak.options import Options
from soak.report import Report
from soak.screen import Screen, summary


def main() -> int:
    options, asked = arguments()
    screen = Screen(options)
    result = asyncio.run(until_signal(options, screen))
    screen.done()
    print(summary(result))
    report = Report.of(result)
    if asked.json:
        report.write(Path(asked.json))
    if result.stopped:
        return 130
    if asked.keep:
        report.keep()
    return 1 if result.growing or result.deaths else 0


async def until_signal(options: Options, screen: Screen) -> Result:
    """Run to the end, or until told to stop: then what was measured is judged."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    return await run(options, screen.show, stopping)


def arguments() -> tuple[Options, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="sqlite")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rate", type=float, default=Options.rate, help="requests in a second (%(default)g)"
    )
    parser.add_argument("--json", metavar="FILE", help="write everything that was measured")
    parser.add_argument("--keep", action="store_true", help="write the results into docs/")
    asked = parser.parse_args()
    for name in ("minutes", "rate"):
        if not getattr(asked, name) > 0:
            parser.error(f"--{name} must be more than 0, got {getattr(asked, name):g}")
    options = Options(
        engine=asked.engine, seconds=asked.minutes * 60, seed=asked.seed, rate=asked.rate
    )
    return options, asked


if __name__ == "__main__":
    sys.exit(main())
