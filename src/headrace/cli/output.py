"""Output: tables and fields for people, JSON for programs.

On a terminal rich draws; in a pipe the same content comes as plain aligned text without colours,
so that `grep`, `awk` and `cut` see whole values. Rich is imported only when it draws.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from headrace.cli.columns import Layout, hanging, lay_out, longest_word, rows, wrapped
from headrace.cli.formatting import clean, width

T = TypeVar("T")
Progress = Callable[[int], None]
# The columns of a table: the header of each, and its cell for an item. A header that begins with
# ">" is of numbers, which stand at the right.
Columns: TypeAlias = Mapping[str, Callable[[T], object]]

# A cell that has nothing to say.
NOTHING = "-"
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
    sys.stdout.write(_json(msgspec.json.format(msgspec.json.encode(document), indent=2)) + "\n")


def print_json_line(document: Any) -> None:
    """One line of a stream of JSON documents."""
    sys.stdout.write(_json(msgspec.json.encode(document)) + "\n")
    sys.stdout.flush()


def _json(encoded: bytes) -> str:
    """Return JSON that can be written as it is, also on a terminal. Where the output is not in
    UTF-8, what is not ASCII is escaped as JSON has it: anything else would be no JSON to those who
    read it.
    """
    text = encoded.decode()
    if text.isascii() or (sys.stdout.encoding or "").lower().replace("-", "") == "utf8":
        return _UNSAFE.sub(_escaped, text)
    return _NOT_ASCII.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1]


# Control characters that JSON does not escape, and those that turn the direction of a text.
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_NOT_ASCII = re.compile(r"\x7f|[^\x00-\x7f]+")


class JsonList:
    """A JSON document with a list that may be long: it comes in parts, one item on a line."""

    def __init__(self, name: str) -> None:
        sys.stdout.write(f'{{"{name}": [')
        self._first = True

    def add(self, items: Sequence[Any]) -> None:
        """Write some items."""
        for item in items:
            sys.stdout.write("\n" if self._first else ",\n")
            sys.stdout.write(_json(msgspec.json.encode(item)))
            self._first = False

    def end(self, **others: Any) -> None:
        """Close the list and write the rest of the document."""
        sys.stdout.write("\n]")
        for name, value in others.items():
            sys.stdout.write(f', "{name}": {_json(msgspec.json.encode(value))}')
        sys.stdout.write("}\n")


def print_line(text: str = "") -> None:
    """One line of text for people. A terminal gets several if it is narrower."""
    text = clean(text)
    sys.stdout.write((hanging(text, terminal_width()) if is_terminal() else text) + "\n")
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Somebody's own text: as it is, except that it cannot play tricks on a terminal."""
    sys.stdout.write((clean(text, lines=True) if is_terminal() else text) + "\n")


def terminal_width() -> int:
    """How many columns the terminal has that the output goes to."""
    width: int = _console().width
    return width


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
    """A table that may be long: it comes in parts, and its columns never get narrower.

    Where a terminal is too narrow, columns are left out that say nothing, or in every row only what
    is `known`, by the header, because it was asked for.
    """

    def __init__(
        self, columns: Columns[T], *, known: Mapping[str, str | None] | None = None
    ) -> None:
        self._cells = columns.values()
        self._right = [header.startswith(">") for header in columns]
        self._headers = [header.removeprefix(">") for header in columns]
        self._sizes = [width(header) for header in self._headers]
        self._words = list(self._sizes)
        self._known = [(known or {}).get(header) or NOTHING for header in self._headers]
        self._empty = set(range(len(self._headers)))
        self._groups: list[list[int]] | None = None

    def add(self, items: Sequence[T]) -> None:
        """Print some rows, after the headers if they are the first."""
        cells = [[clean(str(cell(item))) for cell in self._cells] for item in items]
        for row in cells:
            self._sizes = list(map(max, self._sizes, map(width, row)))
            self._words = list(map(max, self._words, map(longest_word, row)))
            self._empty -= {index for index, cell in enumerate(row) if cell != self._known[index]}
        if is_terminal():
            self._draw(cells)
            return
        single = Layout([list(range(len(self._headers)))], self._sizes)
        if self._groups is None:
            self._groups = single.groups
            cells = [self._headers, *cells]
        for row in cells:
            # Nothing is cut or wrapped.
            [line] = rows(row, single, self._right)
            sys.stdout.write("".join(line).rstrip() + "\n")

    def _draw(self, cells: Sequence[Sequence[str]]) -> None:
        from rich.text import Text  # noqa: PLC0415 - only when it draws

        console = _console()
        layout = lay_out(self._sizes, self._words, console.width, empty=self._empty)
        if layout.groups != self._groups:
            self._groups = layout.groups
            for line in rows(self._headers, layout, self._right):
                console.print(Text("".join(line).rstrip(), style="bold"), soft_wrap=True)
            console.print(Text("─" * layout.width(), style="dim"), soft_wrap=True)
        for row in cells:
            for line in rows(row, layout, self._right):
                parts = [(part, COLOURS.get(part.strip(), "")) for part in line]
                shown = Text.assemble(*parts)
                shown.rstrip()
                console.print(shown, soft_wrap=True)


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
            shown = _field(value, size, console.width)
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


def _field(value: object, indent: int, columns: int | None = None) -> str:
    lines = clean(str(value), lines=True).split("\n")
    if columns is not None:
        lines = [part for line in lines for part in wrapped(line, columns - indent - 2)]
    return ("\n" + " " * (indent + 2)).join(lines)


def _console() -> Any:
    from rich.console import Console  # noqa: PLC0415 - only when it draws

    return Console(highlight=False)
