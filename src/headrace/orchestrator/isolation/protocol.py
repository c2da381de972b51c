"""The messages between a worker and its child processes: a length, then one message.

Plain data only: nothing that arrives can run code in the worker. Every message about a job carries
the number of its run (0: none), and both sides drop those of another run than the present one. Both
sides refuse a length beyond their limit before they read what it announces.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, cast

import msgspec

from headrace.orchestrator.isolation.errors import MessageTooLong
from headrace.tracing.forwarding import EndedSpan

HEADER = struct.Struct("<I")
# Results of stages are sent whole, and the worker has many children.
LONGEST_FROM_CHILD = 64 * 1_048_576
# The results of many child jobs are one reply.
LONGEST_FROM_WORKER = 1024 * 1_048_576
# The reply for a transient stage that is not needed any more: no JSON, as other results are.
GONE_STAGE = b"gone"
# How much longer a message may be than the result in it.
ENVELOPE = 4_096


class Target(msgspec.Struct, frozen=True):
    """A Task or an App in a module. `file` is used if the module cannot be imported by name."""

    module: str
    attribute: str
    file: str | None = None


class Report(msgspec.Struct):
    """A described error. `ancestry` is (module, qualified name) of its class and its bases.

    `retryable` False: it is rebuilt as a `NotRetryable`, whatever its class is. `hold_lane`: it is
    a `RateLimited` that holds the lane of its job.
    """

    ancestry: list[tuple[str, str]]
    message: str
    traceback: str
    kind: Literal["error", "retry_later", "snooze", "suspended"] = "error"
    delay: float | None = None
    at: datetime | None = None
    awaits: bytes | None = None
    retryable: bool = True
    hold_lane: bool = False


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
    tracing: bool = False


class RunJob(msgspec.Struct, tag=True):
    """Run one attempt at a job. Every message about it carries the number `run`."""

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
    # The W3C context of the attempt's span, where traces are on.
    trace: dict[str, str] = {}
    # What the attempt stores is sealed, by the worker. The arguments are open here.
    sealed: bool = False


class Cancel(msgspec.Struct, tag=True):
    """`ctx.cancelled` is true from now on."""

    run: int


class ProgressSeen(msgspec.Struct, tag=True):
    """The last progress was received; a newer one may be sent."""

    run: int


class Reply(msgspec.Struct, tag=True):
    """What the method of an `Ask` returned (bytes, or JSON of anything else), or its error."""

    run: int
    number: int
    value: bytes = b""
    report: Report | None = None


class Stop(msgspec.Struct, tag=True):
    """There is no more work: exit."""


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
    """The progress of the job. Not an `Ask`: only the latest is sent, and before the result."""

    run: int
    percent: float
    message: str | None


class Logged(msgspec.Struct, tag=True):
    """A log record. Without a `logger` it is for the job's own."""

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


class ArtifactOptions(msgspec.Struct):
    """What a file is stored as: the options of `Artifacts.put`."""

    name: str
    layer: str
    media_type: str | None
    metadata: dict[str, str]


class Ask(msgspec.Struct, tag=True):
    """Call a method of the worker: one of `attempt_server.METHODS`.

    `arguments` is a tuple, which is decoded by the types of the method. `number` is that of the
    reply; 0: none is wanted. `trace` is the W3C context of the span that asks.
    """

    run: int
    number: int
    method: str
    arguments: msgspec.Raw
    trace: dict[str, str] = {}


FromWorker = Start | RunJob | Cancel | ProgressSeen | Reply | Stop
FromChild = Ready | Returned | Raised | Progress | Logged | Ask | EndedSpan

_encoder = msgspec.msgpack.Encoder()
decode_from_worker: Callable[[bytes | bytearray], FromWorker]
decode_from_worker = msgspec.msgpack.Decoder(FromWorker).decode
decode_from_child: Callable[[bytes | bytearray], FromChild]
decode_from_child = msgspec.msgpack.Decoder(FromChild).decode


def printable(text: str) -> str:
    """Return the text without what cannot be encoded: lone surrogates, as in file names."""
    return text.encode("utf-8", "replace").decode("utf-8")


def ask(
    run: int,
    number: int,
    method: str,
    arguments: tuple[Any, ...],
    trace: dict[str, str] | None = None,
) -> Ask:
    """Return a call to be sent. Not `Raw(encode(…))`: that would copy a large result once more."""
    return Ask(run, number, method, cast("msgspec.Raw", arguments), trace or {})


def frame(message: FromWorker | FromChild, longest: int) -> bytes:
    """Return a message as it is sent: with its length in front."""
    body = _encoder.encode(message)
    if len(body) > longest:
        name = message.method if isinstance(message, Ask) else type(message).__name__
        raise MessageTooLong(
            f"{name} of {len(body):,} bytes: a worker and its child process send each other at "
            f"most {longest:,} at once; keep large data as an artifact"
        )
    return HEADER.pack(len(body)) + body
