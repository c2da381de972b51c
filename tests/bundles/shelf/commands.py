"""The commands of the shelf."""

from __future__ import annotations

import click

import headrace.bundles


def commands() -> click.Group:
    """Return the group."""

    @click.group("shelf", help="Books on a shelf.")
    def shelf() -> None: ...

    @shelf.command("add")
    @click.argument("title")
    async def add(session: headrace.bundles.Session, title: str) -> None:
        """Add a book."""
        async with session.setup() as setup:
            job = await setup.app.enqueue("shelf.add", {"title": title})
        if session.json:
            session.print_json({"job_id": job.id, "greeting": setup.settings.greeting})
        else:
            session.print_table(["JOB", "TITLE"], [(job.id, title)])

    @shelf.command("fail")
    async def fail(session: headrace.bundles.Session) -> int:
        session.notice("it failed")
        return 1

    return shelf
