"""How a table finds room on a terminal: no word is broken, and nothing is left out.

Where a row is wider than the terminal, long texts are wrapped between words. Where that is not
enough, the last columns stand on further lines of the row, below headers of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from headrace.cli.formatting import width

# A label, and what parts it from its text: "  tasks         tour.hello, …". There may be several:
# "14:05:00Z  scheduled  attempt 1 of 4 failed, …".
_LABEL = re.compile(r" *[^ ]+(?: [^ ]+)*  +")

# What stands for the rest of a text.
MORE = "…"
GAP = 2
INDENT = 4
# A column is not made narrower than this for others to stand beside it.
CALM = 24
# Rather than wrapping it into more lines than this, a column gets a line of its own.
MOST_LINES = 3


class Layout(NamedTuple):
    """Which columns stand together on a line, and how wide each is."""

    groups: list[list[int]]
    sizes: list[int]

    def width(self) -> int:
        """Return how wide the widest line is."""
        return max(
            sum(self.sizes[column] for column in group)
            + GAP * (len(group) - 1)
            + (INDENT if number else 0)
            for number, group in enumerate(self.groups)
        )


def lay_out(
    sizes: Sequence[int], words: Sequence[int], room: int, *, empty: Collection[int] = ()
) -> Layout:
    """Return where columns stand that take so many characters at most, with words that long, in
    so much room. Where it is short, `empty` columns, in which no row says anything, are left out.
    """
    every = list(range(len(sizes)))
    if sum(sizes) + GAP * (len(sizes) - 1) <= room:
        return Layout([every], list(sizes))
    every = [column for column in every if column not in empty] or every
    groups: list[list[int]] = [[]]
    made = list(sizes)
    left = room
    for column in every:
        gap = GAP if groups[-1] else 0
        least = sizes[column] if sizes[column] <= CALM else max(words[column], CALM)
        lines = -(-sizes[column] // max(left - gap, 1))
        if groups[-1] and (least + gap > left or lines > MOST_LINES):
            _widen(groups[-1], made, sizes, left)
            groups.append([])
            left, gap = room - INDENT, 0
        groups[-1].append(column)
        made[column] = min(least, max(left, 1))
        left -= made[column] + gap
    _widen(groups[-1], made, sizes, left)
    return Layout(groups, made)


def _widen(group: Sequence[int], made: list[int], sizes: Sequence[int], left: int) -> None:
    """Give what is left of a line to its columns, the last first."""
    for column in reversed(group):
        more = min(max(left, 0), sizes[column] - made[column])
        made[column] += more
        left -= more


def rows(cells: Sequence[str], layout: Layout, right: Sequence[bool]) -> Iterator[list[str]]:
    """Yield the lines of one row, each as its parts: the cells, and the blanks around them."""
    for number, group in enumerate(layout.groups):
        columns = [wrapped(cells[column], layout.sizes[column]) for column in group]
        for index in range(max(map(len, columns))):
            line = [" " * INDENT] if number else []
            for place, (column, lines) in enumerate(zip(group, columns, strict=True)):
                text = lines[index] if index < len(lines) else ""
                blanks = " " * (layout.sizes[column] - width(text))
                line += [" " * GAP] if place else []
                line += [blanks, text] if right[column] else [text, blanks]
            yield line


def longest_word(text: str) -> int:
    """Return how many columns the longest word takes."""
    return max(map(width, text.split(" ")))


def hanging(text: str, size: int) -> str:
    """Return a line of text in lines of so many columns. Those after the first stand below the text
    that follows a label, or a little to the right.
    """
    if width(text) <= size:
        return text
    begins = len(text) - len(text.lstrip(" "))
    indent = _end_of_labels(text, size // 2) or begins + INDENT
    first, *others = wrapped(text[begins:], size - begins)
    rest = wrapped(" ".join(others), size - indent) if others else []
    return "\n".join([" " * begins + first, *(" " * indent + line for line in rest)])


def _end_of_labels(text: str, room: int) -> int:
    """Return where the text after the labels begins, as far as they fit in; 0 without any."""
    end = 0
    while (label := _LABEL.match(text, end)) and label.end() <= room:
        end = label.end()
    return end


def wrapped(text: str, size: int) -> list[str]:
    """Return a text in lines of so many columns. A word that is longer has a line of its own."""
    if width(text) <= size:
        return [text]
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines: list[str] = []
    line = indent
    for word in text.lstrip(" ").split(" "):
        longer = line + word if line == indent else f"{line} {word}"
        if line != indent and width(longer) > size:
            whole, _, last = line.rpartition(" ")
            together = f"{indent}{last} {word}"
            if word == MORE and whole.strip() and width(together) <= size:  # never alone
                lines.append(whole)
                line = together
            else:
                lines.append(line)
                line = indent + word
        else:
            line = longer
    return [*lines, line]
