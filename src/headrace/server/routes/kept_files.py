"""Files that outlive their jobs: who keeps them, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import NAME, TEXT, KeepRequest, ReleaseRequest
from headrace.api_types.responses import FileReleased
from headrace.artifacts import check_path
from headrace.artifacts.kept_files import kept_paths
from headrace.errors import ArtifactNotFound, InvalidName
from headrace.model.artifact import Artifact, KeptFile
from headrace.server.http.body import read_json
from headrace.server.http.downloads import BYTES, Download
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routes.job import FILE
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, writing = Router("read", routes), Router("write", routes)

KeptPath = Annotated[str, Path(max_length=2_000)]


@reading("GET /artifacts/kept", "List files that outlive their jobs", page("files", KeptFile))
async def kept(
    call: Call,
    owner: Annotated[str | None, Query(pattern=NAME)] = None,
    cursor: Annotated[str | None, Query(pattern=TEXT)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """By job, with who keeps each and why."""
    app = call.unrestricted("kept files").app
    found = await app.kept_files(owner, cursor=cursor, limit=limit)
    return listed("files", found.files, found.cursor)


@reading(
    "GET /artifacts/kept/{path:path}",
    "Download a file that outlives its job",
    FILE,
    media_type=BYTES,
)
async def download_kept(call: Call, path: KeptPath) -> Response:
    """The content of a kept file by its path, also when its job is gone."""
    app = call.unrestricted("kept files").app
    try:
        layer, job_id = check_path(path)
        if path in await kept_paths(app.engine, job_id):
            store, name = app.artifact_store, path.split("/", 3)[3]
            size = await store.size(path)
            file = Artifact(layer=layer, name=name, path=path, size=size)
            return await Download(call, store, file, size=size).response()
    except (InvalidName, ArtifactNotFound):
        pass
    raise Refused(
        404,
        "artifact-not-found",
        f"nobody keeps a file {path[:200]!r}, or it is not in the store any more",
        remedy="see /artifacts/kept",
    )


@writing("POST /artifacts/keep", "Keep a file when its job is pruned", KeptFile, KeepRequest)
async def keep(call: Call) -> Response:
    """The file stays until its owner releases it. Keeping it again changes the reason."""
    asked = await read_json(call, KeepRequest)
    await _check_queue(call, asked.path)
    file = await call.service.app.keep_file(asked.path, owner=asked.owner, reason=asked.reason)
    await call.changed("artifact.keep", asked.path, owner=asked.owner)
    return answer(file)


@writing("POST /artifacts/release", "Release a kept file", FileReleased, ReleaseRequest)
async def release(call: Call) -> Response:
    """A file that nobody keeps any longer goes with its job, or now if that is gone."""
    asked = await read_json(call, ReleaseRequest)
    await _check_queue(call, asked.path)
    released = await call.service.app.release_file(asked.path, owner=asked.owner)
    await call.changed("artifact.release", asked.path, owner=asked.owner)
    return answer(FileReleased(asked.path, asked.owner, released))


async def _check_queue(call: Call, path: str) -> None:
    """Refuse a path that is none, and the file of a job that this caller may not see."""
    try:
        _, job_id = check_path(path)
    except InvalidName as error:
        raise Refused(
            404, "artifact-not-found", str(error), remedy="use a path that a job's files have"
        ) from None
    if call.caller.bound:
        await call.own_job(job_id)
