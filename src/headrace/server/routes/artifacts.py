"""Files that jobs keep."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from headrace.artifacts import LAYERS
from headrace.errors import InvalidName
from headrace.model.job import Job
from headrace.server.answers import listed
from headrace.server.auth import router
from headrace.server.documents import answers, page
from headrace.server.problems import Refused
from headrace.server.routes.job import JobId, the_job
from headrace.server.state import Service, service_of
from headrace.server.upload import LAYER, TOKEN, Kept

reading = router("read")

KIND = "artifact"
BYTES = "application/octet-stream"


class ArtifactRecord(msgspec.Struct):
    """What the index says about a file."""

    path: str
    size: int
    media_type: str | None = None


@reading.get(
    "/jobs/{job_id}/artifacts",
    summary="List a job's files",
    **answers(page("artifacts", "Artifact")),
)
async def find(request: Request, job_id: JobId) -> Response:
    """The files that a job has kept, and those that it was handed in with."""
    service = service_of(request)
    files = await _files(service, await the_job(request, job_id))
    return listed("artifacts", [_shown(place, record) for place, record in files.items()])


@reading.get(
    "/jobs/{job_id}/artifacts/{layer}/{name:path}",
    summary="Download a file",
    **answers({"type": "string", "format": "binary"}, media_type=BYTES),
)
async def download(
    request: Request,
    job_id: JobId,
    layer: Annotated[str, Path(json_schema_extra={"enum": list(LAYERS)})],
    name: Annotated[str, Path(max_length=200)],
) -> Response:
    """The content of one file."""
    service = service_of(request)
    job = await the_job(request, job_id)
    record = (await _files(service, job)).get(f"{layer}/{name}")
    try:
        content = None if record is None else await service.app.artifacts.read(record.path)
    except OSError:
        content = None
    if content is None:
        raise Refused(
            404,
            "artifact-not-found",
            f"job {job.id} has no file {layer}/{name[:60]}, or it is not on this machine",
            remedy=f"see /jobs/{job.id}/artifacts",
        )
    file = quote(name.rpartition("/")[2])
    # Never shown by a browser on our own origin: what is in it is somebody else's.
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{file}"}
    return Response(content, headers=headers, media_type=BYTES)


async def _files(service: Service, job: Job) -> dict[str, ArtifactRecord]:
    files: dict[str, ArtifactRecord] = {}
    handed_in = job.meta.get("files")
    if isinstance(handed_in, list) and job.source == "api":
        try:
            kept = msgspec.convert(handed_in, list[Kept])
        except msgspec.ValidationError:
            kept = []  # somebody else's use of the word
        for each in kept:
            # Where files that came with this very job are: `meta` may say anything.
            name = f"{each.argument}/{each.name}"
            with suppress(InvalidName):
                path = service.app.artifacts.path(LAYER, job.id, TOKEN, name)
                files[f"{LAYER}/{name}"] = ArtifactRecord(path, each.size, each.media_type)
    for entry in await service.app.engine.entries(job.id, KIND):
        files[entry.name] = msgspec.json.decode(entry.body, type=ArtifactRecord)
    return files


def _shown(place: str, record: ArtifactRecord) -> dict[str, Any]:
    layer, _, name = place.partition("/")
    return {
        "layer": layer,
        "name": name,
        "size": record.size,
        "media_type": record.media_type,
        "path": record.path,
    }
