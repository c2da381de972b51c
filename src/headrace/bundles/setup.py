"""What a bundle is given: its settings, its App, its tables."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.bundles.imports import folder_of
from headrace.bundles.tables import TablesAddress, find_address
from headrace.errors import InvalidSetting

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from headrace.app import App
    from headrace.bundles.bundle import Bundle
    from headrace.bundles.migrations import TablesState
    from headrace.workflows.model import Workflow


class Setup:
    """One bundle in one App."""

    def __init__(self, bundle: Bundle, app: App, settings: Any, url: str | None = None) -> None:
        self.bundle = bundle
        self.app = app
        self.settings = settings
        """An instance of the bundle's settings class; None if it has none."""
        self._url = url
        self._engines: dict[tuple[object, ...], AsyncEngine] = {}

    def __repr__(self) -> str:
        return f"<Setup of bundle {self.name}>"

    @property
    def name(self) -> str:
        """Return the name of the bundle."""
        return self.bundle.name

    @property
    def tables_address(self) -> TablesAddress:
        """Return where the tables are, with their schema."""
        return find_address(self.name, self._url, self.app.settings.url)

    @property
    def tables_url(self) -> str:
        """Return where the tables are: `HEADRACE_<NAME>_URL`, else the engine's PostgreSQL, else a
        SQLite file beside the store. It may hold a password.
        """
        return self.tables_address.url

    def engine(self) -> AsyncEngine:
        """Return the SQLAlchemy engine of the tables: one for each process and event loop, with few
        connections, closed with the App.
        """
        tables = self.bundle.tables
        if tables is None:
            raise InvalidSetting(
                f'bundle "{self.name}" has no tables; give it some: tables=headrace.bundles.Tables'
            )
        from headrace.bundles.connect import make_engine  # noqa: PLC0415 - needs the extra

        address = self.tables_address
        # A database in memory is that of its engine, whichever loop asks.
        loop = None if address.in_memory else _running_loop()
        place = (address, os.getpid(), loop)
        engine = self._engines.get(place)
        if engine is None:
            engine = self._engines[place] = make_engine(address, tables.connections)
        return engine

    async def migrate(self) -> list[str]:
        """Bring the tables up to date and return the scripts that were run. Safe in many processes
        at once. It is done whenever the App is opened, unless the setting `migrate` is "never".
        """
        if self.bundle.tables is None:
            return []
        from headrace.bundles.migrations import upgrade  # noqa: PLC0415 - needs the extra

        return await upgrade(self.engine(), self.tables_address, self.bundle.tables, self.name)

    async def tables_state(self) -> TablesState | None:
        """Return the version of the tables and what is missing; None without tables."""
        if self.bundle.tables is None:
            return None
        from headrace.bundles.migrations import read_state  # noqa: PLC0415 - needs the extra

        return await read_state(self.engine(), self.tables_address, self.bundle.tables, self.name)

    async def migration_script(self) -> str:
        """Return the SQL that `migrate` would run; empty if nothing is missing."""
        if self.bundle.tables is None:
            return ""
        from headrace.bundles.migrations import script_of  # noqa: PLC0415 - needs the extra

        return await script_of(self.engine(), self.tables_address, self.bundle.tables, self.name)

    def load_workflows(self, folder: str | Path) -> list[Workflow]:
        """Add all workflow files of a folder, or of a package of this bundle, to the App. Register
        the tasks first.
        """
        return self.app.workflows.load(folder_of(folder))

    async def close(self) -> None:
        """Close the connections to the tables. The App does this."""
        engines, self._engines = self._engines, {}
        here = (os.getpid(), _running_loop())
        for (address, *place), engine in engines.items():
            memory = isinstance(address, TablesAddress) and address.in_memory
            ours = place[0] == here[0] and (memory or place[1] in (None, here[1]))
            # Connections of another loop or process cannot be closed from here, only let go.
            await engine.dispose(close=ours)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
