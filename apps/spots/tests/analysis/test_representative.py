"""Texts that stand for the others."""

from __future__ import annotations

import numpy as np
import pytest

from headrace_spots.analysis import representative


def test_the_middle_comes_first_and_the_next_is_unlike_it() -> None:
    texts = ["taste is good here", "the taste is good", "tasty and good too", "parking is very bad"]
    vectors = np.array([[1, 0.1, 0], [1, 0, 0], [1, -0.1, 0], [0.2, 0, 1]], np.float32)
    assert representative(texts, vectors, 2) == [1, 3]


def test_copies_and_empty_texts_are_not_chosen() -> None:
    texts = ["", "It was really good", "it was  really GOOD", "   ", "It was really bad"]
    vectors = np.eye(5, dtype=np.float32)
    assert sorted(representative(texts, vectors, 5)) == [1, 4]


def test_short_and_long_texts_only_where_there_is_nothing_else() -> None:
    texts = ["ok", "a text of a good length", "x" * 5000]
    vectors = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    assert representative(texts, vectors, 1) == [1]
    assert sorted(representative(texts, vectors, 3)) == [0, 1, 2]


@pytest.mark.parametrize("count", [0, -1])
def test_none_are_asked_for(count: int) -> None:
    assert representative(["a text that is there"], np.ones((1, 3)), count) == []


def test_no_texts() -> None:
    assert representative([], np.empty((0, 3))) == []


def test_vectors_without_length_or_number() -> None:
    vectors = np.array([[0, 0], [np.nan, 1], [1, 1]])
    found = representative(
        ["first text of three", "second text of three", "third of three"], vectors
    )
    assert sorted(found) == [0, 1, 2]


def test_the_same_in_the_same_out() -> None:
    vectors = np.random.default_rng(3).normal(size=(40, 8))
    texts = [f"review number {number}" for number in range(40)]
    assert representative(texts, vectors, 5) == representative(texts, vectors.copy(), 5)
    assert len(set(representative(texts, vectors, 5))) == 5


def test_texts_and_vectors_of_different_number_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 1 texts and 2 vectors"):
        representative(["one"], np.ones((2, 2)))
