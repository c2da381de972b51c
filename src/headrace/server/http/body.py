"""What one caller may send: how much, how deep, how often."""

from __future__ import annotations

import itertools
import re
import time
from typing import TypeVar

import msgspec
from starlette.requests import Request

from headrace.server.http.problems import Refused, unreadable

T = TypeVar("T")

# What a request may have besides the arguments of its job.
SLACK = 65_536
# Far below what the decoders of workers, tools and browsers can take.
DEEPEST = 100
JSON = "application/json"


async def read_json(request: Request, kind: type[T], *, limit: int) -> T:
    """Return the body as a `kind`; refuse other media types, sizes and shapes."""
    _check_type(request)
    return decode(await read_body(request, limit=limit), kind)


async def read_optional_json(
    request: Request, kind: type[T], *, limit: int, empty: bytes = b"{}"
) -> T:
    """The same for a body that may be left out: then decode `empty` instead."""
    body = await read_body(request, limit=limit)
    if body:
        _check_type(request)
    return decode(body or empty, kind)


def _check_type(request: Request) -> None:
    kind = request.headers.get("content-type", "")
    if kind != JSON and media_type(kind) != JSON:
        raise unsupported(kind, JSON)


async def read_body(request: Request, *, limit: int) -> bytes:
    """The body, unless it is too large: then reading stops at once."""
    check_length(request, limit)
    chunks = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def check_length(request: Request, limit: int) -> None:
    """Refuse a body that says itself that it is too large, before any of it is read."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > limit:
        raise too_large(limit)


def decode(body: bytes, kind: type[T]) -> T:
    """Decode JSON that is not nested deeper than everybody can read."""
    if too_deep(body):
        raise Refused(
            422,
            "invalid-input",
            f"the JSON is nested more than {DEEPEST} levels deep",
            remedy="send flatter data",
        )
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise unreadable(error) from None


# One that is not closed runs to the end: so each byte is looked at once, whatever is sent.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def too_deep(body: bytes) -> bool:
    """Whether the JSON is nested deeper than DEEPEST."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    depths = itertools.accumulate(_STEP[bracket] for bracket in brackets)
    return max(depths, default=0) > DEEPEST


def media_type(header: str) -> str:
    """The type of a body without its parameters."""
    return header.partition(";")[0].strip().lower()


def unsupported(kind: str, *wanted: str) -> Refused:
    """The refusal of a body of another type."""
    return Refused(
        415,
        "unsupported-media-type",
        f"the body has the type {kind[:60]!r}" if kind else "the body has no type",
        field="Content-Type",
        value=kind,
        remedy=f"send Content-Type: {' or '.join(wanted)}",
    )


def too_large(limit: int) -> Refused:
    """The refusal of a body that is too large."""
    return Refused(
        413,
        "payload-too-large",
        f"the body has more than {limit:,} bytes",
        remedy="keep large data elsewhere and pass a reference, or raise HEADRACE_PAYLOAD_LIMIT",
        # What is left of the body is not read, so the connection cannot be used again.
        headers={"Connection": "close"},
    )


class Bucket:
    """A token bucket: `rate` requests a second, and twice as many at once."""

    __slots__ = ("_level", "_most", "_then", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._most = max(2 * rate, 1.0)
        self._level = self._most
        self._then = time.monotonic()

    def take(self) -> float:
        """Take one: 0 if there was one, else the seconds until there is."""
        now = time.monotonic()
        self._level = min(self._most, self._level + (now - self._then) * self.rate)
        self._then = now
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self.rate
