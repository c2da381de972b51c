"""`headrace artifacts`: the files of jobs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from headrace.artifacts.content import save
from headrace.artifacts.index import files_of
from headrace.cli.command import command, group
from headrace.cli.formatting import bytes_of
from headrace.cli.output import print_json, print_line, print_table, progress
from headrace.cli.session import Session
from headrace.errors import ArtifactNotFound, InvalidInput
from headrace.model.artifact import Artifact

commands = group("List and download the files of jobs.")

STDOUT = "-"

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job, from `jobs list`.")]
Stream = Callable[[Artifact], AsyncGenerator[bytes, None]]


@command(commands, "list")
async def list_artifacts(session: Session, job_id: JobId) -> None:
    """List the files of a job: those that it has kept, and those that it was handed in with.

    \b
    Example:
      headrace artifacts list 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162
    """
    async with _files(session, job_id) as (files, _):
        found = files
    if session.json:
        print_json({"artifacts": [msgspec.to_builtins(file) for file in found]})
        return
    print_table(
        ("LAYER", "SIZE", "TYPE", "SHA-256", "NAME"),
        [
            (
                file.layer,
                bytes_of(file.size),
                file.media_type or "",
                (file.sha256 or "")[:12],
                file.name,
            )
            for file in found
        ],
        right=("SIZE",),
    )


@command(commands, "get")
async def get_artifact(
    session: Session,
    job_id: JobId,
    name: Annotated[
        str, typer.Argument(metavar="LAYER/NAME", help="The file, from `artifacts list`.")
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Download a file of a job, of any size. Its checksum is compared.

    \b
    Examples:
      headrace artifacts get 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162 gold/report.csv
      headrace artifacts get 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162 gold/report.csv -o - | head
    """
    async with _files(session, job_id) as (files, stream):
        file = _pick(files, job_id, name)
        if output == STDOUT:
            async for chunk in stream(file):
                await asyncio.to_thread(sys.stdout.buffer.write, chunk)
            return
        target = Path(output or file.name.rpartition("/")[2])
        if not force and await asyncio.to_thread(target.exists):
            raise InvalidInput(f"{str(target)!r} is there already; use --output or --force")
        with progress("Download", file.size, quiet=session.json) as advance:
            try:
                await save(_watched(stream(file), advance), target)
            except OSError as error:
                raise InvalidInput(f"cannot write {str(target)!r}: {error.strerror}") from None
    if session.json:
        print_json(msgspec.to_builtins(file) | {"saved_as": str(target)})
    else:
        print_line(f"{target} ({bytes_of(file.size)})")


@asynccontextmanager
async def _files(session: Session, job_id: str) -> AsyncIterator[tuple[Sequence[Artifact], Stream]]:
    """The files of a job and how to read one: over HTTP, or from the store itself."""
    if session.remote:
        async with session.client() as client:
            found = await client.artifacts(job_id)
            yield found, lambda file: client.stream(job_id, file.name, layer=file.layer)
        return
    async with session.store() as app:
        files = await files_of(app.engine, await app.get(job_id))
        yield (
            list(files.values()),
            lambda file: app.artifacts.stream(file.path, sha256=file.sha256),
        )


def _pick(files: Sequence[Artifact], job_id: str, name: str) -> Artifact:
    for file in files:
        if f"{file.layer}/{file.name}" == name:
            return file
    known = ", ".join(f"{file.layer}/{file.name}" for file in files[:5]) or "none"
    raise ArtifactNotFound(f"job {job_id} has no file {name[:200]!r}; it has: {known}")


async def _watched(
    chunks: AsyncGenerator[bytes, None], advance: Callable[[int], None]
) -> AsyncGenerator[bytes, None]:
    done = 0
    async for chunk in chunks:
        yield chunk
        done += len(chunk)
        advance(done)
