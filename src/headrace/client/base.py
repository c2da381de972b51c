"""What all verbs of a client share: one server, and how to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypedDict, TypeVar
from urllib.parse import quote

import msgspec

from headrace.api_types.requests import EmptyRequest
from headrace.client.address import find_address
from headrace.client.job_codec import decode, decode_job, decode_list
from headrace.client.request import Request, open_transport
from headrace.config import load
from headrace.model.job import Job
from headrace.model.names import check_name

T = TypeVar("T")

_EMPTY = EmptyRequest()


class ClientOptions(TypedDict, total=False):
    """The options of a Client."""

    api_key: str | None
    timeout: float
    retries: int


class BaseClient:
    """A server, with connections that are made at the first request and kept open."""

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retries: int = 4,
    ) -> None:
        address = find_address(url, api_key, load())
        self._transport = open_transport(address, timeout=timeout, retries=retries)
        self._timeout = timeout
        self._retries = retries

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    @property
    def url(self) -> str:
        """Where the server is, without any password."""
        return self._transport.address.base

    async def close(self) -> None:
        """Close every connection. The Client can be used again."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        type: Any = Any,
    ) -> Any:
        """Ask a route of a bundle, such as "GET", "/shelf/books", and return its answer as this
        type. `body` is sent as JSON, `params` that are None are left out. Requests that read are
        tried again while the server is away.

        A refusal is the error that its problem stands for; what is not there is a `NotFound`.
        """
        request = Request(
            method=method,
            path=path,
            params=given(**(params or {})),
            body=None if body is None else msgspec.json.encode(body),
            idempotent=method in ("GET", "HEAD"),
        )
        content = (await self._transport.send(request)).content
        return decode(content, type, f"an answer to {method} {path}")

    # -- for verbs -----------------------------------------------------------------------------

    async def _content(self, path: str, params: Mapping[str, Any] | None = None) -> bytes:
        request = Request(method="GET", path=path, params=params or {}, idempotent=True)
        return (await self._transport.send(request)).content

    async def _get(
        self, path: str, kind: type[T], what: str, params: Mapping[str, Any] | None = None
    ) -> T:
        return decode(await self._content(path, params), kind, what)

    async def _list(
        self, path: str, noun: str, item: type[T], params: Mapping[str, Any] | None = None
    ) -> list[T]:
        return decode_list(await self._content(path, params), noun, item)

    async def _send(
        self,
        method: str,
        path: str,
        kind: type[T],
        body: msgspec.Struct | None = _EMPTY,
        *,
        idempotent: bool = False,
        read_timeout: float | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> T:
        request = Request(
            method=method,
            path=path,
            params=params or {},
            body=None if body is None else msgspec.json.encode(body),
            idempotent=idempotent,
            read_timeout=read_timeout,
        )
        response = await self._transport.send(request)
        return decode(response.content, kind, f"an answer to {method} {path}")

    async def _change_job(self, path: str, body: msgspec.Struct = _EMPTY) -> Job:
        request = Request(method="POST", path=path, body=msgspec.json.encode(body))
        return decode_job((await self._transport.send(request)).content)


def given(**params: Any) -> dict[str, Any]:
    """Return the parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}


def path_to(collection: str, kind: str, name: str) -> str:
    """Return the path of something that has a name."""
    return f"/{collection}/{quote(check_name(kind, name), safe='')}"
