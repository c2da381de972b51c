"""The context that a handler has in a child process: the same words, answered by the worker."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from headrace.errors import InvalidInput, NotRetryable
from headrace.model.context import Context
from headrace.model.names import check_text
from headrace.orchestrator.isolation.failures import describe
from headrace.orchestrator.isolation.link import Link
from headrace.orchestrator.isolation.logs import Forwarder
from headrace.orchestrator.isolation.messages import (
    Progress,
    Run,
    StageBegin,
    StageEnd,
    printable,
)
from headrace.orchestrator.isolation.remote_artifacts import RemoteArtifacts
from headrace.task.codec import decode_hook, encode


class RemoteContext(Context):
    """One attempt at one job, seen from a child process."""

    def __init__(self, link: Link, run: Run) -> None:
        self._link = link
        self._run = run.run
        self._cancelled = link.cancelled
        self.job_id = run.job_id
        self.task = run.task
        self.queue = run.queue
        self.attempt = run.attempt
        self.max_attempts = run.max_attempts
        self.token = run.token
        self.key = run.key
        self.lane = run.lane
        self.artifacts = RemoteArtifacts(link, run.run)
        # A logger that no configuration of the handler's module can reach or silence.
        logger = logging.Logger("headrace.job", run.level)
        logger.addHandler(Forwarder(link.send, run=run.run))
        self.log = logging.LoggerAdapter(logger, {})

    @property
    def cancelled(self) -> bool:
        """Whether this attempt should stop: cancelled, out of time, or its lease is lost."""
        return self._cancelled.is_set()

    def progress(self, percent: float, message: str | None = None) -> None:
        """Tell how far the job is, 0 to 100. Cheap: the latest counts."""
        if not 0 <= percent <= 100:
            raise InvalidInput(f"progress must be between 0 and 100, got {percent!r}")
        text = None if message is None else printable(str(message))
        self._link.progress(Progress(self._run, float(percent), text))

    async def stage(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        done: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a named step once, unless the worker has its result from an earlier attempt."""
        check_text("stage", name)
        number = self._link.number()
        kept = await self._link.ask(StageBegin(self._run, number, name, done))
        if kept is not None:
            return _read(name, kept, function)
        try:
            value = await _call(function, args, kwargs)
            encoded = _write(name, value)
        except Exception as error:
            # The worker's stage ends first, and with the same error, as if it had run there.
            with contextlib.suppress(Exception):
                await self._link.ask(StageEnd(self._run, number, report=describe(error)))
            raise
        except BaseException as error:
            self._link.send(StageEnd(self._run, number, report=describe(error)))
            raise
        await self._link.ask(StageEnd(self._run, number, result=encoded))
        return value


async def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    value = await asyncio.to_thread(function, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


def _write(name: str, value: Any) -> bytes:
    try:
        return encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotRetryable(
            f"stage {name!r} returned what cannot be kept: {error}; return plain data"
        ) from error


def _read(name: str, kept: bytes, function: Callable[..., Any]) -> Any:
    """A kept result, as the type that the function says it returns."""
    try:
        kind = get_type_hints(function, include_extras=True).get("return", Any)
        decoder = msgspec.json.Decoder(kind, dec_hook=decode_hook)
    except (TypeError, NameError, AttributeError):
        decoder = msgspec.json.Decoder(Any)
    try:
        return decoder.decode(kept)
    except msgspec.DecodeError as error:
        raise NotRetryable(
            f"the kept result of stage {name!r} does not fit what its function returns now: {error}"
        ) from error
