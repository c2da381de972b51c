"""Files of jobs: sent with a job, listed, downloaded.

A download goes on where a lost connection left off.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from headrace.api_types.requests import JobRequest, KeepRequest, ReleaseRequest
from headrace.api_types.responses import FileReleased
from headrace.client.base import BaseClient, given
from headrace.client.errors import UnexpectedAnswer
from headrace.client.request import Request, pause
from headrace.errors import EngineUnavailable, InvalidInput
from headrace.model.artifact import Artifact, KeptFile, KeptPage
from headrace.model.ids import parse_id

File = Path | tuple[str, bytes]
"""A file on disk, or a name with its content."""

_TEXTS = ("task", "queue", "key", "lane", "run_at", "expires_at", "on_duplicate")


class FileApi(BaseClient):
    """A server, with the files of its jobs."""

    async def artifacts(self, job_id: str) -> Sequence[Artifact]:
        """The files that a job has stored, and those that were sent with it."""
        return await self._list(f"/jobs/{parse_id(job_id)}/artifacts", "artifacts", Artifact)

    async def keep_file(self, path: str, *, owner: str, reason: str = "") -> KeptFile:
        """Keep a file when its job is pruned, until `owner` releases it. Raises `NotFound`."""
        asked = KeepRequest(path=path, owner=owner, reason=reason)
        return await self._send("POST", "/artifacts/keep", KeptFile, asked, idempotent=True)

    async def release_file(self, path: str, *, owner: str) -> bool:
        """End what `keep_file` began; return False if `owner` did not keep it."""
        asked = ReleaseRequest(path=path, owner=owner)
        return (await self._send("POST", "/artifacts/release", FileReleased, asked)).released

    async def kept_files(
        self, owner: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> KeptPage:
        """A page of kept files, of all owners or one, by job."""
        params = given(owner=owner, cursor=cursor, limit=limit)
        return await self._get("/artifacts/kept", KeptPage, "kept files", params)

    async def download(self, job_id: str, name: str, *, layer: str = "artifacts") -> bytes:
        """The content of one file of a job at once. Raises `NotFound`."""
        return b"".join([chunk async for chunk in self.stream(job_id, name, layer=layer)])

    async def download_to(
        self, job_id: str, name: str, target: Path, *, layer: str = "artifacts"
    ) -> None:
        """The same to a file, of any size. It is there whole or not at all."""
        partial = target.with_name(f".{uuid.uuid4().hex}.partial")
        try:
            with await asyncio.to_thread(partial.open, "xb") as file:
                async for chunk in self.stream(job_id, name, layer=layer):
                    await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(partial.replace, target)
        finally:
            await asyncio.to_thread(partial.unlink, missing_ok=True)

    async def stream(
        self, job_id: str, name: str, *, layer: str = "artifacts"
    ) -> AsyncGenerator[bytes, None]:
        """The same in chunks. The checksum is compared at the end. Raises `NotFound`."""
        path = f"/jobs/{parse_id(job_id)}/artifacts/{quote(layer, safe='')}/{quote(name)}"
        request = Request(method="GET", path=path, idempotent=True)
        digest, had, tag, failures = hashlib.sha256(), 0, "", 0
        while True:
            headers = {"Accept-Encoding": "identity"}
            if had:
                headers |= {"Range": f"bytes={had}-"} | ({"If-Range": tag} if tag else {})
            try:
                async with self._transport.stream(request, headers=headers) as response:
                    if had and response.status_code != 206:
                        raise UnexpectedAnswer(
                            f"{path} was replaced while it was downloaded; start again"
                        )
                    tag = response.headers.get("ETag", "")
                    async for chunk in response.aiter_bytes():
                        had += len(chunk)
                        digest.update(chunk)
                        failures = 0
                        yield chunk
                break
            except EngineUnavailable:
                failures += 1
                if failures > self._retries:
                    raise
                await asyncio.sleep(pause(failures - 1))
        if tag and tag.strip('"') != digest.hexdigest():
            raise UnexpectedAnswer(
                f"{path} is damaged: its checksum is {digest.hexdigest()}, and should be {tag}"
            )


async def read_files(files: Mapping[str, File]) -> dict[str, tuple[str, bytes]]:
    """The files by argument, each with its name. Read whole, so that they can be sent twice."""
    found = {}
    for argument, file in files.items():
        match file:
            case Path():
                found[argument] = (file.name, await asyncio.to_thread(_content, file))
            case name, content:
                found[argument] = (name, content)
    return found


def form_fields(request: JobRequest) -> dict[str, str]:
    """A request as the fields of a form: text as it is, everything else as JSON."""
    document = msgspec.json.decode(msgspec.json.encode(request), type=dict[str, msgspec.Raw])
    return {
        name: msgspec.json.decode(raw, type=str) if name in _TEXTS else bytes(raw).decode()
        for name, raw in document.items()
    }


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {str(file)!r}: {error.strerror}") from None
