"""`/docs`: the API to read and to try, by Swagger UI, whose files come with a package.

The page itself tells nothing, so that it opens where keys are needed: it asks for a key then, and
reads the document with it. The key stays in the page.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path

from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute

from headrace.server.http.problems import Refused
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
open_ = Router("open", routes)

OURS = Path(__file__).with_name("static")
SWAGGER = "fastapi_offline"
FILES = ("swagger-ui-bundle.js", "swagger-ui.css", "docs.js", "docs.css")
# Swagger UI writes style attributes. Its pictures are data in its style sheet.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API · Headrace</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/docs.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/docs.js" type="module"></script>
</head>
<body>
<header><a href="ui/">Headrace</a> <span>API</span> <a href="openapi.json">openapi.json</a></header>
<noscript>This page needs JavaScript. The whole API is described in openapi.json.</noscript>
<main>
<form id="sign-in" hidden>
<p id="problem" role="alert"></p>
<label for="key">API key</label>
<input id="key" type="password" autocomplete="off" spellcheck="false" required>
<button>Show the API</button>
</form>
<div id="api"></div>
</main>
</body>
</html>
"""


@open_("GET /docs", "The API to read and to try", {}, responses=None, include_in_schema=False)
async def docs(call: Call) -> Response:
    """A page for people. It loads nothing from anywhere else."""
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})


@open_("GET /docs/", "The same", {}, responses=None, include_in_schema=False)
async def docs_with_slash(call: Call) -> Response:
    """Links of the page are relative to its address without a slash."""
    return RedirectResponse(f"{call.scope.get('root_path', '')}/docs")


@open_("GET /docs/{name}", "A file of the page", {}, responses=None, include_in_schema=False)
async def docs_file(call: Call, name: str) -> Response:
    """Scripts and style sheets, for as long as a day without asking again."""
    if name not in FILES:
        raise Refused(404, "not-found", f"the page has no file {name[:100]!r}")
    folder = swagger() if name.startswith("swagger") else OURS
    return FileResponse(folder / name, headers={"Cache-Control": "public, max-age=86400"})


@functools.cache
def swagger() -> Path:
    """Return the folder with the files of Swagger UI. The package is found, but not imported."""
    found = find_spec(SWAGGER)
    if found is None or not found.submodule_search_locations:
        raise Refused(
            503,
            "not-installed",
            "Swagger UI is not installed",
            remedy="install headrace[server], or read openapi.json",
        )
    return Path(found.submodule_search_locations[0]) / "static"
