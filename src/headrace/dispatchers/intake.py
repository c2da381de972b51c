"""From a message to a job: every check that a message has to pass, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from headrace.dispatchers.adapter import Message
from headrace.dispatchers.host import Host
from headrace.errors import HeadraceError, InvalidInput, PayloadTooLarge
from headrace.model.job import NewJob
from headrace.model.names import TEXT_LIMIT, check_text
from headrace.task import Task, TaskOptions

# A message is the arguments of a job and a little around them.
ENVELOPE_BYTES = 65_536
REASON_LIMIT = 2_000


class UnreadableMessage(InvalidInput):
    """The message is not what a dispatcher takes."""


class Envelope(msgspec.Struct, gc=False):
    """A message that asks for a job. Other fields are ignored."""

    handler_name: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    job_id: str | int | None = None


class Refused(msgspec.Struct, frozen=True):
    """A message that makes no job, and why."""

    message: Message
    error: str
    reason: str


class Sorted(msgspec.Struct):
    """Messages in the order they came, the jobs that they make, and those that make none.

    `sources` has the message of each job.
    """

    messages: list[Message]
    jobs: list[NewJob]
    sources: list[Message]
    refused: list[Refused]

    def add(self, other: Sorted) -> None:
        """Append what came next."""
        self.messages += other.messages
        self.jobs += other.jobs
        self.sources += other.sources
        self.refused += other.refused


class Intake:
    """Turns messages into jobs of the host's tasks."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._decode = msgspec.json.Decoder(Envelope).decode
        self._options: dict[str, tuple[Task[..., object], TaskOptions[..., object]]] = {}

    def sort(self, messages: Sequence[Message]) -> Sorted:
        """Make what jobs can be made. One bad message does not disturb the others."""
        made = Sorted(list(messages), [], [], [])
        for message in messages:
            try:
                made.jobs.append(self.job(message))
                made.sources.append(message)
            except Exception as error:  # whatever a message provokes is told with the message
                made.refused.append(refused(message, error))
        return made

    def job(self, message: Message) -> NewJob:
        """The job that a message asks for, or an error that says why there is none."""
        if message.fault is not None:
            raise UnreadableMessage(message.fault)
        limit = self._host.settings.payload_limit + ENVELOPE_BYTES
        if len(message.body) > limit:
            raise PayloadTooLarge(
                f"the message has {len(message.body):,} bytes, the limit is {limit:,}; keep large "
                "data elsewhere and send a reference, or raise HEADRACE_PAYLOAD_LIMIT"
            )
        try:
            envelope = self._decode(message.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableMessage(_unreadable(message.body, error)) from None
        job = self._for(envelope.handler_name).job_from_json(bytes(envelope.params))
        job.key = None if message.key is None else bounded(message.key)
        if envelope.job_id is not None:
            schedule = check_text("job_id", str(envelope.job_id))
            sent = {} if message.sent_at is None else {"sent_at": round(message.sent_at, 3)}
            job.meta = msgspec.json.encode({"schedule": schedule, **sent})
        elif message.sent_at is not None:
            job.meta = b'{"sent_at":%.3f}' % message.sent_at
        return job

    def _for(self, name: str) -> TaskOptions[..., object]:
        """The options for a task's jobs, made once: a dispatcher makes thousands a second."""
        known = self._options.get(name)
        task = self._host.tasks.get(name)
        if known is not None and known[0] is task:
            return known[1]
        task = self._host.find_task(name)
        options: TaskOptions[..., object] = task.options(source="event")
        self._options[name] = (task, options)
        return options


def refused(message: Message, error: Exception) -> Refused:
    """A message that makes no job, with the reason in words."""
    name = type(error).__name__
    reason = str(error) if isinstance(error, HeadraceError) else f"{name}: {error}"
    if len(reason) > REASON_LIMIT:
        reason = reason[: REASON_LIMIT - 1] + "…"
    return Refused(message, name, reason)


def bounded(key: str) -> str:
    """A key that an engine takes, whatever names the broker has."""
    if len(key) <= TEXT_LIMIT // 4 and key.isprintable():
        return key
    try:
        return check_text("key", key)
    except InvalidInput:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        broker = key.partition(":")[0]
        return f"{broker if broker.isidentifier() else 'message'}:sha256:{digest}"[-TEXT_LIMIT:]


def _unreadable(body: bytes, error: Exception) -> str:
    if not body:
        return "the message has no body; send a JSON object with handler_name"
    shown = body[:80].decode("utf-8", "backslashreplace") + ("…" if len(body) > 80 else "")
    return (
        f"{error}; got {shown!r}; send a JSON object such as "
        '{"handler_name": "scan", "params": {"url": "…"}}'
    )
