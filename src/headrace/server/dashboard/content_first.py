"""A page in two parts: what people see first, and a moment later the rest."""

from __future__ import annotations

import asyncio
import zlib

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

# Seconds between the parts. A first paint needs the first screen alone. What comes with it takes a
# part of the machine from it: rows below it, the script, and the icon, which browsers ask for at
# the end of a page.
REST_AFTER = 0.08
# A first screen of usual height.
FIRST_ROWS = 20
COMPRESS_LEVEL = 5
_ROW = b"<tr id="
_SCRIPT = b'<script type="module"'
_GZIP = zlib.MAX_WBITS | 16


class ContentFirst(HTMLResponse):
    """A page whose rest is sent later, so that a browser paints before it has to do with it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send both parts. A visitor who has left meanwhile is no error."""
        page = bytes(self.body)
        end = first_screen(page)
        packed = zlib.compressobj(COMPRESS_LEVEL, zlib.DEFLATED, _GZIP)
        self.headers["Content-Encoding"] = "gzip"
        self.headers.add_vary_header("Accept-Encoding")
        del self.headers["Content-Length"]
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        first = packed.compress(page[:end]) + packed.flush(zlib.Z_SYNC_FLUSH)
        await send({"type": "http.response.body", "body": first, "more_body": True})
        last = packed.compress(page[end:]) + packed.flush()
        await asyncio.sleep(REST_AFTER)
        await send({"type": "http.response.body", "body": last})


def first_screen(page: bytes) -> int:
    """Return where the first part of a page ends: after so many rows, or else before its script."""
    end = -1
    for _ in range(FIRST_ROWS + 1):
        end = page.find(_ROW, end + 1)
        if end < 0:
            return page.find(_SCRIPT)
    return end


def paints(request: Request) -> bool:
    """Return whether this is a browser that shows the response as a page of its own."""
    headers = request.headers
    shown = headers.get("sec-fetch-dest") == "document" and request.method == "GET"
    return shown and "gzip" in headers.get("accept-encoding", "")
