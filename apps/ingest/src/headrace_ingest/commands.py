"""The commands `headrace ingest …`. They work on the store, or by the server of API_URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click
import msgspec

from headrace import InvalidInput, ValidationError
from headrace.bundles import Session
from headrace_ingest.documents import Documents, read_metadata
from headrace_ingest.names import clean_path
from headrace_ingest.remote import RemoteDocuments
from headrace_ingest.service import IngestService
from headrace_ingest.store.records import Status
from headrace_ingest.store.sources import FileSource
from headrace_ingest.views import Accepted, DocumentView, HitView, hit_of

POLL_SECONDS = 0.5
PAGE = 500


def commands() -> click.Group:
    """Return the group."""
    group = click.Group("ingest", help="Documents: add, find, list, remove.")
    for command in (_add(), _search(), _list(), _show(), _remove(), _reindex()):
        group.add_command(command)
    return group


def _add() -> click.Command:
    @click.command("add")
    @click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
    @click.option("--path", default="/", help="Where they belong, such as /hr/leave (default /).")
    @click.option("--metadata", default="{}", help="What goes with each, as a JSON object.")
    @click.option("--wait/--no-wait", default=True, help="Wait until all are processed.")
    async def add(
        session: Session, files: tuple[Path, ...], path: str, metadata: str, *, wait: bool
    ) -> int:
        """Add files, and all files of folders. A worker with the bundle processes them."""
        async with _opened(session) as documents:
            details = read_metadata(metadata)
            found = [(file, name) for given in files for file, name in _files_of(given, path)]
            if not found:
                raise InvalidInput("there is no file in what was given")
            accepted, refused = [], []
            with session.progress("handed in", len(found)) as show:
                for number, (file, folder) in enumerate(found, 1):
                    try:
                        async with FileSource(file) as source:
                            accepted.append(
                                await documents.add(source, file.name, folder, metadata=details)
                            )
                    except (ValidationError, OSError) as error:
                        refused.append({"file": str(file), "error": str(error)})
                    show(number)
            ended = await _ended(session, documents, accepted) if wait else []
        _print_added(session, accepted, ended, refused)
        return 1 if refused or any(each.status == Status.FAILED for each in ended) else 0

    return add


def _search() -> click.Command:
    @click.command("search")
    @click.argument("question")
    @click.option("--path", default="/", help="Only within this path.")
    @click.option("-k", default=5, help="So many results (default 5).")
    async def search(session: Session, question: str, path: str, k: int) -> None:
        """Find what answers a question."""
        async with _opened(session) as documents:
            hits = await documents.search(question, path, k)
        if session.json:
            session.print_json({"hits": msgspec.to_builtins(hits)})
            return
        for hit in hits:
            session.print_line(f"{hit.score:.2f}  {hit.path.rstrip('/')}/{hit.name}")
            session.print_line(f"      {' '.join(hit.text.split())[:300]}")
        if not hits:
            session.print_line("Nothing was found.")

    return search


def _list() -> click.Command:
    @click.command("list")
    @click.option("--path", default="/", help="Only within this path.")
    @click.option("--status", type=click.Choice([each.value for each in Status]))
    @click.option("--limit", default=50, help="At most so many (default 50).")
    async def list_documents(session: Session, path: str, status: str | None, limit: int) -> None:
        """List documents, the newest first."""
        async with _opened(session) as documents:
            wanted = None if status is None else Status(status)
            found, following = await documents.list(path, wanted, limit=limit, after=None)
        if session.json:
            body = {"documents": msgspec.to_builtins(found), "next": following}
            session.print_json(body)
        else:
            _print_table(session, found)

    return list_documents


def _show() -> click.Command:
    @click.command("show")
    @click.argument("document_id")
    async def show(session: Session, document_id: str) -> None:
        """Show a document."""
        async with _opened(session) as documents:
            found = await documents.get(document_id)
        if found is None:
            raise InvalidInput(f"there is no document {document_id}")
        fields = msgspec.to_builtins(found)
        if session.json:
            session.print_json(fields)
        else:
            session.print_table(["FIELD", "VALUE"], list(fields.items()))

    return show


def _remove() -> click.Command:
    @click.command("remove")
    @click.argument("document_ids", nargs=-1, required=True)
    async def remove(session: Session, document_ids: tuple[str, ...]) -> int:
        """Delete documents with everything that was made of them."""
        async with _opened(session) as documents:
            gone = [each for each in document_ids if await documents.remove(each)]
        missing = [each for each in document_ids if each not in gone]
        if session.json:
            session.print_json({"removed": gone, "missing": missing})
        else:
            session.print_line(f"{len(gone)} removed.")
        for each in missing:
            session.notice(f"there is no document {each}")
        return 1 if missing else 0

    return remove


def _reindex() -> click.Command:
    @click.command("reindex")
    @click.argument("document_ids", nargs=-1)
    @click.option("--path", default="/", help="All completed ones within this path, without ids.")
    @click.option("--wait/--no-wait", default=True, help="Wait until all are processed.")
    async def reindex(
        session: Session, document_ids: tuple[str, ...], path: str, *, wait: bool
    ) -> int:
        """Process documents again from their originals: after a change of model or settings."""
        async with _opened(session) as documents:
            ids = list(document_ids) or await _completed(documents, path)
            accepted = [await documents.reindex(each) for each in ids]
            ended = await _ended(session, documents, accepted) if wait else []
        _print_added(session, accepted, ended, [])
        return 1 if any(each.status == Status.FAILED for each in ended) else 0

    return reindex


class _StoredDocuments(Documents):
    """The documents of the store, and the search over them."""

    async def search(self, question: str, path: str, k: int) -> list[HitView]:
        """Return the chunks that answer a question best."""
        found = await self._service.search.search(question, clean_path(path), k)
        return [hit_of(hit) for hit in found]


@asynccontextmanager
async def _opened(session: Session) -> AsyncIterator[_StoredDocuments | RemoteDocuments]:
    if session.remote:
        settings = session.settings
        async with RemoteDocuments.connected(str(settings.api_url), settings.api_key) as remote:
            yield remote
    else:
        async with session.setup() as setup:
            service = IngestService(setup)
            try:
                yield _StoredDocuments(service)
            finally:
                await service.close_embedder()


def _files_of(given: Path, path: str) -> list[tuple[Path, str]]:
    """Return the files of a folder, each with its path in the taxonomy: folders become parts."""
    if given.is_file():
        return [(given, path)]
    found = []
    for file in sorted(given.rglob("*")):
        inside = file.relative_to(given)
        if file.is_file() and not any(part.startswith(".") for part in inside.parts):
            found.append((file, "/".join([path.rstrip("/"), *inside.parts[:-1]]) or "/"))
    return found


async def _completed(documents: Documents | RemoteDocuments, path: str) -> list[str]:
    ids: list[str] = []
    after: str | None = None
    while True:
        page, after = await documents.list(path, Status.COMPLETED, limit=PAGE, after=after)
        ids += [each.document_id for each in page if each.original]
        if after is None:
            return ids


async def _ended(
    session: Session, documents: Documents | RemoteDocuments, accepted: Sequence[Accepted]
) -> list[DocumentView]:
    """Wait until documents are processed; show how many are."""
    waiting = [each.document_id for each in accepted]
    ended: list[DocumentView] = []
    with session.progress("processed", len(waiting)) as show:
        while waiting:
            views = [(each, await documents.get(each)) for each in waiting]
            waiting = [
                each for each, view in views if view is not None and view.status == "processing"
            ]
            ended += [view for each, view in views if view is not None and each not in waiting]
            show(len(accepted) - len(waiting))
            if waiting:
                await asyncio.sleep(POLL_SECONDS)
    return ended


def _print_added(
    session: Session,
    accepted: Sequence[Accepted],
    ended: Sequence[DocumentView],
    refused: Sequence[dict[str, str]],
) -> None:
    if session.json:
        shown = ended or accepted
        session.print_json({"documents": msgspec.to_builtins(shown), "refused": list(refused)})
        return
    if ended:
        _print_table(session, ended)
    else:
        session.print_line(f"{len(accepted)} handed in.")
    for each in refused:
        session.notice(f"{each['file']}: {each['error']}")


def _print_table(session: Session, documents: Sequence[DocumentView]) -> None:
    rows = [
        (
            each.document_id,
            f"{each.path.rstrip('/')}/{each.name}",
            each.status,
            f"{each.progress}%",
            each.chunks,
            each.error or "",
        )
        for each in documents
    ]
    session.print_table(["DOCUMENT", "NAME", "STATUS", "PROGRESS", "CHUNKS", "ERROR"], rows)
