"""The four ways in which a task is called directly, for type checkers.

Which of them a task is follows from its handler: whether that takes a Context first, and whether it
is a coroutine function. All are a `Task`, and none of them exists while a program runs.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, ParamSpec, TypeVar

from headrace.model.durable.context import Context
from headrace.task.task import Task

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class PlainTask(Task[P, R_co]):
    """`total([1, 2])`"""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        raise NotImplementedError


class AsyncTask(Task[P, R_co]):
    """`await fetch(url)`"""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        raise NotImplementedError


class ContextTask(Task[P, R_co]):
    """`resize(ctx, path)`"""

    def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        raise NotImplementedError


class AsyncContextTask(Task[P, R_co]):
    """`await crawl(ctx, url)`"""

    def __call__(
        self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R_co]:
        raise NotImplementedError
