"""Features and the regression: the same on every machine and every time."""

from __future__ import annotations

import numpy as np

from headrace_spots.analysis.model.logistic import Dense, Sparse, learn, softmax
from headrace_spots.analysis.model.ngrams import character_ngrams, word_ngrams
from headrace_spots.analysis.words.english import marked, values, words
from headrace_spots.analysis.words.korean import jamo

# "ok" and `좋아` share the space at their ends.
EXPECTED_BUCKETS = [
    *(21179, 22792, 32912, 34517, 48828, 57477),
    *(22792, 28887, 47585, 48736, 49968, 53852),
]


def test_buckets_do_not_change() -> None:
    # Learnt weights belong to these numbers: another hash would need another file.
    block = character_ngrams(["좋아", "ok"], 1, 2, 16)
    assert block.starts.tolist() == [0, 6, 12]
    assert block.buckets.tolist() == EXPECTED_BUCKETS
    assert word_ngrams([["a", "b"]], 2, 16).buckets.tolist() == [13071, 56729, 56741]


def test_ngrams_do_not_cross_texts() -> None:
    together = character_ngrams(["abc", "", "xyz"], 1, 4, 18)
    for row, text in enumerate(["abc", "", "xyz"]):
        alone = character_ngrams([text], 1, 4, 18)
        part = together.buckets[together.starts[row] : together.starts[row + 1]]
        assert part.tolist() == alone.buckets.tolist()


def test_no_texts_have_no_features() -> None:
    assert character_ngrams([], 1, 3, 16).starts.tolist() == [0]
    assert word_ngrams([[], []], 2, 16).starts.tolist() == [0, 0, 0]


def test_jamo_take_syllables_apart() -> None:
    assert jamo("한a") == "\u1112\u1161\u11aba"
    assert len(jamo("가각")) == 5


def test_negation_is_marked_until_its_clause_ends() -> None:
    assert marked(words("not good, but fine")) == ["not", "not good", ",", "but", "fine"]
    assert values(words("not good")) < [0.0, 0.0]
    assert sum(values(words("very good"))) > sum(values(words("good")))
    assert sum(values(words("slightly bad"))) > sum(values(words("bad")))


def test_the_regression_finds_what_makes_the_difference() -> None:
    texts = ["aa x", "aa y", "bb x", "bb y", "cc x", "cc y"]
    targets = np.eye(3, dtype=np.float32)[[0, 0, 1, 1, 2, 2]]
    block = word_ngrams([text.split() for text in texts], 1, 10)
    parts = [Sparse(block, 1 << 10), Dense(np.zeros((6, 2), np.float32))]
    weights, bias = learn(parts, targets, penalties=[0.1, 0.1])
    again, _ = learn(parts, targets, penalties=[0.1, 0.1])
    np.testing.assert_array_equal(weights[0], again[0])
    said = softmax(parts[0].times(weights[0]) + bias)
    assert said.argmax(axis=1).tolist() == [0, 0, 1, 1, 2, 2]
    assert not weights[1].any()


def test_a_text_without_features_has_no_score() -> None:
    block = word_ngrams([["a"], [], ["b"], []], 1, 8)
    scores = Sparse(block, 1 << 8).times(np.ones((1 << 8, 3), np.float32))
    assert scores.tolist() == [[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0]]
