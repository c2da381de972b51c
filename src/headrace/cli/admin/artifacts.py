"""`headrace artifacts`: the files of jobs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import click
import msgspec

from headrace.artifacts.content import save
from headrace.cli.backend import list_artifacts
from headrace.cli.command import argument, flag, group, option
from headrace.cli.formatting import bytes_of
from headrace.cli.ids import whole_id
from headrace.cli.output import Columns, print_line, progress
from headrace.cli.session import CliSession
from headrace.errors import ArtifactNotFound, InvalidInput
from headrace.model.artifact import Artifact, KeptFile, KeptPage

commands = group("List, download and keep the files of jobs.")

# So many a server lists at once.
PAGE = 200

JOB = argument("job_id", "ID", "The job, or the beginning of its id, from `jobs list`.")
STDOUT = "-"


@commands.command("list")
@JOB
async def list_files(session: CliSession, *, job_id: str) -> None:
    """List the files of a job: those that it stored, and those it was enqueued with.

    headrace artifacts list 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162
    """
    async with session.backend() as backend:
        job_id = await whole_id(backend, job_id)
        found = await list_artifacts(backend, job_id)
    columns: Columns[Artifact] = {
        "LAYER": lambda file: file.layer,
        ">SIZE": lambda file: bytes_of(file.size),
        "TYPE": lambda file: file.media_type or "",
        "SHA-256": lambda file: (file.sha256 or "")[:12],
        "NAME": lambda file: file.name,
    }
    session.show_list("artifacts", found, columns)


@commands.command("get")
@JOB
@argument("name", "LAYER/NAME", "The file, from `artifacts list`.")
@option("--output -o", "FILE", "Where to save it; - is stdout.")
@flag("--force", "Overwrite an existing file.")
async def get_artifact(
    session: CliSession, *, job_id: str, name: str, output: str | None, force: bool
) -> None:
    """Download a file of a job. Its checksum is verified.

    headrace artifacts get 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162 gold/report.csv
    headrace artifacts get 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162 gold/a.csv -o -
    """
    async with session.backend() as backend:
        job_id = await whole_id(backend, job_id)
        file = _pick(await list_artifacts(backend, job_id), job_id, name)
        content = backend.stream(job_id, file.name, layer=file.layer)
        if output == STDOUT:
            async for chunk in content:
                await asyncio.to_thread(sys.stdout.buffer.write, chunk)
            return
        target = Path(output or file.name.rpartition("/")[2])
        if not force and await asyncio.to_thread(target.exists):
            raise InvalidInput(f"{str(target)!r} is there already; use --output or --force")
        with progress("Download", file.size, quiet=session.json) as advance:
            try:
                await save(_watched(content, advance), target)
            except OSError as error:
                raise InvalidInput(f"cannot write {str(target)!r}: {error.strerror}") from None
    answer = msgspec.to_builtins(file) | {"saved_as": str(target)}
    session.show(answer, f"{target} ({bytes_of(file.size)})")


@commands.command("keep")
@argument("path", "PATH", "The file, as `artifacts.put` returned it.")
@option("--owner", "NAME", "Who needs it.", required=True)
@option("--reason", "TEXT", "What for.", default="")
async def keep_file(session: CliSession, *, path: str, owner: str, reason: str) -> None:
    """Keep a file when its job is pruned, until its owner releases it.

    headrace artifacts keep gold/01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162/1/report.csv --owner shop
    """
    async with session.backend() as backend:
        file = await backend.keep_file(path, owner=owner, reason=reason)
    told = f"{file.path} ({bytes_of(file.size)}) is kept for {file.owner}"
    session.show(msgspec.to_builtins(file), told)


@commands.command("release")
@argument("path", "PATH", "The file, from `artifacts kept`.")
@option("--owner", "NAME", "Who needs it no longer.", required=True)
async def release_file(session: CliSession, *, path: str, owner: str) -> None:
    """Release a kept file. When nobody keeps it, it goes with its job, or now if that is gone.

    headrace artifacts release gold/01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162/1/a.csv --owner shop
    """
    async with session.backend() as backend:
        released = await backend.release_file(path, owner=owner)
    told = f"{path} is released by {owner}" if released else f"{path} was not kept for {owner}"
    session.show({"path": path, "owner": owner, "released": released}, told)


@commands.command("kept")
@option("--owner", "NAME", "Only those of this owner.")
@option("--limit", "N", "How many at most (50).", type=click.IntRange(1, 1_000), default=50)
@option("--cursor", "TEXT", "Go on where an earlier list ended.")
async def kept_files(
    session: CliSession, *, owner: str | None, limit: int, cursor: str | None
) -> None:
    """List files that outlive their jobs, with who keeps them and why.

    headrace artifacts kept --owner shop
    """
    async with session.backend() as backend:
        page = await backend.kept_files(owner, cursor=cursor, limit=min(limit, PAGE))
        while page.cursor is not None and len(page.files) < limit:
            rest = min(limit - len(page.files), PAGE)
            more = await backend.kept_files(owner, cursor=page.cursor, limit=rest)
            page = KeptPage(page.files + more.files, more.cursor)
    columns: Columns[KeptFile] = {
        "OWNER": lambda file: file.owner,
        ">SIZE": lambda file: bytes_of(file.size),
        "REASON": lambda file: file.reason,
        "PATH": lambda file: file.path,
    }
    if session.json:
        session.show({"files": msgspec.to_builtins(page.files), "cursor": page.cursor})
        return
    session.show_list("files", page.files, columns)
    if page.cursor is not None:
        print_line(f"There are more: --cursor {page.cursor}")


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
