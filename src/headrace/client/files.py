"""The verbs for the files of jobs. Downloads go on where a lost connection left off."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from urllib.parse import quote

from headrace.client.base import Remote
from headrace.client.errors import UnexpectedAnswer
from headrace.client.job_codec import decode_list
from headrace.client.request import Call, pause
from headrace.errors import EngineUnavailable
from headrace.model.artifact import Artifact
from headrace.model.ids import parse_id


class Files(Remote):
    """A server with the files of its jobs."""

    async def artifacts(self, job_id: str) -> Sequence[Artifact]:
        """The files that a job has kept, and those that it was handed in with."""
        content = await self._read(f"/jobs/{parse_id(job_id)}/artifacts")
        return decode_list(content, "artifacts", Artifact, "a list of files")

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
        call = Call(method="GET", path=path, safe=True)
        digest, had, tag, failures = hashlib.sha256(), 0, "", 0
        while True:
            headers = {"Accept-Encoding": "identity"}
            if had:
                headers |= {"Range": f"bytes={had}-"} | ({"If-Range": tag} if tag else {})
            try:
                async with self._transport.stream(call, headers=headers) as answer:
                    if had and answer.status_code != 206:
                        raise UnexpectedAnswer(
                            f"{path} was replaced while it was downloaded; start again"
                        )
                    tag = answer.headers.get("ETag", "")
                    async for chunk in answer.aiter_bytes():
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
