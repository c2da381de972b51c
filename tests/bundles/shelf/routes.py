"""The routes of the shelf."""

from __future__ import annotations

import hashlib

import msgspec
import sqlalchemy as sa
from fastapi import UploadFile
from headrace_shelf.work import books  # type: ignore[import-not-found]

import headrace.bundles


class NewBook(msgspec.Struct, forbid_unknown_fields=True):
    """What a caller sends."""

    title: str


class Book(msgspec.Struct):
    """What a caller gets."""

    book_id: str
    title: str
    password: str = "hunter2"


def routes(setup: headrace.bundles.Setup) -> headrace.bundles.Routes:
    """Return the routes."""
    routes = headrace.bundles.Routes()

    @routes.get("/books", scope="read")
    async def find(request: headrace.bundles.Request, title: str | None = None) -> list[Book]:
        """List books."""
        wanted = sa.select(books.c.id, books.c.title)
        if title is not None:
            wanted = wanted.where(books.c.title == title)
        async with request.setup.engine().connect() as connection:
            return [Book(*row) for row in await connection.execute(wanted)]

    @routes.get("/books/{book_id}", scope="read")
    async def show(book_id: str) -> Book:
        raise headrace.bundles.Refusal(
            404, f"there is no book {book_id}", word="book-not-found", field="book_id"
        )

    @routes.post("/books", scope="write", status=202, action="book.add")
    async def add(body: NewBook, request: headrace.bundles.Request) -> dict[str, object]:
        job = await request.app.enqueue("shelf.add", {"title": body.title})
        request.note(job.id, title=body.title)
        return {"job_id": job.id, "user": request.user, "caller": request.caller}

    @routes.post("/scans", scope="write")
    async def scan(files: list[UploadFile]) -> dict[str, list[object]]:
        found: dict[str, list[object]] = {}
        for file in files:
            content = await file.read()
            found[file.filename or ""] = [len(content), hashlib.sha256(content).hexdigest()]
        return found

    @routes.delete("/books/{book_id}", scope="admin")
    async def remove(book_id: str) -> None:
        return None

    @routes.post("/questions", scope="read", changes=False)
    async def ask(body: NewBook) -> int:
        return len(body.title)

    return routes
