"""`headrace top` as lines that fit into a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.cli.formatting import bytes_of, clean, plural, span, width
from headrace.cli.top.snapshot import Picture, Throughput
from headrace.model.worker import Worker

GAP = 2
# A column that gives way keeps this much.
LEAST = 6
# Rows of a section that others may not take away.
KEPT_ROWS = 2


class Line(msgspec.Struct, frozen=True):
    """A line and how it is drawn."""

    text: str
    style: str = ""


class Column(msgspec.Struct, frozen=True):
    """A column. Where room is short those with the highest `rank` are left out first."""

    name: str
    rank: int = 0
    right: bool = False


class Section(msgspec.Struct, frozen=True):
    """A table with a title. `total` rows there are, of which the first are given."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    empty: str
    total: int = 0


def screen(
    picture: Picture, speed: Throughput | None, *, columns: int, rows: int, where: str, note: str
) -> list[Line]:
    """The whole screen: at most so many lines of at most so many columns."""
    lines = [Line(cut(text, columns), style) for text, style in _head(picture, speed, where, note)]
    sections = [_queues(picture), _running(picture), _lanes(picture), _workers(picture)]
    # A title, the names of the columns, and an empty line before each.
    room = rows - len(lines) - 1 - 3 * len(sections)
    for section, share in zip(sections, _shares(sections, max(room, 0)), strict=True):
        lines += [Line(""), *drawn(section, columns, share)]
    lines = lines[: max(rows - 1, 1)]
    return [*lines, Line(cut("q quits", columns), "dim")][:rows]


def drawn(section: Section, columns: int, rows: int) -> list[Line]:
    """A section in so many columns, with at most so many rows."""
    total = section.total or len(section.rows)
    shown = section.rows[:rows]
    more = f", the first {len(shown)}" if len(shown) < total else ""
    title = Line(cut(f"{section.title} ({total:,}{more})", columns), "bold")
    if not section.rows:
        return [title, Line(cut(section.empty, columns), "dim")]
    kept, sizes = _fitting(section, shown, columns)
    names = [section.columns[index].name for index in kept]
    lines = [title, Line(_row(names, kept, sizes, section), "dim")]
    for row in shown:
        cells = [row[index] for index in kept]
        lines.append(Line(_row(cells, kept, sizes, section), _style(row)))
    return lines


def cut(text: str, columns: int) -> str:
    """At most so many columns of a text, safe on a terminal."""
    text = clean(text)
    if width(text) <= columns:
        return text
    if columns <= 1:
        return "…"[:columns]
    kept, used = "", 0
    for character in text:
        used += width(character)
        if used > columns - 1:
            break
        kept += character
    return f"{kept}…"


def _head(
    picture: Picture, speed: Throughput | None, where: str, note: str
) -> list[tuple[str, str]]:
    queues, workers = picture.queues, [each for each in picture.workers if each.alive]
    busy, slots = sum(each.running for each in workers), sum(each.slots for each in workers)
    counts = ", ".join(
        f"{sum(getattr(queue, state) for queue in queues):,} {state}"
        for state in ("running", "ready", "waiting", "scheduled")
    )
    told = (
        "throughput: looking …"
        if speed is None
        else f"throughput: {speed.completed_per_second:,.1f}/s completed, "
        f"{speed.failed_per_second:,.1f}/s failed"
    )
    lines = [
        (f"headrace top  {picture.at:%H:%M:%S} UTC  {where}", "bold"),
        (f"{counts}; {plural(len(workers), 'worker')}, {busy} of {slots} slots busy", ""),
        (told, "green"),
    ]
    return [*lines, (note, "red")] if note else lines


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
                "-" if each.oldest_age is None else span(each.oldest_age),
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
                "-" if each.oldest_age is None else span(each.oldest_age),
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
                state(each),
                f"{each.running}/{each.slots}",
                f"{each.cpu_percent:.0f}%",
                bytes_of(each.memory_bytes),
                ",".join(each.queues) or "all",
            )
            for each in picture.workers
        ],
        "none; start one with: headrace worker --app module:app",
    )


def state(worker: Worker) -> str:
    """A worker's state in one word."""
    return "lost" if not worker.alive else "ok" if worker.healthy else "unhealthy"


def _style(row: Sequence[str]) -> str:
    return next((style for word, style in _STYLES.items() if word in row), "")


_STYLES = {"lost": "red", "unhealthy": "red", "paused": "yellow"}


def _shares(sections: Sequence[Section], room: int) -> list[int]:
    """Rows for each section: a few for all, and the rest to those that have more to show."""
    wanted = [max(len(section.rows), 1) for section in sections]
    shares = [min(each, KEPT_ROWS) for each in wanted]
    left = room - sum(shares)
    # Running jobs first: they are what one looks for.
    for index in sorted(range(len(sections)), key=lambda index: sections[index].title != "Running"):
        more = max(min(wanted[index] - shares[index], left), 0)
        shares[index] += more
        left -= more
    return shares


def _fitting(
    section: Section, rows: Sequence[Sequence[str]], columns: int
) -> tuple[list[int], list[int]]:
    """Which columns have room, and how wide each is."""
    natural = [
        max(width(column.name), *(width(clean(row[index])) for row in rows))
        for index, column in enumerate(section.columns)
    ]
    kept = list(range(len(section.columns)))
    by_rank = sorted(kept, key=lambda index: -section.columns[index].rank)
    while len(kept) > 2:
        # The first column may be shortened before another is left out.
        least = sum(natural[index] for index in kept) + GAP * (len(kept) - 1)
        if least - max(natural[0] - 2 * LEAST, 0) <= columns:
            break
        kept.remove(by_rank.pop(0))
    sizes = [natural[index] for index in kept]
    over = sum(sizes) + GAP * (len(sizes) - 1) - columns
    for place in range(len(sizes)):
        give = max(min(over, sizes[place] - LEAST), 0)
        sizes[place] -= give
        over -= give
    return kept, sizes


def _row(cells: Sequence[str], kept: Sequence[int], sizes: Sequence[int], section: Section) -> str:
    parts = []
    for cell, index, size in zip(cells, kept, sizes, strict=True):
        shown = cut(cell, size)
        blanks = " " * (size - width(shown))
        parts.append(blanks + shown if section.columns[index].right else shown + blanks)
    return (" " * GAP).join(parts).rstrip()
