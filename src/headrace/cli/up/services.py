"""What `headrace up` runs beside its worker: the HTTP server and the cron dispatcher."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator

from headrace.app import App
from headrace.config import Settings
from headrace.errors import InvalidSetting

log = logging.getLogger("headrace.up")


@contextlib.asynccontextmanager
async def run_services(app: App, *, server: bool) -> AsyncIterator[str | None]:
    """Serve the API and fire schedules meanwhile. Yields the address of the API, if it is served.

    Both need an extra; without it they are left out, and the worker works all the same.
    """
    async with contextlib.AsyncExitStack() as stack:
        await _cron(app, stack)
        yield await _server(app, stack) if server else None


async def _server(app: App, stack: contextlib.AsyncExitStack) -> str | None:
    try:
        from headrace.server.listen import listening  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        log.info("No HTTP server without %s: pip install 'headrace[server]'", error.name)
        return None
    try:
        return await stack.enter_async_context(listening(app))
    except InvalidSetting:
        if app.settings.port != Settings().port:
            raise
        # Nobody asked for this very port, and a second `up` should not fail because of the first.
        return await stack.enter_async_context(listening(app, port=0))


async def _cron(app: App, stack: contextlib.AsyncExitStack) -> None:
    try:
        from headrace.dispatchers.cron.run import cron_dispatcher  # noqa: PLC0415 - the extra
    except ModuleNotFoundError as error:
        log.info("No schedules without %s: pip install 'headrace[cron]'", error.name)
        return
    dispatcher = cron_dispatcher(app)
    await dispatcher.sync()
    dispatcher.start()
    stack.push_async_callback(dispatcher.stop)
