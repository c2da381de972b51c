"""What the one who runs it sees: a line while it goes on, a table at the end. 80 columns."""

from __future__ import annotations

import sys
import time

from chaos.driver import Result
from chaos.figures import by_fault, seconds
from chaos.options import Options

WIDTH = 80
SHOWN = 12


class Line:
    """One line that is written over itself, or now and then a new one where nobody looks."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.live = sys.stderr.isatty()
        self._said = self.began

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def write(self, line: str) -> None:
        """Where the run is."""
        if self.live:
            print(f"\r{line[: WIDTH - 1]:{WIDTH - 1}}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() > self._said + 30:
            self._said = time.monotonic()
            print(line[:WIDTH], file=sys.stderr, flush=True)

    def done(self) -> None:
        """Leave the line."""
        if self.live:
            print(file=sys.stderr)


class Screen(Line):
    """Tells where a run is."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options

    def show(self, result: Result, doing: str) -> None:
        """Where the run is."""
        progress = result.progress
        self.write(
            f"{clock(self.passed)}/{clock(self.options.seconds)} {self.options.engine} "
            f"faults {len(result.faults)}  jobs {progress.acknowledged:,} "
            f"done {progress.completed:,}  {doing}"
        )


def clock(value: float) -> str:
    """Minutes and seconds."""
    return f"{int(value) // 60}:{int(value) % 60:02}"


def summary(result: Result) -> str:
    """Faults by kind with recovery, jobs, and every violation with what repeats it."""
    options, judgement = result.options, result.judgement
    lines = ["", f"{'fault':28} {'count':>6} {'first job p50':>14} {'p99':>7} {'all back p99':>13}"]
    lines += [
        f"{row.name:28} {row.count:>6} {seconds(row.first_p50):>14} "
        f"{seconds(row.first_p99):>7} {seconds(row.last_p99):>13}"
        for row in by_fault(result)
    ]
    lines.append(f"{'all':28} {len(result.faults):>6}")
    lines.append("")
    lines += [f"{name:28} {count:>10,}" for name, count in judgement.counts.items()]
    quiet = (
        "not within the limit" if result.quiet_seconds is None else seconds(result.quiet_seconds)
    )
    lines.append(f"{'came to rest':28} {quiet:>10}")
    for what, found in result.allowed.items():
        told = f"{found['times']} times, {found['lost']:,} lost, {found['most']:,} at most"
        lines.append(f"{what:28} {told}")
    if result.missed:
        lines.append(f"{'faults that could not be':28} {len(result.missed):>10,}")
    if result.left_over:
        lines.append(f"{'processes left behind':28} {len(result.left_over):>10,}")
    lines.append(f"{'violations':28} {len(judgement.violations):>10,}")
    for rule, count in judgement.by_rule.most_common():
        lines.append(f"  {rule}: {count}")
        broken = [each for each in judgement.violations if each.rule == rule]
        for each in broken[:SHOWN]:
            told = " ".join(f"{each.job} {each.detail}".split())
            lines.append(f"    {told[:200]}")
    if judgement.violations:
        faults = f" ARGS='--faults \"{','.join(options.faults)}\"'" if options.faults else ""
        lines.append(
            f"repeat: make chaos ENGINE={options.engine} MINUTES={options.seconds / 60:g} "
            f"SEED={options.seed}{faults}"
        )
    return "\n".join(lines)
