"""What the one who runs it sees: a line while it goes on, a table at the end. 80 columns."""

from __future__ import annotations

import textwrap

from chaos.screen import WIDTH, Line, clock

from soak.driver import Result
from soak.judge import Judgement
from soak.options import Options

HEADS = f"{'':34} {'first':>8} {'last':>8} {'/1,000':>9} {'left':>6} verdict"
"""First and last of the judged half, per 1,000 jobs, and what is left a day later."""


class Screen(Line):
    """Tells where a run is."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options

    def show(self, result: Result, doing: str) -> None:
        """Where the run is."""
        series = result.book.series.get("worker: memory")
        memory = f"{series.points[-1].value:.1f} MB" if series else ""
        self.write(
            f"{clock(self.passed)}/{clock(self.options.seconds)} {self.options.engine} "
            f"jobs {result.jobs:,} pruned {result.pruned:,} "
            f"replaced {sum(result.restarts.values())}  {memory} {doing}"
        )


def summary(result: Result) -> str:
    """Every series with its verdict, and what else was seen."""
    lines = ["", HEADS]
    lines += [row(each) for each in result.judgements]
    lines.append("")
    figures = {
        "minutes": f"{result.seconds / 60:.1f}",
        "jobs ended": f"{result.jobs:,}",
        "jobs pruned": f"{result.pruned:,}",
        "processes replaced": f"{sum(result.restarts.values()):,}",
        "processor, of one core": f"{result.processor:.0%}",
        "ended by themselves": f"{len(result.deaths):,}",
        "series that grow": f"{len(result.growing):,}",
    }
    lines += [f"{name:28} {value:>10}" for name, value in figures.items()]
    lines += [f"{f'log lines, {name}':36} {n:>8,}" for name, n in sorted(result.levels.items())]
    lines += [f"{count:>6} {message}"[:WIDTH] for message, count in result.messages.most_common(12)]
    for death in result.deaths[:5]:
        lines += textwrap.wrap(" ".join(death.split())[-400:], WIDTH)
    if result.stopped:
        lines.append("stopped early: judged by what was measured so far")
    return "\n".join(lines)


def row(each: Judgement) -> str:
    """One series in a line."""
    left = "" if each.left is None else f"{each.left:,.0f}"
    return (
        f"{each.name[:34]:34} {figure(each.first):>8} {figure(each.last):>8} "
        f"{figure(each.per_thousand, signed=True):>9} {left:>6} {each.verdict}"
    )[:WIDTH]


def figure(value: float, *, signed: bool = False) -> str:
    """A number as people read it."""
    digits = 0 if abs(value) >= 1_000 else 1 if abs(value) >= 10 else 2
    value = round(value, digits) + 0.0  # and no minus before nothing
    text = f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
