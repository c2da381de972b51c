"""Parses and checks messages, and makes the jobs that they ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import copy

import msgspec

from headrace.dispatchers.events.adapter import Message
from headrace.errors import HeadraceError, InvalidInput, PayloadTooLarge
from headrace.model.ids import new_ids
from headrace.model.job import NewJob
from headrace.model.names import TEXT_LIMIT, check_text
from headrace.task import Task, TaskOptions
from headrace.task.app_like import AppLike
from headrace.tracing.carrier import checked, into_meta

# A message is the arguments of a job and a little around them.
ENVELOPE_BYTES = 65_536
REASON_LIMIT = 2_000


class UnreadableMessage(InvalidInput):
    """The message has not the form that a dispatcher accepts."""


class Envelope(msgspec.Struct, gc=False):
    """A message that asks for a job. Other fields are ignored."""

    handler_name: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    job_id: str | int | None = None


class RejectedMessage(msgspec.Struct, frozen=True):
    """A message that makes no job, and why."""

    message: Message
    error: str
    reason: str


class ParsedBatch(msgspec.Struct):
    """Messages in the order they came, the jobs that they make, and those that make none.

    `sources` has the message of each job.
    """

    messages: list[Message]
    jobs: list[NewJob]
    sources: list[Message]
    refused: list[RejectedMessage]

    def add(self, other: ParsedBatch) -> None:
        """Append what came next."""
        self.messages += other.messages
        self.jobs += other.jobs
        self.sources += other.sources
        self.refused += other.refused


class TaskTemplate(msgspec.Struct):
    """Makes the jobs of one task.

    They differ only in id, arguments and what a message adds, so the first job is copied for the
    others, unless the task has a lane, which depends on the arguments, or seals them.
    """

    task: Task[..., object]
    options: TaskOptions[..., object]
    pattern: NewJob | None = None

    def job(self, params: bytes, limit: int, job_id: str | None) -> NewJob:
        """Return a job with these arguments; raise if they do not fit the task."""
        if self.pattern is None or job_id is None or len(params) > limit:
            job = self.options.job_from_json(params)
            alike = job.lane is None and not self.task.encrypted
            self.pattern = copy(job) if alike else None
            return job
        self.task.signature.check(params)
        job = copy(self.pattern)
        job.id = job_id
        job.args = params
        return job


class MessageParser:
    """Turns messages into jobs of the App's tasks."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self._decode = msgspec.json.Decoder(Envelope).decode
        self._known: dict[str, TaskTemplate] = {}

    def parse(self, messages: Sequence[Message]) -> ParsedBatch:
        """Parse messages. One bad message does not affect the others."""
        made = ParsedBatch(list(messages), [], [], [])
        for message, job_id in zip(messages, new_ids(len(messages)), strict=True):
            try:
                made.jobs.append(self.job(message, job_id))
                made.sources.append(message)
            except Exception as error:  # whatever it is, it is recorded with the message
                made.refused.append(refused(message, error))
        return made

    def job(self, message: Message, job_id: str | None = None) -> NewJob:
        """Return the job that a message asks for; raise if it cannot be made."""
        if message.fault is not None:
            raise UnreadableMessage(message.fault)
        most = self._host.settings.payload_limit
        if len(message.body) > most + ENVELOPE_BYTES:
            raise PayloadTooLarge(
                f"the message has {len(message.body):,} bytes, the limit is "
                f"{most + ENVELOPE_BYTES:,}; keep large data elsewhere and send a reference, or "
                "raise HEADRACE_PAYLOAD_LIMIT"
            )
        try:
            envelope = self._decode(message.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            quoted = b"" if self._host.encrypt_all else message.body
            raise UnreadableMessage(_unreadable(message.body, error, quoted)) from None
        job = self._for(envelope.handler_name).job(bytes(envelope.params), most, job_id)
        job.key = None if message.key is None else bounded(message.key)
        if envelope.job_id is not None:
            schedule = check_text("job_id", str(envelope.job_id))
            sent = {} if message.sent_at is None else {"sent_at": round(message.sent_at, 3)}
            job.meta = msgspec.json.encode({"schedule": schedule, **sent})
        elif message.sent_at is not None:
            job.meta = b'{"sent_at":%.3f}' % message.sent_at
        if message.headers:
            job.meta = into_meta(job.meta, checked(message.headers))
        return job

    def is_encrypted(self, message: Message) -> bool:
        """Return whether a message is stored sealed: it asks for a job of an encrypted task. Which
        task one asks for that cannot be read, nobody knows: it is if all tasks are.
        """
        if self._host.encrypt_all:
            return True
        try:
            task = self._host.tasks.get(self._decode(message.body).handler_name)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        return task is not None and task.encrypted

    def _for(self, name: str) -> TaskTemplate:
        """Return the template of a task, cached: a dispatcher makes thousands of jobs a second."""
        known = self._known.get(name)
        if known is not None and known.task is self._host.tasks.get(name):
            return known
        task = self._host.find_task(name)
        options: TaskOptions[..., object] = task.options(source="event")
        known = self._known[name] = TaskTemplate(task, options)
        return known


def refused(message: Message, error: Exception) -> RejectedMessage:
    """Return the message with the reason for which it makes no job."""
    name = type(error).__name__
    reason = str(error) if isinstance(error, HeadraceError) else f"{name}: {error}"
    if len(reason) > REASON_LIMIT:
        reason = reason[: REASON_LIMIT - 1] + "…"
    return RejectedMessage(message, name, reason)


def bounded(key: str) -> str:
    """Return the key, or a hash of it if an engine would not accept it."""
    if len(key) <= TEXT_LIMIT // 4 and key.isprintable():
        return key
    try:
        return check_text("key", key)
    except InvalidInput:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        broker = key.partition(":")[0]
        return f"{broker if broker.isidentifier() else 'message'}:sha256:{digest}"[-TEXT_LIMIT:]


def _unreadable(body: bytes, error: Exception, quoted: bytes) -> str:
    if not body:
        return "the message has no body; send a JSON object with handler_name"
    shown = quoted[:80].decode("utf-8", "backslashreplace") + ("…" if len(quoted) > 80 else "")
    return (
        f"{error}; {f'got {shown!r}; ' if quoted else ''}send a JSON object such as "
        '{"handler_name": "scan", "params": {"url": "…"}}'
    )
