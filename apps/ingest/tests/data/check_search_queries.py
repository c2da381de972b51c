"""Check a set of questions against a corpus that `build_corpus.py` wrote.

    python check_search_queries.py CORPUS [SET]

SET is `search_queries.jsonl` if not given. What counts as relevant: the document itself answers the
question; a page that only points to another page does not. For a keyword, exactly the documents in
which it stands. Where a question names `passages`, it quotes some words of the answer from each of
its documents; line breaks do not count.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

QUERIES = Path(__file__).with_name("search_queries.jsonl")
# The fewest queries of each sort: within a language, and across the two.
MINIMA = {"ko": 18, "en": 18, "cross": 12}


def is_korean(text: str) -> bool:
    """Return whether a text has hangul in it."""
    return any("가" <= character <= "힣" for character in text)


def faults_of(query: dict[str, object], corpus: dict[str, str]) -> list[str]:
    """Return what is wrong with one query, in words."""
    faults: list[str] = []
    wanted, text = query["relevant"], str(query["query"])
    if not isinstance(wanted, list) or not wanted or len(set(wanted)) != len(wanted):
        return ["relevant is not a list of different names"]
    faults += [f"{name} is not in the corpus" for name in wanted if name not in corpus]
    if is_korean(text) != (query["lang"] == "ko"):
        faults.append("lang is not the language of the query")
    korean = query["lang"] == "ko"
    if query["kind"] == "cross":
        korean = not korean
    faults += [
        f"{name} is in the wrong language" for name in wanted if name.startswith("bill-") != korean
    ]
    if query["kind"] == "keyword":
        holding = {name for name, content in corpus.items() if text in content}
        if holding != set(wanted):
            faults.append(f"stands in {sorted(holding)}")
    return faults + passage_faults(query, corpus)


def passage_faults(query: dict[str, object], corpus: dict[str, str]) -> list[str]:
    """Return what is wrong with the passages of one query, if it names any."""
    passages = query.get("passages")
    if passages is None:
        return []
    if not isinstance(passages, dict) or [*passages] != query["relevant"]:
        return ["passages are not those of the relevant documents"]
    return [
        f"{name} does not say {passage!r}"
        for name, passage in passages.items()
        if " ".join(passage.split()) not in " ".join(corpus.get(name, "").split())
    ]


def main(corpus_folder: Path, questions: Path = QUERIES) -> int:
    """Print faults and counts; returns 1 if there is a fault, else 0."""
    corpus = {path.name: path.read_text("utf-8") for path in corpus_folder.iterdir()}
    queries = [json.loads(line) for line in questions.read_text("utf-8").splitlines()]
    faults = [f"{query['id']}: {fault}" for query in queries for fault in faults_of(query, corpus)]
    if len({query["id"] for query in queries}) != len(queries):
        faults.append("an id stands twice")
    sorts = Counter("cross" if q["kind"] == "cross" else q["lang"] for q in queries)
    faults += [
        f"{sort}: {sorts[sort]} of {least}" for sort, least in MINIMA.items() if sorts[sort] < least
    ]
    for (lang, kind), count in sorted(Counter((q["lang"], q["kind"]) for q in queries).items()):
        print(lang, kind, count)
    print(len(queries), "queries;", *(faults or ["no faults"]), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
