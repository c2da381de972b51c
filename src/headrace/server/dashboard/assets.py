"""The style sheet, which is in every page, and the script under a name that changes with it."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import re
from pathlib import Path

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from headrace.server.http.problems import Refused

_FOLDER = Path(__file__).parent / "static"
# Modules in the order in which they need each other; sent as one.
SCRIPTS = ("morph.js", "times.js", "lists.js", "live.js", "keys.js", "preview.js", "main.js")
# What a browser does not need: what connects the modules, and lines that are comments.
_LEFT_OUT = re.compile(r"^import .*;\n|^export (?=\w)|^ *//.*\n|^/\*\* .* \*/\n", re.MULTILINE)
KINDS = {".js": "text/javascript", ".svg": "image/svg+xml"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
# Comments, and the space around lines.
_CSS_LEFT_OUT = re.compile(r"/\*.*?\*/|\s*\n\s*", re.DOTALL)


@functools.cache
def files() -> dict[str, bytes]:
    """Return what is served, by name."""
    script = "".join(_LEFT_OUT.sub("", (_FOLDER / name).read_text()) for name in SCRIPTS)
    return {"headrace.js": script.encode(), "icon.svg": (_FOLDER / "icon.svg").read_bytes()}


@functools.cache
def style_sheet() -> Markup:
    """Return the style sheet as it stands in every page: a first paint waits for nothing else."""
    return Markup(_CSS_LEFT_OUT.sub("", (_FOLDER / "headrace.css").read_text()))  # noqa: S704 - a file of ours


@functools.cache
def style_source() -> str:
    """Return what a policy allows instead of every style in a page: this style sheet alone."""
    digest = hashlib.sha256(style_sheet().encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@functools.cache
def _compressed(name: str) -> bytes:
    return gzip.compress(files()[name], 9, mtime=0)


@functools.cache
def asset(name: str) -> str:
    """Return the path of a file below the dashboard."""
    found = hashlib.blake2b(files()[name], digest_size=8).hexdigest()
    stem, _, kind = name.rpartition(".")
    return f"/static/{stem}.{found}.{kind}"


async def serve_asset(request: Request) -> Response:
    """Send a file. It is the same forever, because its name is made of its content."""
    wanted = f"/static/{request.path_params['name']}"
    small = "gzip" in request.headers.get("accept-encoding", "")
    for name, body in files().items():
        if asset(name) == wanted:
            kind = KINDS[Path(name).suffix]
            if small:
                encoded = {**FOREVER, "Content-Encoding": "gzip"}
                return Response(_compressed(name), media_type=kind, headers=encoded)
            return Response(body, media_type=kind, headers=FOREVER)
    raise Refused(404, "not-found", "there is no such file; reload the page")
