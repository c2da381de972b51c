"""What every command is given: where the jobs live, which App, and how to print."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from headrace.app import App
from headrace.cli.app_loader import load_app, reconfigure
from headrace.cli.errors import notice
from headrace.cli.output import Columns, is_terminal, print_json, print_line, print_table
from headrace.config import Settings, load
from headrace.engine.missing_stores import missing_stores
from headrace.engine.sqlite.connection.address import parse_address
from headrace.engine.stored_text import redacted
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.cli.backend import Backend
    from headrace.client import Client

T = TypeVar("T")
TOUR = "headrace.cli.up.tour:app"
# An App for those who name bundles only.
BUNDLES = "headrace.cli.bundles.app_without_tasks:app"
# How often a request is repeated while a server is away: a person waits, so fail soon.
RETRIES = 2


class CliSession:
    """The options that all commands share."""

    def __init__(
        self,
        *,
        url: str | None = None,
        app: str | None = None,
        json: bool = False,
        debug: bool = False,
        bundle: str | None = None,
    ) -> None:
        self.url = url
        self.app_named = app is not None
        self.json = json
        self.debug = debug
        self._app = app
        # An address that is typed is that of one store.
        self._stores: dict[str, str] | None = None if url is None else {}
        self.settings: Settings = load(url=url, stores=self._stores, app=app, bundles=bundle)

    def use_bundles(self, names: Sequence[str]) -> None:
        """Load these bundles into the App, instead of those that the settings name."""
        self.settings = load(url=self.url, stores=self._stores, app=self._app, bundles=tuple(names))

    def show(self, document: Any, *lines: str) -> None:
        """Print JSON if that was asked for, else lines for people."""
        if self.json:
            print_json(document)
            return
        for line in lines:
            print_line(line)

    def show_list(
        self, name: str, items: Sequence[T], columns: Columns[T], *, empty: str | None = None
    ) -> None:
        """Print items: as JSON under this name, or as a table; `empty` tells people of none."""
        if self.json:
            print_json({name: items})
        elif not items and empty is not None and is_terminal():
            print_line(empty)
        else:
            print_table(columns, items)

    def advice(self, text: str) -> str:
        """Return advice with the name of the App in its commands, where it is known here, so that
        they can be typed as they are.
        """
        name = None if self.remote else self.settings.app
        return text if name is None else text.replace("--app …", f"--app {name}")

    def load_app(self, task: str | None = None) -> App:
        """Return the App that was named. A task of the built-in tour needs no name."""
        reference = self.settings.app
        if reference is None and task is not None and task.startswith("tour."):
            reference = TOUR
        if reference is None and self.settings.bundles:
            reference = BUNDLES
        if reference is None:
            raise InvalidInput(
                "which App? name it with --app module:attribute, HEADRACE_APP, or "
                'app = "…" in headrace.toml; to look around first, try: headrace up'
            )
        # Child processes of a worker load the App by this name.
        app = load_app(reference)
        bundles = tuple(dict.fromkeys((*app.settings.bundles, *self.settings.bundles)))
        return reconfigure(app, url=self.url, stores=self._stores, app=reference, bundles=bundles)

    @property
    def remote(self) -> bool:
        """Whether to ask the server of API_URL. What is typed overrides the environment."""
        return self.settings.api_url is not None and self.url is None and not self.app_named

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Yield a client of the server of API_URL."""
        # Only those who use a server pay for its imports.
        from headrace.client import Client  # noqa: PLC0415

        settings = self.settings
        async with Client(settings.api_url, api_key=settings.api_key, retries=RETRIES) as client:
            yield client

    @asynccontextmanager
    async def backend(
        self, *, needs_app: bool = False, task: str | None = None
    ) -> AsyncIterator[Backend]:
        """Yield the server of API_URL, or an open App on the engine.

        `needs_app` if the tasks of the App have to be known there; `task` is the one in question.
        """
        if self.remote:
            async with self.client() as client:
                yield client
        elif needs_app:
            app = self.load_app(task)
            self.settings = app.settings
            try:
                yield app  # opened by the first verb, after everything has been checked
                tell_missing(app)
            finally:
                await app.close()
        else:
            async with self.store() as app:
                yield app

    @asynccontextmanager
    async def store(self, *, bundles: bool = False) -> AsyncIterator[App]:
        """Yield an open App for viewing and changing jobs; tasks need not be known.

        Jobs live where the named App keeps them; without one, where HEADRACE_URL says. Bundles are
        loaded only if they are asked for.
        """
        app = self._store_app(bundles=bundles)
        if self.remote:
            notice(
                "note: this command works on the engine itself, not on the server of API_URL: "
                f"{redacted(app.settings.url)}"
            )
        fresh = missing_file(app.settings.url)
        async with app:
            if fresh is not None:
                notice(
                    f"note: there was no store at {fresh} yet, so it is new and empty; "
                    "if yours is elsewhere, set HEADRACE_URL or --url"
                )
            yield app
            tell_missing(app)

    def closed_app(self) -> App:
        """Return the App of the store with its bundles; it is neither connected nor opened."""
        return self._store_app(bundles=True)

    def _store_app(self, *, bundles: bool = False) -> App:
        if self.settings.app is not None and self.url is None:
            app = self.load_app()
        else:
            chosen = self.settings.bundles if bundles else ()
            app = App(settings=msgspec.structs.replace(self.settings, bundles=chosen))
        # What the App says in code counts, and is what people are shown.
        self.settings = app.settings
        return app

    @property
    def shown_url(self) -> str:
        """Where the jobs live, without any password."""
        return redacted(self.settings.url)


def tell_missing(app: App) -> None:
    """Say which of several stores did not answer: what was shown is without its jobs."""
    for finding in missing_stores(app.engine):
        notice(f"note: {finding.detail}")


def missing_file(url: str) -> Path | None:
    """Return the file of an embedded store if it does not exist yet."""
    if not url.startswith("sqlite:"):
        return None
    path = parse_address(url).path
    return None if path is None or path.exists() else path
