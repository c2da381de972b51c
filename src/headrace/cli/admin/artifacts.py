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
from headrace.cli.command import argument, group
from headrace.cli.formatting import bytes_of
from headrace.cli.output import print_json, print_line, print_table, progress
from headrace.cli.session import CliSession
from headrace.errors import ArtifactNotFound, InvalidInput
from headrace.model.artifact import Artifact, KeptPage

commands = group("List, download and keep the files of jobs.")

# So many a server lists at once.
PAGE = 200

STDOUT = "-"


@commands.command("list")
@argument("job_id", metavar="ID", help="The job, from `jobs list`.")
async def list_files(session: CliSession, *, job_id: str) -> None:
    """List the files of a job: those that it stored, and those it was enqueued with.

    \b
    Example:
      headrace artifacts list 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162
    """
    async with session.backend() as backend:
        found = await list_artifacts(backend, job_id)
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


@commands.command("get")
@argument("job_id", metavar="ID", help="The job, from `jobs list`.")
@argument("name", metavar="LAYER/NAME", help="The file, from `artifacts list`.")
@click.option("--output", "-o", metavar="FILE", help="Where to save it; - is stdout.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
async def get_artifact(
    session: CliSession, *, job_id: str, name: str, output: str | None, force: bool
) -> None:
    """Download a file of a job. Its checksum is verified.

    \b
    Examples:
      headrace artifacts get 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162 gold/report.csv
      headrace artifacts get 01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162 gold/a.csv -o -
    """
    async with session.backend() as backend:
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
    if session.json:
        print_json(msgspec.to_builtins(file) | {"saved_as": str(target)})
    else:
        print_line(f"{target} ({bytes_of(file.size)})")


@commands.command("keep")
@argument("path", metavar="PATH", help="The file, as `artifacts.put` returned it.")
@click.option("--owner", required=True, help="Who needs it.")
@click.option("--reason", default="", help="What for.")
async def keep_file(session: CliSession, *, path: str, owner: str, reason: str) -> None:
    """Keep a file when its job is pruned, until its owner releases it.

    \b
    Example:
      headrace artifacts keep gold/01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162/1/report.csv --owner shop
    """
    async with session.backend() as backend:
        file = await backend.keep_file(path, owner=owner, reason=reason)
    if session.json:
        print_json(msgspec.to_builtins(file))
    else:
        print_line(f"{file.path} ({bytes_of(file.size)}) is kept for {file.owner}")


@commands.command("release")
@argument("path", metavar="PATH", help="The file, from `artifacts kept`.")
@click.option("--owner", required=True, help="Who needs it no longer.")
async def release_file(session: CliSession, *, path: str, owner: str) -> None:
    """Release a kept file. When nobody keeps it, it goes with its job, or now if that is gone.

    \b
    Example:
      headrace artifacts release gold/01a0c4e2-7d0b-7c5e-8f6a-1d2e3f405162/1/a.csv --owner shop
    """
    async with session.backend() as backend:
        released = await backend.release_file(path, owner=owner)
    if session.json:
        print_json({"path": path, "owner": owner, "released": released})
    elif released:
        print_line(f"{path} is released by {owner}")
    else:
        print_line(f"{path} was not kept for {owner}")


@commands.command("kept")
@click.option("--owner", help="Only those of this owner.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, help="How many at most (50).")
@click.option("--cursor", help="Go on where an earlier list ended.")
async def kept_files(
    session: CliSession, *, owner: str | None, limit: int, cursor: str | None
) -> None:
    """List files that outlive their jobs, with who keeps them and why.

    \b
    Example:
      headrace artifacts kept --owner shop
    """
    async with session.backend() as backend:
        page = await backend.kept_files(owner, cursor=cursor, limit=min(limit, PAGE))
        while page.cursor is not None and len(page.files) < limit:
            rest = min(limit - len(page.files), PAGE)
            more = await backend.kept_files(owner, cursor=page.cursor, limit=rest)
            page = KeptPage(page.files + more.files, more.cursor)
    if session.json:
        print_json({"files": msgspec.to_builtins(page.files), "cursor": page.cursor})
        return
    print_table(
        ("OWNER", "SIZE", "REASON", "PATH"),
        [(file.owner, bytes_of(file.size), file.reason, file.path) for file in page.files],
        right=("SIZE",),
    )
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
