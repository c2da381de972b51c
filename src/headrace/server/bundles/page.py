"""The page of a bundle: static files of its package, for those who may read."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from starlette.responses import FileResponse, RedirectResponse, Response

from headrace.bundles.imports import folder_of
from headrace.bundles.refusal import Refusal
from headrace.bundles.registry import LoadedBundle
from headrace.bundles.request import BundleRequest
from headrace.bundles.routes import Routes
from headrace.errors import InvalidSetting
from headrace.server.bundles.route import BundleRoute, bundle_route

INDEX = "index.html"
# What every page may import: asking the server, with a key where it wants one.
SHARED = Path(__file__).with_name("headrace.js")
# Its own scripts, styles and pictures, its own server, and nothing else; nothing inline.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src 'self' blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
# Files of a package that are no part of a page.
_HIDDEN = (".py", ".pyc", ".pyi")


def page_routes(loaded: LoadedBundle) -> list[BundleRoute]:
    """Return the routes of a bundle's page; none if it has no page."""
    page = loaded.bundle.page
    if page is None:
        return []
    folder = folder_of(page.package).resolve()
    if not (folder / INDEX).is_file():
        raise InvalidSetting(
            f'bundle "{loaded.bundle.name}": its page {page.package} has no {INDEX}; '
            "is it in the wheel?"
        )
    prefix = loaded.bundle.prefix

    async def begin(request: BundleRequest) -> Response:
        # Relative links in the page need the slash.
        return RedirectResponse(f"{request.scope.get('root_path', '')}{prefix}/")

    async def index() -> Response:
        return _file(folder, INDEX)

    async def file(name: str) -> Response:
        return _file(folder, name)

    routes = Routes()
    for method in ("GET", "HEAD"):
        for path, endpoint in (("", begin), ("/", index), ("/{name:path}", file)):
            routes.add(method, path, endpoint, scope="read", include_in_schema=False)
    return [bundle_route(loaded, route) for route in routes.routes]


def _file(folder: Path, name: str) -> Response:
    # `resolve` follows links and ..: what it leads to has to be a file of the page.
    path = (folder / name.replace("\0", "")).resolve()
    hidden = any(part.startswith((".", "__")) for part in Path(name).parts)
    if name == SHARED.name and not path.is_file():
        path = SHARED
    elif hidden or path.suffix in _HIDDEN or not path.is_relative_to(folder) or not path.is_file():
        raise Refusal(404, f"the page has no file {name[:100]!r}")
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return FileResponse(path, media_type=kind, headers={"Content-Security-Policy": POLICY})
