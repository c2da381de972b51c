"""Many items as batches of bounded length and size."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from headrace.batching import batched, chunks, each, slices

TEXTS = st.lists(st.text("a", max_size=12), max_size=30)


async def _stream(items: list[str]) -> AsyncIterator[str]:
    for item in items:
        yield item


async def _batches(items: list[str]) -> list[list[str]]:
    return [batch async for batch in batched(items, len, length=3, size=10)]


async def test_both_kinds_of_iterables_are_read() -> None:
    assert [item async for item in each(["a", "b"])] == ["a", "b"]
    assert [item async for item in each(_stream(["a", "b"]))] == ["a", "b"]


async def test_a_batch_is_bounded_by_its_length() -> None:
    assert await _batches(["a"] * 7) == [["a"] * 3, ["a"] * 3, ["a"]]


async def test_a_batch_is_bounded_by_its_size() -> None:
    assert await _batches(["a" * 6, "a" * 4, "a"]) == [["a" * 6, "a" * 4], ["a"]]


async def test_an_item_larger_than_a_batch_comes_alone() -> None:
    assert await _batches(["a", "a" * 11, "a"]) == [["a"], ["a" * 11], ["a"]]


@given(TEXTS)
async def test_slices_cut_where_batches_do(items: list[str]) -> None:
    cut = [items[part] for part in slices([len(item) for item in items], length=3, size=10)]
    assert cut == await _batches(items)


def test_chunks_are_bounded_by_their_length() -> None:
    assert list(chunks("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(chunks([], 2)) == []
