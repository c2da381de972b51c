"""Measure the latency of the search.

    python -m headrace_ingest.bench search --chunks 100000 --engine sqlite
    python -m headrace_ingest.bench search --chunks 100000 --engine postgres --url postgresql://…

The vectors are mixtures of those of real sentences (the descriptions of installed packages), five
for each chunk, so that they lie as those of documents do. `--url` names an empty database, in which
the tables are made. What is timed is the whole call: the question is embedded, changes are looked
for, vectors and words are compared, texts are read.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import distributions
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

import headrace
from headrace.bundles import Bundle, Setup, Tables
from headrace_ingest.chunking import CHUNK_SIZE, Chunk
from headrace_ingest.embedding import LocalEmbedder, Vectors, sentences
from headrace_ingest.search import ranking
from headrace_ingest.search.search import Search
from headrace_ingest.search.words import terms_of
from headrace_ingest.store.records import NewDocument, Processed
from headrace_ingest.store.repository import Repository
from headrace_ingest.store.vectors import VectorFormat, read_format

DOCUMENT_CHUNKS = 100
SENTENCES = 5
BASE_SENTENCES = 3000
NEAREST = sa.text(
    "SELECT chunk_id, sentence, CAST(vector AS halfvec(512)) <=> "
    "CAST(CAST(:vector AS text) AS halfvec(512)) AS distance "
    "FROM embeddings ORDER BY distance LIMIT 100"
)
INDEX_MEMORY = sa.text("SET LOCAL maintenance_work_mem = '1GB'")
INDEX_WIDTH = sa.text("SET LOCAL hnsw.ef_search = 200")
INDEX = sa.text(
    "CREATE INDEX ON embeddings USING hnsw ((CAST(vector AS halfvec(512))) halfvec_cosine_ops)"
)
QUESTIONS = (
    "how do I read a file that is larger than memory",
    "휴가는 며칠 전에 신청해야 하나요?",
    "configuration of logging",
    "which versions of Python are supported",
    "비밀번호를 잊어버렸을 때",
    "retry_after",
    "send requests asynchronously with a timeout",
    "validate the fields of a form",
    "라이선스 조건이 무엇인지 알려 주세요",
    "install the package from source",
)


class RealSentences(NamedTuple):
    """Real sentences and their vectors."""

    texts: list[str]
    vectors: Vectors


async def read_base(embedder: LocalEmbedder) -> RealSentences:
    """Return sentences of the descriptions of installed packages."""
    texts: dict[str, None] = {}
    for distribution in sorted(distributions(), key=lambda each: each.name):
        described = distribution.metadata.get_payload()  # type: ignore[attr-defined]
        if isinstance(described, str):
            texts.update(dict.fromkeys(sentences(described[:20_000])))
        if len(texts) >= BASE_SENTENCES:
            break
    chosen = list(texts)[:BASE_SENTENCES]
    return RealSentences(chosen, await embedder.batch_generate_embeddings(chosen))


def make_document(
    base: RealSentences, generator: np.random.Generator, count: int
) -> tuple[list[Chunk], list[dict[int, Vectors]]]:
    """Return chunks of random sentences, and vectors that lie near those of the sentences."""
    picked = generator.integers(0, len(base.texts), (count, SENTENCES))
    others = generator.integers(0, len(base.texts), (count, SENTENCES))
    share = generator.uniform(0.2, 0.6, (count, SENTENCES, 1)).astype(np.float32)
    mixed = (1 - share) * base.vectors[picked] + share * base.vectors[others]
    mixed += 0.01 * generator.standard_normal(mixed.shape, np.float32)
    mixed /= np.linalg.norm(mixed, axis=2, keepdims=True)
    chunks: list[Chunk] = []
    for order, row in enumerate(picked):
        text = " ".join(base.texts[place] for place in row)[:CHUNK_SIZE]
        chunks.append(Chunk(order, order * CHUNK_SIZE, order * CHUNK_SIZE + len(text), text))
    return chunks, [dict(enumerate(row, 1)) for row in mixed]


async def fill(setup: Setup, embedder: LocalEmbedder, chunks: int) -> None:
    """Store so many chunks, a hundred to a document."""
    base = await read_base(embedder)
    generator = np.random.default_rng(1)
    repository = Repository(setup.engine())
    for number in range(-(-chunks // DOCUMENT_CHUNKS)):
        made, vectors = make_document(base, generator, DOCUMENT_CHUNKS)
        name = f"document-{number}"
        path = f"/area{number % 10}/part{number % 100}"
        await repository.begin(NewDocument(document_id=name, name=name, path=path, sha256=name), 1)
        processed = Processed(document_id=name, characters=0, model=embedder.name)
        await repository.store(processed, made, vectors, 1)


async def compare_with_all(search: Search, embedder: LocalEmbedder) -> tuple[int, int]:
    """Return how many of the best ten are also found when every vector is a candidate."""
    same = total = 0
    for text in QUESTIONS:
        vector = (await embedder.batch_generate_embeddings([text]))[0]
        question = ranking.Question(terms_of(text), vector, "default", 10)
        few = ranking.rank(search.index.segments, question, lambda _: None)
        every = replace(question, candidates=sys.maxsize)
        exact = ranking.rank(search.index.segments, every, lambda _: None)
        wanted = {(each.document_id, each.position) for each in exact}
        same += len(wanted & {(each.document_id, each.position) for each in few})
        total += len(wanted)
    return same, total


async def ask_server(setup: Setup, embedder: LocalEmbedder) -> None:
    """Print how long pgvector takes to find the nearest vectors, if this database has it: compared
    one by one, and by an index, with how many the index finds of those that are nearest.
    """
    async with setup.engine().connect() as connection:
        vector_format = await read_format(connection)
        if vector_format is not VectorFormat.HALFVEC:
            return
        asked = await embedder.batch_generate_embeddings(QUESTIONS)
        vectors = [vector_format.pack(vector) for vector in asked]
        exact, taken = await _nearest(connection, vectors)
        print(f"vectors alone, by pgvector without an index: {taken}")
        began = time.perf_counter()
        await connection.execute(INDEX_MEMORY)
        await connection.execute(INDEX)
        print(f"index (hnsw) made in {time.perf_counter() - began:.0f} s")
        await connection.execute(INDEX_WIDTH)
        await _nearest(connection, vectors)
        near, taken = await _nearest(connection, vectors)
        same = sum(len(set(ours) & set(theirs)) for ours, theirs in zip(exact, near, strict=True))
        total = sum(map(len, exact))
        print(f"vectors alone, by pgvector with it: {taken}; {same} of {total} are the nearest")
        await connection.rollback()


async def _nearest(
    connection: AsyncConnection, vectors: Sequence[bytes | str]
) -> tuple[list[list[str]], str]:
    found, taken = [], []
    for vector in vectors:
        began = time.perf_counter()
        rows = await connection.execute(NEAREST, {"vector": vector})
        found.append([f"{row[0]} {row[1]}" for row in rows])
        taken.append((time.perf_counter() - began) * 1000)
    p50, p95 = np.percentile(taken, [50, 95])
    return found, f"p50 {p50:.0f}, p95 {p95:.0f} ms"


async def measure(setup: Setup, chunks: int, rounds: int) -> None:
    """Fill the tables, load them, ask questions, print the figures."""
    embedder = LocalEmbedder()
    started = time.perf_counter()
    await fill(setup, embedder, chunks)
    print(f"stored {chunks:,} chunks in {time.perf_counter() - started:.0f} s")
    search = Search(setup.engine(), embedder)
    started = time.perf_counter()
    await search.search("warm up")
    print(f"loaded in {time.perf_counter() - started:.1f} s; {search.method}")
    for name, path in (("all", None), ("path /area3", "/area3")):
        taken, computed = [], []
        for _ in range(rounds):
            for question in QUESTIONS:
                began, cpu = time.perf_counter(), time.process_time()
                await search.search(question, path)
                taken.append((time.perf_counter() - began) * 1000)
                computed.append((time.process_time() - cpu) * 1000)
        p50, p95, p99 = np.percentile(taken, [50, 95, 99])
        print(
            f"{name}: {len(taken)} questions, p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms "
            f"(processor time: p50 {np.median(computed):.0f} ms, "
            f"p95 {np.percentile(computed, 95):.0f} ms)"
        )
    same, total = await compare_with_all(search, embedder)
    print(f"{same} of {total} of the best ten are those of comparing every vector")
    await ask_server(setup, embedder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"memory of this process at most {peak} MB")


async def run(engine: str, url: str | None, chunks: int, rounds: int) -> None:
    """Measure on a database: the one named, else a new file of SQLite."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        bundle = Bundle("ingest", summary="", tables=Tables("headrace_ingest.migrations"))
        app = headrace.App(f"sqlite:///{folder}/jobs.db")
        setup = Setup(bundle, app, None, url if engine == "postgres" else None)
        try:
            await setup.migrate()
            await measure(setup, chunks, rounds)
        finally:
            await setup.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a measurement; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace_ingest.bench")
    parser.add_argument("what", choices=["search"])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--url", help="an empty PostgreSQL database (postgres)")
    parser.add_argument("--rounds", type=int, default=20, help="how often all questions are asked")
    chosen = parser.parse_args(arguments)
    if chosen.engine == "postgres" and chosen.url is None:
        parser.error("postgres needs --url")
    asyncio.run(run(chosen.engine, chosen.url, chosen.chunks, chosen.rounds))
    return 0
