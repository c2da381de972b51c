"""What `headrace top` looks like, made to fit the console it is drawn on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from headrace.cli.admin.lanes import LANES
from headrace.cli.admin.queues import QUEUES
from headrace.cli.admin.rates import RATES
from headrace.cli.admin.workers import WORKERS
from headrace.cli.formatting import clean, plural, shown_time, span, width
from headrace.cli.output import Columns
from headrace.cli.top.snapshot import Picture, Throughput
from headrace.model.job import Job
from headrace.model.views import Finding

T = TypeVar("T")

# The first column may be shortened to this before another column is left out.
FIRST_COLUMN = 12
# Rows of a section that others may not take away.
KEPT_ROWS = 2
# What is wrong may take this share of the rows of a terminal, whole sentences only.
FINDINGS_SHARE = 3
STYLES = {"lost": "red", "unhealthy": "red", "paused": "yellow"}


class Section(msgspec.Struct, frozen=True):
    """A table with a title. There are `total` rows, of which the first are given.

    Where room is short, the columns of `leave_out` are left out in this order.
    """

    title: str
    columns: Columns[Any]
    items: Sequence[Any]
    leave_out: Sequence[str]
    empty: str
    total: int = 0


def screen(
    picture: Picture, speed: Throughput | None, *, console: Console, where: str, note: str
) -> Group:
    """Return the whole screen, no larger than the console."""
    head = _head(picture, speed, where, note)
    # Of one that does not answer nobody knows whether all is well.
    head += _wrong(picture.findings, console) if picture.findings or not note else []
    sections = _sections(picture)
    rows = console.height - len(head) - 1
    # What is wrong needs the room more than the last sections do.
    while picture.findings and len(sections) > 2 and rows < (3 + KEPT_ROWS) * len(sections):
        sections.pop()
    # A title, the names of the columns, and an empty line before each.
    room = rows - 3 * len(sections)
    parts: list[RenderableType] = [*head]
    for section, rows in zip(sections, _shares(sections, max(room, 0)), strict=True):
        parts += ["", *_drawn(section, rows, console)]
    return Group(*parts)


def _line(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style, no_wrap=True, overflow="ellipsis")


def _drawn(section: Section, rows: int, console: Console) -> list[RenderableType]:
    total = section.total or len(section.items)
    shown = section.items[:rows]
    more = f", the first {len(shown)}" if len(shown) < total else ""
    title = _line(f"{section.title} ({total:,}{more})", "bold")
    if not section.items:
        return [title, _line(section.empty, "dim")]
    kept = dict(section.columns)
    name = next(iter(kept.values()))
    first = max(width(str(name(item))) for item in section.items)
    room = console.width + max(first - FIRST_COLUMN, 0)
    table = _table(kept, shown)
    for header in section.leave_out:
        if console.measure(table, options=WIDE).maximum <= room:
            break
        del kept[header]
        table = _table(kept, shown)
    return [title, table]


# Measured as if there were any amount of room.
WIDE = Console(width=100_000).options


def _table(columns: Columns[Any], items: Sequence[Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    for header in columns:
        justify: Any = "right" if header.startswith(">") else "left"
        name = header.removeprefix(">")
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    for item in items:
        row = [str(cell(item)) for cell in columns.values()]
        style = next((style for word, style in STYLES.items() if word in row), "")
        table.add_row(*map(_line, row), style=style)
    return table


def _shares(sections: Sequence[Section], room: int) -> list[int]:
    """Return the rows of each section: a few for all, and the rest to those with more to show."""
    wanted = [max(len(section.items), 1) for section in sections]
    shares = [min(each, KEPT_ROWS) for each in wanted]
    left = room - sum(shares)
    # Running jobs first: they are what one looks for.
    for index in sorted(range(len(sections)), key=lambda index: sections[index].title != "Running"):
        more = max(min(wanted[index] - shares[index], left), 0)
        shares[index] += more
        left -= more
    return shares


def _head(picture: Picture, speed: Throughput | None, where: str, note: str) -> list[Text]:
    queues, workers = picture.queues, [each for each in picture.workers if each.alive]
    busy, slots = sum(each.running for each in workers), sum(each.slots for each in workers)
    counts = ", ".join(
        f"{sum(getattr(queue, state) for queue in queues):,} {state}"
        for state in ("running", "ready", "waiting", "scheduled")
    )
    throughput = (
        "throughput: measuring …"
        if speed is None
        else f"throughput: {speed.completed_per_second:,.1f}/s completed, "
        f"{speed.failed_per_second:,.1f}/s failed"
    )
    lines = [
        _line(f"headrace top  {shown_time(picture.at)}  {where}", "bold"),
        _line(f"{counts}; {plural(len(workers), 'worker')}, {busy} of {slots} slots busy"),
        _line(throughput, "green"),
    ]
    if note:
        lines.append(_line(note, "red"))
    return lines


def _wrong(findings: Sequence[Finding], console: Console) -> list[Text]:
    """Return what is wrong in the words of the dashboard, wrapped; errors come first."""
    if not findings:
        return [_line("All is well.", "green")]
    room = max(console.height // FINDINGS_SHARE, 3)
    lines: list[Text] = []
    for number, finding in enumerate(findings):
        style = "red" if finding.level == "error" else "yellow"
        text = Text(clean(f"{finding.level}: {finding.detail}"), style=style)
        told = text.wrap(console, console.width)
        # One line has to stay for what is left out, and the first is told in any case.
        if lines and len(lines) + len(told) > room - (number < len(findings) - 1):
            left = len(findings) - number
            return [*lines, _line(f"and {left} more: headrace status", "yellow")]
        lines += told
    return lines


def _sections(picture: Picture) -> list[Section]:
    found = picture.running
    running: Columns[Job] = {
        "TASK": lambda job: job.task,
        ">FOR": lambda job: span(found.elapsed(job)),
        ">PROGRESS": lambda job: f"{job.progress:.0f}%",
        "STAGE": lambda job: " ".join(filter(None, (job.stage, job.message))) or "-",
        "QUEUE": lambda job: job.queue,
        "WORKER": lambda job: job.worker or "-",
        "JOB": lambda job: job.id,
    }
    return [
        Section(
            "Queues",
            _pick(
                QUEUES, "QUEUE", ">READY", ">RUNNING", ">WAITING", ">SCHEDULED", ">OLDEST", "STATE"
            ),
            picture.queues,
            ("STATE", ">SCHEDULED", ">WAITING", ">OLDEST", ">READY"),
            "none yet; a queue is there once a job was put in it",
        ),
        Section(
            "Running",
            running,
            found.jobs,
            ("WORKER", "QUEUE", "JOB", "STAGE", ">PROGRESS"),
            "nothing runs",
            total=max(len(found.jobs), sum(each.running for each in picture.queues)),
        ),
        Section(
            "Lanes",
            _pick(LANES, "LANE", ">USED", ">WAITING", ">OLDEST", "QUEUE"),
            picture.lanes,
            ("QUEUE", ">OLDEST", ">WAITING"),
            "none is held or waited for",
        ),
        *_rates(picture),
        Section(
            "Workers",
            _pick(WORKERS, "WORKER", "STATE", ">BUSY", ">CPU", ">MEMORY", "QUEUES"),
            picture.workers,
            (">MEMORY", ">CPU", "QUEUES", "STATE"),
            "none; start one with: headrace worker --app module:app",
        ),
    ]


def _rates(picture: Picture) -> list[Section]:
    """Most have none: no room is taken for that."""
    if not picture.rates:
        return []
    columns = _pick(RATES, "LANE", "RATE", ">WAITING", "NEXT START", "HELD UNTIL", "QUEUE")
    leave_out = ("QUEUE", "NEXT START", "HELD UNTIL", ">WAITING")
    return [Section("Rates", columns, picture.rates, leave_out, "none")]


def _pick(columns: Columns[T], *headers: str) -> Columns[T]:
    return {header: columns[header] for header in headers}
