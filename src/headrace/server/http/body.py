"""Bodies of requests: read up to a limit, and decoded if they are not nested too deeply.

`body_limits.py` has the limits.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from headrace.server.http.body_limits import DEEPEST
from headrace.server.http.problems import Refused, unreadable
from headrace.server.service import service_of

T = TypeVar("T")

JSON = "application/json"


async def read_json(request: Request, kind: type[T], *, limit: int | None = None) -> T:
    """Return the body as a `kind`; refuse other media types, sizes and shapes."""
    _check_type(request)
    return decode(await read_body(request, limit), kind)


async def read_optional_json(request: Request, kind: type[T], *, empty: bytes = b"{}") -> T:
    """The same for a body that may be left out: then decode `empty` instead."""
    body = await read_body(request)
    if body:
        _check_type(request)
    return decode(body or empty, kind)


def _check_type(request: Request) -> None:
    kind = request.headers.get("content-type", "")
    if kind != JSON and media_type(kind) != JSON:
        raise unsupported(kind, JSON)


async def read_body(request: Request, limit: int | None = None) -> bytes:
    """Return the body; refuse it as soon as it is too large."""
    limit = limit or service_of(request).body_limits.request
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
    """Refuse a body whose declared length is too large, before any of it is read."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > limit:
        raise too_large(limit)


def decode(body: bytes, kind: type[T]) -> T:
    """Decode JSON; refuse what is nested too deeply or does not fit."""
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
        if not str(error).startswith(_NOT_WHOLE):
            raise unreadable(error) from None
    # To JSON 5.0 is a whole number, too, and some languages write it so.
    try:
        return msgspec.convert(whole_numbers(msgspec.json.decode(body)), kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise unreadable(error) from None


_NOT_WHOLE = ("Expected `int`, got `float`", "Expected `int | null`, got `float`")


def whole_numbers(value: Any) -> Any:
    """Return a decoded document with 5 for each 5.0."""
    match value:
        case dict():
            return {name: whole_numbers(each) for name, each in value.items()}
        case list():
            return [whole_numbers(each) for each in value]
        case _:
            return whole(value)


def whole(value: Any) -> Any:
    """Return a number as an integer, if it is one."""
    exact = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    return int(value) if exact else value


# An unclosed string runs to the end, so that every byte is scanned once, whatever is sent.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def too_deep(body: bytes) -> bool:
    """Return whether the JSON is nested deeper than DEEPEST."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    depths = itertools.accumulate(_STEP[bracket] for bracket in brackets)
    return max(depths, default=0) > DEEPEST


def media_type(header: str) -> str:
    """Return a media type without its parameters."""
    return header.partition(";")[0].strip().lower()


def unsupported(kind: str, *wanted: str) -> Refused:
    """Return the refusal of a body of another media type."""
    return Refused(
        415,
        "unsupported-media-type",
        f"the body has the type {kind[:60]!r}" if kind else "the body has no type",
        field="Content-Type",
        value=kind,
        remedy=f"send Content-Type: {' or '.join(wanted)}",
    )


def too_large(limit: int) -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused(
        413,
        "payload-too-large",
        f"the body has more than {limit:,} bytes",
        remedy="keep large data elsewhere and pass a reference, or raise HEADRACE_PAYLOAD_LIMIT",
        # What is left of the body is not read, so the connection cannot be used again.
        headers={"Connection": "close"},
    )
