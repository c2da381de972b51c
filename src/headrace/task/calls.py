"""The ways in which a task is called directly, for type checkers.

Which of them a task is follows from its handler: whether that takes a Context first, whether it is
a coroutine function, and whether it takes a chunk of jobs. All are a `Task`, and none of them
exists while a program runs.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Generic, ParamSpec, TypeVar, overload

from headrace.model.durable.context import Context
from headrace.model.job import Job, NewJob
from headrace.model.limits.chunk import Chunk
from headrace.task.task import Task

P = ParamSpec("P")
A = TypeVar("A")
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


class ChunkTask(Task[..., R_co], Generic[A, R_co]):
    """`store.enqueue(Row(sensor="a", value=1.0))`, or by name: `store.enqueue(sensor="a", …)`"""

    def __call__(self, chunk: Chunk[A], /) -> Any:
        raise NotImplementedError

    @overload
    def job(self, row: A, /) -> NewJob[R_co]: ...
    @overload
    def job(self, **arguments: Any) -> NewJob[R_co]: ...

    def job(self, *row: Any, **arguments: Any) -> NewJob[R_co]:
        raise NotImplementedError

    @overload
    def enqueue(self, row: A, /) -> Coroutine[Any, Any, Job[R_co]]: ...
    @overload
    def enqueue(self, **arguments: Any) -> Coroutine[Any, Any, Job[R_co]]: ...

    def enqueue(self, *row: Any, **arguments: Any) -> Coroutine[Any, Any, Job[R_co]]:
        raise NotImplementedError
