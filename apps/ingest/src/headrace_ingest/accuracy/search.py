"""Measure how well documents are found.

    python -m headrace_ingest.accuracy search --corpus FOLDER [--set FILE]  questions, documents
    python -m headrace_ingest.accuracy similar --data FOLDER                similar_ko.jsonl

The corpus is what `tests/data/build_corpus.py` writes. A question is answered if one of its
documents is found; a document's rank is that of its best chunk. Where the questions quote the words
that answer them, the line "passage" counts the chunks themselves: the rank of the first that has
these words. The weight of the words was chosen with one half of the pairs in sight
(`--half tune`), before any question of the set was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import headrace
from headrace.bundles import Bundle, Setup, Tables
from headrace_ingest.chunking import Chunk, split
from headrace_ingest.embedding import LocalEmbedder, embed_chunks
from headrace_ingest.search.ranking import MODES
from headrace_ingest.search.search import LARGEST_K, Search
from headrace_ingest.store.records import NewDocument, Processed
from headrace_ingest.store.repository import Repository

MEASUREMENTS = ("search", "similar")
QUERIES = Path(__file__).parents[3] / "tests" / "data" / "search_queries.jsonl"
# Pairs that people called alike: 3 of 5 is "the same, but for some details".
ALIKE = 3.0
NAMES = {
    "default": "default (sentences and words)",
    "words": "words alone",
    "chunk": "one vector per chunk",
}


class Asked(NamedTuple):
    """A question, the group that it is counted in, the documents that answer it, and, if the set
    quotes them, the words that do by document.
    """

    text: str
    group: str
    relevant: frozenset[str]
    passages: Mapping[str, str] = {}


class RankTally:
    """Ranks of the first right document; None if it was not among those that were looked at."""

    def __init__(self) -> None:
        self.ranks: list[int | None] = []

    def cells(self) -> str:
        """Return recall@5 and the mean reciprocal rank as cells of a table."""
        total = len(self.ranks)
        within = sum(rank is not None and rank <= 5 for rank in self.ranks)
        mean = sum(1 / rank for rank in self.ranks if rank) / total
        return f"{within}/{total} | {mean:.2f}"


def read_queries(path: Path) -> list[Asked]:
    """Return the questions of a set, grouped by language and kind."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Asked(
            row["query"],
            f"{row['lang']} {row['kind']}",
            frozenset(row["relevant"]),
            row.get("passages", {}),
        )
        for row in rows
    ]


def read_pairs(folder: Path, half: str) -> tuple[dict[str, str], list[Asked]]:
    """Return all passages by name, and the queries of one half that have one that is alike."""
    lines = (folder / "similar_ko.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    passages = {f"p{number}": row["passage"] for number, row in enumerate(rows)}
    odd = half == "publish"
    queries = [
        Asked(row["query"], "ko pairs", frozenset([f"p{number}"]))
        for number, row in enumerate(rows)
        if bool(number % 2) == odd and row["similarity"] >= ALIKE
    ]
    return passages, queries


def read_corpus(folder: Path) -> dict[str, str]:
    """Return the texts of a folder by file name."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


async def measure(
    documents: dict[str, str], queries: Sequence[Asked], out: TextIO
) -> dict[str, dict[str, RankTally]]:
    """Store the documents in a new database, ask all questions, return what was found by mode."""
    with tempfile.TemporaryDirectory(prefix="headrace-accuracy-") as folder:
        bundle = Bundle("ingest", summary="", tables=Tables("headrace_ingest.migrations"))
        setup = Setup(bundle, headrace.App(f"sqlite:///{folder}/jobs.db"), None)
        try:
            await setup.migrate()
            embedder = LocalEmbedder()
            repository = Repository(setup.engine())
            total = 0
            for name, text in documents.items():
                chunks = split(text)
                await _store(repository, embedder, name, chunks)
                total += len(chunks)
            print(f"{len(documents)} documents, {total} chunks, {len(queries)} queries\n", file=out)
            search = Search(setup.engine(), embedder)
            return {mode: await _ask(search, queries, mode) for mode in MODES}
        finally:
            await setup.close()


async def _store(
    repository: Repository, embedder: LocalEmbedder, name: str, chunks: Sequence[Chunk]
) -> None:
    await repository.begin(NewDocument(document_id=name, name=name, path="/", sha256=name), 1)
    vectors = await embed_chunks(embedder, [chunk.text for chunk in chunks], whole=True)
    processed = Processed(document_id=name, characters=0, model=embedder.name)
    await repository.store(processed, chunks, vectors, 1)


async def _ask(search: Search, queries: Iterable[Asked], mode: Any) -> dict[str, RankTally]:
    tallies: dict[str, RankTally] = defaultdict(RankTally)
    for asked in queries:
        hits = await search.search(asked.text, k=LARGEST_K, mode=mode)
        documents = list(dict.fromkeys(hit.document_id for hit in hits))
        ranks = [place for place, name in enumerate(documents, 1) if name in asked.relevant]
        for group in (asked.group, "all"):
            tallies[group].ranks.append(min(ranks, default=None))
        if asked.passages:
            found = [(hit.document_id, hit.text) for hit in hits]
            tallies["passage"].ranks.append(passage_rank(found, asked.passages))
    return tallies


def passage_rank(chunks: Iterable[tuple[str, str]], passages: Mapping[str, str]) -> int | None:
    """Return the place of the first chunk (document, text) with the words quoted from its document.

    Line breaks and repeated spaces do not count. None if no chunk has them.
    """
    for place, (name, text) in enumerate(chunks, 1):
        if name in passages and _plain(passages[name]) in _plain(text):
            return place
    return None


def _plain(text: str) -> str:
    return " ".join(text.split())


def show(found: dict[str, dict[str, RankTally]], out: TextIO) -> None:
    """Write the figures as a Markdown table."""
    heads = [f"{NAMES[mode]}: recall@5 | MRR" for mode in found]
    print(f"| queries | {' | '.join(heads)} |", file=out)
    print("|---" * (1 + 2 * len(heads)) + "|", file=out)
    last = ("all", "passage")
    groups = sorted(next(iter(found.values())), key=lambda group: (group in last, group))
    for group in groups:
        cells = [tallies[group].cells() for tallies in found.values()]
        print(f"| {group} | {' | '.join(cells)} |", file=out)


def main(arguments: Sequence[str]) -> int:
    """Run a measurement; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace_ingest.accuracy")
    parser.add_argument("what", choices=MEASUREMENTS)
    parser.add_argument("--corpus", type=Path, help="folder of documents (search)")
    parser.add_argument("--set", type=Path, default=QUERIES, help="questions (search)")
    parser.add_argument("--data", type=Path, help="folder with similar_ko.jsonl (similar)")
    parser.add_argument("--half", choices=["tune", "publish"], default="publish")
    chosen = parser.parse_args(arguments)
    if chosen.what == "search":
        if chosen.corpus is None:
            parser.error("search needs --corpus; tests/data/build_corpus.py makes it")
        documents, queries = read_corpus(chosen.corpus), read_queries(chosen.set)
    elif chosen.data is None:
        parser.error("similar needs --data")
    else:
        documents, queries = read_pairs(chosen.data, chosen.half)
    show(asyncio.run(measure(documents, queries, sys.stdout)), sys.stdout)
    return 0
