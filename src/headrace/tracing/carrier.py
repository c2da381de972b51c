"""W3C trace context in the `meta` of jobs and in the headers of messages. Plain text: what carries
it needs nothing of OpenTelemetry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
FIELDS = (TRACEPARENT, TRACESTATE)
# More is not passed on: https://www.w3.org/TR/trace-context/ asks for 512 at least.
LONGEST_STATE = 512

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_HINT = b'"traceparent"'


def of_meta(meta: bytes | None) -> dict[str, str]:
    """Return the trace context in the `meta` of a job; nothing if there is none that is valid."""
    if meta is None or _HINT not in meta:
        return {}
    return checked(msgspec.json.decode(meta))


def into_meta(meta: bytes | None, carrier: Mapping[str, str]) -> bytes | None:
    """Return the `meta` with this trace context, instead of the one that it had."""
    if not carrier:
        return meta
    found = without(msgspec.json.decode(meta)) if meta else {}
    return msgspec.json.encode({**found, **carrier})


def without(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `meta` without its trace context."""
    return {name: value for name, value in meta.items() if name not in FIELDS}


def checked(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return the trace context of headers, as text or bytes; nothing if it is not valid. Anybody
    may send such headers, so what is kept is as short as the standard has it.
    """
    parent = _text(headers.get(TRACEPARENT))
    if parent is None or not _TRACEPARENT.fullmatch(parent) or parent.startswith("ff"):
        return {}
    state = _text(headers.get(TRACESTATE))
    if not state or len(state) > LONGEST_STATE or not (state.isascii() and state.isprintable()):
        return {TRACEPARENT: parent}
    return {TRACEPARENT: parent, TRACESTATE: state}


def _text(value: Any) -> str | None:
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("ascii", "replace")
    return value if isinstance(value, str) else None
