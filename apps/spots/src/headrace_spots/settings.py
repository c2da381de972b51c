"""Settings of the bundle: `HEADRACE_SPOTS_<NAME>`, or `[spots]` in headrace.toml."""

from __future__ import annotations

import os

import msgspec

from headrace import InvalidSetting

QUEUE = "hidden_spot"
MEBIBYTE = 1 << 20
# What is shorter needs no rate: to start a job takes longer.
SHORTEST_DELAY = 0.001


def queue_by_default() -> str:
    """Return the queue that `RQ_QUEUE` names, as the system before this one did."""
    return os.environ.get("RQ_QUEUE") or QUEUE


class SpotsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be changed without touching code."""

    queue: str = msgspec.field(default_factory=queue_by_default)
    """The queue of the jobs: `RQ_QUEUE`, else `hidden_spot`."""
    allow_private: bool = False
    """Whether shops at private addresses (this machine, the network behind the firewall) may be
    crawled."""
    user_agent: str = "HeadraceSpots/0.1"
    """How the crawler introduces itself, also to robots.txt. Add an address of yours."""
    delay_seconds: float = 1.0
    """The least time between two requests to a host, and between the beginnings of two runs of it;
    robots.txt may ask for more."""
    most_pages: int = 500
    """So many pages of a shop are fetched at most."""
    largest_page: int = 4 * MEBIBYTE
    """A page with more bytes is passed over."""
    most_reviews: int = 20_000
    page_seconds: float = 60.0
    """A page that takes longer is given up."""
    patience_seconds: float = 30.0
    """A host that asks to wait longer is asked again by a later attempt, which needs no slot until
    then."""
    sites: str | None = None
    """A folder of selector files (YAML), one for each site, beside those of the package."""
    batch_size: int = 50
    """So many sentences are embedded at once."""
    search_memory: int = 256 * MEBIBYTE
    """So many bytes of vectors a server keeps in memory to search in."""
    summary_url: str | None = None
    """An OpenAI-compatible service, such as https://api.example.com/v1, that words the summary;
    without it representative sentences are chosen."""
    summary_key: str | None = None
    summary_model: str = "gpt-4o-mini"

    @property
    def rate(self) -> str | None:
        """How fast runs of a host may begin, tries of one run included."""
        return f"{1 / self.delay_seconds:.9f}/s" if self.delay_seconds >= SHORTEST_DELAY else None

    def __post_init__(self) -> None:
        for name in ("most_pages", "largest_page", "most_reviews", "batch_size"):
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("delay_seconds", "patience_seconds"):
            if not getattr(self, name) >= 0:
                raise InvalidSetting(f"{name} must be at least 0, got {getattr(self, name)}")
        if not self.page_seconds > 0:
            raise InvalidSetting(f"page_seconds must be more than 0, got {self.page_seconds}")
        if not self.user_agent.isprintable() or not self.user_agent.strip():
            raise InvalidSetting(f"user_agent must be printable text, got {self.user_agent!r}")
