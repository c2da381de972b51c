"""`make chaos`: break everything around Headrace by a seed, and judge what it did."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from chaos.driver import run
from chaos.faults.registry import FAULTS
from chaos.options import Options
from chaos.report import Report
from chaos.screen import Screen, summary
from chaos.stores import ENGINES


def main() -> int:
    options, asked = arguments()
    # Whatever was started must end also when a run is told to.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    screen = Screen(options)
    try:
        result = asyncio.run(run(options, screen.show))
    except KeyboardInterrupt:
        screen.done()
        print("stopped; nothing was judged", file=sys.stderr)
        return 130
    screen.done()
    print(summary(result))
    report = Report.of(result)
    if asked.json:
        report.write(Path(asked.json))
    if asked.keep:
        Report.kept().merged(report).keep()
    return 0 if not result.judgement.violations else 1


def arguments() -> tuple[Options, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="sqlite")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--faults", default="", help=f"only these, with commas between: {', '.join(FAULTS)}"
    )
    parser.add_argument(
        "--variant",
        choices=["", "everysec"],
        default="",
        help="everysec: measure what Redis loses where its settings allow it",
    )
    parser.add_argument("--json", metavar="FILE", help="write everything that was found")
    parser.add_argument("--keep", action="store_true", help="write the results into docs/")
    asked = parser.parse_args()
    faults = tuple(name.strip() for name in asked.faults.split(",") if name.strip())
    for name in faults:
        if name not in FAULTS:
            parser.error(f"unknown fault {name!r}; known: {', '.join(FAULTS)}")
    if asked.variant and asked.engine != "redis":
        parser.error(f"--variant {asked.variant} is one of redis, not of {asked.engine}")
    options = Options(
        engine=asked.engine,
        seconds=asked.minutes * 60,
        seed=asked.seed,
        faults=faults,
        variant=asked.variant,
        burst=1 if asked.variant else Options.burst,
    )
    return options, asked


if __name__ == "__main__":
    sys.exit(main())
