"""Stages: named steps whose results are kept, so that no later attempt does them again."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import hashlib
import inspect
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from headrace.errors import InvalidInput, NotRetryable
from headrace.model.names import check_text
from headrace.model.note import Entry
from headrace.task.codec import decode_hook, encode

if TYPE_CHECKING:
    from headrace.orchestrator.context import JobContext

KIND = "stage"


class StageRecord(msgspec.Struct, omit_defaults=True):
    """What is kept of a finished stage: its value, or the artifact that holds a large one."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    artifact: str | None = None
    seconds: float = 0.0
    done: str | None = None


class Stages:
    """The stages of one attempt."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._kept: Mapping[str, StageRecord] | None = None
        self._reading = asyncio.Lock()
        self._seen: set[str] = set()
        self._finished = 0

    async def run(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        done: str | None,
    ) -> Any:
        """Run a stage, or answer what an earlier attempt has kept of it."""
        check_text("stage", name)
        if name in self._seen:
            raise InvalidInput(
                f"stage {name!r} has been run in this attempt already; "
                "give each stage of a job a name of its own"
            )
        self._seen.add(name)
        kept = await self._load()
        record = kept.get(name)
        if record is not None:
            self._finished += 1
            return await self._replay(name, record, function)
        self._context.show(stage=name)
        began = time.perf_counter()
        value = await self._call(function, args, kwargs)
        record = await self._record(name, value)
        record.seconds = round(time.perf_counter() - began, 6)
        record.done = done
        self._finished += 1
        # On disk before the handler goes on: from here on this stage is never run again.
        await self._context.write(
            stage=done or name,
            progress=self._progress(),
            entry=Entry(KIND, name, msgspec.json.encode(record)),
        )
        return value

    def _progress(self) -> float | None:
        """Nobody knows how many stages will follow: move on, and never quite arrive."""
        if self._context.own_progress:
            return None
        return round(100 * self._finished / (self._finished + 1), 1)

    async def _load(self) -> Mapping[str, StageRecord]:
        """What earlier attempts have finished; read once, and not at all by a first attempt."""
        if self._context.token <= 1:
            return {}
        async with self._reading:
            if self._kept is None:
                self._kept = {
                    entry.name: msgspec.json.decode(entry.body, type=StageRecord)
                    for entry in await self._context.entries(KIND)
                }
            return self._kept

    async def _call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        call = functools.partial(function, *args, **kwargs)
        if inspect.iscoroutinefunction(function):
            return await call()
        if self._context.in_a_thread:
            value = call()
        else:
            # A step that computes must not hold up the jobs beside it.
            context = contextvars.copy_context()
            value = await asyncio.get_running_loop().run_in_executor(
                self._context.threads, context.run, call
            )
        return await value if inspect.isawaitable(value) else value

    async def _record(self, name: str, value: Any) -> StageRecord:
        try:
            encoded = encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise NotRetryable(
                f"stage {name!r} returned what cannot be kept: {error}; return plain data"
            ) from error
        if len(encoded) <= self._context.payload_limit:
            return StageRecord(value=msgspec.Raw(encoded))
        file = f"stages/{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
        await self._context.artifacts.put(file, encoded, media_type="application/json")
        return StageRecord(artifact=file)

    async def _replay(self, name: str, record: StageRecord, function: Callable[..., Any]) -> Any:
        data: bytes = bytes(record.value)
        if record.artifact is not None:
            data = await self._context.artifacts.get(record.artifact)
        try:
            return _decoder(function).decode(data)
        except msgspec.DecodeError as error:
            raise NotRetryable(
                f"the kept result of stage {name!r} does not fit what its function returns now: "
                f"{error}"
            ) from error


def _decoder(function: Callable[..., Any]) -> msgspec.json.Decoder[Any]:
    """Decodes into the function's return annotation, where it has one that JSON can hold."""
    try:
        kind = get_type_hints(function, include_extras=True).get("return", Any)
        return msgspec.json.Decoder(kind, dec_hook=decode_hook)
    except (TypeError, NameError, AttributeError):
        return msgspec.json.Decoder(Any)
