"""Plain data about pages, and what is read from an answer. No I/O."""

from __future__ import annotations

import email.utils
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

HTML = re.compile(r"(?:text/html|application/xhtml\+xml)\b", re.IGNORECASE)
ENCODINGS = {"": 0, "identity": 0, "gzip": 31, "x-gzip": 31, "deflate": 47}
LONGEST_PAUSE = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of a host. `status` 0 is that of a page that is too large: this is its start."""

    url: str
    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content_type(self) -> str:
        """Return what the host says that it is."""
        return self.headers.get("content-type", "")

    @property
    def is_page(self) -> bool:
        """Return whether it is HTML that can be read."""
        return self.status == 200 and (not self.content_type or bool(HTML.match(self.content_type)))


class TooLarge(Exception):
    """There is more than may be read."""


class Inflater:
    """Adds up the content of an answer, unpacked, up to a limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        window = ENCODINGS.get(encoding.strip().lower())
        if window is None:
            raise zlib.error(f"content-encoding {encoding[:40]} was not asked for")
        self._unpack = zlib.decompressobj(window) if window else None
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Add a piece as it came. Raises `TooLarge`."""
        if self._unpack is not None:
            # A small piece may hold a very large page.
            chunk = self._unpack.decompress(chunk, self._limit - self._size + 1)
        self._parts.append(chunk[: self._limit - self._size])
        self._size += len(chunk)
        if self._size > self._limit:
            raise TooLarge

    def content(self) -> bytes:
        """Return all of it, or as much as may be read."""
        return b"".join(self._parts)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a host asks to wait, which it may say as a date; None: it does not
    say.
    """
    text = headers.get("retry-after", "").strip()
    if text.isdecimal() and text.isascii():
        return min(float(text[:12]), LONGEST_PAUSE)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    return min(max(seconds, 0.0), LONGEST_PAUSE)
