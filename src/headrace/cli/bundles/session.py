"""What commands of bundles are given."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from headrace.bundles import Setup
from headrace.cli import output
from headrace.cli.errors import notice
from headrace.cli.session import CliSession
from headrace.errors import InvalidSetting


class BundleSession(CliSession):
    """A `headrace.bundles.Session`: that of every command, for one bundle."""

    bundle_name = ""

    @asynccontextmanager
    async def setup(self) -> AsyncIterator[Setup]:
        """Yield the bundle's setup on an open App that has it loaded."""
        if self.bundle_name not in self.settings.bundles:
            self.use_bundles([*self.settings.bundles, self.bundle_name])
        app = self.load_app()
        self.settings = app.settings
        async with app:
            failed = {each.name: each.reason for each in app.bundles.failures}
            loaded = app.bundles.find(self.bundle_name)
            if loaded is None or self.bundle_name in failed:
                raise InvalidSetting(
                    f'bundle "{self.bundle_name}" cannot be used: '
                    f"{failed.get(self.bundle_name, 'it is not loaded')}"
                )
            yield loaded.setup

    def print_json(self, document: Any) -> None:
        """Print one JSON document."""
        output.print_json(document)

    def print_line(self, text: str = "") -> None:
        """Print one line for people."""
        output.print_line(text)

    def print_table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table for people."""
        columns = {header: operator.itemgetter(place) for place, header in enumerate(headers)}
        output.print_table(columns, rows)

    def progress(
        self, label: str, total: int | None = None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Yield a function to call with the number done so far."""
        return output.progress(label, total, quiet=self.json)

    def notice(self, message: str) -> None:
        """Write a note or a warning to stderr."""
        notice(message)
