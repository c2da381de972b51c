"""Writes and reads runs. Each write is one transaction, guarded by the token of the attempt.

Tokens grow with each attempt at a job. A write with a lower token than the stored one belongs to an
attempt that was given up, and changes nothing; nor does one after the run was completed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from time import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headrace_spots.store.records import PROGRESS, Analysed, RunStatus, Snapshot, Store, Write
from headrace_spots.store.rows import (
    insert_rows,
    place_after,
    review_rows,
    snapshot_of,
    store_of,
)
from headrace_spots.store.tables import ANALYSIS, REVIEWS, SNAPSHOTS, STORES

LONGEST_ERROR = 2000
PAGE = 50
LARGEST_PAGE = 500
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")

Within = Callable[[AsyncConnection], Awaitable[None]]


class ShopRepository:
    """The shops of one database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    # -- runs ----------------------------------------------------------------------------------

    async def add(
        self,
        run_id: str,
        store_id: str,
        url: str,
        host: str,
        *,
        owner: str | None = None,
        asked_by: str | None = None,
        within: Within | None = None,
    ) -> None:
        """Write the row of a run that is `queued`, and that of its shop if it is new. `within` is
        called before the commit, and is part of it if it uses the connection.
        """
        now = time()
        async with self._writing(store_id) as connection:
            known = await connection.scalar(
                sa.select(STORES.c.store_id).where(STORES.c.store_id == store_id)
            )
            if known is None:
                await connection.execute(
                    STORES.insert().values(
                        store_id=store_id, url=url, host=host, created_at=now, updated_at=now
                    )
                )
            await connection.execute(
                SNAPSHOTS.insert().values(
                    run_id=run_id,
                    store_id=store_id,
                    url=url,
                    status=RunStatus.QUEUED,
                    progress=0,
                    token=0,
                    pages=0,
                    reviews=0,
                    positive=0,
                    negative=0,
                    neutral=0,
                    owner=owner,
                    asked_by=asked_by,
                    created_at=now,
                    updated_at=now,
                )
            )
            if within is not None:
                await within(connection)

    async def begin(self, run_id: str, token: int) -> Write:
        """Write that an attempt has begun, or will: a run that had failed is `queued` again."""
        failed = SNAPSHOTS.c.status == RunStatus.FAILED
        values = {
            "status": sa.case((failed, RunStatus.QUEUED), else_=SNAPSHOTS.c.status),
            "progress": sa.case((failed, 0), else_=SNAPSHOTS.c.progress),
            "error": None,
        }
        return await self._change(run_id, token, values)

    async def show(
        self, run_id: str, token: int, status: RunStatus, progress: int | None = None
    ) -> Write:
        """Write the stage of an attempt, and how far it is (0 to 99)."""
        shown = PROGRESS[status] if progress is None else progress
        values = {"status": status, "progress": shown, "error": None}
        # What an attempt has failed at is its end.
        open_ = sa.or_(SNAPSHOTS.c.status != RunStatus.FAILED, SNAPSHOTS.c.token < token)
        return await self._change(run_id, token, values, open_)

    async def fail(
        self, run_id: str, token: int, error: str, *, even_completed: bool = False
    ) -> Write:
        """Write that a run has failed for good."""
        values = {"status": RunStatus.FAILED, "error": error[:LONGEST_ERROR]}
        return await self._change(run_id, token, values, even_completed=even_completed)

    async def _change(
        self,
        run_id: str,
        token: int,
        values: dict[str, Any],
        *conditions: sa.ColumnElement[bool],
        even_completed: bool = False,
    ) -> Write:
        """Change a row unless a later attempt has, or the run is completed."""
        ours = [SNAPSHOTS.c.run_id == run_id, SNAPSHOTS.c.token <= token, *conditions]
        if not even_completed:
            ours.append(SNAPSHOTS.c.status != RunStatus.COMPLETED)
        async with self._engine.begin() as connection:
            changed = await connection.execute(
                SNAPSHOTS.update().where(*ours).values(**values, token=token, updated_at=time())
            )
            if changed.rowcount:
                return Write.STORED
            found = await connection.scalar(
                sa.select(SNAPSHOTS.c.run_id).where(SNAPSHOTS.c.run_id == run_id)
            )
            return Write.GONE if found is None else Write.STALE

    async def complete(self, analysed: Analysed, token: int) -> Write:
        """Store all that a run has found and complete it, all or nothing. The reviews of the run
        before are replaced; those of an older run that ends late are not stored.
        """
        run_id = analysed.run_id
        # Before the transaction: others wait for it.
        rows = await asyncio.to_thread(review_rows, run_id, analysed.reviews)
        row = await self.get(run_id)
        if row is None:
            return Write.GONE
        async with self._writing(row.store_id) as connection:
            completed = {
                "status": RunStatus.COMPLETED,
                "progress": 100,
                "error": None,
                "pages": analysed.pages,
                "reviews": len(analysed.reviews),
                "rating": analysed.rating,
                "report": analysed.report,
                "token": token,
                "updated_at": time(),
                **{each: analysed.counts.get(each, 0) for each in LABELS},
            }
            changed = await connection.execute(
                SNAPSHOTS.update()
                .where(
                    SNAPSHOTS.c.run_id == run_id,
                    SNAPSHOTS.c.token <= token,
                    SNAPSHOTS.c.status != RunStatus.COMPLETED,
                )
                .values(**completed)
            )
            if not changed.rowcount:
                return Write.STALE
            await connection.execute(
                ANALYSIS.insert().values(run_id=run_id, body=dict(analysed.body))
            )
            before = await connection.scalar(
                sa.select(STORES.c.run_id).where(STORES.c.store_id == row.store_id)
            )
            # Ids of jobs grow with time.
            if before is None or before < run_id:
                if before is not None:
                    await connection.execute(REVIEWS.delete().where(REVIEWS.c.run_id == before))
                await insert_rows(connection, rows)
                facts = analysed.facts
                found = {"name": facts.name, "kind": facts.kind, "address": facts.address}
                told = {name: value for name, value in found.items() if value is not None}
                await connection.execute(
                    STORES.update()
                    .where(STORES.c.store_id == row.store_id)
                    .values(**told, run_id=run_id, updated_at=time())
                )
        return Write.STORED

    async def get(self, run_id: str) -> Snapshot | None:
        """Return a run; None if there is none."""
        return await self._one(SNAPSHOTS.c.run_id == run_id)

    async def find_asked(self, asked_by: str) -> Snapshot | None:
        """Return the run that a job of a schedule has asked for, if it has."""
        return await self._one(SNAPSHOTS.c.asked_by == asked_by)

    async def _one(self, condition: sa.ColumnElement[bool]) -> Snapshot | None:
        async with self._engine.connect() as connection:
            found = await connection.execute(sa.select(SNAPSHOTS).where(condition))
            row = found.mappings().first()
        return None if row is None else snapshot_of(row)

    async def runs(
        self,
        *,
        store_id: str | None = None,
        statuses: Sequence[RunStatus] = (),
        updated_after: float | None = None,
        limit: int = PAGE,
        after: str | None = None,
    ) -> tuple[list[Snapshot], str | None]:
        """Return runs, the newest first, and where the next page begins."""
        query = sa.select(SNAPSHOTS).order_by(SNAPSHOTS.c.run_id.desc())
        if store_id is not None:
            query = query.where(SNAPSHOTS.c.store_id == store_id)
        if statuses:
            query = query.where(SNAPSHOTS.c.status.in_(list(statuses)))
        if updated_after is not None:
            query = query.where(SNAPSHOTS.c.updated_at > updated_after)
        if after is not None:
            query = query.where(SNAPSHOTS.c.run_id < after)
        limit = min(max(limit, 1), LARGEST_PAGE)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.limit(limit + 1))).mappings().all()
        found = [snapshot_of(row) for row in rows[:limit]]
        return found, found[-1].run_id if len(rows) > limit else None

    # -- shops ---------------------------------------------------------------------------------

    async def store(self, store_id: str) -> Store | None:
        """Return a shop; None if there is none."""
        async with self._engine.connect() as connection:
            found = await connection.execute(sa.select(STORES).where(STORES.c.store_id == store_id))
            row = found.mappings().first()
        return None if row is None else store_of(row)

    async def stores(
        self, *, limit: int = PAGE, after: str | None = None
    ) -> tuple[list[Store], str | None]:
        """Return shops, the newest first, and where the next page begins."""
        query = sa.select(STORES).order_by(STORES.c.created_at.desc(), STORES.c.store_id.desc())
        if after is not None:
            query = query.where(
                sa.tuple_(STORES.c.created_at, STORES.c.store_id) < place_after(after)
            )
        limit = min(max(limit, 1), LARGEST_PAGE)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.limit(limit + 1))).mappings().all()
        last = rows[limit - 1] if len(rows) > limit else None
        place = None if last is None else f"{last['created_at']!r}~{last['store_id']}"
        return [store_of(row) for row in rows[:limit]], place

    async def body(self, run_id: str) -> dict[str, Any] | None:
        """Return the analysis of a run; None if there is none."""
        async with self._engine.connect() as connection:
            found: dict[str, Any] | None = await connection.scalar(
                sa.select(ANALYSIS.c.body).where(ANALYSIS.c.run_id == run_id)
            )
        return found

    async def remove(self, store_id: str) -> list[Snapshot] | None:
        """Delete a shop with everything that was found about it; return its runs, None if there is
        none. A job that still works on it stores nothing.
        """
        async with self._writing(store_id) as connection:
            found = await connection.execute(
                sa.select(SNAPSHOTS).where(SNAPSHOTS.c.store_id == store_id)
            )
            runs = [snapshot_of(row) for row in found.mappings()]
            gone = await connection.execute(STORES.delete().where(STORES.c.store_id == store_id))
        return runs if gone.rowcount else None

    @asynccontextmanager
    async def _writing(self, name: str) -> AsyncIterator[AsyncConnection]:
        """A transaction beside which nobody else writes this shop."""
        async with self._engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                # The driver would begin one that only reads, which cannot always become a writer.
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                if connection.dialect.name == "postgresql":
                    await connection.execute(_LOCK, {"name": f"headrace_spots {name}"})
                yield connection
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise


LABELS = ("positive", "negative", "neutral")
