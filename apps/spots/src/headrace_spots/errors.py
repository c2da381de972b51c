"""What can go wrong with a shop. Those derived from `ValidationError` are not worth a retry.

ValidationError
  InvalidAddress     the URL is none, or leads where nobody may crawl
  RobotsRefused      robots.txt does not want it
  NoReviews          there is nothing to analyse
HeadraceError
  CrawlFailed        the host did not answer, or with an error; worth a retry
"""

from __future__ import annotations

from headrace import HeadraceError, ValidationError


class InvalidAddress(ValidationError):
    """The URL cannot be crawled."""


class RobotsRefused(ValidationError):
    """The shop's robots.txt does not allow this page."""


class NoReviews(ValidationError):
    """No reviews were found on the pages."""


class CrawlFailed(HeadraceError):
    """The host did not answer, or answered with an error. Worth a retry."""
