"""Cut a text into chunks of 500 characters that overlap by up to 128. No I/O."""

from __future__ import annotations

import functools
from typing import NamedTuple

from semantic_text_splitter import TextSplitter

CHUNK_SIZE = 500
OVERLAP_SIZE = 128


class Chunk(NamedTuple):
    """A part of a text: `text[begin:end]`, the `order`th from 0."""

    order: int
    begin: int
    end: int
    text: str


def split(
    text: str, *, chunk_size: int = CHUNK_SIZE, overlap_size: int = OVERLAP_SIZE
) -> list[Chunk]:
    """Return the chunks of a text in their order, each of at most `chunk_size` characters.

    Borders are put between paragraphs, sentences or words where that is possible. Every character
    is in a chunk, except white space at their ends. Text without any yields no chunks.
    """
    pieces = _splitter(chunk_size, overlap_size).chunk_indices(text)
    return [
        Chunk(order, begin, begin + len(piece), piece)
        for order, (begin, piece) in enumerate(pieces)
    ]


@functools.lru_cache(maxsize=8)
def _splitter(chunk_size: int, overlap_size: int) -> TextSplitter:
    return TextSplitter(chunk_size, overlap=overlap_size)
