"""Text on its way into a store: what can be kept, and what can be an id. And where the store is,
fit for people.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from headrace.errors import InvalidInput

# PostgreSQL has no NUL character, and UTF-8 no surrogates.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def storable(text: str) -> str:
    """The text with each character that some store cannot keep replaced by U+FFFD.

    What a handler or a machine says must not cost a job its outcome, and reads alike everywhere.
    """
    return _UNSTORABLE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """The text on one line, with control characters shown and not obeyed: fit for a log."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


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


_HIDDEN = "***"
_PASSWORD = re.compile(
    r"((?:^|[?&;])[^=&?;]*(?:password|passfile|secret|token)=)[^&;#]*", re.IGNORECASE
)


def redacted(url: str) -> str:
    """The URL without its password, fit for logs and messages. One that cannot be taken apart, for
    instance because its scheme is missing, shows nothing before its host.
    """
    try:
        parts = urlsplit(url)
        password, user = parts.password, parts.username
    except ValueError:
        return "<unreadable URL>"
    if password is not None:
        netloc = f"{user or ''}:{_HIDDEN}@{parts.netloc.rpartition('@')[2]}"
        parts = parts._replace(netloc=netloc)
        url = parts.geturl()
    elif "@" in url and "@" not in parts.netloc and parts.scheme not in ("sqlite", "unix"):
        # Whatever this is, what stands before the @ may hold a password.
        scheme, colon, rest = url.partition("://")
        before = f"{scheme}{colon}" if colon and "@" in rest else ""
        url = f"{before}{_HIDDEN}@{url.rpartition('@')[2]}"
    return _PASSWORD.sub(rf"\g<1>{_HIDDEN}", url)
