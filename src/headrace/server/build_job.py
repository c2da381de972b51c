"""Makes a job from a request."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_type_hints

import msgspec

from headrace.api_types.requests import JobRequest
from headrace.errors import InvalidArguments, InvalidSetting, PayloadTooLarge
from headrace.model.job import NewJob
from headrace.model.policy import check_priority
from headrace.model.times import check_moment
from headrace.server.auth.guard import Caller
from headrace.server.http.problems import Refused, invalid, refused, shown
from headrace.server.service import Service
from headrace.task import Task, TaskOptions
from headrace.task.codec import encode
from headrace.task.task import MOST_RETRIES

META_LIMIT = 16_384


def make_job(service: Service, caller: Caller, request: JobRequest) -> NewJob:
    """Check a request as `task.options(…).enqueue(…)` would, and what this caller may ask for."""
    task = service.app.find_task(request.task)
    arguments = request.args
    name = service.user_argument
    if caller.user is not None and name in task.signature.names:
        arguments = _for_user(name, caller, caller.user, task, arguments)
    try:
        encoded = encode(arguments)
        options = task.options(
            queue=request.queue,
            priority=_priority(request.priority),
            delay=request.delay,
            run_at=_run_at(request.run_at),
            key=request.key,
            lane=request.lane,
            retries=_retries(request.retries),
            timeout=request.timeout,
            source="api",
            meta=_meta(caller, request.meta),
        )
        job = _fit(options, encoded)
    except InvalidArguments as error:
        raise _unfit(service, error, encoded) from None
    except OverflowError:
        raise refused(
            InvalidArguments(
                f'task "{task.name}": a whole number has more than 64 bits; send it as text'
            )
        ) from None
    caller.check_queue(job.queue)
    return job


def _fit(options: TaskOptions[..., Any], encoded: bytes) -> NewJob:
    """Make the job. Some languages write 5.0 for 5: decode that as an integer, too."""
    try:
        return options.job_from_json(encoded)
    except InvalidArguments:
        whole = encode(_whole_numbers(msgspec.json.decode(encoded)))
        if whole == encoded:
            raise
        return options.job_from_json(whole)


def _priority(given: float | None) -> int | None:
    try:
        return None if given is None else check_priority(_whole(given))
    except InvalidSetting as error:
        raise invalid(str(error), field="priority", value=given) from None


def _run_at(given: datetime | None) -> datetime | None:
    try:
        if given is not None:
            check_moment(given)
    except InvalidSetting as error:
        raise invalid(str(error), field="run_at", value=given and given.isoformat()) from None
    return given


def _retries(given: float | None) -> int | None:
    whole = _whole(given)
    if whole is None or (isinstance(whole, int) and 0 <= whole <= MOST_RETRIES):
        return whole
    raise invalid(
        f"retries must be a whole number between 0 and {MOST_RETRIES}, got {shown(given)}",
        field="retries",
        value=given,
    )


def _whole_numbers(value: Any) -> Any:
    match value:
        case dict():
            return {name: _whole_numbers(each) for name, each in value.items()}
        case list():
            return [_whole_numbers(each) for each in value]
        case _:
            return _whole(value)


def _whole(value: Any) -> Any:
    exact = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    return int(value) if exact else value


def _meta(caller: Caller, given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the `meta` of the job, with the key that was used."""
    if given is None and caller.key_id is None:
        return None
    meta = dict(given or {})
    if caller.key_id is not None:
        meta["key_id"] = caller.key_id
    if caller.user is not None:
        meta["user"] = caller.user
    size = len(encode(meta))
    if size > META_LIMIT:
        raise PayloadTooLarge(f"meta takes {size:,} bytes, the limit is {META_LIMIT:,}; shorten it")
    return meta


def _for_user(
    name: str, caller: Caller, user: str, task: Task[..., Any], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Set or check the argument that names the user: a key of a user acts for that user only."""
    if name not in arguments:
        kind = get_type_hints(task.function).get(name)
        own: Any = int(user) if kind is int and user.lstrip("-").isdecimal() else user
        return arguments | {name: own}
    caller.check_user(f"args.{name}", arguments[name])
    return arguments


def _unfit(service: Service, error: InvalidArguments, encoded: bytes) -> Refused:
    """Return the refusal. It shows the arguments, unless they may hold a secret."""
    redactor = service.answers.redactor
    if redactor.may_hide(encoded):
        text, _, takes = str(error).partition("; got ")
        _, _, takes = takes.rpartition("; it takes: ")
        known = f"; it takes: {takes}" if takes else ""
        error = InvalidArguments(redactor.text(text, encoded) + known)
    refusal = refused(error)
    refusal.problem.field = "args"
    return refusal
