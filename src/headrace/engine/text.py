"""Text on its way into a store: what can be kept, and what can be an id."""

from __future__ import annotations

import re

from headrace.errors import InvalidInput

# PostgreSQL has no NUL character, and UTF-8 no surrogates.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def storable(text: str) -> str:
    """The text with each character that some store cannot keep replaced by U+FFFD.

    What a handler or a machine says must not cost a job its outcome, and reads alike everywhere.
    """
    return _UNSTORABLE.sub("\ufffd", text)


def is_id(text: str) -> bool:
    """Whether this can be the id of a job. No job has any other."""
    return _ID.fullmatch(text) is not None


def checked_cursor(cursor: str | None) -> str | None:
    """The id after which a page begins, if it is one."""
    if cursor is not None and not is_id(cursor):
        raise InvalidInput(
            f"cursor {cursor!r} is not the id of a job; use that of the page before, or none"
        )
    return cursor
