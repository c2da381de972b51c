"""What the tasks, the routes and the commands share: tables, platforms, manners."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import App
from headrace.bundles import Setup
from headrace_scanner.errors import InvalidProduct
from headrace_scanner.platforms import NAMES, SHOPS, Platform, load_platforms
from headrace_scanner.reading.addresses import check_url, origin_of, shown
from headrace_scanner.reading.manners import Manners
from headrace_scanner.settings import SHOPS_VARIABLE, ScannerSettings
from headrace_scanner.store.products import ProductRepository
from headrace_scanner.store.records import NewProduct, SaleStatus
from headrace_scanner.store.scans import ScanRepository

OWNER = "scanner"
LONGEST_ID = 200

_services: WeakKeyDictionary[Setup, ScannerService] = WeakKeyDictionary()


class ScannerService:
    """The parts of the bundle in one App, each made when it is first used."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.shops = self.settings.shops
        self.guests: list[object] = []
        """What lives as long as this process, such as the server of the demo."""
        self._products: WeakKeyDictionary[AsyncEngine, ProductRepository] = WeakKeyDictionary()
        self._scans: WeakKeyDictionary[AsyncEngine, ScanRepository] = WeakKeyDictionary()

    @classmethod
    def of(cls, setup: Setup) -> ScannerService:
        """Return the one of a setup."""
        return _services.setdefault(setup, cls(setup))

    @property
    def app(self) -> App:
        """Return the App."""
        return self.setup.app

    @property
    def settings(self) -> ScannerSettings:
        """Return the settings of the bundle."""
        settings: ScannerSettings = self.setup.settings
        return settings

    @property
    def products(self) -> ProductRepository:
        """Return the products, for the running event loop."""
        engine = self.setup.engine()
        return self._products.setdefault(engine, ProductRepository(engine))

    @property
    def scans(self) -> ScanRepository:
        """Return the scans, for the running event loop."""
        engine = self.setup.engine()
        return self._scans.setdefault(engine, ScanRepository(engine))

    # -- platforms -----------------------------------------------------------------------------

    def use_shops(self, url: str) -> None:
        """Ask these shops instead of the real ones, here and in child processes of this one."""
        self.shops = url
        os.environ[SHOPS_VARIABLE] = url

    @functools.cached_property
    def _platforms(self) -> Mapping[str, Platform]:
        return load_platforms(self.settings.platforms)

    def platform(self, name: str) -> Platform:
        """Return a platform, with the place where it is asked. Raises `InvalidProduct`."""
        found = self._platforms.get(name)
        if found is None:
            raise InvalidProduct(f"platform is {shown(name)}; use one of {', '.join(NAMES)}")
        if self.shops is None or found.base is None:
            return found
        return structs.replace(found, base=f"{self.shops.rstrip('/')}/{name}")

    def shop(self, name: str) -> Platform:
        """Return a platform that has products. Raises `InvalidProduct`."""
        if name not in SHOPS:
            raise InvalidProduct(f"platform is {shown(name)}; use one of {', '.join(SHOPS)}")
        return self.platform(name)

    def platform_of(self, url: str) -> str:
        """Return the platform that a URL is of: `default` for shops that nobody knows."""
        for name in SHOPS:
            platform = self.platform(name)
            if platform.id_in(platform.base, url) is not None:
                return name
        return "default"

    def product(self, platform_name: str, given: str, url: str | None = None) -> NewProduct:
        """Return a product of a platform by its id there, or by its address. Raises
        `InvalidProduct`.
        """
        platform = self.shop(platform_name)
        given = given.strip()
        if given.startswith(("http://", "https://")):
            url, given = given, platform.id_in(platform.base, given) or given
        if url is None:
            url = platform.url_of(platform.base, given)
        if url is None:
            raise InvalidProduct(f"product {shown(given)} of {platform_name} needs a url")
        check_url(url)
        if platform.base is not None and not url.startswith(platform.base.rstrip("/") + "/"):
            raise InvalidProduct(f"url is {shown(url)}, which is not of {platform_name}")
        if not given or (len(given) > LONGEST_ID and platform.base is not None):
            raise InvalidProduct(
                f"product is {shown(given)}; an id has 1 to {LONGEST_ID} characters"
            )
        if not given.isprintable():
            raise InvalidProduct(f"product is {shown(given)}; an id has printable characters only")
        return NewProduct(platform=platform_name, external_id=given, url=url)

    # -- manners -------------------------------------------------------------------------------

    def allows_private(self, url: str) -> bool:
        """Return whether an address may be private."""
        if self.settings.allow_private:
            return True
        if self.shops is None or not url:
            return False
        try:
            return origin_of(check_url(url)) == origin_of(check_url(self.shops))
        except InvalidProduct:
            return False

    @property
    def manners(self) -> Manners:
        """Return how shops are asked."""
        settings = self.settings
        return Manners(
            user_agent=settings.user_agent,
            browser=settings.browser,
            # Shops of ours need not be spared.
            delay=settings.delay_seconds if self.shops is None else 0.0,
            visit_seconds=settings.visit_seconds,
            patience=settings.patience_seconds,
            tries=settings.tries,
            blocked_in_a_row=settings.blocked_in_a_row,
            largest_page=settings.largest_page,
            allows_private=self.allows_private,
        )


def sale_status_of(text: str | None) -> SaleStatus | None:
    """Return a sale status. Raises `InvalidProduct`."""
    if not text:
        return None
    try:
        return SaleStatus(text)
    except ValueError:
        known = ", ".join(SaleStatus)
        raise InvalidProduct(f"sale_status is {shown(text)}; use one of {known}") from None
