"""Jobs: as they are handed in, as a worker holds them, and as people see them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, get_args

import msgspec

from headrace.errors import SealedValue
from headrace.model.durable.awaited import Awaited
from headrace.model.insert_policy import InsertPolicy
from headrace.model.limits.rate import Rate
from headrace.model.outcome import AttemptEntry
from headrace.model.sealed import (
    DOCUMENT,
    SEALED_ERROR,
    Opener,
    key_of_args,
    no_keys,
    read_attempts,
    read_document,
    shown_document,
)
from headrace.model.status import State, Status
from headrace.model.times import check_aware

if TYPE_CHECKING:
    # Without a parameter it is Any, for checkers that ask for one.
    from typing_extensions import TypeVar

    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

Source = Literal["api", "cron", "event", "code", "cli", "workflow"]
SOURCES: tuple[Source, ...] = get_args(Source)
OnCrash = Literal["retry", "fail"]

PRIORITY_LIMIT = 1_000
# Characters of an error that `repr` shows.
REPR_ERROR = 100


class NewJob(msgspec.Struct, Generic[R_co], kw_only=True, gc=False):
    """A valid request to run a task, ready to be stored. `NewJob[int]` is of a task that returns
    an int.

    `args` is a JSON object. `run_at` is seconds since the epoch; `delay` counts from the engine's
    own now. `key` makes the request idempotent within its task. `hold` keeps the lane place
    during a retry's wait. `meta` is a JSON object for what travels with a job (trace, user).
    `parent` is the id of the job that made this one, `group` its name for those that it waits for
    together; a job without a parent has no group. A job that has not started by `expires_at`, in
    seconds since the epoch, or `expires_in` seconds after it was stored, is cancelled. `policy` is
    about its key and its lane, for `insert_by_policy`. `rate` is that of its lane, which it needs;
    each start of the job counts for `cost` starts, those after the first attempt only with
    `count_retries`.
    """

    id: str
    task: str
    queue: str = "default"
    args: bytes = b"{}"
    priority: int = 0
    delay: float = 0.0
    run_at: float | None = None
    key: str | None = None
    lane: str | None = None
    width: int = 1
    hold: bool = True
    max_attempts: int = 4
    timeout: float | None = 600.0
    on_crash: OnCrash = "retry"
    source: Source = "code"
    meta: bytes | None = None
    parent: str | None = None
    group: str | None = None
    expires_in: float | None = None
    expires_at: float | None = None
    policy: InsertPolicy | None = None
    rate: Rate | None = None
    cost: float = 1.0
    count_retries: bool = True


class ClaimedJob(msgspec.Struct, kw_only=True, gc=False):
    """What a worker needs to run one attempt. `wait` is seconds from due to claimed."""

    id: str
    token: int
    attempt: int
    task: str
    queue: str
    args: bytes
    max_attempts: int
    timeout: float | None
    on_crash: OnCrash = "retry"
    priority: int = 0
    lane: str | None = None
    key: str | None = None
    meta: bytes | None = None
    wait: float = 0.0
    cancel_requested: bool = False
    parent: str | None = None
    # Not stored: what this job leaves behind is sealed. Its arguments are open here.
    sealed: bool = False


class Inserted(msgspec.Struct, frozen=True, gc=False):
    """The result of one insert: a new job, or the one that has the key already."""

    id: str
    created: bool


class PolicyInserted(msgspec.Struct, frozen=True):
    """The result of `insert_by_policy`. `inserted` is None if the job was refused, because its lane
    is full. `cancelled` are jobs in whose place it came, `stopping` running ones that were asked to
    stop for it.
    """

    inserted: Inserted | None
    cancelled: tuple[str, ...] = ()
    stopping: tuple[str, ...] = ()


class JobFields(msgspec.Struct, kw_only=True):
    """What people see of a job, in the order in which the API returns it. What is typed as Any has
    another form here and there. `admitted_at` is when it last got a place in its lane for which it
    had waited: if that is not after `run_at`, it has not waited since it became due. `expires_at`
    is shown until it has started or ended. One that is `parked` is scheduled because its lane lets
    nothing start before `run_at`.
    """

    id: str
    task: str
    queue: str
    state: Any
    args_json: Any
    priority: int = 0
    lane: str | None = None
    width: Any = 1
    key: str | None = None
    source: str = "code"
    attempt: int = 0
    max_attempts: int = 4
    timeout: float | None = None
    on_crash: str = "retry"
    stage: str | None = None
    progress: float = 0.0
    message: str | None = None
    created_at: datetime
    run_at: datetime
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    worker: str | None = None
    error_type: str | None = None
    error: str | None = None
    result_json: Any = None
    cancel_requested: bool = False
    log: Any = b""
    meta_json: Any = None
    parent: str | None = None
    group: str | None = None
    awaits: tuple[Awaited, ...] = ()
    expires_at: datetime | None = None
    parked: bool = False


# The names that people see, of fields that are named for how they are stored.
SHOWN_AS = {
    "id": "job_id",
    "state": "status",
    "args_json": "args",
    "error": "error_message",
    "result_json": "result",
    "log": "attempts",
    "meta_json": "meta",
}


class Job(JobFields, Generic[R_co], kw_only=True, gc=False):
    """A job as people see it: its status, its progress and how it ended. `Job[int]` is of a task
    that returns an int.
    """

    # Nothing that it holds leads back to it. Thousands are made at once, and the garbage collector
    # would go through the fields of each of them several times: a sixth of what enqueuing costs.

    state: State
    args_json: bytes
    width: int = 1
    hold: bool = True
    token: int = 0
    result_json: bytes | None = None
    log: bytes = b""
    meta_json: bytes | None = None
    # Not stored: how to read the result, where the task is known and was asked for.
    result_decoder: Callable[[bytes], Any] | None = None
    # Not stored: what opens the values of an encrypted task, where this process has keys.
    opener: Opener | None = None

    def __repr__(self) -> str:
        key = "" if self.key is None else f" key={self.key!r}"
        error = f" error={self.error[:REPR_ERROR]!r}" if self.error else ""
        attempt = f" attempt={self.attempt}" if self.attempt > 1 else ""
        return f"<Job {self.id} task={self.task!r} {self.status}{attempt}{key}{error}>"

    @property
    def job_id(self) -> str:
        """The id, by the name that it has in JSON and in a handler's context."""
        return self.id

    @property
    def error_message(self) -> str | None:
        """The error, by the name that it has in JSON; that of an encrypted task is opened."""
        if self.error == SEALED_ERROR and self.opener is not None:
            for entry in reversed(self.attempts):
                if entry.failure is not None:
                    return entry.failure.message
        return self.error

    @property
    def sealed_with(self) -> str | None:
        """The name of the key that the arguments, or the result, are sealed with; None for a job
        of a task that is not encrypted.
        """
        key = key_of_args(self.args_json)
        if key is None and self.result_json is not None:
            found = read_document(self.result_json)
            key = None if found is None else found.key
        return key

    @property
    def status(self) -> Status:
        """The status as users and the API see it."""
        return self.state.status

    @property
    def args(self) -> dict[str, Any]:
        """The arguments, decoded. Raises `MissingEncryptionKey` if they are sealed and this
        process cannot open them.
        """
        args = self.args_json
        if self.opener is not None:
            args = self.opener.open_args(self.id, args)
        elif args.startswith(DOCUMENT):
            raise no_keys(self.id, "arguments", self.sealed_with)
        decoded: dict[str, Any] = msgspec.json.decode(args)
        return decoded

    @property
    def result(self) -> R_co:
        """What the handler returned; None until the job has completed, whatever the type says. It
        is plain JSON for a job that was asked for by its id, and of the type that its task returns
        for one that was asked for by the job (`app.get(job)`). Raises `MissingEncryptionKey` if it
        is sealed and this process cannot open it.
        """
        result = self.result_json
        if result is None:
            return None  # type: ignore[return-value]
        if result.startswith(DOCUMENT):
            result = self._opened_result(result)
        decode: Callable[[bytes], R_co] = self.result_decoder or msgspec.json.decode
        return decode(result)

    def _opened_result(self, result: bytes) -> bytes:
        key = key_of_args(self.args_json)
        try:
            if self.opener is not None:
                return self.opener.open_result(self.id, result)
        except SealedValue:
            if key is not None:
                raise
        if key is not None:
            raise no_keys(self.id, "result", key)
        return result  # of a job that is not sealed, and returns what only looks so

    @property
    def meta(self) -> dict[str, Any]:
        """What travels with the job besides its arguments."""
        decoded: dict[str, Any] = msgspec.json.decode(self.meta_json) if self.meta_json else {}
        return decoded

    @property
    def attempts(self) -> list[AttemptEntry]:
        """The attempts that did not complete, oldest first. Errors of an encrypted task are opened
        where this process has the keys.
        """
        return read_attempts(self.id, self.log, self.opener)

    @property
    def shown_attempts(self) -> list[AttemptEntry]:
        """The same for views, which never open what is sealed."""
        return read_attempts(self.id, self.log, None)

    def to_dict(self) -> dict[str, Any]:
        """The job in the shape that `--json` prints and the API returns. Of what is sealed only the
        key is told.
        """
        shown = {SHOWN_AS.get(name, name): getattr(self, name) for name in _FIELDS}
        result: Any = None
        if self.result_json is not None:
            decode = self.result_decoder or msgspec.json.decode
            seen = shown_document(self.result_json)
            result = decode(seen) if seen is self.result_json else msgspec.json.decode(seen)
        return shown | {
            "status": self.status.value,
            "args": msgspec.json.decode(shown_document(self.args_json)),
            "width": None if self.lane is None else self.width,
            "result": result,
            "attempts": self.shown_attempts,
            "meta": self.meta,
            "awaits": msgspec.to_builtins(self.awaits),
        }


_FIELDS = JobFields.__struct_fields__


class JobFilter(msgspec.Struct, kw_only=True, frozen=True):
    """Which jobs to list; empty means all. `error_types` and `worker` are what a job shows now: of
    its last attempt that failed, and of the worker that has it or had it last. Only finished jobs
    have a time at which they finished.
    """

    statuses: tuple[Status, ...] = ()
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    lane: str | None = None
    key: str | None = None
    source: str | None = None
    parent: str | None = None
    group: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    error_types: tuple[str, ...] = ()
    worker: str | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("created_after", "created_before", "finished_after", "finished_before"):
            moment = getattr(self, name)
            if moment is not None:
                check_aware(moment, name)
