"""`headrace enqueue` through the server of API_URL, which knows the tasks and checks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from headrace.cli.enqueue.arguments import KeyTemplate, Lines
from headrace.cli.enqueue.target import (
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
from headrace.client import Client, JobRequest
from headrace.errors import HeadraceError, InvalidArguments
from headrace.model.job import Job


class HandIn:
    """The way in through a server."""

    def __init__(
        self, session: Session, task: str, options: dict[str, Any], *, key: str | None
    ) -> None:
        self._session = session
        self._task = task
        self._options = options
        self._key = key

    @property
    def payload_limit(self) -> int:
        """How many bytes of arguments are read at most; the server has a limit of its own."""
        return self._session.settings.payload_limit

    async def one(self, arguments: dict[str, Any], *, wait: bool, timeout: float | None) -> None:
        """Hand in one job, and wait for its result if asked to."""
        session = self._session
        async with session.client() as client:
            job, created = await self._enqueue(client, arguments)
            if not created:
                tell_known(job)
            if not wait:
                tell_stored(session, job, created=created)
                return
            tell_waiting(job, await client.workers())
            result = await client.result(job.id, timeout)
            if session.json:
                print_json((await client.get(job.id)).to_dict())
            else:
                print_result(result)

    async def copies(self, arguments: dict[str, Any], count: int) -> None:
        """Hand in the same job so many times."""
        async with self._session.client() as client:
            job = client.job(self._task, arguments, **self._options)
            await self._store(client, (job for _ in range(count)), count)

    async def lines(self, name: str) -> None:
        """Hand in a job for each line.

        Every line is read before the first is sent. Whether it fits the task is checked by the
        server, a batch at a time.
        """
        template = None if self._key is None else KeyTemplate(self._key)
        file = Lines(name, self._session.settings.payload_limit)
        try:
            async with self._session.client() as client:
                blank = client.job(self._task, {}, **self._options)

                def requests() -> Iterator[JobRequest]:
                    for number, line in file:
                        _check(file.name, number, line)
                        key = None if template is None else template.key(number, line)
                        yield msgspec.structs.replace(blank, args=msgspec.Raw(line), key=key)

                total = sum(1 for _ in requests())
                await self._store(client, requests(), total)
        finally:
            file.close()

    async def _enqueue(self, client: Client, arguments: dict[str, Any]) -> tuple[Job, bool]:
        try:
            return await client.enqueue_or_find(
                self._task, arguments, key=self._key, **self._options
            )
        except InvalidArguments as error:
            hint_at_text(error)
            raise

    async def _store(self, client: Client, requests: Iterable[JobRequest], total: int) -> None:
        """Batch by batch: the answers of one are let go before the next one is read."""
        tally = Tally()
        with progress("Enqueue", total, quiet=self._session.json) as advance:
            for batch in batches(requests):
                try:
                    answers = await client.enqueue_or_find_many(batch)
                except HeadraceError as error:
                    error.add_note(f"of {total} jobs {tally.stored} were stored before")
                    raise
                for job, created in answers:
                    tally.add(job.id, created=created)
                advance(tally.stored)
        tally.tell(self._session)


def _check(name: str, number: int, line: bytes) -> None:
    try:
        msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidArguments(
            f"{name} line {number} is not a JSON object: {error}; nothing was stored"
        ) from None
