"""Documents of a server: what `Documents` does, by its routes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx
import msgspec

from headrace import (
    AuthenticationError,
    EngineUnavailable,
    HeadraceError,
    InvalidInput,
    ValidationError,
)
from headrace_ingest.store.records import Status
from headrace_ingest.store.sources import FileSource
from headrace_ingest.views import Accepted, DocumentView, HitView

# A large file takes its time, and so does the first search of a server.
TIMEOUT = httpx.Timeout(30.0, read=300.0, write=300.0)
T = TypeVar("T")


class _Documents(msgspec.Struct):
    documents: list[Accepted]


class _Page(msgspec.Struct):
    documents: list[DocumentView]
    next: str | None


class _Hits(msgspec.Struct):
    hits: list[HitView]


class RemoteDocuments:
    """The documents of one server."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def connected(cls, url: str, api_key: str | None) -> AsyncIterator[Self]:
        """Yield the documents of the server at a URL."""
        headers = {} if api_key is None else {"X-API-Key": api_key}
        base = f"{url.rstrip('/')}/ingest/"
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=TIMEOUT) as client:
            yield cls(client)

    async def add(
        self, source: FileSource, name: str, path: str, *, metadata: Mapping[str, Any]
    ) -> Accepted:
        """Send a file."""
        form = {"path": path, "metadata": json.dumps(dict(metadata))}
        answer = await self._ask(
            "POST", "documents", _Documents, files={"files": (name, source.file)}, data=form
        )
        return answer.documents[0]

    async def get(self, document_id: str) -> DocumentView | None:
        """Return a document; None if there is none."""
        return await self._ask_for("GET", f"documents/{document_id}", DocumentView)

    async def remove(self, document_id: str) -> bool:
        """Delete a document; return whether there was one."""
        return await self._ask_for("DELETE", f"documents/{document_id}", None) is not None

    async def reindex(self, document_id: str) -> Accepted:
        """Process a document again from its original."""
        found = await self._ask_for("POST", f"documents/{document_id}/reindex", Accepted)
        if found is None:
            raise InvalidInput(f"there is no document {document_id}")
        return found

    async def search(self, question: str, path: str, k: int) -> list[HitView]:
        """Return the chunks that answer a question best."""
        params = {"q": question, "path": path, "k": k}
        return (await self._ask("GET", "search", _Hits, params=params)).hits

    async def list(
        self, path: str, status: Status | None, *, limit: int, after: str | None
    ) -> tuple[list[DocumentView], str | None]:
        """Return documents within a path, the newest first, and where the next page begins."""
        wanted = {"path": path, "status": status, "limit": limit, "cursor": after}
        params = {name: value for name, value in wanted.items() if value is not None}
        page = await self._ask("GET", "documents", _Page, params=params)
        return page.documents, page.next

    async def _ask(self, method: str, path: str, kind: type[T], **options: Any) -> T:
        return msgspec.json.decode(await self._content(method, path, **options), type=kind)

    async def _ask_for(self, method: str, path: str, kind: type[T] | None) -> T | Any:
        """Return what was asked for; None if there is no such document."""
        try:
            content = await self._content(method, path)
        except _Missing:
            return None
        return True if kind is None else msgspec.json.decode(content, type=kind)

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


class _Missing(InvalidInput):
    """There is no such document."""


def _refusal(answer: httpx.Response) -> HeadraceError:
    """Return what the server has said."""
    try:
        problem = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        problem = {}
    detail = str(problem.get("detail") or f"the server answered {answer.status_code}")
    if str(problem.get("type", "")).endswith("document-not-found"):
        return _Missing(detail)
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return AuthenticationError(f"{detail}; check HEADRACE_API_KEY")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return InvalidInput("the server of API_URL has no documents; start it with the bundle")
    return ValidationError(detail)
