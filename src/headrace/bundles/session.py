"""What a command of a bundle is given first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.bundles.setup import Setup
    from headrace.client import Client
    from headrace.config import Settings


class Session(Protocol):
    """The command line around an async command: where the jobs live, and how to print.

    A command of a bundle is a plain click command whose function is `async def` and takes a
    Session first. It has the options --json, --url, --app and --debug, and may return an exit code.
    """

    json: bool
    settings: Settings

    @property
    def remote(self) -> bool:
        """Return whether a server is to be asked (API_URL) instead of the engine."""

    def client(self) -> AbstractAsyncContextManager[Client]:
        """Yield a client of the server of API_URL."""

    def setup(self) -> AbstractAsyncContextManager[Setup]:
        """Yield the bundle's setup on an open App (`setup.app`) that has it loaded."""

    def backend(self) -> AbstractAsyncContextManager[App | Client]:
        """Yield the server of API_URL, or an open App on the engine: they have the same verbs."""

    def print_json(self, document: Any) -> None:
        """Print one JSON document."""

    def print_line(self, text: str = "") -> None:
        """Print one line for people."""

    def print_table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table for people."""

    def progress(
        self, label: str, total: int | None = None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Yield a function to call with the number done so far; a bar, on a terminal."""

    def notice(self, message: str) -> None:
        """Write a note or a warning to stderr."""
