"""The durable verbs of a context, in the worker or a child: checked, named, and stored."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from headrace.errors import ChildFailed, InvalidInput, InvalidSetting, NotRetryable, Suspended
from headrace.model.durable.children import EndedChild, FailedChild, OnFailure
from headrace.model.durable.context import Context
from headrace.model.durable.entries import CHILDREN, SLEEP, WAIT, named, stage_name
from headrace.model.durable.followers import FOLLOW_ON, FollowOn
from headrace.model.durable.transient_stages import check_transient
from headrace.model.ids import parse_id
from headrace.model.job import NewJob
from headrace.model.names import check_text
from headrace.model.retry import NeverRetry, RetryPolicy
from headrace.model.times import check_delay, check_moment
from headrace.orchestrator.durable.entry_names import CURRENT_STAGE, EntryNames
from headrace.orchestrator.durable.entry_store import EntryStore
from headrace.orchestrator.durable.running_stages import RunningStages
from headrace.orchestrator.durable.stage_call import make_stage_retry
from headrace.task import Task
from headrace.task.codec import decode_hook, encode_body
from headrace.task.returned import decoder_of_results

if TYPE_CHECKING:
    from headrace.tracing.tracer import Tracing

T = TypeVar("T")

# An error names at most this many failed children.
SHOWN = 5


class DurableContext(Context):
    """What handlers call. `entry_store` records it; `tasks` are those that are known here."""

    entry_store: EntryStore
    entry_names: EntryNames
    tasks: Mapping[str, Task[..., Any]]
    # What makes spans; None while traces are off.
    tracing: Tracing | None = None
    # The arguments, as JSON.
    args_json: bytes
    # Whether what the attempt stores is sealed.
    sealed: bool = False

    async def stage(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        key: str | int | None = None,
        done: str | None = None,
        retries: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        transient: bool | str = False,
        **kwargs: Any,
    ) -> Any:
        entry_name = stage_name(name, key)
        call = functools.partial(function, *args, **kwargs)
        stage_retry = make_stage_retry(retries, retry, timeout)
        until = check_transient(name, key, transient) if transient is not False else None
        with self.running_stages.stage():
            return await self.entry_store.stage(entry_name, call, done, stage_retry, until)

    async def sleep(self, seconds: float, *, name: str | None = None) -> None:
        if isinstance(seconds, int | float) and not seconds >= 0:
            raise InvalidInput(f"sleep takes seconds from 0, got {seconds!r}")
        pause = check_delay(seconds, "sleep")
        await self._or_suspend(self.entry_store.sleep(self._entry_name(SLEEP, name), pause, None))

    async def sleep_until(self, moment: datetime, *, name: str | None = None) -> None:
        until = check_moment(moment, "sleep_until")
        await self._or_suspend(self.entry_store.sleep(self._entry_name(SLEEP, name), None, until))

    async def wait(self, event: str, *, timeout: float | None = None, type: Any = Any) -> Any:
        check_text("event", event)
        if timeout is not None:
            timeout = check_delay(timeout, "timeout")
        # "a" for the second time is "a#2", and an event may be called just that.
        entry_name = self.entry_names.next(WAIT, event.replace("#", "##"))
        body = await self._or_suspend(self.entry_store.wait(entry_name, event, timeout))
        try:
            return msgspec.json.decode(body, type=type, dec_hook=decode_hook)
        except msgspec.DecodeError as error:
            raise NotRetryable(f"event {event!r} is not what was waited for: {error}") from error

    async def spawn(self, jobs: NewJob | Iterable[NewJob], *, group: str | None = None) -> Any:
        given = [jobs] if isinstance(jobs, NewJob) else list(jobs)
        for job in given:
            _check_child(job)
        ids = await self.entry_store.spawn(self._entry_name(CHILDREN, group), given)
        return ids[0] if isinstance(jobs, NewJob) else ids

    async def gather(
        self,
        jobs: Iterable[NewJob] | Iterable[str],
        *,
        group: str | None = None,
        on_failure: OnFailure = "fail",
    ) -> list[Any]:
        if on_failure not in ("fail", "collect"):
            raise InvalidSetting(f'on_failure must be "fail" or "collect", got {on_failure!r}')
        ids: list[str] = []
        new: list[NewJob] = []
        for job in [jobs] if isinstance(jobs, str | NewJob) else jobs:
            if isinstance(job, str):
                ids.append(parse_id(job))
            else:
                new.append(job)
        if ids and new:
            raise InvalidInput("gather takes new jobs or ids of children, not both at once")
        if new:
            ids = await self.spawn(new, group=group)
        if not ids:
            return []
        return self._results(await self._or_suspend(self.entry_store.gather(ids)), on_failure)

    def then(self, job: NewJob, /, *more: NewJob, on: FollowOn = "completed") -> list[str]:
        _check_follow("then", on)
        jobs = [job, *more]
        for each in jobs:
            if not isinstance(each, NewJob):
                raise InvalidInput(
                    f"a job that follows is made by task.job(…), got {type(each).__name__}"
                )
            parse_id(each.id)
            if each.policy is not None and each.policy.about_key:
                raise InvalidInput(
                    f"the job of task {each.task!r} that is to follow has on_duplicate or a "
                    "window; let a job follow that enqueues it"
                )
        self.entry_store.follow(jobs, on)
        return [each.id for each in jobs]

    def publish(
        self, event_type: str, body: Any, key: str | None = None, *, on: FollowOn = "completed"
    ) -> str:
        _check_follow("publish", on)
        return self.entry_store.publish(event_type, encode_body(event_type, body), key, on)

    @functools.cached_property
    def running_stages(self) -> RunningStages:
        return RunningStages()

    def suspending(self, *, now: bool) -> None:
        """Note that `Suspended` leaves the handler: now, or after its stages have ended."""

    async def _or_suspend(self, call: Awaitable[T]) -> T:
        """Return the result of a call. It suspends the handler only when concurrent stages end."""
        try:
            return await call
        except Suspended as suspended:
            stay = functools.partial(self.suspending, now=False)
            final = await self.running_stages.leave(suspended, stay)
            self.suspending(now=final)
            raise

    def _entry_name(self, kind: str, name: str | None) -> str:
        return self.entry_names.next(kind, None if name is None else named(kind, name))

    def _results(self, ended: list[EndedChild], on_failure: OnFailure) -> list[Any]:
        results: list[Any] = []
        failed: list[FailedChild] = []
        decoders: dict[str, msgspec.json.Decoder[Any]] = {}
        for index, child in enumerate(ended):
            if child.completed:
                results.append(self._result(child, decoders))
                continue
            failure = FailedChild(
                job_id=child.job_id,
                index=index,
                task=child.task,
                status=child.status,
                error_type=child.error_type,
                error=child.error,
            )
            failed.append(failure)
            results.append(failure)
        if failed and on_failure == "fail":
            more = f" … and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
            raise ChildFailed(
                f"{len(failed)} of {len(ended)} children ended without a result: "
                f"{'; '.join(map(str, failed[:SHOWN]))}{more}",
                failed,
            )
        return results

    def _result(self, child: EndedChild, decoders: dict[str, msgspec.json.Decoder[Any]]) -> Any:
        decoder = decoders.get(child.task)
        if decoder is None:
            task = self.tasks.get(child.task)
            decoder = msgspec.json.Decoder() if task is None else decoder_of_results(task)
            decoders[child.task] = decoder
        try:
            return decoder.decode(child.result)
        except msgspec.DecodeError as error:
            raise NotRetryable(
                f'the result of child {child.job_id} does not fit what task "{child.task}" '
                f"returns now: {error}"
            ) from error

    @property
    def never_retry(self) -> NeverRetry:
        """Return the errors that this job's task never retries."""
        task = self.tasks.get(self.task)
        return () if task is None else task.policy.never_retry


def _check_child(job: NewJob) -> None:
    if not isinstance(job, NewJob):
        raise InvalidInput(f"a child is made by task.job(…), got {type(job).__name__}")
    if job.key is not None:
        raise InvalidInput(
            f"child of task {job.task!r} has the key {job.key!r}; children are made exactly once "
            "by themselves, so leave the key out"
        )


def _check_follow(verb: str, on: str) -> None:
    if on not in FOLLOW_ON:
        raise InvalidSetting(f"on must be one of {', '.join(FOLLOW_ON)}, got {on!r}")
    stage = CURRENT_STAGE.get()
    if stage:
        raise InvalidInput(
            f"ctx.{verb} was called in stage {stage.rstrip('/')!r}, which a later attempt does not "
            "run again; call it in the handler, with what the stage returns"
        )
