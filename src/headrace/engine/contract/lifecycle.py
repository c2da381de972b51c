"""Opening, closing, migrating and checking a store."""

from __future__ import annotations

from typing import Protocol

from headrace.clock import Clock
from headrace.model.views import (
    EngineReport,
    Finding,
    SchemaState,
)


class Lifecycle(Protocol):
    """Opening, closing and looking after the store."""

    name: str
    """Its name: sqlite, postgres or redis."""

    clock: Clock

    async def open(self) -> None:
        """Connect, and migrate unless that was forbidden; safe when several processes do it at
        once. Raises `SchemaTooNew` if the store is for newer programs, `MigrationNeeded` if
        something is missing and it was forbidden, `EngineUnavailable` if the server is not there.
        """

    async def schema(self) -> SchemaState:
        """Return what the schema of the store is, and what `migrate` would do. Changes nothing, and
        may be called before `open`; `close` afterwards.
        """

    async def migrate(self) -> None:
        """Bring the schema up to date, as `open` does, also if that is forbidden to `open`. May be
        called before `open`; `close` afterwards.
        """

    async def close(self) -> None:
        """Finish what was accepted and close every connection. Closing twice is fine."""

    async def report(self) -> EngineReport:
        """Return version, durability settings and clock skew, each with a remedy if it is wrong."""

    async def audit(self) -> list[Finding]:
        """Check the invariants over the whole store. Empty means all is well.

        What belongs together is looked at in one moment, so jobs may move meanwhile. A large store
        is read in pieces, so that no other call waits for all of it.
        """
