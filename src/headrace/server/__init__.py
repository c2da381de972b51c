"""The HTTP API, as an application of its own or mounted in yours.

    import headrace.server

    api = headrace.server.create(app)              # a FastAPI application
    mine.mount("/jobs", headrace.server.create(app))
    await headrace.server.serve(app)               # listen, until cancelled

Needs the extra `server`. Importing this module alone needs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import MissingDriver

if TYPE_CHECKING:
    from fastapi import FastAPI

    from headrace.app import App

__all__ = ["create", "serve"]


def create(app: App, **options: Any) -> FastAPI:
    """The API over an App. The options are those of `headrace.server.app.create`."""
    try:
        from headrace.server.app import create as make  # noqa: PLC0415 - needs FastAPI
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return make(app, **options)


async def serve(app: App, **options: Any) -> None:
    """Serve the API until cancelled. The options are those of `headrace.server.listen.serve`."""
    try:
        from headrace.server.listen import serve as listen  # noqa: PLC0415 - needs uvicorn
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    await listen(app, **options)


def _missing(error: ModuleNotFoundError) -> MissingDriver:
    return MissingDriver(
        f"the HTTP server needs {error.name}; install it with: pip install 'headrace[server]'"
    )
