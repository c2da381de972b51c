"""`make bench`: measure, compare, write the table."""

from __future__ import annotations

import argparse
import sys
import traceback

from bench.contenders import CONTENDERS
from bench.driver import Bench, Figures
from bench.report import write


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", choices=["sqlite", "postgres", "redis"], help="one engine")
    parser.add_argument("--contender", default="", help="only contenders whose name contains this")
    parser.add_argument("--runs", type=int, default=2, help="best of so many runs")
    parser.add_argument("--quick", action="store_true", help="a tenth of the jobs")
    parser.add_argument("--keep", action="store_true", help="write docs/performance.md")
    options = parser.parse_args()
    results: list[Figures] = []
    failed = 0
    for contender in CONTENDERS:
        if options.only and contender.engine != options.only:
            continue
        if options.contender.lower() not in contender.name.lower():
            continue
        best: Figures | None = None
        for run in range(options.runs):
            label = f"{contender.engine:9} {contender.name:28} run {run + 1} of {options.runs}"
            print(label, end=" ", flush=True, file=sys.stderr)
            bench = Bench(contender.engine, quick=options.quick)
            try:
                figures = bench.measure(contender)
            except Exception:
                failed += 1
                print("failed", file=sys.stderr)
                traceback.print_exc(limit=1)
                break
            finally:
                bench.close()
            best = figures if best is None else best.better(figures)
            print(f"drain {figures.drain_one or 0:,.0f}/s", file=sys.stderr)
        if best is not None:
            results.append(best)
    write(results, keep=options.keep)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
