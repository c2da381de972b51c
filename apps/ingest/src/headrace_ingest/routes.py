"""The HTTP routes of the bundle, below `/ingest`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import msgspec
from fastapi import Form, UploadFile
from starlette.responses import Response, StreamingResponse

from headrace import ArtifactNotFound, ValidationError
from headrace.bundles import Refusal, Request, Routes, Setup
from headrace_ingest.documents import Documents, read_metadata
from headrace_ingest.names import clean_name, clean_path, shown
from headrace_ingest.service import IngestService
from headrace_ingest.store.records import Status
from headrace_ingest.views import Accepted, hit_of

T = TypeVar("T")

# A request may have many files.
FILES_AT_ONCE = 4
JSON = "application/json"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Types that no browser runs; all others are sent as plain bytes.
_SAFE = re.compile(r"text/(plain|csv)|application/pdf|application/vnd\.openxmlformats-[\w.\-]+")


def routes(setup: Setup) -> Routes:
    """Return the routes."""
    routes = Routes()
    service = IngestService(setup)
    documents = Documents(service)
    largest = service.settings.largest_file

    @routes.post(
        "/documents",
        scope="write",
        status=202,
        action="document.add",
        limit=FILES_AT_ONCE * largest,
    )
    async def add(
        request: Request,
        files: list[UploadFile],
        path: Annotated[str, Form()] = "/",
        metadata: Annotated[str, Form()] = "{}",
    ) -> dict[str, list[Accepted]]:
        """Hand in documents. Each is processed by a job of the same id."""
        # All are checked before the first is stored.
        within = _checked("path", path, clean_path)
        details = _checked("metadata", metadata, read_metadata)
        names = [_checked("files", file.filename or "", clean_name) for file in files]
        for file, name in zip(files, names, strict=True):
            if (file.size or 0) > largest:
                raise Refusal(
                    413, f"{shown(name)} has {file.size:,} bytes; at most {largest:,} are taken"
                )
        accepted = await documents.add_many(
            list(zip(files, names, strict=True)),
            within,
            metadata=details,
            owner=request.user,
        )
        request.note(accepted[0].document_id if accepted else None, documents=len(accepted))
        return {"documents": accepted}

    @routes.get("/documents", scope="read")
    async def find(
        path: str = "/", status: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Response:
        """List documents within a path, the newest first."""
        wanted = _checked("status", status, _status) if status else None
        within = _checked("path", path or "/", clean_path)
        if not 1 <= limit <= 500:
            raise Refusal(422, f"limit is {limit}; give 1 to 500", field="limit")
        found, following = await documents.list(within, wanted, limit=limit, after=cursor)
        return _plain({"documents": found, "next": following})

    @routes.get("/documents/{document_id}", scope="read")
    async def show(document_id: str) -> Response:
        """Return a document."""
        return _plain(_found(await documents.get(_known(document_id)), document_id))

    @routes.delete("/documents/{document_id}", scope="write", action="document.remove")
    async def remove(document_id: str, request: Request) -> None:
        """Delete a document with everything that was made of it."""
        row = await documents.remove(_known(document_id))
        _found(row, document_id)
        request.note(document_id)

    @routes.get("/documents/{document_id}/original", scope="read")
    async def original(document_id: str) -> Response:
        """Return the original, as it was handed in. It is not masked."""
        row = _found(await service.repository.get(_known(document_id)), document_id)
        try:
            content = await documents.original(row)
        except ArtifactNotFound:
            raise Refusal(
                404, f"the original of {shown(row.name)} is not kept", word="original-not-found"
            ) from None
        except ValidationError as error:
            raise Refusal(409, str(error)) from None
        media_type = row.media_type or ""
        return StreamingResponse(
            content,
            media_type=media_type if _SAFE.fullmatch(media_type) else "application/octet-stream",
            headers={
                "Content-Disposition": _disposition(row.name),
                "Content-Security-Policy": "sandbox; default-src 'none'",
                "Cache-Control": "private, no-store",
            },
        )

    @routes.post(
        "/documents/{document_id}/reindex", scope="write", status=202, action="document.reindex"
    )
    async def reindex(document_id: str, request: Request) -> Accepted:
        """Process a document again from its original."""
        _found(await service.repository.get(_known(document_id)), document_id)
        request.note(document_id)
        return await documents.reindex(document_id)

    _add_search(routes, service)
    return routes


def _add_search(routes: Routes, service: IngestService) -> None:
    @routes.get("/search", scope="read")
    async def search(q: str, path: str = "/", k: int = 10) -> Response:
        """Return the chunks that answer a question best."""
        within = _checked("path", path or "/", clean_path)
        hits = await service.search.search(q, within, k)
        return _plain({"hits": [hit_of(hit) for hit in hits]})

    @routes.get("/info", scope="read")
    async def info() -> dict[str, Any]:
        """Return how much there is, and how it is searched."""
        totals = await service.repository.totals()
        loaded = service.search.index.chunks > 0 or totals.chunks == 0
        return {
            "documents": totals.documents,
            "chunks": totals.chunks,
            "model": service.embedder.name,
            "vectors": service.search.method if loaded else "in memory from the first search on",
            "paths": list(totals.paths),
        }


def _checked(field: str, given: str, read: Callable[[str], T]) -> T:
    """Return what `read` makes of a field; what a caller has got wrong is refused with 422."""
    try:
        return read(given)
    except ValidationError as error:
        remedy = str(error).rpartition("; ")[2] if "; " in str(error) else None
        raise Refusal(422, str(error), field=field, value=shown(given), remedy=remedy) from None


def _status(text: str) -> Status:
    try:
        return Status(text)
    except ValueError:
        raise ValidationError(f"status is {text!r}; use one of {', '.join(Status)}") from None


def _known(document_id: str) -> str:
    """Return an id, or refuse what cannot be one: databases do not take every text."""
    if not _ID.fullmatch(document_id):
        _found(None, document_id)
    return document_id


def _found(found: Any, document_id: str) -> Any:
    if found is None:
        raise Refusal(404, f"there is no document {shown(document_id)}", word="document-not-found")
    return found


def _plain(body: Any) -> Response:
    """A response whose fields are not redacted: kinds of personal data are named like secrets."""
    return Response(msgspec.json.encode(body), media_type=JSON)


def _disposition(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._\-]", "_", name)[-100:]
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
