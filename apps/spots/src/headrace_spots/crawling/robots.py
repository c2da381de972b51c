"""What a host wishes of crawlers: robots.txt, as RFC 9309 reads it."""

from __future__ import annotations

from protego import Protego

from headrace_spots.crawling.pages import Fetched
from headrace_spots.errors import CrawlFailed

LARGEST = 512 * 1024


class Robots:
    """The rules of one origin for one crawler."""

    def __init__(self, text: str, user_agent: str) -> None:
        self._rules = Protego.parse(text)
        self._user_agent = user_agent

    @classmethod
    def of(cls, fetched: Fetched, user_agent: str) -> Robots:
        """Return the rules of an answer. Without such a file everything is allowed; a host that
        cannot say is not crawled: that raises `CrawlFailed`.
        """
        if fetched.status >= 500:
            raise CrawlFailed(f"{fetched.url} answered {fetched.status}, so nothing is allowed yet")
        # Of a very large one (status 0) the beginning counts.
        found = fetched.status in (0, 200)
        text = fetched.content.decode("utf-8", "replace") if found else ""
        return cls(text, user_agent)

    def allows(self, url: str) -> bool:
        """Return whether a page may be fetched."""
        return bool(self._rules.can_fetch(url, self._user_agent))

    def delay(self) -> float:
        """Return the seconds between two requests that the host asks for; 0 if it does not."""
        found = self._rules.crawl_delay(self._user_agent) or 0.0
        rate = self._rules.request_rate(self._user_agent)
        if rate is not None and rate.requests:
            found = max(found, rate.seconds / rate.requests)
        return float(found)
