"""`@headrace.stage`: functions that are a stage of whichever job calls them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from headrace.errors import InvalidSetting
from headrace.model.durable.context import Context
from headrace.model.durable.entries import stage_name
from headrace.model.durable.transient_stages import check_transient
from headrace.model.limits.lane import Lane
from headrace.model.retry import RetryPolicy

P = ParamSpec("P")
R = TypeVar("R")


class StageDecorator(Protocol):
    """The type of `@headrace.stage(…)`. The function takes a Context first, `async` or not."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Awaitable[R]], /
    ) -> Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]: ...


def stage(
    name: str | None = None,
    *,
    key: str | None = None,
    done: str | None = None,
    retries: int | None = None,
    retry: RetryPolicy | None = None,
    timeout: float | None = None,
    transient: bool | str = False,
) -> StageDecorator:
    """Make a function a stage: `await crawl(ctx, url)` runs it once, and later attempts get the
    recorded result. `key` is a template over its arguments, e.g. `key="{url}"`; the default name is
    that of the function. The rest is as for `ctx.stage`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
        called = name or function.__name__
        stage_name(called, None if key is None else "key")
        check_transient(called, None if key is None else "key", transient)
        signature = inspect.signature(function)
        template = None if key is None else Lane(key)
        unknown = set() if template is None else template.fields() - set(signature.parameters)
        if unknown:
            raise InvalidSetting(
                f"stage {called!r}: key {key!r} reads {sorted(unknown)}, but "
                f"{function.__qualname__} takes {', '.join(signature.parameters)}"
            )

        @functools.wraps(function)
        async def run(ctx: Context, /, *args: Any, **kwargs: Any) -> Any:
            stage_key = None
            if template is not None:
                bound = signature.bind(ctx, *args, **kwargs)
                bound.apply_defaults()
                stage_key = template.place(bound.arguments)
            call = functools.partial(function, ctx, *args, **kwargs)
            return await ctx.stage(
                called,
                call,
                key=stage_key,
                done=done,
                retries=retries,
                retry=retry,
                timeout=timeout,
                transient=transient,
            )

        return run

    return decorate
