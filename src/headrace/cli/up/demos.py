"""The demos of bundles: each runs once on a store."""

from __future__ import annotations

import contextlib
import logging

import msgspec

from headrace.app import App
from headrace.bundles.imports import resolve, told
from headrace.errors import HeadraceError, RecordConflict

log = logging.getLogger("headrace.up")

KIND = "bundle"


async def run_demos(app: App) -> list[str]:
    """Run the demos that this store has not seen; return the names of those bundles. One that
    fails is reported, and run again the next time.
    """
    done = []
    for loaded in app.bundles:
        name = loaded.bundle.name
        if loaded.bundle.demo is None or not await _first_time(app, name):
            continue
        try:
            await resolve(name, "demo", loaded.bundle.demo)(app, loaded.setup)
        except Exception as error:
            log.error('The demo of bundle "%s" failed: %s', name, told(error))  # noqa: TRY400
            with contextlib.suppress(HeadraceError):
                await app.engine.record_delete(KIND, _key(name))
        else:
            done.append(name)
    return done


async def _first_time(app: App, name: str) -> bool:
    """Mark the demo as run; False if it was, by us or by another `up` just now."""
    body = msgspec.json.encode({"at": app.clock.utcnow()})
    try:
        await app.engine.record_put(KIND, _key(name), body, version=0)
    except RecordConflict:
        return False
    return True


def _key(name: str) -> str:
    return f"demo-{name}"
