"""What names may look like. One rule, checked at the one door in."""

from __future__ import annotations

import re

from headrace.errors import InvalidName

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]*")
WORKFLOW = "headrace.workflow"
"""The task that runs workflows."""

NAME_LIMIT = 128
TEXT_LIMIT = 512


def check_name(kind: str, name: str) -> str:
    """Check the name of a queue, task or worker."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_LIMIT:
        raise InvalidName(
            f"{kind} name {_short(name)} is not valid; use 1 to {NAME_LIMIT} letters, digits and "
            f'"_", ".", ":", "-", starting with a letter, a digit or "_"'
        )
    return name


def check_text(kind: str, text: str) -> str:
    """Check a lane or an idempotency key: any text without control characters, not too long."""
    if not isinstance(text, str) or not text or len(text.encode("utf-8", "replace")) > TEXT_LIMIT:
        raise InvalidName(
            f"{kind} {_short(text)} is not valid; use 1 to {TEXT_LIMIT} bytes of text"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidName(f"{kind} {_short(text)} is not valid Unicode text") from None
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise InvalidName(f"{kind} {_short(text)} contains a control character; remove it")
    return text


def _short(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
