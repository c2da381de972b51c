"""Idempotency keys of bound API keys: each tenant has a space of its own.

An engine knows one space for each task. If all callers shared it, whoever may enqueue in one queue
could take the keys of jobs of another queue, and so keep them from being made. So a job that an API
key for some queues makes has a key that begins with its queue, and one of a key with a user begins
with that user. Decision 0037 says why it is done here, above the engines.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote

from headrace.model.names import TEXT_LIMIT

# What is written as it is in the name of a user.
_PLAIN = "@._-+"


def prefix(queue: str | None, user: str | None) -> str:
    """Return what keys begin with in the space of a queue, of a user, or of both; "" for all."""
    words = [] if queue is None else [f"in {queue}"]
    if user is not None:
        words.append(f"for {quote(user, safe=_PLAIN)}")
    return f"{' '.join(words)}: " if words else ""


def in_space(key: str, queue: str | None, user: str | None) -> str:
    """Return a key as it is stored. One that would be too long is stored as its hash."""
    stored = prefix(queue, user) + key
    if len(stored.encode()) > TEXT_LIMIT and stored != key:
        return f"bound: {hashlib.sha256(stored.encode()).hexdigest()}"
    return stored


def as_given(stored: str, queue: str | None, user: str | None) -> str:
    """Return a stored key as the caller of this space has given it."""
    return stored.removeprefix(prefix(queue, user))
