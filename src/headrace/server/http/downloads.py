"""A file as response: whole, in part, or not at all where the caller has it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headrace.artifacts import ArtifactStore
from headrace.model.artifact import Artifact
from headrace.server.http.problems import Refused

BYTES = "application/octet-stream"
# Types that no browser runs. All others are sent as plain bytes.
_SAFE = re.compile(
    r"(audio|video|font)/[\w.+\-]+"
    r"|image/(png|jpeg|gif|webp|avif|bmp|tiff)"
    r"|text/(plain|csv)"
    r"|application/(json|zip|gzip|pdf|x-ndjson|vnd\.apache\.parquet)"
)
_RANGE = re.compile(r"bytes=(\d{1,18})?-(\d{1,18})?")


class Download:
    """One file for one request. `size` is what the store has, whatever the index says."""

    def __init__(
        self, request: Request, store: ArtifactStore, file: Artifact, *, size: int
    ) -> None:
        self._headers = request.headers
        self._whole = request.method != "HEAD"
        self._store = store
        self._file = file
        self._size = size
        self._tag = None if file.sha256 is None else f'"{file.sha256}"'

    async def response(self) -> Response:
        """Return the response."""
        if self._tag is not None and self._known():
            return Response(status_code=304, headers=self._own_headers())
        start, end = self._asked_range()
        headers = self._own_headers() | {"Content-Length": str(end - start)}
        part = (start, end) != (0, self._size)
        if part:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{self._size}"
        return StreamingResponse(
            self._chunks(start, end),
            status_code=206 if part else 200,
            headers=headers,
            media_type=safe_media_type(self._file.media_type),
        )

    async def _chunks(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        if self._whole:
            async for chunk in self._store.stream(self._file.path, start=start, end=end):
                yield chunk

    def _own_headers(self) -> dict[str, str]:
        headers = {
            "Accept-Ranges": "bytes",
            # Browsers must not show it on our own origin: its content is not ours.
            "Content-Disposition": disposition(self._file.name.rpartition("/")[2]),
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Cache-Control": "private, no-cache",
        }
        if self._tag is not None:
            headers["ETag"] = self._tag
        return headers

    def _known(self) -> bool:
        asked = self._headers.get("if-none-match", "")
        tags = {each.strip().removeprefix("W/") for each in asked.split(",")}
        return self._tag in tags or "*" in tags

    def _asked_range(self) -> tuple[int, int]:
        """From where up to where. More than one range at once is answered with the whole file."""
        found = _RANGE.fullmatch(self._headers.get("range", "").strip())
        condition = self._headers.get("if-range")
        if found is None or found[0] == "bytes=-" or condition not in (None, self._tag):
            return 0, self._size
        if found[1] is None:
            start, end = max(self._size - int(found[2]), 0), self._size
        else:
            start = int(found[1])
            end = self._size if found[2] is None else min(int(found[2]) + 1, self._size)
            if found[2] is not None and int(found[2]) < start:
                return 0, self._size  # not a range at all
        if start >= end:
            raise Refused(
                416,
                "range-not-satisfiable",
                f"the file has {self._size:,} bytes",
                field="Range",
                value=self._headers.get("range"),
                remedy="ask for bytes that it has",
                headers={"Content-Range": f"bytes */{self._size}"},
            )
        return start, end


def safe_media_type(media_type: str | None) -> str:
    """Return the media type to send for a file."""
    plain = (media_type or "").partition(";")[0].strip().lower()
    if not _SAFE.fullmatch(plain):
        return BYTES
    return f"{plain}; charset=utf-8" if plain.startswith("text/") else plain


def disposition(name: str) -> str:
    """Return the header that saves a file by its name, in ASCII for old programs."""
    plain = re.sub(r"[^A-Za-z0-9._\-]", "_", name)[-100:]
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
