"""Lending an App to a test: with its tasks, but on an empty engine and a clock of its own."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from headrace.app import App
from headrace.clock import Clock

if TYPE_CHECKING:
    from headrace.model.schedules.schedule import Schedule


class override:  # noqa: N801 - used like a function: `with override(app):`
    """Point an App at a fresh engine in memory and a new clock, and give it back as it was.

        async with override(shop.app) as app:
            app.clock.advance(60)

    Tasks enqueue where their App points, so nothing of the program has to change. `with` works as
    well as `async with`. `url` may name another empty store, for which `async with` is needed
    unless it is SQLite. Artifacts go to a temporary folder.
    """

    def __init__(self, app: App, *, url: str = "sqlite://", clock: Clock | None = None) -> None:
        self._app = app
        self._url = url
        self._clock = clock or Clock()
        self._saved: dict[str, Any] = {}
        self._declared: dict[str, Schedule] = {}
        self._folder = Path(tempfile.gettempdir()) / f"headrace-{uuid4().hex}"

    def __enter__(self) -> App:
        app = self._app
        settings = msgspec.structs.replace(app.settings, url=self._url, artifacts=str(self._folder))
        # Everything that an App is, whatever it may be made of.
        self._saved = vars(app).copy()
        self._saved["tasks"] = app.tasks.copy()
        self._declared = app.schedules.declared.copy() if "schedules" in vars(app) else {}
        app.reconfigure(settings, clock=self._clock)
        return app

    def __exit__(self, *_: object) -> None:
        # The loop that the App was used on may be gone, or run in this very thread.
        try:
            _in_a_thread(self._app.engine.close())
        finally:
            self._restore()

    async def __aenter__(self) -> App:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._app.close()
        finally:
            self._restore()

    def _restore(self) -> None:
        tasks, names = self._app.tasks, self._saved.pop("tasks")
        vars(self._app).clear()
        vars(self._app).update(self._saved, tasks=tasks)
        # The same dictionary as before, without what the test has registered.
        for name in tasks.keys() - names.keys():
            del tasks[name]
        if "schedules" in vars(self._app):
            self._app.schedules.declared = self._declared
        shutil.rmtree(self._folder, ignore_errors=True)


def _in_a_thread(work: Coroutine[Any, Any, None]) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="headrace-testing")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
