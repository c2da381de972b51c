"""A server, as every verb reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from headrace.api_types.requests import EmptyRequest
from headrace.client.address import find_address
from headrace.client.job_codec import decode_job
from headrace.client.request import Call, open_transport
from headrace.config import load
from headrace.model.job import Job


class Remote:
    """A server, with connections that are made at the first request and kept."""

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

    async def _read(self, path: str, params: Mapping[str, Any] | None = None) -> bytes:
        call = Call(method="GET", path=path, params=params or {}, safe=True)
        return (await self._transport.send(call)).content

    async def _post(self, path: str, body: msgspec.Struct | None = None) -> bytes:
        call = Call(method="POST", path=path, body=msgspec.json.encode(body or EmptyRequest()))
        return (await self._transport.send(call)).content

    async def _steer(self, path: str, body: msgspec.Struct | None = None) -> Job:
        return decode_job(await self._post(path, body))


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were given."""
    return {name: value for name, value in params.items() if value is not None}
