"""`app.artifacts`: the files of jobs, for programs that are not a handler."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from headrace.artifacts import kept_files
from headrace.artifacts.index import HANDED_IN_LAYER, HANDED_IN_TOKEN, check_media_type, files_of
from headrace.artifacts.job_uploads import Upload, file_name, put, told_apart
from headrace.artifacts.names import check_path, place
from headrace.artifacts.pending_uploads import expect
from headrace.errors import ArtifactNotFound, JobConflict, JobNotFound
from headrace.model.artifact import Artifact, Content, KeptFile, KeptPage
from headrace.model.ids import new_id, parse_id

if TYPE_CHECKING:
    from headrace.task.app_like import AppLike


class AppArtifacts:
    """Files by their path, and files for jobs that are not enqueued yet."""

    def __init__(self, host: AppLike) -> None:
        self._host = host

    def __repr__(self) -> str:
        return f"<AppArtifacts {self._host.artifact_store.where}>"

    @property
    def where(self) -> str:
        """The folder or the bucket, without secrets."""
        return self._host.artifact_store.where

    async def put(
        self,
        name: str,
        data: Content,
        *,
        job_id: str | None = None,
        media_type: str | None = None,
    ) -> Artifact:
        """Store a file for a job that is not enqueued yet, and return it. Enqueue the job with
        `task.options(files={"argument": artifact}).enqueue(…)`; without one, and unless it is kept,
        the file is removed after an hour.

        The job's id is in the file's path. `job_id` puts a further file for the same job; if its
        name is taken, it gets a number: `a (2).txt`. Raises
        `JobConflict` if that job exists: only its handler adds files to it.
        """
        check_media_type(media_type)
        await self._host.open()
        engine, called = self._host.engine, file_name(name)
        if job_id is None:
            job_id = new_id()
        else:
            job_id = parse_id(job_id)
            if await engine.get([job_id]):
                raise JobConflict(f"job {job_id} was enqueued already; its handler may put files")
            taken: list[str] = []
            while await self._exists(_path(job_id, called)):
                taken.append(called)
                [called] = told_apart([file_name(name)], taken)
        await expect(engine, job_id)
        path = _path(job_id, called)
        upload = Upload("file", called, data, media_type)
        stored, found = await put(self._host.artifact_store, path, upload)
        return Artifact(
            layer=HANDED_IN_LAYER,
            name=called,
            path=stored.path,
            size=stored.size,
            sha256=stored.sha256,
            media_type=found,
        )

    async def get(self, path: str, *, sha256: str | None = None) -> bytes:
        """Return a whole file at once. Raises `ArtifactNotFound`; with `sha256` also `EngineError`
        if the file is another.
        """
        return await self._host.artifact_store.get(path, sha256=sha256)

    async def stream(
        self, path: str, *, start: int = 0, end: int | None = None, sha256: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield a file in chunks, or a part of it. Raises `ArtifactNotFound`."""
        store = self._host.artifact_store
        async for chunk in store.stream(path, start=start, end=end, sha256=sha256):
            yield chunk

    async def list(self, job_id: str) -> Sequence[Artifact]:
        """Return the files that a job has stored, and those that it was enqueued with."""
        await self._host.open()
        found = await self._host.engine.get([parse_id(job_id)])
        if not found:
            raise JobNotFound(f"no job has the id {job_id}; it may have been pruned")
        return list((await files_of(self._host.engine, found[0])).values())

    async def remove(self, path: str) -> None:
        """Remove a file; it is fine if it is gone. A job's list of files still names it. Raises
        `JobConflict` if somebody keeps it.
        """
        _, job_id = check_path(path)
        await self._host.open()
        if path in await kept_files.kept_paths(self._host.engine, job_id):
            raise JobConflict(f"file {path} is kept; release it instead")
        await self._host.artifact_store.remove(path)

    async def keep(self, path: str, *, owner: str, reason: str = "") -> KeptFile:
        """Keep a file when its job is pruned, until `owner` releases it. Several may keep one.

        Raises `ArtifactNotFound` if it is not there, or not any longer a file of its job.
        """
        await self._host.open()
        host = self._host
        return await kept_files.keep(
            host.engine, host.artifact_store, path, owner=owner, reason=reason
        )

    async def release(self, path: str, *, owner: str) -> bool:
        """End what `keep` began; return False if `owner` did not keep it. When nobody keeps it any
        longer, the file goes with its job, or at once if that is gone.
        """
        await self._host.open()
        return await kept_files.release(
            self._host.engine, self._host.artifact_store, path, owner=owner
        )

    async def kept(
        self, owner: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> KeptPage:
        """Return a page of kept files, of all owners or one, by job."""
        await self._host.open()
        return await kept_files.kept(self._host.engine, owner=owner, cursor=cursor, limit=limit)

    async def _exists(self, path: str) -> bool:
        try:
            await self._host.artifact_store.size(path)
        except ArtifactNotFound:
            return False
        return True


def _path(job_id: str, name: str) -> str:
    return place(HANDED_IN_LAYER, job_id, HANDED_IN_TOKEN, name)
