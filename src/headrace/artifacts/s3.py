"""Artifacts in a bucket of an S3-compatible store, by way of `obstore`.

Credentials come from the usual places: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the role of a
container or an instance, a web identity token. They are never part of a setting, a log or an error.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import re
import time
import uuid
import weakref
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.artifacts.names import LAYERS
from headrace.errors import (
    ArtifactNotFound,
    EngineError,
    EngineUnavailable,
    MissingDriver,
    StorageFull,
)

if TYPE_CHECKING:
    from obstore.store import S3Store

T = TypeVar("T")

MEBIBYTE = 1_048_576
# What is in memory of one upload is at most PART * PARTS_AT_ONCE, and what is being collected.
PART = 8 * MEBIBYTE
PARTS_AT_ONCE = 3
MOST_PARTS = 10_000
PAGE = 1_000
NO_BUCKET = "NoSuchBucket"
# How long one request of an upload is tried again: a stream cannot be started over.
PATIENCE = timedelta(seconds=20)
# How long the end of the program waits for threads of the client; they need about a millisecond.
EXIT_SECONDS = 5.0

_in_flight: weakref.WeakSet[asyncio.Future[Any]] = weakref.WeakSet()


@dataclass(kw_only=True, eq=False)
class S3Bucket:
    """A bucket, or what is below a prefix of it. An object appears when its last part is there."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    path_style: bool = True

    @property
    def where(self) -> str:
        """The bucket and where it is."""
        at = "" if self.endpoint is None else f" at {self.endpoint}"
        return f"s3://{self.bucket}{'/' if self.prefix else ''}{self.prefix}{at}"

    async def write(
        self, path: str, chunks: AsyncIterator[bytes], *, size: int | None, media_type: str | None
    ) -> str:
        """One request for a small file; parts that become an object at the end for others."""
        attributes = {} if media_type is None else {"Content-Type": media_type}
        part = PART if size is None else max(PART, -(-size // (MOST_PARTS - 1)))
        whole: Any = chunks
        if size is not None and size <= PART:
            whole = b"".join([chunk async for chunk in chunks])
        store = self._store if whole is not chunks else self._patient_store
        await self._do(
            path,
            self._obstore.put_async(
                store,
                path,
                whole,
                attributes=attributes,
                chunk_size=part,
                max_concurrency=PARTS_AT_ONCE,
                use_multipart=whole is chunks,
            ),
            writing=True,
        )
        return path

    async def size(self, path: str) -> int:
        """By asking for the head."""
        head: Mapping[str, Any] = await self._do(path, self._obstore.head_async(self._store, path))
        return int(head["size"])

    async def read(self, path: str, start: int, end: int) -> bytes:
        """One request for a range."""
        found = self._obstore.get_range_async(self._store, path, start=start, end=end)
        return bytes(await self._do(path, found))

    async def remove(self, path: str) -> None:
        """Remove the object."""
        with contextlib.suppress(ArtifactNotFound):
            await self._do(path, self._obstore.delete_async(self._store, path))

    async def remove_job(self, job_id: str, spare: Collection[str] = ()) -> None:
        """Page by page, in each layer."""
        for layer in LAYERS:
            prefix = f"{layer}/{job_id}"
            before: list[str] = []
            after: str | None = None
            while page := await self._page(prefix, after):
                gone = [path for path in page if path not in spare]
                if gone and gone == before:
                    raise EngineError(f"{self.where} keeps {gone[0]} although it was removed")
                if gone:
                    await self._do(prefix, self._obstore.delete_async(self._store, gone))
                before = gone
                if len(gone) < len(page):
                    after = page[-1]  # those before it are removed, or to be spared

    async def tidy(self, older_than: float) -> None:
        """Parts of uploads that were given up are for the bucket's lifecycle rules to remove."""

    async def check(self) -> None:
        """Ask for the files of a job that does not exist."""
        await self._page(f"{LAYERS[0]}/{uuid.uuid4()}")

    async def _page(self, prefix: str, after: str | None = None) -> list[str]:
        """Return the first paths below a prefix, or the first after one of them."""
        listed = self._obstore.list(self._store, prefix=prefix, offset=after, chunk_size=PAGE)
        try:
            return [found["path"] for found in await self._do(prefix, anext(listed))]
        except StopAsyncIteration:
            return []

    @functools.cached_property
    def _obstore(self) -> Any:
        try:
            import obstore  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            if error.name != "obstore":
                raise
            raise MissingDriver(
                'artifacts in s3:// need "obstore", which is not installed. '
                'Install it with: pip install "headrace[s3]"'
            ) from None
        return obstore

    @functools.cached_property
    def _store(self) -> S3Store:
        """For requests that the door tries again by itself."""
        return self._connect({"max_retries": 0})

    @functools.cached_property
    def _patient_store(self) -> S3Store:
        """For uploads in parts: each request is tried again, as the stream cannot be."""
        backoff = {
            "init_backoff": timedelta(milliseconds=250),
            "max_backoff": timedelta(seconds=4),
            "base": 2,
        }
        return self._connect({"max_retries": 100, "retry_timeout": PATIENCE, "backoff": backoff})

    def _connect(self, retry_config: Any) -> S3Store:
        _ = self._obstore
        from obstore.store import S3Store  # noqa: PLC0415 - an extra

        given: dict[str, Any] = {"endpoint": self.endpoint, "region": self.region}
        store = S3Store(
            self.bucket,
            prefix=self.prefix or None,
            virtual_hosted_style_request=not self.path_style,
            client_options={
                "allow_http": (self.endpoint or "").startswith("http://"),
                "connect_timeout": "5s",
                "timeout": "60s",
            },
            retry_config=retry_config,
            **{name: value for name, value in given.items() if value is not None},
        )
        atexit.register(_wait_for_threads, store)
        return store

    async def _do(self, path: str, call: asyncio.Future[T], *, writing: bool = False) -> T:
        """Wait for the store; what it says becomes an error of ours."""
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

        _in_flight.add(call)
        try:
            return await call
        except FileNotFoundError as error:
            if writing or NO_BUCKET in str(error):
                raise self._no_bucket() from None
            raise ArtifactNotFound(
                f"there is no artifact {path} in {self.where}; it may have been pruned, or "
                "HEADRACE_ARTIFACTS is another store on this machine"
            ) from None
        except BaseError as error:
            # Without its cause: a store may repeat there what it was asked with.
            raise self._error(path, error) from None

    def _no_bucket(self) -> EngineError:
        return EngineError(
            f"{self.where}: there is no such bucket; create it, or correct HEADRACE_ARTIFACTS"
        )

    def _error(self, path: str, error: Exception) -> EngineError:
        from obstore.exceptions import (  # noqa: PLC0415 - an extra
            PermissionDeniedError,
            UnauthenticatedError,
        )

        reason = _reason(error)
        if NO_BUCKET in reason:
            return self._no_bucket()
        problem = f"artifact {path} in {self.where}: {reason}"
        refused = isinstance(error, PermissionDeniedError | UnauthenticatedError)
        if refused or re.search(r"status code: 40[13]\b", reason):
            return EngineError(
                f"{problem}; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and what they may do"
            )
        if re.search(r"\b507\b|StorageFull|QuotaExceeded|InsufficientStorage", reason):
            return StorageFull(f"{problem}; make room there")
        return EngineUnavailable(problem)


def _wait_for_threads(store: S3Store) -> None:
    """Wait at exit until the client's threads have released every request.

    They answer from threads of their own. One that comes back to Python while it ends would abort
    the process, after everything is done.
    """
    end = time.monotonic() + EXIT_SECONDS
    while _in_flight and time.monotonic() < end:
        time.sleep(0.001)  # lets them run
        repr(store)  # the client drops what it has released when it is next called


def _reason(error: Exception) -> str:
    """The heart of a long story: no addresses, no headers, no signatures."""
    story = str(error).partition("\n\nDebug source:")[0]
    code = re.search(r"<Code>([A-Za-z0-9]{1,60})</Code>", story)
    last = story.partition("\n")[0].partition("<")[0].rpartition(" - ")[2].strip(" :")
    return f"{last[:200]}{f' ({code[1]})' if code else ''}"
