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
            line = Text(f"{name:<{size}}  ", style="dim")
            line.append(shown, style=COLOURS.get(shown, "default"))
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
    from rich import box  # noqa: PLC0415 - only when it draws
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for number, header in enumerate(headers):
        first = number == 0
        table.add_column(
            header,
            justify="right" if header in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            # An id that is cut cannot be copied.
            min_width=max((width(row[0]) for row in cells), default=0) if first else None,
        )
    for row in cells:
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    _console().print(table)


def _console() -> Any:
    from rich.console import Console  # noqa: PLC0415 - only when it draws

    return Console(highlight=False)
