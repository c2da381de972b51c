"""Chunks: their order, their offsets, and nothing lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace_ingest.chunking import Chunk, split

TEXTS = st.text(alphabet=st.sampled_from("ab가나. \n\t!?é\U0001f600\u0301"), max_size=3000)


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_nothing_is_lost_and_every_chunk_is_where_it_says(text: str) -> None:
    chunks = split(text)
    covered: set[int] = set()
    for order, chunk in enumerate(chunks):
        assert chunk.order == order
        assert chunk.text == text[chunk.begin : chunk.end]
        assert 0 < len(chunk.text) <= 500
        covered.update(range(chunk.begin, chunk.end))
    assert all(place in covered or text[place].isspace() for place in range(len(text)))
    begins = [chunk.begin for chunk in chunks]
    assert begins == sorted(begins)


def test_neighbours_overlap_by_up_to_128_characters() -> None:
    chunks = split("가나다라마바사 아자차카. " * 200)
    overlaps = [one.end - two.begin for one, two in pairwise(chunks)]
    assert all(0 < overlap <= 128 for overlap in overlaps)
    assert len(chunks) > 5


def test_a_short_text_is_one_chunk_and_an_empty_one_none() -> None:
    assert split("short") == [Chunk(0, 0, 5, "short")]
    assert split(" \n ") == []
