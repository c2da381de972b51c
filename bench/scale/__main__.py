"""`python -m bench.scale`: simulate a fleet with the parameters that were measured last.

`--measure` measures them first (a minute or two), `--stores` compares one store with two.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from bench.plots import lines
from bench.scale.measure import ENGINES, parts, stores
from bench.scale.model import Fleet, Hour, simulate

KEPT = Path(__file__).with_name("parameters.json")


def main() -> None:
    options = arguments()
    if options.measure:
        measured = {engine: asyncio.run(parts(engine, options.calls)) for engine in ENGINES}
        KEPT.write_text(json.dumps(measured, indent=2) + "\n")
    if options.stores:
        for engine in ENGINES:
            for count in (1, 2):
                print(json.dumps(asyncio.run(stores(engine, count, options.jobs))))
        return
    cost = json.loads(KEPT.read_text())
    print(parameters(cost))
    curves: dict[str, list[tuple[float, float]]] = {}
    for engine in ENGINES:
        for count in (1, 2):
            cores = options.cores if engine == "postgres" else 1
            fleet = Fleet(
                workers=options.workers, slots=options.slots, jobs_a_day=options.jobs_a_day,
                seconds_a_job=options.seconds, stores=count, cores=cores,
            )  # fmt: skip
            day = simulate(fleet, cost[engine], seconds=options.simulate)
            name = f"{engine}, {count} store{'s' if count > 1 else ''}"
            curves[name] = [(each.hour, each.cores_used) for each in day]
            print(table(name, fleet, day))
    if options.plot is not None:
        title = f"Cores used in each store, {options.workers:,} workers, by hour"
        options.plot.write_text(lines(title, curves, across="hour of the day", up="cores"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure the parameters anew")
    parser.add_argument("--stores", action="store_true", help="compare one store with two")
    parser.add_argument("--calls", type=int, default=2_000, help="how many calls to measure")
    parser.add_argument("--jobs", type=int, default=20_000, help="how many jobs for --stores")
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--jobs-a-day", type=int, default=100_000_000)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a job runs")
    parser.add_argument("--cores", type=int, default=16, help="of a PostgreSQL server")
    parser.add_argument("--simulate", type=float, default=2.0, help="seconds of each hour")
    parser.add_argument("--plot", type=Path, help="where to write the plot")
    return parser.parse_args()


def parameters(cost: dict[str, dict[str, float]]) -> str:
    """The measured parameters as a table."""
    rows = [
        f"| {name} | " + " | ".join(f"{cost[engine][name]:.3f} ms" for engine in ENGINES) + " |"
        for name in cost[ENGINES[0]]
    ]
    head = f"| processor time of the server for one | {' | '.join(ENGINES)} |"
    return "\n".join([head, "|---|---|---|", *rows, ""])


def table(name: str, fleet: Fleet, day: list[Hour]) -> str:
    """The night, the mean and the peak of one day."""
    ordered = sorted(day, key=lambda each: each.rate)
    rows = [
        f"| {name}: {label} | {each.rate:,.0f} | {each.busy_slots:,.0f} | "
        f"{each.empty_exchanges:,.0f} | {each.cores_used:.1f} of {fleet.cores} | "
        + ("too much | too much |" if each.overloaded
           else f"{each.wait_median * 1_000:.2f} ms | {each.wait_99 * 1_000:.2f} ms |")
        for label, each in (("night", ordered[0]), ("middle", ordered[12]), ("peak", ordered[-1]))
    ]  # fmt: skip
    head = "| store | jobs/s | busy slots | looks/s | cores | call, median | call, 99 % |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *rows, ""])


if __name__ == "__main__":
    main()
