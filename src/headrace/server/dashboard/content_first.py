"""A page in two parts: what people see, and a moment later the script."""

from __future__ import annotations

import asyncio
import zlib

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

# Seconds between the parts. A first paint needs the content alone. A script that comes with it, and
# an icon, which browsers ask for at the end of a page, would take a part of the machine from it.
SCRIPT_AFTER = 0.04
COMPRESS_LEVEL = 5
_SCRIPT = b'<script type="module"'
_GZIP = zlib.MAX_WBITS | 16


class ContentFirst(HTMLResponse):
    """A page whose script is sent later, so that a browser paints before it asks for it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send both parts. A visitor who has left meanwhile is no error."""
        content, script, rest = bytes(self.body).partition(_SCRIPT)
        packed = zlib.compressobj(COMPRESS_LEVEL, zlib.DEFLATED, _GZIP)
        self.headers["Content-Encoding"] = "gzip"
        self.headers.add_vary_header("Accept-Encoding")
        del self.headers["Content-Length"]
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        first = packed.compress(content) + packed.flush(zlib.Z_SYNC_FLUSH)
        await send({"type": "http.response.body", "body": first, "more_body": True})
        await asyncio.sleep(SCRIPT_AFTER)
        last = packed.compress(script + rest) + packed.flush()
        await send({"type": "http.response.body", "body": last})


def paints(request: Request) -> bool:
    """Return whether this is a browser that shows the response as a page of its own."""
    headers = request.headers
    shown = headers.get("sec-fetch-dest") == "document" and request.method == "GET"
    return shown and "gzip" in headers.get("accept-encoding", "")
