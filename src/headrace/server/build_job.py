"""Makes a job from a request."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from headrace.api_types.requests import CopyRequest, JobRequest
from headrace.errors import InvalidArguments, InvalidSetting, PayloadTooLarge, UnknownTask
from headrace.model.job import Job, NewJob
from headrace.model.policy import check_priority
from headrace.model.times import check_moment
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import Reach
from headrace.server.http.body import whole, whole_numbers
from headrace.server.http.body_limits import META_LIMIT
from headrace.server.http.problems import Refused, forbidden, invalid, refused, shown
from headrace.server.service import Service
from headrace.task import Task, TaskOptions
from headrace.task.codec import encode
from headrace.task.job_options import MOST_RETRIES

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def make_job(service: Service, caller: Caller, request: JobRequest) -> NewJob:
    """Check a request as `task.options(…).enqueue(…)` would, and what this caller may ask for."""
    task = Reach(service, caller).task(request.task)
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
            run_at=_moment("run_at", request.run_at),
            key=request.key,
            # A key with a user stays in the lane of that user.
            lane=request.lane if caller.user is None else None,
            retries=_retries(request.retries),
            timeout=request.timeout,
            expires=_expires(request),
            on_duplicate=request.on_duplicate,
            window=request.window,
            max_wait=request.max_wait,
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
    _check_lane_fields(task, encoded)
    if caller.user is not None and request.lane not in (None, job.lane):
        raise forbidden(
            f"this key acts for user {caller.user!r} only, so it cannot choose a lane",
            "leave lane out: the task's own counts; or use a key without a user",
            field="lane",
            value=request.lane,
        )
    if caller.user is not None:
        _check_replacing(name, caller.user, task, job)
    if job.key is not None:
        job.key = caller.stored_key(job.key, job.queue)
    return job


def _check_replacing(name: str | None, user: str, task: Task[..., Any], job: NewJob) -> None:
    """Refuse a job that could cancel those of other users: in a lane that is not the user's own."""
    lane = task.policy.lane
    if lane is None or lane.when_full not in ("replace", "cancel_running") or name in lane.fields():
        return
    raise forbidden(
        f"this key acts for user {user!r} only, but lane {job.lane!r} of task {task.name!r} is for "
        f"all users, and when it is full a new job cancels others (when_full={lane.when_full!r})",
        f"make the user part of the lane: {lane.template}:{{{name}}}; or use a key without a user",
        field="task",
        value=task.name,
    )


def _check_lane_fields(task: Task[..., Any], encoded: bytes) -> None:
    """Refuse control characters in what the task's lane is made of, also where a request has chosen
    another lane: what a task takes does not depend on that.
    """
    lane = task.policy.lane
    # In JSON they are escapes.
    if lane is None or (b"\\" not in encoded and b"\x7f" not in encoded):
        return
    arguments = msgspec.json.decode(encoded)
    for name in sorted(lane.fields()):
        value = arguments.get(name)
        if isinstance(value, str) and _CONTROL.search(value):
            raise invalid(
                f"args.{name} is part of a lane, and contains a control character; remove it",
                field=f"args.{name}",
            )


async def check_request(service: Service, caller: Caller, request: JobRequest) -> None:
    """Refuse a request that names a job, or a file of one, that this caller may not see."""
    if caller.queues:
        meta = None if request.meta is None else _encoded(request.meta)
        await Reach(service, caller).check_named("args", _encoded(request.args))
        await Reach(service, caller).check_named("meta", meta)


async def check_copy(service: Service, caller: Caller, asked: CopyRequest) -> None:
    """The same for what differs in a copy."""
    await check_request(service, caller, JobRequest(task="copy", args=asked.args, meta=asked.meta))


def _encoded(document: dict[str, Any]) -> bytes:
    try:
        return encode(document)
    except OverflowError:
        return b""  # it is refused when the job is made


def make_copy(service: Service, caller: Caller, job: Job, asked: CopyRequest) -> NewJob:
    """Make a job with the task, queue, priority and arguments of another, but for what is given.
    Arguments with hidden values have to be given.
    """
    job = msgspec.structs.replace(job, opener=service.app.sealing)
    hidden = service.answers.redactor.hidden_in(job.args)
    if missing := sorted(hidden - asked.args.keys()):
        raise Refused(
            409,
            "invalid-arguments",
            f"the values of {', '.join(missing)} are hidden, and not copied; give them in args",
            field=f"args.{missing[0]}",
            remedy="give them in args",
        )
    given = msgspec.structs.asdict(asked)
    request = JobRequest(
        task=job.task,
        **given
        | {
            "args": job.args | asked.args,
            "queue": asked.queue or job.queue,
            "priority": job.priority if asked.priority is None else asked.priority,
            "meta": {**(asked.meta or {}), "copy_of": job.id},
        },
    )
    try:
        return make_job(service, caller, request)
    except UnknownTask as error:
        raise Refused(409, "unknown-task", str(error)) from None
    except Refused as refusal:
        if refusal.problem.field == "args":
            refusal.problem.status = 409  # they do not fit this job; they may fit another
        raise


def _fit(options: TaskOptions[..., Any], encoded: bytes) -> NewJob:
    """Make the job. Some languages write 5.0 for 5: decode that as an integer, too."""
    try:
        return options.job_from_json(encoded)
    except InvalidArguments:
        other = encode(whole_numbers(msgspec.json.decode(encoded)))
        if other == encoded:
            raise
        return options.job_from_json(other)


def _priority(given: float | None) -> int | None:
    try:
        return None if given is None else check_priority(whole(given))
    except InvalidSetting as error:
        raise invalid(str(error), field="priority", value=given) from None


def _moment(field: str, given: datetime | None) -> datetime | None:
    if given is None:
        return None
    try:
        check_moment(given, field)
    except InvalidSetting as error:
        raise invalid(str(error), field=field, value=given.isoformat()) from None
    return given


def _expires(request: JobRequest) -> float | datetime | msgspec.UnsetType:
    if request.expires is not None and request.expires_at is not None:
        raise invalid("give expires or expires_at, not both", field="expires")
    if request.expires is not None:
        return request.expires
    return _moment("expires_at", request.expires_at) or msgspec.UNSET


def _retries(given: float | None) -> int | None:
    number = whole(given)
    if number is None or (isinstance(number, int) and 0 <= number <= MOST_RETRIES):
        return number
    raise invalid(
        f"retries must be a whole number between 0 and {MOST_RETRIES}, got {shown(given)}",
        field="retries",
        value=given,
    )


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
        return arguments | {name: task.signature.of_text(name, user)}
    caller.check_user(f"args.{name}", arguments[name])
    return arguments


def _unfit(service: Service, error: InvalidArguments, encoded: bytes) -> Refused:
    """Return the refusal. It shows the arguments, unless they may hold a secret."""
    text = service.answers.redactor.refusal(str(error), encoded)
    refusal = refused(InvalidArguments(text))
    refusal.problem.field = "args"
    return refusal
