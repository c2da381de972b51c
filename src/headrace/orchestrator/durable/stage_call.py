"""Calls the function of a stage, on the event loop or in a thread, with timeout and retries."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from headrace.errors import (
    InvalidSetting,
    LeaseLost,
    NotRetryable,
    RetryLater,
    Snooze,
    StageTimedOut,
)
from headrace.model.durable.transient_stages import GONE, GONE_TEXT
from headrace.model.policy import check_timeout
from headrace.model.retry import NeverRetry, RetryPolicy, delay_after
from headrace.model.sealed import SEALED_ERROR
from headrace.orchestrator.durable.entry_names import CURRENT_STAGE
from headrace.orchestrator.settling.attempt_log import error_text
from headrace.task.codec import encode_exact
from headrace.task.returned import called_function, decoder_of

OffLoop = Callable[[Callable[[], Any]], Awaitable[Any]]

_ONCE = RetryPolicy(retries=0)


class StageRetry(msgspec.Struct, frozen=True):
    """The retry policy and timeout of one stage. `elsewhere`: its function runs in a child process,
    which does all this, and makes its span.
    """

    policy: RetryPolicy = _ONCE
    timeout: float | None = None
    elsewhere: bool = False


NO_RETRY = StageRetry()
ELSEWHERE = StageRetry(elsewhere=True)


def make_stage_retry(
    retries: int | None, retry: RetryPolicy | None, timeout: float | None
) -> StageRetry:
    """Return the retries and timeout that a handler asks for."""
    if retries is None and retry is None and timeout is None:
        return NO_RETRY
    if retries is not None and retry is not None:
        raise InvalidSetting("give retries or retry, not both")
    if retries is not None:
        retry = RetryPolicy(retries=retries)
    return StageRetry(retry or _ONCE, check_timeout(timeout))


async def call_stage(
    name: str,
    call: Callable[[], Any],
    *,
    stage_retry: StageRetry,
    off_loop: OffLoop,
    never_retry: NeverRetry,
    log: logging.LoggerAdapter[logging.Logger],
    tell_error: bool = True,
) -> tuple[Any, int]:
    """Return the value of a stage's function and the number of tries. Raises the last error. With
    `tell_error` the log has the text of the others.

    Errors that are about the whole job (a retry, a snooze, a suspension) are not tried again.
    """
    _refuse_gone(name, call)
    tries = 0
    outside = CURRENT_STAGE.set(f"{name}/")
    try:
        while True:
            tries += 1
            try:
                return await _once(name, call, stage_retry.timeout, off_loop), tries
            except (RetryLater, Snooze, LeaseLost):
                raise
            except Exception as error:
                delay = delay_after(error, stage_retry.policy, tries, never_retry=never_retry)
                if tries > stage_retry.policy.retries or delay is None:
                    raise
                log.warning(
                    "stage %r: try %d of %d failed, the next in %g s: %s: %s",
                    name,
                    tries,
                    stage_retry.policy.max_attempts,
                    delay,
                    type(error).__name__,
                    error_text(error) if tell_error else SEALED_ERROR,
                )
                await asyncio.sleep(delay)
    finally:
        CURRENT_STAGE.reset(outside)


def _refuse_gone(name: str, call: Callable[[], Any]) -> None:
    """Refuse to run a stage with the value of one that is gone: it would compute nonsense."""
    if isinstance(call, functools.partial) and any(
        each is GONE for each in (*call.args, *call.keywords.values())
    ):
        raise NotRetryable(
            f"stage {name!r} needs the value of a transient stage, which is gone; {GONE_TEXT}"
        )


async def _once(
    name: str, call: Callable[[], Any], timeout: float | None, off_loop: OffLoop
) -> Any:
    if timeout is None:
        return await _run(call, off_loop)
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await _run(call, off_loop)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise StageTimedOut(f"stage {name!r} did not finish within {timeout:g} s") from error


async def _run(call: Callable[[], Any], off_loop: OffLoop) -> Any:
    if _is_async(call):
        return await call()
    value = await off_loop(call)
    return await value if inspect.isawaitable(value) else value


def _is_async(call: Callable[[], Any]) -> bool:
    return inspect.iscoroutinefunction(called_function(call))


def encode_value(name: str, value: Any, function: Callable[..., Any]) -> bytes:
    """Return a stage's value as JSON. Refuses now what a later attempt would read back as something
    else.
    """
    if value is GONE:
        raise NotRetryable(f"stage {name!r} returned headrace.GONE; {GONE_TEXT}")
    try:
        encoded = encode_exact(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotRetryable(
            f"stage {name!r} returned what cannot be kept: {error}; return plain data"
        ) from error
    if type(value) in _PLAIN or isinstance(value, msgspec.Raw):
        return encoded
    try:
        again = decoder_of(function).decode(encoded)
    except msgspec.DecodeError as error:
        raise NotRetryable(
            f"stage {name!r} returned what does not fit its annotation: {error}; correct either"
        ) from error
    if type(again) is type(value) and again == value:
        return encoded
    change = next(_changes(value, again), None)
    if change is not None:
        raise NotRetryable(
            f"stage {name!r}: a later attempt would get {change}; annotate what its function "
            "returns with a type that can be found when the program runs (not under TYPE_CHECKING),"
            " or return plain data"
        )
    return encoded


_PLAIN = frozenset({type(None), bool, int, float, str})


def _changes(value: Any, again: Any) -> Iterator[str]:
    """Yield what was read back as something else. A list may replace a tuple, and plain text and
    numbers what is derived from them.
    """
    if isinstance(value, dict) and isinstance(again, dict):
        for (key, each), (key_again, each_again) in zip(value.items(), again.items(), strict=False):
            yield from _changes(key, key_again)
            yield from _changes(each, each_again)
    elif type(value) in (list, tuple) and isinstance(again, list | tuple):
        for each, each_again in zip(value, again, strict=False):
            yield from _changes(each, each_again)
    elif type(again) in _PLAIN and isinstance(value, (type(again), int, float)):
        # Also: 3 for 3.0, and None for what is not a number. But no text for a number.
        if isinstance(again, str) != isinstance(value, str):
            yield f"{type(value).__name__} as {type(again).__name__}"
    elif type(value) is not type(again):
        yield f"{type(value).__name__} as {type(again).__name__}"


def decode_value(name: str, recorded: bytes, function: Callable[..., Any]) -> Any:
    """Return a recorded value as the type that the stage's function is annotated with."""
    try:
        return decoder_of(function).decode(recorded)
    except msgspec.DecodeError as error:
        raise NotRetryable(
            f"the kept result of stage {name!r} does not fit what its function returns now: "
            f"{error}; run the job again from there: headrace jobs retry ID --from {name!r}"
        ) from error
