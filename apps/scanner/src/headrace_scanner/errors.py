"""What can go wrong with a scan. Those derived from `ValidationError` are not worth a retry.

ValidationError
  InvalidProduct     a product, set, platform or address that cannot be
HeadraceError
  BrowserFailed      the browser did not start, or ended; worth a retry
  Unreached          the shop did not answer, or not so that it could be read
  Blocked            the shop refuses us
"""

from __future__ import annotations

from headrace import HeadraceError, ValidationError


class InvalidProduct(ValidationError):
    """A product, a set, a platform or an address that cannot be."""


class BrowserFailed(HeadraceError):
    """The browser did not start, or ended by itself. Worth a retry."""


class Unreached(HeadraceError):
    """The shop did not answer, or with something that could not be read."""


class Blocked(HeadraceError):
    """The shop refuses us. `after` is for how many seconds, if it says so."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after
