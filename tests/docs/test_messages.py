"""The messages that the troubleshooting page quotes are those that programs print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import CodeType

import pytest

from tests.docs.pages import DOCS, ROOT, prose

PAGE = DOCS / "troubleshooting.md"
# What differs from case to case: names in quotes, numbers, and what the page leaves out.
_VARIABLE = re.compile(r"""…|'[^']*'|"[^"]*"|\d+(?:\.\d+)*""")


def quoted() -> list[str]:
    """Return the messages in the first column of the page's tables."""
    cells = [line.split(" | ")[0] for _, line in prose(PAGE) if line.startswith("| `")]
    found = [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    return [text for text in found if len(text.split()) > 2 and not text.startswith("headrace ")]


@cache
def texts() -> str:
    """Return every text in the source, one below the other."""
    # What the compiler keeps: it is found in a third of the time that a walk through trees takes.
    codes = (
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
        for path in (ROOT / "src" / "headrace").rglob("*.py")
    )
    return "\n".join(text for code in codes for text in constants(code))


def constants(value: object) -> Iterator[str]:
    """Yield the texts in what a compiler has made: constants, and functions with theirs."""
    match value:
        case str():
            yield value
        case CodeType():
            for each in value.co_consts:
                yield from constants(each)
        case tuple() | frozenset():
            for each in value:
                yield from constants(each)


@pytest.mark.parametrize("message", quoted())
def test_every_quoted_message_is_one_that_is_printed(message: str) -> None:
    # The command line writes "error: " before any message; "is due" is one of two ways to go on.
    text = message.removeprefix("error: ").replace("It is due at", "… is due … at")
    parts = [part.strip(" ().,:;") for part in _VARIABLE.split(text)]
    wanted = [part for part in parts if len(part) > 3]
    assert wanted
    assert [part for part in wanted if part not in texts()] == []


def test_messages_are_found() -> None:
    assert len(quoted()) > 20
