"""Many items as batches of bounded length and size."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def each(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    """Read items one by one, whether they come from a plain or an asynchronous iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def batched(
    items: Iterable[T] | AsyncIterable[T],
    size_of: Callable[[T], int],
    *,
    length: int,
    size: int,
) -> AsyncIterator[list[T]]:
    """Yield lists of at most `length` items and `size` bytes. A larger item comes alone."""
    batch: list[T] = []
    filled = 0
    async for item in each(items):
        own = size_of(item)
        if batch and (len(batch) == length or filled + own > size):
            yield batch
            batch, filled = [], 0
        batch.append(item)
        filled += own
    if batch:
        yield batch


def slices(sizes: Sequence[int], *, length: int, size: int) -> Iterator[slice]:
    """Cut a sequence of items of these sizes by the same rule."""
    start = filled = 0
    for number, own in enumerate(sizes):
        if number > start and (number - start == length or filled + own > size):
            yield slice(start, number)
            start, filled = number, 0
        filled += own
    if sizes:
        yield slice(start, len(sizes))


def chunks(items: Iterable[T], length: int) -> Iterator[list[T]]:
    """Yield lists of at most `length` items."""
    rest = iter(items)
    while chunk := list(itertools.islice(rest, length)):
        yield chunk
