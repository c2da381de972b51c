"""The measurements themselves: on a few made-up reviews, where the right figures are known."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from headrace_spots.accuracy import aspects, sentiment
from headrace_spots.accuracy.__main__ import main

LABELS = np.array([0, 0, 1, 2, 2, 2])


def test_figures_of_sentiment() -> None:
    shares = np.eye(3, dtype=np.float32)[[0, 1, 1, 2, 0, 2]]
    shares[1] = [0.4, 0.5, 0.1]
    judged = sentiment.by_shares(shares)
    assert sentiment.accuracy(judged, LABELS) == pytest.approx(4 / 6)
    # A text that is taken for neutral is still on one side or the other.
    assert sentiment.accuracy_of_two(judged, LABELS) == pytest.approx(4 / 5)
    assert sentiment.f1(judged, LABELS, 2) == pytest.approx(2 * 2 / (2 + 3))
    assert sentiment.f1(judged, LABELS, 1) == pytest.approx(2 * 1 / (2 + 1))


def test_figures_of_the_most_frequent_label() -> None:
    judged = sentiment.by_majority(LABELS)
    assert sentiment.accuracy(judged, LABELS) == pytest.approx(0.5)
    assert sentiment.accuracy_of_two(judged, LABELS) == pytest.approx(3 / 5)
    assert sentiment.f1(judged, LABELS, 0) == 0


def test_figures_of_aspects() -> None:
    sentence = aspects.LabelledSentence("", "en", {"taste": "positive", "price": "negative"})
    pairs = [(sentence, {"taste": "positive", "price": "positive", "other": "neutral"})]
    alone = aspects.tally(pairs, None, with_opinion=False)
    assert (alone.labelled, alone.found, alone.right) == (2, 3, 2)
    assert aspects.tally(pairs, None, with_opinion=True).right == 1
    assert aspects.tally(pairs, "other", with_opinion=True) == (0, 1, 0)
    assert aspects.tally([], None, with_opinion=True).f1 == 0


def test_the_labelled_sentences_are_enough_and_whole() -> None:
    sentences = aspects.read_sentences(aspects.SET)
    assert len(sentences) >= 200
    assert {sentence.language for sentence in sentences} == {"ko", "en"}
    labels = {label for sentence in sentences for label in sentence.aspects.values()}
    assert labels <= {"positive", "negative", "neutral"}


def test_tables_are_written(tmp_path: Path) -> None:
    rows = [
        {"text": "정말 좋아요", "language": "ko", "label": "positive"},
        {"text": "최악이다", "language": "ko", "label": "negative"},
        {"text": "it is great", "language": "en", "label": "positive"},
        {"text": "it is awful", "language": "en", "label": "negative"},
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "reviews.jsonl").write_text(lines, encoding="utf-8")
    out = io.StringIO()
    sentiment.measure(tmp_path, out)
    assert "| 2 Korean | this model | 1.000 | 1.000 |" in out.getvalue()
    assert "| 2 English | most frequent label | 0.500 | 0.500 |" in out.getvalue()


def test_a_folder_without_reviews_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "reviews.jsonl is not there" in capsys.readouterr().err
