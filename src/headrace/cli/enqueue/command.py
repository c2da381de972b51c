"""`headrace enqueue`: jobs of one task, on an engine or on a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.app import App
from headrace.batching import chunks
from headrace.cli.backend import from_cli
from headrace.cli.command import Command, argument, flag, option
from headrace.cli.enqueue.arguments import (
    KeyTemplate,
    Lines,
    argument_options,
    read_arguments,
    read_object,
)
from headrace.cli.errors import notice
from headrace.cli.formatting import parse_span, parse_time, plural
from headrace.cli.output import print_json, print_text, progress
from headrace.cli.session import CliSession
from headrace.errors import HeadraceError, InvalidArguments, InvalidInput
from headrace.model.job import Job
from headrace.model.times import is_span
from headrace.tracing.set_up import command_span, exporting

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

BATCH = 1_000


@click.command("enqueue", cls=Command)
@argument("task", "TASK", "The name of the task.")
@argument_options
@option("--lines", "FILE", "Enqueue a job for each line of JSON; - for stdin.")
@option("--queue", "NAME", "Use this queue instead of the task's.")
@option("--priority", "N", "Higher runs first.", type=int)
@option("--delay", "SPAN", "Run after: 30s, 2h, …")
@option("--at", "TIME", "Run at this time (ISO 8601).")
@option("--lane", "LANE", "Use this lane; {name} stands for an argument.")
@option("--retries", "N", "Retries after the first attempt.", type=int)
@option("--time-limit", "SPAN", "Time limit of each attempt: 30s, 2h, … or none.")
@option("--meta", "JSON", "Metadata stored with the job, e.g. a trace.")
@option(
    "--key",
    "KEY",
    "Idempotency key: at most one job has it. With --lines a template: import:{line}.",
)
@option("--on-duplicate", "WHAT", "If the key exists: return (default), replace or debounce.")
@option("--window", "SPAN", "The key counts for so long after its job was stored.")
@option("--max-wait", "SPAN", "With debounce: wait at most so long after the first call.")
@option(
    "--expires", "WHEN", "Cancel it if it has not started after 10m, …, or at an ISO 8601 time."
)
@option("--count", "N", "Enqueue this many jobs with the same arguments.", type=int, default=1)
@flag("--wait", "Wait for the result and print it.")
@option("--timeout", "SPAN", "Wait at most this long.")
async def enqueue(
    session: CliSession,
    *,
    task: str,
    values: tuple[str, ...],
    args: str | None,
    lines: str | None,
    delay: str | None,
    at: str | None,
    time_limit: str | None,
    meta: str | None,
    key: str | None,
    window: str | None,
    max_wait: str | None,
    expires: str | None,
    count: int,
    wait: bool,
    timeout: str | None,
    **options: Any,
) -> None:
    """Enqueue a job and print its id.

    The arguments are checked against the task, and the job is stored durably.

    With --lines every line is checked before the first job is stored.

    With API_URL the job goes to that server, which knows the tasks: no App is needed.

      headrace enqueue invoice.send customer_id=42 --app shop.jobs
      headrace enqueue invoice.send --args '{"customer_id": 42}' --delay 10m
      headrace enqueue invoice.send --lines all.jsonl --key "r7:{customer_id}"
      headrace enqueue tour.hello name=Ada --wait
    """
    limit = None if timeout is None else parse_span("--timeout", timeout)
    if count < 1:
        raise InvalidInput(f"--count must be at least 1, got {count}")
    many = lines is not None or count > 1
    if many and wait:
        raise InvalidInput("--wait is for one job; leave out --count and --lines")
    if lines is not None and (values or args is not None or count > 1):
        raise InvalidInput("--lines brings the arguments; leave out NAME=VALUE, --args and --count")
    if count > 1 and key is not None:
        raise InvalidInput("--key makes at most one job; leave out --count")
    options["delay"] = None if delay is None else parse_span("--delay", delay)
    options["run_at"] = None if at is None else parse_time("--at", at)
    options["window"] = None if window is None else parse_span("--window", window)
    options["max_wait"] = None if max_wait is None else parse_span("--max-wait", max_wait)
    if expires is not None:
        options["expires"] = (
            parse_span("--expires", expires)
            if is_span(expires)
            else parse_time("--expires", expires)
        )
    options["meta"] = None if meta is None else read_object("--meta", meta)
    if time_limit is not None:
        unlimited = time_limit == "none"
        options["timeout"] = None if unlimited else parse_span("--time-limit", time_limit)
    with (
        exporting(session.settings.tracing, "headrace-cli"),
        command_span(session.settings.tracing, "headrace enqueue"),
    ):
        async with session.backend(needs_app=True, task=task) as backend:
            target = EnqueueTarget(session, backend, task, options, key=key)
            if lines is not None:
                await target.enqueue_lines(lines)
                return
            arguments = read_arguments(values, args, session.settings.payload_limit)
            if many:
                await target.enqueue_copies(arguments, count)
            else:
                await target.enqueue(arguments, wait=wait, timeout=limit)


class EnqueueTarget:
    """Where the jobs of one task go. An App checks their arguments, or else the server does."""

    def __init__(
        self,
        session: CliSession,
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
        with _hint_at_text():
            job, created = await self._backend.enqueue_or_find(self._make(arguments))
        if not created:
            notice(f"note: task {job.task} has a job with key {job.key!r} already: {job.id}")
        if wait:
            await self._wait(job, timeout)
        else:
            self._session.show(job.to_dict() | {"created": created}, job.id)

    async def enqueue_copies(self, arguments: dict[str, Any], count: int) -> None:
        """Enqueue the same job this many times."""
        with _hint_at_text():
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
        return self._backend.job(self._task, arguments, key=self._key, **self._options)

    async def _enqueue_many(self, jobs: Iterable[Any], total: int) -> None:
        """Enqueue in batches, so that no more than one has to be in memory."""
        created = existing = 0
        first: str | None = None
        last: str | None = None
        with progress("Enqueue", total, quiet=self._session.json) as advance:
            for batch in chunks(jobs, BATCH):
                try:
                    stored = await self._backend.enqueue_or_find_many(batch)
                except HeadraceError as error:
                    error.add_note(f"of {total} jobs {created + existing} were stored before")
                    raise
                new = sum(is_new for _, is_new in stored)
                created, existing = created + new, existing + len(stored) - new
                first, last = first or stored[0][0].id, stored[-1][0].id
                advance(created + existing)
        counts = {"stored": created + existing, "created": created, "existing": existing}
        known = f"; {existing:,} were there already, by key" if existing else ""
        text = f"Enqueued {plural(created, 'job')}{known}."
        self._session.show(counts | {"first": first, "last": last}, text)

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


@contextlib.contextmanager
def _hint_at_text() -> Iterator[None]:
    """Say how to force text where a value was read as JSON."""
    try:
        yield
    except InvalidArguments as error:
        if "Expected `str`, got" in str(error):
            error.add_note("""for text that looks like JSON write name='"7"'""")
        raise
