"""What reviews speak of, by the clause, in both languages."""

from __future__ import annotations

import pytest

from headrace_spots.analysis import Aspect, Opinion, aspects
from headrace_spots.analysis.aspects import mentions

UNSURE = Opinion("neutral", 0.5)


def said(text: str, opinion: Opinion = UNSURE) -> dict[str, str]:
    return {mention.name: mention.label for mention in mentions(text, opinion)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("음식은 맛있는데 직원이 불친절했어요.", {"taste": "positive", "service": "negative"}),
        ("가격이 비싸지만 양이 많아요", {"price": "negative", "portion": "positive"}),
        ("배송이 빠르고 포장도 꼼꼼해요", {"delivery": "positive", "packaging": "positive"}),
        ("직원분들이 친절하지 않아요", {"service": "negative"}),
        ("별로 안 비싸요", {"price": "positive"}),
        ("웨이팅이 길어요", {"waiting": "negative"}),
        ("박스가 왔는데 다 찌그러져 있었어요", {"packaging": "negative"}),
        (
            "The food was delicious but the service was slow.",
            {"taste": "positive", "service": "negative"},
        ),
        ("Great food, terrible service", {"taste": "positive", "service": "negative"}),
        ("The food and the staff were great", {"taste": "positive", "service": "positive"}),
        ("The staff were not friendly", {"service": "negative"}),
        ("Portions are small", {"portion": "negative"}),
        ("The package arrived late", {"delivery": "negative"}),
        (
            "The parcel came, but the box was crushed",
            {"delivery": "neutral", "packaging": "negative"},
        ),
    ],
)
def test_each_clause_has_its_own_opinion(text: str, expected: dict[str, str]) -> None:
    assert said(text) == expected


def test_a_noun_of_its_own_where_no_aspect_fits() -> None:
    assert said("The instructions are confusing") == {"instructions": "negative"}
    assert said("설명서가 엉망이에요") == {"설명서": "negative"}
    # Nothing is said of it, so it is not counted.
    assert said("The instructions are on paper") == {}


def test_the_text_decides_where_no_word_does() -> None:
    assert said("The service!", Opinion("negative", 0.9)) == {"service": "negative"}
    assert said("The service, and good food", Opinion("negative", 0.9))["taste"] == "positive"


def test_aspects_are_counted_by_language_and_sorted() -> None:
    texts = [
        "The food was great. The staff was rude.",
        "Delicious food!",
        "The food was cold and bland.",
        "음식이 맛있어요",
        "",
    ]
    found = aspects(texts, [UNSURE] * len(texts))
    assert [(each.name, each.language) for each in found] == [
        ("taste", "en"),
        ("service", "en"),
        ("taste", "ko"),
    ]
    assert (found[0].mentions, found[0].positive, found[0].negative) == (4, 2, 2)
    assert found[0].examples == (
        "The food was great.",
        "The food was cold and bland.",
        "Delicious food!",
    )
    assert found[2] == Aspect("taste", "ko", 1, 1, 0, ("음식이 맛있어요",))


def test_examples_are_few_short_and_different() -> None:
    texts = ["Good food."] * 5 + [f"{number} good food {'and more ' * 60}." for number in range(5)]
    [taste] = [each for each in aspects(texts, [UNSURE] * 10) if each.name == "taste"]
    assert len(taste.examples) == len(set(taste.examples)) == 3
    assert all(len(example) <= 200 for example in taste.examples)
    assert taste.mentions == 10


def test_the_same_texts_give_the_same_answer() -> None:
    texts = ["가격이 착해요", "Nice view, bad coffee", "앱이 자꾸 멈춰서 짜증나요"]
    assert aspects(texts, [UNSURE] * 3) == aspects(texts, [UNSURE] * 3)


def test_opinions_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 2 texts and 1 opinions"):
        aspects(["a", "b"], [UNSURE])


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n", "😀", "...", "\ud800", "ㅋㅋㅋ", "food " * 20_000, "맛 " * 20_000, "\x00"],
)
def test_any_text_is_read(text: str) -> None:
    assert all(each.label in ("positive", "negative", "neutral") for each in mentions(text, UNSURE))


def test_no_texts() -> None:
    assert aspects([], []) == []
