"""Files of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from headrace.artifacts import LAYERS
from headrace.artifacts.index import file_of, files_of
from headrace.artifacts.names import NAME_LIMIT
from headrace.errors import ArtifactNotFound, InvalidName
from headrace.model.artifact import Artifact
from headrace.server.auth.guard import router
from headrace.server.http.downloads import BYTES, Download
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import answers, page
from headrace.server.responses import listed
from headrace.server.routes.job import JobId, the_job
from headrace.server.service import service_of

reading = router("read")

Layer = Annotated[str, Path(json_schema_extra={"enum": list(LAYERS)})]
Name = Annotated[str, Path(max_length=NAME_LIMIT)]

DOWNLOAD = "/jobs/{job_id}/artifacts/{layer}/{name:path}"


@reading.get(
    "/jobs/{job_id}/artifacts",
    summary="List a job's files",
    **answers(page("artifacts", Artifact)),
)
async def find(request: Request, job_id: JobId) -> Response:
    """The files that a job has stored, and those that were sent with it."""
    files = await files_of(service_of(request).app.engine, await the_job(request, job_id))
    return listed("artifacts", list(files.values()))


@reading.get(
    DOWNLOAD,
    summary="Download a file",
    **answers(
        {"type": "string", "format": "binary"},
        also={206: {"type": "string", "format": "binary"}},
        media_type=BYTES,
    ),
)
async def download(request: Request, job_id: JobId, layer: Layer, name: Name) -> Response:
    """The content of one file, or with `Range` a part of it. Its `ETag` is the SHA-256 checksum."""
    return await (await _asked(request, job_id, layer, name)).response()


@reading.head(DOWNLOAD, include_in_schema=False)
async def head(request: Request, job_id: JobId, layer: Layer, name: Name) -> Response:
    """What a download would say, without the content."""
    return await (await _asked(request, job_id, layer, name)).response()


async def _asked(request: Request, job_id: str, layer: str, name: str) -> Download:
    service = service_of(request)
    job = await the_job(request, job_id)
    try:
        file: Artifact | None = await file_of(service.app.engine, job, layer, name)
        if file is not None:
            # Before the response begins: after that it could only break off.
            size = await service.app.artifacts.size(file.path)
            return Download(request, service.app.artifacts, file, size=size)
    except (InvalidName, ArtifactNotFound):
        pass
    raise Refused(
        404,
        "artifact-not-found",
        f"job {job.id} has no file {layer[:20]}/{name[:60]}, or it is not in the store any more",
        remedy=f"see /jobs/{job.id}/artifacts",
    )
