"""`headrace enqueue`: hand in jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from headrace.app import App
from headrace.cli.arguments import KeyTemplate, Lines, read_arguments
from headrace.cli.command import command, group, whole
from headrace.cli.errors import tell
from headrace.cli.output import Progress, print_json, print_line, print_text, progress
from headrace.cli.session import Session
from headrace.cli.words import parse_span, parse_time, plural
from headrace.errors import InvalidArguments, InvalidInput
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.task import Task, TaskOptions
from headrace.task.codec import encode

commands = group("Hand in jobs.")

BATCH = 1_000


@command(commands, "enqueue")
async def enqueue(
    session: Session,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The name of the task.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help="Arguments: JSON if it parses, else text."),
    ] = None,
    args: Annotated[
        str | None,
        typer.Option("--args", metavar="JSON", help="Arguments as JSON, @file, or - for stdin."),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option("--lines", metavar="FILE", help="A job for each line of JSON; - for stdin."),
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="Another queue.")] = None,
    priority: Annotated[
        int | None, typer.Option(metavar="N", parser=whole, help="Higher runs first.")
    ] = None,
    delay: Annotated[str | None, typer.Option(metavar="SPAN", help="Run in: 30s, 2h, …")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Run at, in ISO 8601.")] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="At most one job of the task has it. With --lines a template: import:{line}.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(metavar="N", parser=whole, help="So many jobs with the same arguments.")
    ] = 1,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the result and print it.")] = False,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Wait no longer than this.")
    ] = None,
) -> None:
    """Hand in a job; its id is the answer.

    The arguments are checked against the task, and the job is stored durably.

    With --lines every line is checked before the first job is stored.

    \b
    Examples:
      headrace enqueue invoice.send customer_id=42 --app shop.jobs
      headrace enqueue invoice.send --args '{"customer_id": 42}' --delay 10m --key inv-42
      headrace enqueue invoice.send --lines customers.jsonl --key "run7:{customer_id}"
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
    app = session.load_app(task)
    found = app.find_task(task)
    options: dict[str, Any] = {
        "queue": queue,
        "priority": priority,
        "delay": None if delay is None else parse_span("--delay", delay),
        "run_at": None if at is None else parse_time("--at", at),
        "source": "cli",
    }
    if lines is not None:
        await _store_lines(session, app, found, options, name=lines, key=key)
        return
    arguments = read_arguments(values or [], args, app.payload_limit)
    job = make_job(found.options(key=key, **options), arguments)
    if many:
        copies = (_copy(job) for _ in range(count))
        await _store_many(session, app, copies, count)
    else:
        await _store_one(session, app, job, wait=wait, timeout=limit)


def make_job(bound: TaskOptions[..., Any], arguments: dict[str, Any]) -> NewJob:
    """Check the arguments; say how to force text where a value was read as JSON."""
    try:
        return bound.job_from_json(encode(arguments))
    except UnicodeEncodeError:
        raise InvalidArguments("the arguments are not valid Unicode text") from None
    except InvalidArguments as error:
        if "Expected `str`, got" in str(error):
            error.add_note("""for text that looks like JSON write name='"7"'""")
        raise


async def _store_one(
    session: Session, app: App, new: NewJob, *, wait: bool, timeout: float | None
) -> None:
    async with app:
        job = await app.enqueue_job(new)
        existed = job.id != new.id
        if existed:
            tell(f"note: task {job.task} has a job with key {job.key!r} already: {job.id}")
        if not wait:
            if session.json:
                print_json(job.to_dict() | {"created": not existed})
            else:
                print_line(job.id)
            return
        tell(f"note: waiting for job {job.id}")
        if not any(
            worker.alive and (not worker.queues or job.queue in worker.queues)
            for worker in await app.engine.workers()
        ):
            tell(f"note: no worker serves queue {job.queue!r}; start one with: headrace worker")
        result = await app.result(job.id, timeout)
        if session.json:
            print_json((await app.get(job.id)).to_dict())
        elif isinstance(result, str):
            print_text(result)
        else:
            print_json(result)


async def _store_lines(
    session: Session,
    app: App,
    task: Task[..., Any],
    options: dict[str, Any],
    *,
    name: str,
    key: str | None,
) -> None:
    template = None if key is None else KeyTemplate(key)
    file = Lines(name, app.payload_limit)

    def jobs() -> Iterator[NewJob]:
        bound = task.options(**options)
        for number, line in file:
            if template is not None:
                bound = task.options(**options, key=template.key(number, line))
            try:
                yield bound.job_from_json(line)
            except InvalidInput as error:
                error.add_note(f"{file.name} line {number}; nothing was stored")
                raise

    try:
        total = 0
        with progress("Check", quiet=session.json) as advance:
            for total, _ in enumerate(jobs(), 1):
                if total % BATCH == 0:
                    advance(total)
        await _store_many(session, app, jobs(), total)
    finally:
        file.close()


async def _store_many(session: Session, app: App, jobs: Iterable[NewJob], total: int) -> None:
    """Store in batches: the answers of a batch are let go before the next one is read."""
    created = existing = 0
    first = last = None
    async with app:
        with progress("Enqueue", total, quiet=session.json) as advance:
            for batch in _batches(jobs):
                answers = await _store_batch(app, batch, created + existing, advance)
                for new, job_id in zip(batch, answers, strict=True):
                    created += new.id == job_id
                    existing += new.id != job_id
                first, last = first or answers[0], answers[-1]
    if session.json:
        print_json({"created": created, "existing": existing, "first": first, "last": last})
    else:
        known = f"; {existing:,} were there already, by key" if existing else ""
        print_line(f"Enqueued {plural(created, 'job')}{known}.")


async def _store_batch(app: App, batch: list[NewJob], before: int, advance: Progress) -> list[str]:
    stored = await app.enqueue_many(batch, on_progress=lambda done: advance(before + done))
    return [job.id for job in stored]


def _batches(jobs: Iterable[NewJob]) -> Iterator[list[NewJob]]:
    batch: list[NewJob] = []
    for job in jobs:
        batch.append(job)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _copy(job: NewJob) -> NewJob:
    return NewJob(**{name: getattr(job, name) for name in job.__struct_fields__} | {"id": new_id()})
