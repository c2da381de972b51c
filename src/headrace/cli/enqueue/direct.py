"""`headrace enqueue` into the engine: the App is loaded, and checks the arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.app import App
from headrace.cli.enqueue.arguments import KeyTemplate, Lines
from headrace.cli.enqueue.target import (
    BATCH,
    Tally,
    batches,
    hint_at_text,
    print_result,
    tell_known,
    tell_stored,
    tell_waiting,
)
from headrace.cli.output import print_json, progress
from headrace.cli.session import Session
from headrace.errors import InvalidArguments, InvalidInput
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.task import TaskOptions
from headrace.task.codec import encode


class StoreIn:
    """The way in through the engine."""

    def __init__(
        self, session: Session, task: str, options: dict[str, Any], *, key: str | None
    ) -> None:
        self._session = session
        self._app: App = session.load_app(task)
        self._task = self._app.find_task(task)
        self._options = options | {"source": "cli"}
        self._key = key

    @property
    def payload_limit(self) -> int:
        """How many bytes the App lets the arguments of a job have."""
        return self._app.payload_limit

    async def one(self, arguments: dict[str, Any], *, wait: bool, timeout: float | None) -> None:
        """Store one job, and wait for its result if asked to."""
        session, app = self._session, self._app
        new = self._make(arguments)
        async with app:
            job = await app.enqueue_job(new)
            created = job.id == new.id
            if not created:
                tell_known(job)
            if not wait:
                tell_stored(session, job, created=created)
                return
            tell_waiting(job, await app.engine.workers())
            result = await app.result(job.id, timeout)
            if session.json:
                print_json((await app.get(job.id)).to_dict())
            else:
                print_result(result)

    async def copies(self, arguments: dict[str, Any], count: int) -> None:
        """Store the same job so many times."""
        job = self._make(arguments)
        await self._store((_copy(job) for _ in range(count)), count)

    async def lines(self, name: str) -> None:
        """Store a job for each line. Every line is checked before the first job is stored."""
        template = None if self._key is None else KeyTemplate(self._key)
        file = Lines(name, self._app.payload_limit)

        def jobs() -> Iterator[NewJob]:
            bound = self._task.options(**self._options)
            for number, line in file:
                if template is not None:
                    bound = self._task.options(**self._options, key=template.key(number, line))
                try:
                    yield bound.job_from_json(line)
                except InvalidInput as error:
                    error.add_note(f"{file.name} line {number}; nothing was stored")
                    raise

        try:
            total = 0
            with progress("Check", quiet=self._session.json) as advance:
                for total, _ in enumerate(jobs(), 1):
                    if total % BATCH == 0:
                        advance(total)
            await self._store(jobs(), total)
        finally:
            file.close()

    async def _store(self, jobs: Iterable[NewJob], total: int) -> None:
        """Store in batches: the answers of a batch are let go before the next one is read."""
        tally = Tally()
        async with self._app as app:
            with progress("Enqueue", total, quiet=self._session.json) as advance:
                for batch in batches(jobs):
                    answers = await app.enqueue_many(batch)
                    for new, job in zip(batch, answers, strict=True):
                        tally.add(job.id, created=new.id == job.id)
                    advance(tally.stored)
        tally.tell(self._session)

    def _make(self, arguments: dict[str, Any]) -> NewJob:
        return make_job(self._task.options(key=self._key, **self._options), arguments)


def make_job(bound: TaskOptions[..., Any], arguments: dict[str, Any]) -> NewJob:
    """Check the arguments and make the job."""
    try:
        return bound.job_from_json(encode(arguments))
    except UnicodeEncodeError:
        raise InvalidArguments("the arguments are not valid Unicode text") from None
    except InvalidArguments as error:
        hint_at_text(error)
        raise


def _copy(job: NewJob) -> NewJob:
    return NewJob(**{name: getattr(job, name) for name in job.__struct_fields__} | {"id": new_id()})
