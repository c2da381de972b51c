"""What a worker and its child processes say to each other: a length, then one message.

Plain data only: nothing that arrives can run code in the worker. All that is said about a job
carries the number of its run (0: none), and both sides drop what is about another run than the
present one. Both sides refuse a length beyond their limit before they take in what it announces.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime
from typing import Literal

import msgspec

from headrace.model.job import NewJob
from headrace.orchestrator.isolation.errors import MessageTooLong

HEADER = struct.Struct("<I")
# Results of stages travel whole, and the worker has many children.
LONGEST_FROM_CHILD = 64 * 1_048_576
# The results of many child jobs are one answer.
LONGEST_FROM_WORKER = 1024 * 1_048_576
# What a message has besides the result in it.
ENVELOPE = 4_096


class Target(msgspec.Struct, frozen=True):
    """Where a child finds tasks: a Task or an App in a module.

    `file` is used when the module cannot be imported by its name.
    """

    module: str
    attribute: str
    file: str | None = None


class Report(msgspec.Struct):
    """An error, taken apart. `ancestry` is (module, qualified name) of its class and its bases."""

    ancestry: list[tuple[str, str]]
    message: str
    traceback: str
    kind: Literal["error", "retry_later", "snooze", "suspended"] = "error"
    delay: float | None = None
    at: datetime | None = None
    awaits: bytes | None = None


# -- from the worker -----------------------------------------------------------------------------


class Start(msgspec.Struct, tag=True):
    """The first message: become like the worker, then load the target."""

    target: Target
    path: list[bytes]
    arguments: list[bytes]
    levels: dict[str, int]
    settings: bytes | None = None
    memory_limit: int | None = None
    payload_limit: int | None = None
    longest: int = LONGEST_FROM_CHILD


class Run(msgspec.Struct, tag=True):
    """Run one attempt at a job. What it says carries `run`, so that late words are told apart."""

    run: int
    task: str
    args: bytes
    job_id: str
    queue: str
    attempt: int
    max_attempts: int
    token: int
    key: str
    lane: str | None
    level: int


class Cancel(msgspec.Struct, tag=True):
    """`ctx.cancelled` is true from now on."""

    run: int


class ProgressSeen(msgspec.Struct, tag=True):
    """The last progress was taken; a newer one may be sent."""

    run: int


class Answer(msgspec.Struct, tag=True):
    """The answer to a question: JSON or bytes, or what went wrong."""

    run: int
    number: int
    value: bytes = b""
    report: Report | None = None


class RunStage(msgspec.Struct, tag=True):
    """The stage has no result yet: run it and send its `StageEnd`."""

    run: int
    number: int


class Stop(msgspec.Struct, tag=True):
    """There is no more work: leave politely."""


# -- from the child ------------------------------------------------------------------------------


class Ready(msgspec.Struct, tag=True):
    """The target is loaded."""


class Returned(msgspec.Struct, tag=True):
    """The handler returned; `result` is JSON."""

    run: int
    result: bytes


class Raised(msgspec.Struct, tag=True):
    """The handler raised, or (run 0) the target could not be loaded."""

    run: int
    report: Report


class Progress(msgspec.Struct, tag=True):
    """How far the job is."""

    run: int
    percent: float
    message: str | None


class Logged(msgspec.Struct, tag=True):
    """A log record. Without a `logger` it belongs to the job's own."""

    run: int
    logger: str | None
    level: int
    message: str
    created: float
    pathname: str
    line: int
    function: str | None
    process: int
    thread: str | None
    exception: str | None
    extra: dict[str, str | int | float | bool | None]


class StageBegin(msgspec.Struct, tag=True):
    """The handler reaches a stage: is there a result?"""

    run: int
    number: int
    name: str
    done: str | None


class StageEnd(msgspec.Struct, tag=True):
    """The stage ran: keep its result, which is JSON, or learn why there is none."""

    run: int
    number: int
    result: bytes = b""
    report: Report | None = None


class Sleep(msgspec.Struct, tag=True):
    """Go on in so many seconds, or then."""

    run: int
    number: int
    step_name: str
    seconds: float | None
    until: float | None


class Wait(msgspec.Struct, tag=True):
    """Go on when this event is there."""

    run: int
    number: int
    step_name: str
    event: str
    timeout: float | None


class Spawn(msgspec.Struct, tag=True):
    """Make children."""

    run: int
    number: int
    step_name: str
    jobs: list[NewJob]


class Gather(msgspec.Struct, tag=True):
    """Go on when these children have ended."""

    run: int
    number: int
    ids: list[str]


class ArtifactPut(msgspec.Struct, tag=True):
    """Keep a file: one that the worker can read itself, or what follows in chunks."""

    run: int
    number: int
    name: str
    layer: str
    media_type: str | None
    metadata: dict[str, str]
    file: bytes | None = None


class ArtifactChunk(msgspec.Struct, tag=True):
    """The next chunk of the file of question `put`. An empty one ends it, a broken undoes it."""

    run: int
    number: int
    put: int
    data: bytes
    broken: bool = False


class ArtifactFind(msgspec.Struct, tag=True):
    """Tell about a file."""

    run: int
    number: int
    name: str
    layer: str


class ArtifactRead(msgspec.Struct, tag=True):
    """Read some bytes of a file."""

    run: int
    number: int
    path: str
    start: int
    end: int


class ArtifactList(msgspec.Struct, tag=True):
    """List the files."""

    run: int
    number: int


ArtifactQuestion = ArtifactPut | ArtifactChunk | ArtifactFind | ArtifactRead | ArtifactList
Durable = Sleep | Wait | Spawn | Gather
Question = StageBegin | StageEnd | Durable | ArtifactQuestion
FromWorker = Start | Run | Cancel | ProgressSeen | Answer | RunStage | Stop
FromChild = Ready | Returned | Raised | Progress | Logged | Question

_encoder = msgspec.msgpack.Encoder()
decode_from_worker: Callable[[bytes | bytearray], FromWorker]
decode_from_worker = msgspec.msgpack.Decoder(FromWorker).decode
decode_from_child: Callable[[bytes | bytearray], FromChild]
decode_from_child = msgspec.msgpack.Decoder(FromChild).decode


def printable(text: str) -> str:
    """The text without what cannot be encoded: half characters, from file names for example."""
    return text.encode("utf-8", "replace").decode("utf-8")


def frame(message: FromWorker | FromChild, longest: int) -> bytes:
    """One message as it goes over the wire."""
    body = _encoder.encode(message)
    if len(body) > longest:
        raise MessageTooLong(
            f"{type(message).__name__} of {len(body):,} bytes: a worker and its child process send "
            f"each other at most {longest:,} at once; keep large data as an artifact"
        )
    return HEADER.pack(len(body)) + body
