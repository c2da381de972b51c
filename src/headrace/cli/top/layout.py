"""What `headrace top` looks like, made to fit the console it is drawn on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from headrace.cli.formatting import bytes_of, clean, plural, span, width, worker_state
from headrace.cli.top.snapshot import Picture, Throughput

# The first column may be shortened to this before another column is left out.
FIRST_COLUMN = 12
# Rows of a section that others may not take away.
KEPT_ROWS = 2
STYLES = {"lost": "red", "unhealthy": "red", "paused": "yellow"}


class Column(msgspec.Struct, frozen=True):
    """A column. Where room is short those with the highest `rank` are left out first."""

    name: str
    rank: int = 0
    right: bool = False


class Section(msgspec.Struct, frozen=True):
    """A table with a title. There are `total` rows, of which the first are given."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    empty: str
    total: int = 0


def screen(
    picture: Picture, speed: Throughput | None, *, console: Console, where: str, note: str
) -> Group:
    """Return the whole screen, no larger than the console."""
    head = _head(picture, speed, where, note)
    sections = [_queues(picture), _running(picture), _lanes(picture), _workers(picture)]
    # A title, the names of the columns, and an empty line before each.
    room = console.height - len(head) - 1 - 3 * len(sections)
    parts: list[RenderableType] = [*head]
    for section, rows in zip(sections, _shares(sections, max(room, 0)), strict=True):
        parts += ["", *_drawn(section, rows, console)]
    return Group(*parts)


def _line(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style, no_wrap=True, overflow="ellipsis")


def _drawn(section: Section, rows: int, console: Console) -> list[RenderableType]:
    total = section.total or len(section.rows)
    shown = section.rows[:rows]
    more = f", the first {len(shown)}" if len(shown) < total else ""
    title = _line(f"{section.title} ({total:,}{more})", "bold")
    if not section.rows:
        return [title, _line(section.empty, "dim")]
    first = max(width(row[0]) for row in section.rows)
    room = console.width + max(first - FIRST_COLUMN, 0)
    kept = list(range(len(section.columns)))
    table = _table(section, shown, kept)
    while len(kept) > 2 and console.measure(table, options=WIDE).maximum > room:
        kept.remove(max(kept, key=lambda index: section.columns[index].rank))
        table = _table(section, shown, kept)
    return [title, table]


# Measured as if there were any amount of room.
WIDE = Console(width=100_000).options


def _table(section: Section, rows: Sequence[Sequence[str]], kept: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    for index in kept:
        column = section.columns[index]
        table.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows:
        style = next((style for word, style in STYLES.items() if word in row), "")
        table.add_row(*(_line(row[index]) for index in kept), style=style)
    return table


def _shares(sections: Sequence[Section], room: int) -> list[int]:
    """Return the rows of each section: a few for all, and the rest to those with more to show."""
    wanted = [max(len(section.rows), 1) for section in sections]
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
        _line(f"headrace top  {picture.at:%H:%M:%S} UTC  {where}", "bold"),
        _line(f"{counts}; {plural(len(workers), 'worker')}, {busy} of {slots} slots busy"),
        _line(throughput, "green"),
    ]
    return [*lines, _line(note, "red")] if note else lines


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else span(seconds)


def _queues(picture: Picture) -> Section:
    return Section(
        "Queues",
        [
            Column("QUEUE"),
            Column("READY", 1, right=True),
            Column("RUNNING", 0, right=True),
            Column("WAITING", 3, right=True),
            Column("SCHEDULED", 4, right=True),
            Column("OLDEST", 2, right=True),
            Column("STATE", 5),
        ],
        [
            (
                each.name,
                f"{each.ready:,}",
                f"{each.running:,}",
                f"{each.waiting:,}",
                f"{each.scheduled:,}",
                _age(each.oldest_age),
                "paused" if each.paused else "open",
            )
            for each in picture.queues
        ],
        "none yet; a queue is there once a job was put in it",
    )


def _running(picture: Picture) -> Section:
    found = picture.running
    return Section(
        "Running",
        [
            Column("TASK"),
            Column("FOR", 0, right=True),
            Column("PROGRESS", 1, right=True),
            Column("STAGE", 2),
            Column("QUEUE", 4),
            Column("WORKER", 5),
            Column("JOB", 3),
        ],
        [
            (
                job.task,
                span(found.elapsed(job)),
                f"{job.progress:.0f}%",
                " ".join(filter(None, (job.stage, job.message))) or "-",
                job.queue,
                job.worker or "-",
                job.id,
            )
            for job in found.jobs
        ],
        "nothing runs",
        total=max(len(found.jobs), sum(each.running for each in picture.queues)),
    )


def _lanes(picture: Picture) -> Section:
    return Section(
        "Lanes",
        [
            Column("LANE"),
            Column("USED", 0, right=True),
            Column("WAITING", 1, right=True),
            Column("OLDEST", 2, right=True),
            Column("QUEUE", 3),
        ],
        [
            (
                each.lane,
                f"{each.used}/{each.width}",
                f"{each.waiting:,}",
                _age(each.oldest_age),
                each.queue,
            )
            for each in picture.lanes
        ],
        "none is held or waited for",
    )


def _workers(picture: Picture) -> Section:
    return Section(
        "Workers",
        [
            Column("WORKER"),
            Column("STATE", 1),
            Column("BUSY", 0, right=True),
            Column("CPU", 3, right=True),
            Column("MEMORY", 4, right=True),
            Column("QUEUES", 2),
        ],
        [
            (
                each.name,
                worker_state(each),
                f"{each.running}/{each.slots}",
                f"{each.cpu_percent:.0f}%",
                bytes_of(each.memory_bytes),
                ",".join(each.queues) or "all",
            )
            for each in picture.workers
        ],
        "none; start one with: headrace worker --app module:app",
    )
