"""The PostgreSQL engine: the whole contract, and inserting inside the caller's transaction."""

from __future__ import annotations

import time

from headrace.engine.postgres.connection.migrate import migrate, schema_state
from headrace.engine.postgres.control import Steering
from headrace.engine.postgres.insert import Producing
from headrace.engine.postgres.rates.keys import Rates
from headrace.engine.postgres.report import about_pooler, findings
from headrace.engine.postgres.sql import sql
from headrace.engine.postgres.upkeep import Upkeep
from headrace.engine.postgres.views import Viewing
from headrace.engine.postgres.worker import Working
from headrace.model.views import EngineReport, EngineSpace, Finding, SchemaState

_REMEDY = "report this with the version of Headrace; `headrace jobs show` tells how the jobs stand"


class PostgresEngine(Producing, Working, Upkeep, Steering, Viewing, Rates):
    """Jobs in one schema of a PostgreSQL database, version 15 to 18.

    The URL is asyncpg's, with one more parameter: `schema` (default "headrace").
    """

    async def open(self) -> None:
        for link in self._links:
            link.allow()
        try:
            await migrate(self._common, allowed=self._may_migrate)
        except BaseException:
            await self.close()
            raise

    async def schema(self) -> SchemaState:
        self._common.allow()
        return await schema_state(self._common)

    async def migrate(self) -> None:
        self._common.allow()
        await migrate(self._common)

    async def close(self) -> None:
        await self._signals.close()
        await self._vacuum.close()
        for link in self._links:
            await link.shut()

    async def report(self) -> EngineReport:
        before = time.time()
        [row] = await self._common.fetch(sql.report)
        skew = row["now"] - (before + time.time()) / 2
        return EngineReport(
            engine=self.name,
            server_version=row["version"],
            schema_version=row["schema_version"],
            clock_skew=skew,
            findings=[*findings(row, skew), *about_pooler(self.address, self._common.pooled)],
            # How much is free on its disk, the server does not tell.
            space=EngineSpace(where="disk", used_bytes=row["size"]),
        )

    async def audit(self) -> list[Finding]:
        """Check the invariants over the whole store in one snapshot. Empty means all is well."""
        async with self._views.hold() as connection, self._views.transaction(connection):
            # Whole tables are joined: statistics that are too low must not make loops of that.
            await connection.execute("SET LOCAL enable_nestloop = off")
            found = await self._views.run(connection, sql.audit)
        return [Finding("error", row[0], row[1], _REMEDY) for row in found]
