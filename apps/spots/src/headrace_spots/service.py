"""What the tasks, the routes and the commands share: tables, model, search, manners."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import App
from headrace.bundles import Setup
from headrace_spots.crawling.fetch import Manners
from headrace_spots.crawling.hosts import check_named
from headrace_spots.crawling.urls import clean_url, host_of, origin_of
from headrace_spots.embedding import SentenceEncoder
from headrace_spots.parsing.selectors import Site, load_sites
from headrace_spots.search.search import ReviewSearch
from headrace_spots.settings import SpotsSettings
from headrace_spots.store.repository import ShopRepository

TASK = "spots.shop"
AGAIN = "spots.again"
SETTLE = "spots.settle"
OWNER = "spots"

_services: WeakKeyDictionary[Setup, SpotsService] = WeakKeyDictionary()


class SpotsService:
    """The parts of the bundle in one App, each made when it is first used."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.own_origins: set[str] = set()
        """Shops of this process itself, such as that of the demo: no firewall is between, and
        nobody has to be spared."""
        self.guests: list[object] = []
        """What lives as long as this process, such as the server of the demo."""
        self._repositories: WeakKeyDictionary[AsyncEngine, ShopRepository] = WeakKeyDictionary()
        self._searches: WeakKeyDictionary[AsyncEngine, ReviewSearch] = WeakKeyDictionary()

    @classmethod
    def of(cls, setup: Setup) -> SpotsService:
        """Return the one of a setup."""
        return _services.setdefault(setup, cls(setup))

    @property
    def app(self) -> App:
        """Return the App."""
        return self.setup.app

    @property
    def settings(self) -> SpotsSettings:
        """Return the settings of the bundle."""
        settings: SpotsSettings = self.setup.settings
        return settings

    @property
    def repository(self) -> ShopRepository:
        """Return the repository of the running event loop."""
        engine = self.setup.engine()
        return self._repositories.setdefault(engine, ShopRepository(engine))

    @property
    def search(self) -> ReviewSearch:
        """Return the search of the running event loop, which keeps vectors in memory."""
        engine = self.setup.engine()
        if engine not in self._searches:
            memory = self.settings.search_memory
            self._searches[engine] = ReviewSearch(engine, self.encoder, memory_bytes=memory)
        return self._searches[engine]

    @functools.cached_property
    def encoder(self) -> SentenceEncoder:
        """Return what turns sentences into vectors."""
        return SentenceEncoder()

    @functools.cached_property
    def sites(self) -> Mapping[str, Site]:
        """Return the selector files by host."""
        return load_sites(self.settings.sites)

    @property
    def one_transaction(self) -> bool:
        """Return whether rows and jobs are in one PostgreSQL, so that both are written at once."""
        tables, jobs = self.setup.tables_address, urlsplit(self.app.settings.url)
        if not tables.postgres or jobs.scheme not in ("postgresql", "postgres"):
            return False
        ours = urlsplit(tables.url)
        return (ours.netloc, ours.path) == (jobs.netloc, jobs.path)

    def check_url(self, text: str) -> str:
        """Return a URL that may be crawled, as far as its text tells. Raises `InvalidAddress`."""
        url = clean_url(text)
        if not self.allows_private(url):
            check_named(host_of(url))
        return url

    def allows_private(self, url: str) -> bool:
        """Return whether a URL may lead to a private address."""
        return self.settings.allow_private or origin_of(url) in self.own_origins

    def manners(self, url: str) -> Manners:
        """Return how the host of a URL is asked."""
        settings = self.settings
        own = origin_of(url) in self.own_origins
        return Manners(
            user_agent=settings.user_agent,
            delay=0.0 if own else settings.delay_seconds,
            page_seconds=settings.page_seconds,
            patience=settings.patience_seconds,
            largest_page=settings.largest_page,
            allow_private=self.allows_private,
        )
