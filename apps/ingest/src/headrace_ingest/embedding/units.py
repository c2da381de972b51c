"""From chunks to the vectors that are stored of them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace_ingest.embedding.base import BATCH_SIZE, Embedder, Vectors
from headrace_ingest.embedding.sentences import WHOLE_CHUNK, sentences


async def embed_chunks(
    embedder: Embedder,
    chunks: Sequence[str],
    *,
    batch_size: int = BATCH_SIZE,
    whole: bool = False,
) -> list[dict[int, Vectors]]:
    """Return for each chunk its vectors by sentence number, from 1.

    `whole`: number 0 is a vector of the whole chunk, which only `mode="chunk"` of the search uses.
    Texts that stand in several chunks, as those of their overlap do, are embedded once.
    """
    pieces: list[dict[int, str]] = []
    for chunk in chunks:
        numbered = dict(enumerate(sentences(chunk), start=WHOLE_CHUNK + 1))
        if whole:
            numbered[WHOLE_CHUNK] = " ".join(chunk.split())
        pieces.append(numbered)
    texts = list(dict.fromkeys(text for numbered in pieces for text in numbered.values()))
    vectors = await embedder.batch_generate_embeddings(texts, batch_size)
    rows = dict(zip(texts, vectors, strict=True))
    return [{number: rows[text] for number, text in numbered.items()} for numbered in pieces]
