"""The sets of questions that search is measured with, and how their passages are ranked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from headrace_ingest.accuracy.search import passage_rank, read_queries

DATA = Path(__file__).parents[1] / "data"
SECOND = DATA / "search_queries_second.jsonl"


def test_the_second_set_asks_twenty_of_each_sort_and_quotes_an_answer_for_every_document() -> None:
    queries = read_queries(SECOND)
    sorts = Counter("cross" if "cross" in asked.group else asked.group for asked in queries)
    assert min(sorts[sort] for sort in ("ko meaning", "en meaning", "cross")) >= 20
    assert all(asked.relevant == asked.passages.keys() for asked in queries)
    assert all(passage for asked in queries for passage in asked.passages.values())


def test_no_question_or_id_stands_twice_in_the_sets() -> None:
    lines = [
        json.loads(line)
        for path in (DATA / "search_queries.jsonl", SECOND)
        for line in path.read_text("utf-8").splitlines()
    ]
    for field in ("id", "query"):
        assert len({line[field] for line in lines}) == len(lines)


@pytest.mark.parametrize(
    ("chunks", "rank"),
    [
        ([("a.txt", "before the\n   answer  stands here")], 1),
        ([("a.txt", "nothing"), ("a.txt", "the answer stands")], 2),
        # The same words in a document that was not named are no answer.
        ([("b.txt", "the answer stands"), ("a.txt", "the answer stands")], 2),
        ([("a.txt", "nothing")], None),
        ([], None),
    ],
)
def test_a_passage_has_the_rank_of_the_first_chunk_of_its_document_with_its_words(
    chunks: list[tuple[str, str]], rank: int | None
) -> None:
    assert passage_rank(chunks, {"a.txt": "the answer\nstands"}) == rank
