"""Answers: tables and fields for people, JSON for programs.

On a terminal rich draws; in a pipe the same content comes as plain aligned text without colours,
so that `grep`, `awk` and `cut` see whole values. Rich is imported only when it draws.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from headrace.cli.words import clean, width

Progress = Callable[[int], None]

COLOURS = {
    "completed": "green",
    "failed": "red",
    "timeout": "red",
    "cancelled": "dim",
    "running": "cyan",
    "scheduled": "yellow",
    "ok": "green",
    "warning": "yellow",
    "error": "red",
    "paused": "yellow",
    "lost": "red",
    "unhealthy": "red",
}


def print_json(document: Any) -> None:
    """One JSON document, times in ISO 8601 UTC."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def print_json_line(document: Any) -> None:
    """One line of a stream of JSON documents."""
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


def print_line(text: str = "") -> None:
    """One line of text for people."""
    sys.stdout.write(clean(text) + "\n")
    sys.stdout.flush()


def is_terminal() -> bool:
    """Whether somebody is looking."""
    return sys.stdout.isatty()


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()
) -> None:
    """A table. The first column is never cut; those named in `right` hold numbers."""
    cells = [[clean(str(cell)) for cell in row] for row in rows]
    if is_terminal():
        _print_rich_table(headers, cells, right)
    else:
        sys.stdout.write(plain_table(headers, cells, right))


def plain_table(
    headers: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[str] = ()
) -> str:
    """Aligned columns, two blanks apart; nothing is cut or wrapped."""
    lines = [list(headers), *(list(row) for row in cells)]
    widths = [max(width(line[column]) for line in lines) for column in range(len(headers))]
    text = []
    for line in lines:
        parts = []
        for cell, size, header in zip(line, widths, headers, strict=True):
            blanks = " " * (size - width(cell))
            parts.append(blanks + cell if header in right else cell + blanks)
        text.append("  ".join(parts).rstrip() + "\n")
    return "".join(text)


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Names and values, one on each line; values of several lines are indented below."""
    size = max(len(name) for name, _ in fields)
    if is_terminal():
        from rich.text import Text  # noqa: PLC0415 - only when it draws

        console = _console()
        for name, value in fields:
            shown = _field(value, size)
            line = Text.assemble(
                (f"{name:<{size}}  ", "dim"), (shown, COLOURS.get(shown, "default"))
            )
            console.print(line, soft_wrap=True)
    else:
        for name, value in fields:
            sys.stdout.write(f"{name:<{size}}  {_field(value, size)}\n")


@contextmanager
def progress(label: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar on a terminal, nothing elsewhere. Call it with the number done so far."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - only when it draws
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    # On stderr, so that the answer on stdout stays clean.
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


def _field(value: object, indent: int) -> str:
    lines = clean(str(value), lines=True).split("\n")
    return ("\n" + " " * (indent + 2)).join(lines)


def _print_rich_table(
    headers: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[str]
) -> None:
    """Only the last column gives way where room is short: an id that is cut cannot be copied."""
    from rich import box  # noqa: PLC0415 - only when it draws
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = _console()
    sizes = [
        max([width(header), *(width(row[number]) for row in cells)])
        for number, header in enumerate(headers)
    ]
    room = console.width - sum(sizes[:-1]) - 3 * (len(sizes) - 1)
    sizes[-1] = min(sizes[-1], max(room, 12))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for header, size in zip(headers, sizes, strict=True):
        justify: Any = "right" if header in right else "left"
        table.add_column(header, justify=justify, no_wrap=True, overflow="ellipsis", width=size)
    for row in cells:
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    # Where even that has no room the terminal wraps lines, which still shows everything.
    console.width = max(console.width, sum(sizes) + 3 * len(sizes))
    console.print(table, soft_wrap=True)


def _console() -> Any:
    from rich.console import Console  # noqa: PLC0415 - only when it draws

    return Console(highlight=False)
