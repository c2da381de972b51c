"""Errors of a remote server. All others are those of an App.

    HeadraceError
    ├── AccessDenied        the key is missing, wrong, revoked, or may not do this
    ├── NotFound            the server has no such file or record
    ├── RateLimited         too many requests for this key; nothing was changed
    └── UnexpectedAnswer    what answered does not speak as a Headrace server does

A server that cannot be reached is an `EngineUnavailable`, as an engine would be.
"""

from __future__ import annotations

from headrace.errors import HeadraceError


class AccessDenied(HeadraceError):
    """The server refuses this key, or a request without one; nothing was changed."""


class NotFound(HeadraceError):
    """The server has nothing of this name. A missing job is a `JobNotFound`."""


class RateLimited(HeadraceError):
    """Too many requests for this key; nothing was changed."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnexpectedAnswer(HeadraceError):
    """The response is not one of a Headrace server."""
