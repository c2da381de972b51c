"""Dialogues of a server: what `Dialogues` does, by its routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx
import msgspec

from headrace import (
    AuthenticationError,
    EngineUnavailable,
    HeadraceError,
    InvalidInput,
    JobConflict,
)
from headrace_speech.dialogues import LOCAL_USER, DialogueFilter
from headrace_speech.providers.base import Voices
from headrace_speech.script import Script
from headrace_speech.views import Accepted, JobView

# A large file takes its time.
TIMEOUT = httpx.Timeout(30.0, read=300.0, write=300.0)
T = TypeVar("T")


class _Page(msgspec.Struct):
    jobs: list[JobView]
    next: str | None


class RemoteDialogues:
    """The dialogues of one server."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def connected(cls, url: str, api_key: str | None) -> AsyncIterator[Self]:
        """Yield the dialogues of the server at a URL."""
        headers = {} if api_key is None else {"X-API-Key": api_key}
        base = f"{url.rstrip('/')}/speech/"
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=TIMEOUT) as client:
            yield cls(client)

    async def hand_in(self, script: Script, *, user: str = LOCAL_USER) -> Accepted:
        """Send a script. Its user is that of the key."""
        if user != LOCAL_USER:
            raise InvalidInput(f"the user of a server is that of the key, not {user!r}")
        body = msgspec.json.encode(script)
        headers = {"Content-Type": "application/json"}
        return await self._ask("POST", "jobs", Accepted, content=body, headers=headers)

    async def get(self, job_id: str) -> JobView | None:
        """Return a job; None if there is none."""
        return await self._ask_for("GET", f"jobs/{job_id}", JobView)

    async def retry(self, job_id: str) -> JobView | None:
        """Hand in again what has failed; None if there is no such job."""
        return await self._ask_for("POST", f"jobs/{job_id}/retry", JobView)

    async def delete(self, job_id: str) -> bool:
        """Delete a job with its file; return whether there was one."""
        return await self._ask_for("DELETE", f"jobs/{job_id}", None) is not None

    async def voices(self, provider: str) -> Voices:
        """Return the voices of a provider."""
        return await self._ask("GET", "voices", Voices, params={"provider": provider})

    async def list(
        self, wanted: DialogueFilter, *, limit: int, after: str | None
    ) -> tuple[list[JobView], str | None]:
        """Return jobs, the newest first, and where the next page begins."""
        given = {
            "status": wanted.status,
            "user": wanted.user,
            "created_after": wanted.created_after and wanted.created_after.isoformat(),
            "created_before": wanted.created_before and wanted.created_before.isoformat(),
            "limit": limit,
            "cursor": after,
        }
        params = {name: value for name, value in given.items() if value is not None}
        page = await self._ask("GET", "jobs", _Page, params=params)
        return page.jobs, page.next

    async def content(self, audio_file_id: str) -> AsyncIterator[bytes]:
        """Yield a file."""
        try:
            async with self._client.stream("GET", f"audio/{audio_file_id}") as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise _refusal(answer)
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise self._unavailable(error) from None

    async def _ask(self, method: str, path: str, kind: type[T], **options: Any) -> T:
        return msgspec.json.decode(await self._content(method, path, **options), type=kind)

    async def _ask_for(self, method: str, path: str, kind: type[T] | None) -> T | Any:
        """Return what was asked for; None if there is no such job."""
        try:
            content = await self._content(method, path)
        except _Missing:
            return None
        return True if kind is None else msgspec.json.decode(content, type=kind)

    async def _content(self, method: str, path: str, **options: Any) -> bytes:
        try:
            answer = await self._client.request(method, path, **options)
        except httpx.TransportError as error:
            raise self._unavailable(error) from None
        if not answer.is_success:
            raise _refusal(answer)
        return answer.content

    def _unavailable(self, error: httpx.TransportError) -> EngineUnavailable:
        where = self._client.base_url.copy_with(userinfo=b"")
        return EngineUnavailable(f"no answer from {where}: {type(error).__name__}; check API_URL")


class _Missing(InvalidInput):
    """There is no such job or file."""


def _refusal(answer: httpx.Response) -> HeadraceError:
    """Return what the server has said."""
    try:
        problem = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        problem = {}
    detail = str(problem.get("detail") or f"the server answered {answer.status_code}")
    if str(problem.get("type", "")).endswith(("job-not-found", "audio-file-not-found")):
        return _Missing(detail)
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return AuthenticationError(f"{detail}; check HEADRACE_API_KEY")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return InvalidInput("the server of API_URL has no speech; start it with the bundle")
    if answer.status_code == httpx.codes.CONFLICT:
        return JobConflict(detail)
    return InvalidInput(detail)
