"""The script and the style sheet, under names that change with their content."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from headrace.server.http.problems import Refused

_FOLDER = Path(__file__).parent / "static"
# Modules in the order in which they need each other; sent as one.
SCRIPTS = ("morph.js", "times.js", "lists.js", "live.js", "keys.js", "preview.js", "main.js")
# What a browser does not need: what connects the modules, and lines that are comments.
_LEFT_OUT = re.compile(r"^import .*;\n|^export (?=\w)|^ *//.*\n|^/\*\* .* \*/\n", re.MULTILINE)
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


@functools.cache
def files() -> dict[str, bytes]:
    """Return what is served, by name."""
    script = "".join(_LEFT_OUT.sub("", (_FOLDER / name).read_text()) for name in SCRIPTS)
    return {
        "headrace.js": script.encode(),
        **{name: (_FOLDER / name).read_bytes() for name in ("headrace.css", "icon.svg")},
    }


@functools.cache
def asset(name: str) -> str:
    """Return the path of a file below the dashboard."""
    found = hashlib.blake2b(files()[name], digest_size=8).hexdigest()
    stem, _, kind = name.rpartition(".")
    return f"/static/{stem}.{found}.{kind}"


async def serve_asset(request: Request) -> Response:
    """Send a file. It is the same forever, because its name is made of its content."""
    wanted = f"/static/{request.path_params['name']}"
    for name, body in files().items():
        if asset(name) == wanted:
            return Response(body, media_type=KINDS[Path(name).suffix], headers=FOREVER)
    raise Refused(404, "not-found", "there is no such file; reload the page")
