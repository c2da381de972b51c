"""A task: what `@app.task` makes of a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Unpack,
    overload,
)

import msgspec

from headrace.errors import InvalidArguments, InvalidSetting, PayloadTooLarge
from headrace.model.ids import new_id
from headrace.model.insert_policy import InsertPolicy, OnDuplicate
from headrace.model.job import SOURCES, Job, NewJob, Source
from headrace.model.limits.lane import Lane, as_lane
from headrace.model.names import check_name, check_text
from headrace.model.policy import (
    TaskPolicy,
    check_priority,
    check_timeout,
)
from headrace.model.times import check_delay, check_moment
from headrace.task.chunk_options import check_chunk_by, signature_of
from headrace.task.codec import encode, encoded_meta
from headrace.task.encrypted import check_lane, seal_arguments
from headrace.task.job_options import (
    NOT_GIVEN,
    OptionFields,
    attempts_of,
    check_lane_arguments,
    check_lane_of_job,
    expiry_fields,
    key_policy_fields,
    set_rate,
    with_own_lane,
)
from headrace.task.options import check_options

if TYPE_CHECKING:
    from headrace.artifacts.index import HandedIn
    from headrace.model.artifact import File
    from headrace.task.app_like import JobSink

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

Kind = Literal["async", "thread", "process"]


class Task(Generic[P, R_co]):
    """A registered handler with its policy. Call it like the function, or enqueue it."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        policy: TaskPolicy,
        sink: JobSink,
    ) -> None:
        self.name = check_name("task", name)
        self.function = function
        self.policy = policy = with_own_lane(policy, name)
        self.max_attempts = policy.retry.max_attempts
        self.sink = sink
        self.signature = signature_of(name, function, policy)
        self.kind: Kind = (
            "process"
            if policy.isolate == "process"
            else "async"
            if inspect.iscoroutinefunction(function)
            else "thread"
        )
        if policy.lane is not None:
            check_lane_arguments(name, policy.lane, self.signature.names)
        check_chunk_by(name, policy, self.signature)
        self.decide_encryption()
        self._plain = TaskOptions(self)
        # A job without id and arguments, after what it was made by.
        self.job_template: tuple[TaskPolicy, int, NewJob] = self._made_template()
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<Task {self.name!r} queue={self.policy.queue!r}>"

    def decide_encryption(self) -> None:
        """Note whether what its jobs store is sealed: as the task says, or else its App."""
        chosen = self.policy.encrypt
        self.encrypted = self.sink.encrypt_all if chosen is None else chosen
        if self.encrypted and self.policy.chunk is not None:
            raise InvalidSetting(
                f'task "{self.name}" has chunk={self.policy.chunk}, which cannot be encrypted: say '
                "encrypt=False, or leave chunk out"
            )
        # What does not fit is told without the arguments.
        self.signature.quotes = not self.encrypted
        self._check_lane(self.policy.lane)

    def _check_lane(self, lane: Lane | None) -> None:
        if lane is not None and lane.breaker is not None:
            check_lane_of_job(self.name, lane, self.policy.lane)
        if self.encrypted and not self.policy.plain_lane:
            check_lane(self.name, lane)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler directly, without a queue. For unit tests of the handler."""
        return self.function(*args, **kwargs)

    def job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob[R_co]:
        """Return a job without storing it, for `app.enqueue_many`."""
        return self._plain._make(self.signature.encode(args, kwargs))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Job[R_co]]:
        """Check the arguments and store a job durably."""
        return self.sink.enqueue_job(self.job(*args, **kwargs))

    def _made_template(self) -> tuple[TaskPolicy, int, NewJob]:
        policy = self.policy
        like: NewJob[Any] = NewJob(
            id="",
            task=self.name,
            queue=policy.queue,
            args=b"",
            priority=policy.priority,
            max_attempts=self.max_attempts,
            timeout=policy.timeout,
            on_crash=policy.on_crash,
            expires_in=policy.expires,
        )
        return policy, self.max_attempts, like

    @overload
    def options(
        self, *, files: None = None, **options: Unpack[OptionFields]
    ) -> TaskOptions[P, R_co]: ...
    @overload
    def options(
        self, *, files: Mapping[str, File], **options: Unpack[OptionFields]
    ) -> TaskOptions[..., R_co]: ...

    def options(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay: float | None = None,
        run_at: datetime | None = None,
        key: str | None = None,
        lane: str | Lane | None = None,
        retries: int | None = None,
        timeout: float | msgspec.UnsetType | None = msgspec.UNSET,
        expires: float | datetime | msgspec.UnsetType | None = msgspec.UNSET,
        on_duplicate: OnDuplicate | None = None,
        window: float | None = None,
        max_wait: float | None = None,
        source: Source = "code",
        meta: dict[str, Any] | None = None,
        conn: Any = None,
        files: Mapping[str, File] | None = None,
        **others: Any,
    ) -> TaskOptions[P, R_co]:
        """Return this task with other options for the jobs that it enqueues.

        `delay` is in seconds; `run_at` an aware datetime; `key` makes the job idempotent; `conn`
        is a PostgreSQL connection or session whose transaction the job takes part in. `files` are
        stored with the job: the argument of each name is the path of its file. A job that has not
        started after `expires` seconds, or at that time, is cancelled. `on_duplicate`, `window` and
        `max_wait` say what becomes of a job whose key exists: see `InsertPolicy`.
        """
        if others:
            check_options("job", others, (*OptionFields.__annotations__, "files"))
        if source not in SOURCES:
            raise InvalidSetting(f"source must be one of {', '.join(SOURCES)}, got {source!r}")
        changes: dict[str, Any] = {"source": source}
        if queue is not None:
            changes["queue"] = check_name("queue", queue)
        if priority is not None:
            changes["priority"] = check_priority(priority)
        if delay is not None and run_at is not None:
            raise InvalidSetting("give delay or run_at, not both")
        if delay is not None:
            changes["delay"] = check_delay(delay)
        if run_at is not None:
            changes["run_at"] = check_moment(run_at)
        if key is not None:
            changes["key"] = check_text("key", key)
        if retries is not None:
            changes["max_attempts"] = attempts_of(retries)
        if timeout is not msgspec.UNSET:
            changes["timeout"] = check_timeout(timeout)
        if (expires, on_duplicate, window, max_wait) != NOT_GIVEN:
            changes |= expiry_fields(expires)
            changes |= key_policy_fields(key, delay, on_duplicate, window, max_wait)
        if meta is not None:
            changes["meta"] = encoded_meta(meta)
        chosen = as_lane(lane)
        self._check_lane(chosen)
        return TaskOptions(self, changes=changes, lane=chosen, connection=conn, files=files)


class TaskOptions(Generic[P, R_co]):
    """A task with options for the jobs that it enqueues."""

    def __init__(
        self,
        task: Task[P, R_co],
        *,
        changes: dict[str, Any] | None = None,
        lane: Lane | None = None,
        connection: Any = None,
        files: Mapping[str, File] | None = None,
    ) -> None:
        self._files = files
        self._task = task
        self._changes = changes or {}
        self._lane = lane or task.policy.lane
        self._connection = connection

    def job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob[R_co]:
        """Return a job without storing it. Raises `InvalidSetting` with `conn`: a job carries no
        connection.
        """
        if self._connection is not None:
            raise InvalidSetting(
                "a job does not keep conn=…, so it would be stored outside of your transaction; "
                "use options(conn=…).enqueue(…)"
            )
        if self._files is not None:
            raise InvalidSetting(
                "a job does not keep files=…, which are stored with it; use options(files=…)."
                "enqueue(…)"
            )
        return self._make(self._task.signature.encode(args, kwargs))

    def job_from_json(self, encoded: bytes, *, job_id: str | None = None) -> NewJob[R_co]:
        """Return a job for a JSON object of arguments, as HTTP and the command line have it. Its
        id is a new one unless it is given.
        """
        self._task.signature.check(encoded)
        return self._make(encoded, job_id)

    def check_json(self, encoded: bytes) -> None:
        """Raise what `job_from_json` would raise for these arguments, apart from missing keys."""
        self._task.signature.check(encoded)
        self._make(encoded, seal=False)

    def job_with_files(self, arguments: dict[str, Any], kept: list[HandedIn]) -> NewJob[R_co]:
        """Return a job whose arguments are these and the paths of its files."""
        paths = {each.argument: each.path for each in kept}
        job = self._make(self._task.signature.encode((), arguments | paths))
        meta = msgspec.json.decode(job.meta) if job.meta else {}
        job.meta = encode({**meta, "files": kept})
        return job

    async def _enqueue_with_files(
        self, files: Mapping[str, File], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Job[R_co]:
        task = self._task
        arguments = task.signature.beside(args, kwargs, files)
        make = functools.partial(self.job_with_files, arguments)
        job, _ = await task.sink.enqueue_with_files(files, make, connection=self._connection)
        return job

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Job[R_co]]:
        """Check the arguments and store a job durably."""
        if self._files is not None:
            return self._enqueue_with_files(self._files, args, kwargs)
        job = self._make(self._task.signature.encode(args, kwargs))
        return self._task.sink.enqueue_job(job, connection=self._connection)

    def _make(
        self, encoded: bytes, job_id: str | None = None, *, seal: bool = True
    ) -> NewJob[R_co]:
        task = self._task
        limit = task.sink.payload_limit
        if len(encoded) > limit:
            raise PayloadTooLarge(
                f'task "{task.name}": the arguments take {len(encoded):,} bytes, the limit is '
                f"{limit:,}; keep large data elsewhere and pass a reference, or raise "
                "HEADRACE_PAYLOAD_LIMIT"
            )
        policy, attempts, like = task.job_template
        if policy is not task.policy or attempts != task.max_attempts:
            task.job_template = *_, like = task._made_template()
        # Half the price of making one from all of its fields.
        job: NewJob[R_co] = like.__copy__()  # type: ignore[attr-defined]
        job.id, job.args = job_id or new_id(), encoded
        if self._lane is not None:
            self._set_lane(job, self._lane, encoded)
        for field, value in self._changes.items():
            setattr(job, field, value)
        if self._lane is not None and self._lane.when_full != "wait":
            job.policy = msgspec.structs.replace(
                job.policy or InsertPolicy(), when_full=self._lane.when_full
            )
        if task.encrypted and seal:
            seal_arguments(job, task.sink.sealing)
        return job

    def _set_lane(self, job: NewJob, lane: Lane, encoded: bytes) -> None:
        arguments = msgspec.json.decode(encoded)
        for name in lane.fields() - arguments.keys():
            if name not in self._task.signature.defaults:
                raise InvalidArguments(
                    f'task "{self._task.name}": lane {lane.template!r} reads {name!r}, which is '
                    "not an argument of the job"
                )
            arguments[name] = self._task.signature.defaults[name]
        job.lane = lane.place(arguments)
        job.width = lane.width
        job.hold = lane.hold
        if lane.rate is not None:
            set_rate(job, lane, arguments, self._task.signature.defaults)
