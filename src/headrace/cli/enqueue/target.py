"""Enqueueing the jobs of one task, on an engine or on a server, and what is printed about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.app import App
from headrace.batching import chunks
from headrace.cli.backend import from_cli
from headrace.cli.enqueue.arguments import KeyTemplate, Lines
from headrace.cli.errors import notice
from headrace.cli.formatting import plural
from headrace.cli.output import print_json, print_line, print_text, progress
from headrace.cli.session import Session
from headrace.errors import HeadraceError, InvalidArguments, InvalidInput
from headrace.model.job import Job

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

BATCH = 1_000


class EnqueueTarget:
    """Where the jobs of one task go. An App checks their arguments, or else the server does."""

    def __init__(
        self,
        session: Session,
        backend: Backend,
        task: str,
        options: dict[str, Any],
        *,
        key: str | None,
    ) -> None:
        self._session = session
        self._backend: Any = backend
        self._task = task
        self._options = options | from_cli(backend)
        self._key = key

    async def enqueue(
        self, arguments: dict[str, Any], *, wait: bool, timeout: float | None
    ) -> None:
        """Enqueue one job, and wait for its result if asked to."""
        job, created = await self._enqueue(arguments)
        if not created:
            notice(f"note: task {job.task} has a job with key {job.key!r} already: {job.id}")
        if wait:
            await self._wait(job, timeout)
        elif self._session.json:
            print_json(job.to_dict() | {"created": created})
        else:
            print_line(job.id)

    async def enqueue_copies(self, arguments: dict[str, Any], count: int) -> None:
        """Enqueue the same job this many times."""
        self._make(arguments)  # so that a mistake is told before there is progress
        await self._enqueue_many((self._make(arguments) for _ in range(count)), count)

    async def enqueue_lines(self, name: str) -> None:
        """Enqueue a job for each line of a file. All lines are checked before the first is sent.

        Whether a line fits the task is checked here by an App; a server does it batch by batch.
        """
        template = None if self._key is None else KeyTemplate(self._key)
        file = Lines(name, self._session.settings.payload_limit)
        try:
            total = 0
            with progress("Check", quiet=self._session.json) as advance:
                for total, _ in enumerate(self._lines(file, template), 1):
                    if total % BATCH == 0:
                        advance(total)
            await self._enqueue_many(self._lines(file, template), total)
        finally:
            file.close()

    def _lines(self, file: Lines, template: KeyTemplate | None) -> Iterator[Any]:
        for number, line in file:
            try:
                key = None if template is None else template.key(number, line)
                yield self._from_line(line, key)
            except InvalidInput as error:
                error.add_note(f"{file.name} line {number}; nothing was stored")
                raise

    def _from_line(self, line: bytes, key: str | None) -> Any:
        if isinstance(self._backend, App):
            bound = self._backend.find_task(self._task).options(key=key, **self._options)
            return bound.job_from_json(line)
        try:
            arguments = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise InvalidArguments(f"this is not a JSON object: {error}") from None
        return self._backend.job(self._task, arguments, key=key, **self._options)

    def _make(self, arguments: dict[str, Any]) -> Any:
        try:
            return self._backend.job(self._task, arguments, key=self._key, **self._options)
        except InvalidArguments as error:
            _hint_at_text(error)
            raise

    async def _enqueue(self, arguments: dict[str, Any]) -> tuple[Job, bool]:
        try:
            stored: tuple[Job, bool] = await self._backend.enqueue_or_find(self._make(arguments))
        except InvalidArguments as error:
            _hint_at_text(error)
            raise
        return stored

    async def _enqueue_many(self, jobs: Iterable[Any], total: int) -> None:
        """Enqueue in batches, so that no more than one has to be in memory."""
        counts = Counts()
        with progress("Enqueue", total, quiet=self._session.json) as advance:
            for batch in chunks(jobs, BATCH):
                try:
                    stored = await self._backend.enqueue_or_find_many(batch)
                except HeadraceError as error:
                    error.add_note(f"of {total} jobs {counts.stored} were stored before")
                    raise
                for job, created in stored:
                    counts.add(job.id, created=created)
                advance(counts.stored)
        counts.print(self._session)

    async def _wait(self, job: Job, timeout: float | None) -> None:
        notice(f"note: waiting for job {job.id}")
        workers = [each for each in await self._backend.workers() if each.alive]
        if not any(not each.queues or job.queue in each.queues for each in workers):
            notice(f"note: no worker serves queue {job.queue!r}; start one with: headrace worker")
        result = await self._backend.result(job.id, timeout)
        if self._session.json:
            print_json((await self._backend.get(job.id)).to_dict())
        elif isinstance(result, str):
            print_text(result)
        else:
            print_json(result)


class Counts:
    """How many jobs of many were created, and which were the first and the last."""

    def __init__(self) -> None:
        self._created = 0
        self._existing = 0
        self._first: str | None = None
        self._last: str | None = None

    @property
    def stored(self) -> int:
        """How many there are so far."""
        return self._created + self._existing

    def add(self, job_id: str, *, created: bool) -> None:
        """Count one."""
        self._created += created
        self._existing += not created
        self._first = self._first or job_id
        self._last = job_id

    def print(self, session: Session) -> None:
        """Print the numbers."""
        if session.json:
            print_json(
                {
                    "stored": self.stored,
                    "created": self._created,
                    "existing": self._existing,
                    "first": self._first,
                    "last": self._last,
                }
            )
        else:
            known = f"; {self._existing:,} were there already, by key" if self._existing else ""
            print_line(f"Enqueued {plural(self._created, 'job')}{known}.")


def _hint_at_text(error: InvalidArguments) -> None:
    """Say how to force text where a value was read as JSON."""
    if "Expected `str`, got" in str(error):
        error.add_note("""for text that looks like JSON write name='"7"'""")
