"""Shops of a server: what `Shops` does, by its routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx
import msgspec

from headrace import (
    ArtifactNotFound,
    AuthenticationError,
    EngineUnavailable,
    HeadraceError,
    InvalidInput,
    ValidationError,
)
from headrace_spots.store.records import RunStatus
from headrace_spots.views import AcceptedRun, ReviewHit, RunView, StoreDetail, StoreView

# The first search of a server takes its time.
TIMEOUT = httpx.Timeout(30.0, read=120.0)
MISSING = ("run-not-found", "shop-not-found", "schedule-not-found", "report-not-found")
T = TypeVar("T")


class _Runs(msgspec.Struct):
    jobs: list[RunView]
    next: str | None


class _Stores(msgspec.Struct):
    stores: list[StoreView]
    next: str | None


class _Hits(msgspec.Struct):
    hits: list[ReviewHit]


class RemoteShops:
    """The shops of one server."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def connected(cls, url: str, api_key: str | None) -> AsyncIterator[Self]:
        """Yield the shops of the server at a URL."""
        headers = {} if api_key is None else {"X-API-Key": api_key}
        base = f"{url.rstrip('/')}/spots/"
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=TIMEOUT) as client:
            yield cls(client)

    async def add(self, url: str) -> AcceptedRun:
        """Have a shop analysed."""
        return await self._ask("POST", "jobs", AcceptedRun, json={"url": url})

    async def get(self, run_id: str) -> RunView | None:
        """Return a run; None if there is none."""
        return await self._ask_for(f"jobs/{run_id}", RunView)

    async def runs(
        self,
        *,
        store_id: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[RunView], str | None]:
        """Return runs, the newest first, and where the next page begins."""
        wanted = {"store": store_id, "status": status, "limit": limit, "cursor": after}
        page = await self._ask("GET", "jobs", _Runs, params=_given(wanted))
        return page.jobs, page.next

    async def stores(
        self, *, limit: int = 50, after: str | None = None
    ) -> tuple[list[StoreView], str | None]:
        """Return shops, the newest first, and where the next page begins."""
        wanted = {"limit": limit, "cursor": after}
        page = await self._ask("GET", "stores", _Stores, params=_given(wanted))
        return page.stores, page.next

    async def store(self, store_id: str) -> StoreDetail | None:
        """Return a shop with all that is known about it; None if there is none."""
        return await self._ask_for(f"stores/{store_id}", StoreDetail)

    async def remove(self, store_id: str) -> bool:
        """Delete a shop; return whether there was one."""
        return await self._done("DELETE", f"stores/{store_id}")

    async def search(self, question: str, store_id: str | None, k: int) -> list[ReviewHit]:
        """Return the reviews that answer a question best."""
        params = _given({"q": question, "store": store_id, "k": k})
        return (await self._ask("GET", "search", _Hits, params=params)).hits

    async def report(self, run_id: str) -> bytes:
        """Return the report of a run. Raises `ArtifactNotFound`."""
        try:
            return await self._content("GET", f"jobs/{run_id}/report")
        except _Absent as error:
            raise ArtifactNotFound(str(error)) from None

    async def schedule(self, store_id: str, cron: str, tz: str = "UTC") -> dict[str, Any]:
        """Have a shop analysed again by the clock."""
        path = f"stores/{store_id}/schedule"
        return await self._ask("PUT", path, dict[str, Any], json={"cron": cron, "tz": tz})

    async def unschedule(self, store_id: str) -> bool:
        """End what `schedule` began; return whether there was a schedule."""
        return await self._done("DELETE", f"stores/{store_id}/schedule")

    async def _ask(self, method: str, path: str, kind: type[T], **options: Any) -> T:
        return msgspec.json.decode(await self._content(method, path, **options), type=kind)

    async def _ask_for(self, path: str, kind: type[T]) -> T | None:
        try:
            return await self._ask("GET", path, kind)
        except _Absent:
            return None

    async def _done(self, method: str, path: str) -> bool:
        try:
            await self._content(method, path)
        except _Absent:
            return False
        return True

    async def _content(self, method: str, path: str, **options: Any) -> bytes:
        try:
            answer = await self._client.request(method, path, **options)
        except httpx.TransportError as error:
            where = self._client.base_url.copy_with(userinfo=b"")
            kind = type(error).__name__
            raise EngineUnavailable(f"no answer from {where}: {kind}; check API_URL") from None
        if not answer.is_success:
            raise _refusal(answer)
        return answer.content


class _Absent(InvalidInput):
    """There is no such shop or run."""


def _given(wanted: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value is not None}


def _refusal(answer: httpx.Response) -> HeadraceError:
    """Return what the server has said."""
    try:
        problem = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        problem = {}
    detail = str(problem.get("detail") or f"the server answered {answer.status_code}")
    if str(problem.get("type", "")).endswith(MISSING):
        return _Absent(detail)
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return AuthenticationError(f"{detail}; check HEADRACE_API_KEY")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return InvalidInput("the server of API_URL has no shops; start it with the bundle")
    return ValidationError(detail)
