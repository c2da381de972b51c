"""The tasks of the shelf."""

from __future__ import annotations

import os

import sqlalchemy as sa

import headrace
import headrace.bundles

books = sa.table("books", sa.column("id"), sa.column("title"))


def register(app: headrace.App, setup: headrace.bundles.Setup) -> None:
    """Add the tasks."""

    @app.task("shelf.add", queue="shelf")
    async def add(ctx: headrace.Context, title: str) -> str:
        async with setup.engine().begin() as connection:
            await connection.execute(sa.insert(books).values(id=ctx.job_id, title=title))
        return f"{setup.settings.greeting} {title}"

    @app.task("shelf.weigh", queue="shelf", isolate="process")
    async def weigh(title: str) -> list[object]:
        return [len(title), setup.settings.greeting, os.getpid()]

    app.add_schedule("shelf.add", "0 3 * * *", name="shelf-nightly", params={"title": "Nightly"})


async def demo(app: headrace.App, setup: headrace.bundles.Setup) -> None:
    """Put a book on the shelf."""
    await app.enqueue("shelf.add", {"title": "Dune"})
