"""Praise and blame: stars win, the model knows both languages, and nothing breaks it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headrace_spots.analysis import Opinion, Sentiment
from headrace_spots.analysis.language import ENGLISH, KOREAN, language_of, normalised


@pytest.fixture(scope="module")
def model() -> Sentiment:
    return Sentiment.load()


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("정말 최고예요 너무 재밌게 봤습니다", "positive"),
        ("돈이 아깝다 최악", "negative"),
        ("absolutely wonderful, i love it", "positive"),
        ("terrible quality, it broke after a day and they refused a refund", "negative"),
        ("i am not happy with it at all.", "negative"),
        ("it comes with a cable and a manual.", "neutral"),
    ],
)
def test_plain_cases(model: Sentiment, text: str, label: str) -> None:
    [opinion] = model.of([text])
    assert opinion.label == label
    assert 1 / 3 <= opinion.score <= 1


@pytest.mark.parametrize(
    ("stars", "label"),
    [(5, "positive"), (3.5, "positive"), (3, "neutral"), (2.5, "neutral"), (2.4, "negative"),
     (0, "negative")],
)  # fmt: skip
def test_stars_win(model: Sentiment, stars: float, label: str) -> None:
    texts = ["terrible, the worst ever", "wonderful, the best ever"]
    assert [each.label for each in model.of(texts, stars=[stars, stars])] == [label, label]


def test_stars_are_taken_only_where_they_are(model: Sentiment) -> None:
    texts = ["최악의 영화", "최악의 영화", "최고의 영화"]
    labels = [each.label for each in model.of(texts, stars=[5.0, None, None])]
    assert labels == ["positive", "negative", "positive"]


@pytest.mark.parametrize("stars", [-0.1, 5.1, 10.0, float("nan"), float("inf")])
def test_stars_out_of_range_are_refused(model: Sentiment, stars: float) -> None:
    with pytest.raises(ValueError, match=r"stars must be between 0 and 5, got"):
        model.of(["fine"], stars=[stars])


def test_stars_of_another_number_are_refused(model: Sentiment) -> None:
    with pytest.raises(ValueError, match="there are 2 texts and 1 stars"):
        model.of(["a", "b"], stars=[1.0])


def test_no_texts(model: Sentiment) -> None:
    assert model.of([]) == []
    assert model.of([], stars=[]) == []
    assert model.shares([]).shape == (0, 3)


def test_empty_texts_are_neutral(model: Sentiment) -> None:
    assert model.of(["", "  \n\t", "\u3000"]) == [Opinion("neutral", 1.0)] * 3


@pytest.mark.parametrize(
    "text",
    ["😀", "👍🏽👍🏽", "ㅋㅋㅋㅋㅋㅋ", "ㅠㅠ", "!!!", "5/5", "\x00", "\ud800", "좋아요 " * 50_000,
     "great " * 50_000, "최고 the best ever 強く推薦 👍", "a", "가", "e\u0301" * 10, "ﷺ" * 100],
)  # fmt: skip
def test_any_text_has_an_opinion(model: Sentiment, text: str) -> None:
    [opinion] = model.of([text])
    assert opinion.label in ("positive", "negative", "neutral")
    assert 1 / 3 <= opinion.score <= 1


def test_emojis_say_something(model: Sentiment) -> None:
    good, bad = model.shares(["👍👍 😍", "👎👎 😡"])
    assert good[2] > bad[2]
    assert bad[0] > good[0]


def test_a_text_is_judged_the_same_alone_and_among_others(model: Sentiment) -> None:
    texts = ["배송이 빨라요", "great value", "", "그저 그래요", "it broke", "👍"] * 3
    together = model.shares(texts)
    alone = np.concatenate([model.shares([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    assert [each.label for each in model.of(texts)] == [model.of([text])[0].label for text in texts]


def test_threads_may_share_the_model(model: Sentiment) -> None:
    texts = ["정말 좋아요", "it is awful", "별로예요", "so good"]
    expected = model.of(texts)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(model.of, [texts] * 8))


def test_the_model_is_loaded_once() -> None:
    assert Sentiment.load() is Sentiment.load()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("좋아요", KOREAN),
        ("ㅋㅋ", KOREAN),
        ("iPhone 15 Pro 좋아요", KOREAN),
        ("good", ENGLISH),
        ("I had the 떡 and the rest of it was really good as well", ENGLISH),
        ("", ENGLISH),
        ("12345 👍", ENGLISH),
        ("조아요", KOREAN),
    ],
)
def test_language_by_script(text: str, language: str) -> None:
    assert language_of(text) == language


def test_texts_are_made_alike() -> None:
    assert normalised("  So   GOOOOOD\n\u2018yes\u2019 ") == "so goood 'yes'"
    assert normalised("\u1112\u1161\u11ab") == "한"
    assert len(normalised("ab" * 100_000)) == 4000
