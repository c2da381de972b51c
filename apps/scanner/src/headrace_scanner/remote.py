"""Products of a server: what `Scanner` does, by its routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from headrace import Client
from headrace_scanner.imports import ProductRow
from headrace_scanner.store.products import Imported, ProductSet
from headrace_scanner.store.records import ScanStatus
from headrace_scanner.views import (
    Begun,
    ChangeView,
    PlatformView,
    ProductView,
    ScanDetail,
    ScanView,
)


class _Platforms(msgspec.Struct):
    platforms: list[PlatformView]


class _Changes(msgspec.Struct):
    changes: list[ChangeView]


class _Sets(msgspec.Struct):
    sets: list[ProductSet]


class _Scans(msgspec.Struct):
    scans: list[ScanView]
    next: str | None


class _Products(msgspec.Struct):
    products: list[ProductView]
    next: str | None


class RemoteScanner:
    """The products of one server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def add(
        self, rows: Sequence[ProductRow], set_name: str, *, replace: bool = False
    ) -> Imported:
        """Import products into a set, all or nothing."""
        body = {"products": msgspec.to_builtins(rows), "replace": replace}
        path = f"/scanner/sets/{quote(set_name, safe='')}"
        found: Imported = await self._client.call("PUT", path, body, type=Imported)
        return found

    async def products(
        self,
        *,
        platform: str | None = None,
        set_name: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[ProductView], str | None]:
        """Return products, and where the next page begins."""
        wanted = {"platform": platform, "set": set_name, "limit": limit, "cursor": after}
        page: _Products = await self._read("/products", _Products, wanted)
        return page.products, page.next

    async def sets(self) -> list[ProductSet]:
        """Return all product sets."""
        found: _Sets = await self._read("/sets", _Sets)
        return found.sets

    async def scan(
        self,
        platform: str,
        *,
        set_name: str = "",
        products: Sequence[str] = (),
        priority: int | None = None,
    ) -> Begun:
        """Begin a run on a platform."""
        body = {
            "platform": platform,
            "set": set_name,
            "products": list(products),
            "priority": priority,
        }
        begun: Begun = await self._client.call("POST", "/scanner/scans", body, type=Begun)
        return begun

    async def extract(
        self, kind: str, params: dict[str, Any], *, priority: int | None = None
    ) -> Begun:
        """Begin an extract job."""
        body = {"type": kind, "priority": priority, **params}
        begun: Begun = await self._client.call("POST", "/scanner/extractions", body, type=Begun)
        return begun

    async def get(self, scan_id: str, limit: int = 50) -> ScanDetail:
        """Return a scan with what it has seen. Raises `headrace.client.errors.NotFound`."""
        del limit
        found: ScanDetail = await self._read(f"/scans/{quote(scan_id, safe='')}", ScanDetail)
        return found

    async def scans(
        self,
        *,
        platform: str | None = None,
        status: ScanStatus | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[ScanView], str | None]:
        """Return scans, the newest first, and where the next page begins."""
        wanted = {"platform": platform, "status": status, "limit": limit, "cursor": after}
        page: _Scans = await self._read("/scans", _Scans, wanted)
        return page.scans, page.next

    async def changes(
        self, *, platform: str | None = None, scan_id: str | None = None, limit: int = 50
    ) -> list[ChangeView]:
        """Return what changed, the newest first."""
        wanted = {"platform": platform, "scan": scan_id, "limit": limit}
        found: _Changes = await self._read("/changes", _Changes, wanted)
        return found.changes

    async def platforms(self) -> list[PlatformView]:
        """Return the eight platforms."""
        found: _Platforms = await self._read("/platforms", _Platforms)
        return found.platforms

    async def _read(self, path: str, kind: Any, params: dict[str, Any] | None = None) -> Any:
        return await self._client.call("GET", f"/scanner{path}", params=params, type=kind)
