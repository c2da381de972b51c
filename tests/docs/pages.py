"""The pages of the documentation, and what they hold: code blocks, commands, links.

A page marks what its code blocks are by an HTML comment on the line before the fence:

    <!-- file: jobs.py -->          saved under this name, beside the others of the page
    <!-- file: examples/x.py -->    the same text as that file of this repository
    <!-- needs: django -->          run where that package is installed
    <!-- not run: reason -->        for commands: what a reader does and a test does not
    <!-- run:                       code that is not shown but makes the block after it complete
    …
    -->
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^(\s*)```(\w*)\s*$")
_MARK = re.compile(r"^\s*<!-- (file|needs|not run|in|kill|stop): (.+?) -->\s*$")
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=")


class Block(NamedTuple):
    """A fenced block, or hidden code (language "hidden")."""

    page: Path
    line: int
    language: str
    text: str
    mark: str | None = None
    value: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def clean_environment() -> dict[str, str]:
    """The environment of somebody who has set nothing up."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HEADRACE_", "WORKER_"))
    }


def pages() -> list[Path]:
    """Every page, those at the root first."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*top, *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, with their marks, and hidden code between them."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    mark: tuple[str, str] | None = None
    while number < len(lines):
        line = lines[number]
        if line.strip() == "<!-- run:":
            end = lines.index("-->", number)
            text = "\n".join(lines[number + 1 : end]) + "\n"
            found.append(Block(page, number + 2, "hidden", text))
            number = end + 1
            continue
        if marked := _MARK.match(line):
            mark = (marked[1], marked[2])
            if marked[1] == "stop":
                found.append(Block(page, number + 1, "", "", *mark))
        elif fence := _FENCE.match(line):
            end = number + 1
            while lines[end].strip() != "```":
                end += 1
            indent = len(fence[1])
            text = "".join(each[indent:] + "\n" for each in lines[number + 1 : end])
            kind, value = mark or (None, "")
            found.append(Block(page, number + 2, fence[2], text, kind, value))
            mark, number = None, end
        elif line.strip():
            mark = None
        number += 1
    return found


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines outside of fenced blocks and comments, with their numbers."""
    inside = comment = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            comment = comment or line.strip().startswith("<!--")
            if not comment:
                yield number, line
            if "-->" in line:
                comment = False


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Where the page points to."""
    for number, line in prose(page):
        for target in _LINK.findall(_INLINE.sub("", line)):
            yield number, target


class Command(NamedTuple):
    """A command line that a reader may type. `whole` ones come with all they need."""

    place: str
    words: list[str]
    whole: bool


def commands(page: Path) -> Iterator[Command]:
    """The commands of console blocks (whole), and those named in a sentence."""
    for block in blocks(page):
        if block.language not in ("console", "sh"):
            continue
        lines = block.text.replace("\\\n", " ").splitlines()
        for line in lines:
            typed = line.strip()
            if block.language == "console":
                if not typed.startswith("$ "):
                    continue
                typed = typed.removeprefix("$ ")
            if words := _words(typed):
                yield Command(block.place, words, True)
    for number, line in prose(page):
        for code in _INLINE.findall(line):
            if words := _words(code):
                yield Command(f"{name_of(page)}:{number}", words, False)


def _words(line: str) -> list[str]:
    """The words of one command, without variables before it and pipes after it."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return []
    while words and _VARIABLE.match(words[0]):
        words.pop(0)
    for number, word in enumerate(words):
        if word and set(word) <= set("|&;<>()"):
            return words[:number]
    return words
