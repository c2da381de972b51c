"""`make bench`: measure, compare, report. Without --scenario it is the table of contenders."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback

from tests.support.servers import postgres_binaries

from bench.arena import ENGINES, Arena
from bench.contenders import CONTENDERS, Contender
from bench.driver import STEPS, Driver, steps_of
from bench.environments import clean, tidy
from bench.figures import Figures, Finding
from bench.report import Report
from bench.scenarios.registry import GROUPS, SCENARIOS
from bench.scenarios.stage import Stage

TABLE = "table"
QUICK = 4
QUICK_SCENARIOS = 10


def main() -> int:
    options = arguments()
    # Servers that were started must end also when a run is told to.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.clean:
        clean()
        return 0
    tidy(CONTENDERS)
    asked = [name for each in options.scenario or [TABLE] for name in GROUPS.get(each, (each,))]
    names = [TABLE, *SCENARIOS] if "all" in asked else asked
    report = Report()
    failed = False
    for engine in [options.only] if options.only else ENGINES:
        if TABLE in names:
            failed |= not table(engine, options, report)
        if any(name in SCENARIOS for name in names):
            failed |= not scenarios(engine, names, options, report)
    report.print()
    if options.keep:
        Report.kept().merged(report).keep()
    return 1 if failed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", choices=ENGINES, help="one engine")
    parser.add_argument(
        "--scenario",
        action="append",
        choices=[TABLE, *SCENARIOS, *GROUPS, "all"],
        help="what to measure; may be given several times",
    )
    parser.add_argument(
        "--contender",
        action="append",
        default=[],
        help="only contenders whose name contains this; may be given several times",
    )
    parser.add_argument(
        "--step", action="append", choices=STEPS, help="one step; may be given several times"
    )
    parser.add_argument("--runs", type=int, help="best of so many runs (table; default 2)")
    parser.add_argument("--median", action="store_true", help="the median of the runs instead")
    parser.add_argument(
        "--server",
        choices=postgres_binaries(),
        help="which PostgreSQL of this machine; default: that of the wheel",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1_000_000,
        help="how many wait, or have finished, in the scenario million",
    )
    parser.add_argument("--quick", action="store_true", help="fewer jobs, one run")
    parser.add_argument("--long", action="store_true", help="hold the transaction for 10 minutes")
    parser.add_argument("--keep", action="store_true", help="write the results into docs/")
    parser.add_argument("--clean", action="store_true", help="remove the peers' environments")
    options = parser.parse_args()
    if options.keep and (options.contender or options.step):
        parser.error("--keep needs all of the table: ratios are between figures of one run")
    if options.keep and options.server:
        parser.error("--keep is for the server that everybody has")
    options.runs = options.runs or (1 if options.quick else 2)
    return options


def table(engine: str, options: argparse.Namespace, report: Report) -> bool:
    """Every contender on one engine. False if Headrace or the bare limit failed."""
    wanted = [part.lower() for part in options.contender] or [""]
    contenders = [
        each
        for each in CONTENDERS
        if each.engine == engine and any(part in each.name.lower() for part in wanted)
    ]
    taken: dict[Contender, list[Figures]] = {contender: [] for contender in contenders}
    driver = Driver(Arena(engine, options.server), scale=QUICK if options.quick else 1)
    try:
        # Step by step and in turns, so that what is compared is measured within minutes: a machine
        # may be busy for longer than that.
        for step in options.step or STEPS:
            for run in range(options.runs):
                for contender in contenders:
                    if step in steps_of(contender):
                        label = f"{step} {run + 1} of {options.runs}"
                        taken[contender].append(measured(driver, contender, step, label))
    finally:
        driver.arena.close()
    shown = {
        contender: Figures.over(runs, middle=options.median)
        for contender, runs in taken.items()
        if runs
    }
    report.results += shown.values()
    report.note_run(engine, TABLE)
    return all(each.peer or not figures.failures for each, figures in shown.items())


def measured(driver: Driver, contender: Contender, step: str, label: str) -> Figures:
    """One step of one contender, once."""
    say(f"{contender.engine:9} {contender.name:28} {label:24} ", end="")
    began = time.monotonic()
    figures = driver.measure(contender, step)
    value = figures.latency_p50 if step == "latency" else getattr(figures, step)
    shown = "failed" if value is None else f"{value:,.2f} ms" if value < 50 else f"{value:,.0f}/s"
    say(f"{shown}, took {time.monotonic() - began:.0f} s")
    for reason in figures.failures.values():
        say(f"          failed: {reason}")
    return figures


def scenarios(engine: str, names: list[str], options: argparse.Namespace, report: Report) -> bool:
    """The scenarios that were asked for on one engine. False if one failed."""
    well = True
    scale = QUICK_SCENARIOS if options.quick else 1
    stage = Stage(
        engine, scale=scale, long=options.long, server=options.server, backlog=options.jobs
    )
    try:
        for name, scenario in SCENARIOS.items():
            if name not in names:
                continue
            try:
                for finding in scenario(stage):
                    finding.part = name
                    report.findings.append(finding)
                    say(told(finding))
            except Exception:  # the other scenarios are still worth having
                well = False
                say(f"{engine:9} {name} failed")
                traceback.print_exc(limit=3)
            report.note_run(engine, name)
    finally:
        stage.close()
    return well


def told(finding: Finding) -> str:
    """A finding as progress."""
    ratio = "" if finding.ratio is None else f" ({finding.ratio:.0%})"
    value = 0.0 if finding.value is None else finding.value
    return (
        f"{finding.engine:9} {finding.scenario:9} {finding.case:45} "
        f"{value:,.1f} {finding.unit}{ratio}"
    )


def say(text: str, end: str = "\n") -> None:
    """Progress, apart from the answer on standard output."""
    print(text, end=end, flush=True, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
