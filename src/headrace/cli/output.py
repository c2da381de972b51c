"""Output: tables and fields for people, JSON for programs.

On a terminal rich draws; in a pipe the same content comes as plain aligned text without colours,
so that `grep`, `awk` and `cut` see whole values. Rich is imported only when it draws.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from headrace.cli.formatting import clean, width

T = TypeVar("T")
Progress = Callable[[int], None]
# The columns of a table: the header of each, and its cell for an item. A header that begins with
# ">" is of numbers, which stand at the right.
Columns: TypeAlias = Mapping[str, Callable[[T], object]]

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


class JsonList:
    """A JSON document with a list that may be long: it comes in parts, one item on a line."""

    def __init__(self, name: str) -> None:
        sys.stdout.write(f'{{"{name}": [')
        self._first = True

    def add(self, items: Sequence[Any]) -> None:
        """Write some items."""
        for item in items:
            sys.stdout.write("\n" if self._first else ",\n")
            sys.stdout.write(msgspec.json.encode(item).decode())
            self._first = False

    def end(self, **others: Any) -> None:
        """Close the list and write the rest of the document."""
        sys.stdout.write("\n]")
        for name, value in others.items():
            sys.stdout.write(f', "{name}": {msgspec.json.encode(value).decode()}')
        sys.stdout.write("}\n")


def print_line(text: str = "") -> None:
    """One line of text for people."""
    sys.stdout.write(clean(text) + "\n")
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Somebody's own text: as it is, except that it cannot play tricks on a terminal."""
    sys.stdout.write((clean(text, lines=True) if is_terminal() else text) + "\n")


def is_terminal() -> bool:
    """Whether the output goes to a terminal."""
    return sys.stdout.isatty()


def print_table(columns: Columns[T], items: Sequence[T]) -> None:
    """A table with a row for each item."""
    Table(columns).add(items)


def print_section(columns: Columns[T], items: Sequence[T], *, title: str | None = None) -> None:
    """A table apart from what stands above it, if there is anything to show."""
    if items:
        print_line()
        if title is not None:
            print_line(title)
        print_table(columns, items)


class Table(Generic[T]):
    """A table that may be long: it comes in parts, and its columns never get narrower."""

    def __init__(self, columns: Columns[T]) -> None:
        self._cells = columns.values()
        self._right = [header.startswith(">") for header in columns]
        self._headers = [header.removeprefix(">") for header in columns]
        self._sizes = [width(header) for header in self._headers]
        self._begun = False

    def add(self, items: Sequence[T]) -> None:
        """Print some rows, after the headers if they are the first."""
        cells = [[clean(str(cell(item))) for cell in self._cells] for item in items]
        for row in cells:
            self._sizes = [
                max(size, width(cell)) for size, cell in zip(self._sizes, row, strict=True)
            ]
        if is_terminal():
            self._draw(cells)
        else:
            self._write(cells if self._begun else [self._headers, *cells])
        self._begun = True

    def _write(self, lines: Sequence[Sequence[str]]) -> None:
        """Aligned columns, two blanks apart; nothing is cut or wrapped."""
        for line in lines:
            parts = []
            for cell, size, right in zip(line, self._sizes, self._right, strict=True):
                blanks = " " * (size - width(cell))
                parts.append(blanks + cell if right else cell + blanks)
            sys.stdout.write("  ".join(parts).rstrip() + "\n")

    def _draw(self, cells: Sequence[Sequence[str]]) -> None:
        """Only the last column gives way where room is short: a cut id cannot be copied."""
        from rich import box  # noqa: PLC0415 - only when it draws
        from rich.table import Table as RichTable  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        console = _console()
        sizes = list(self._sizes)
        room = console.width - sum(sizes[:-1]) - 3 * (len(sizes) - 1)
        sizes[-1] = min(sizes[-1], max(room, 12))
        table = RichTable(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            header_style="bold",
            show_edge=False,
            show_header=not self._begun,
        )
        for header, size, right in zip(self._headers, sizes, self._right, strict=True):
            justify: Any = "right" if right else "left"
            table.add_column(header, justify=justify, no_wrap=True, overflow="ellipsis", width=size)
        for row in cells:
            table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
        # Where even that has no room the terminal wraps lines, which still shows everything.
        console.width = max(console.width, sum(sizes) + 3 * len(sizes))
        console.print(table, soft_wrap=True)


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Names and values, one on each line, without those that are None.

    Values of several lines are indented below.
    """
    fields = [(name, value) for name, value in fields if value is not None]
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


def _console() -> Any:
    from rich.console import Console  # noqa: PLC0415 - only when it draws

    return Console(highlight=False)
