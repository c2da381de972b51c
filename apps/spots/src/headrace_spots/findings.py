"""What is found in the reviews of a run, as numbers and words. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace_spots.parsing.found import Review

MOST_ASPECTS = 20
MOST_MONTHS = 120
LABELS = ("positive", "negative", "neutral")


class MonthRating(msgspec.Struct, frozen=True):
    """The mean rating of a month."""

    month: str
    rating: float
    reviews: int


class FoundAspect(msgspec.Struct, frozen=True, kw_only=True):
    """What people talk about, and how."""

    name: str
    language: str
    mentions: int
    positive: int
    negative: int
    examples: list[str]


class Findings(msgspec.Struct, kw_only=True):
    """The analysis of a run: what is in the layer gold, in the table, and in the report."""

    reviews: int
    rating: float | None
    stars: dict[str, int]
    """How many reviews have 1, 2 … 5 stars."""
    sentiment: dict[str, int]
    months: list[MonthRating]
    aspects: list[FoundAspect]
    summary: list[str] = []
    """Sentences of reviews that speak for many, or one text of a language model."""
    summary_by: str = "chosen"
    model: str = ""


def mean_rating(reviews: Sequence[Review]) -> float | None:
    """Return the mean of the ratings; None if there are none."""
    rated = [each.rating for each in reviews if each.rating is not None]
    return round(sum(rated) / len(rated), 2) if rated else None


def count_stars(reviews: Sequence[Review]) -> dict[str, int]:
    """Return how many reviews have so many stars, rounded."""
    counted = Counter(
        str(min(max(round(each.rating), 1), 5)) for each in reviews if each.rating is not None
    )
    return {str(each): counted.get(str(each), 0) for each in range(1, 6)}


def rate_months(reviews: Sequence[Review]) -> list[MonthRating]:
    """Return the mean rating of each month that has some, the oldest first."""
    months: dict[str, list[float]] = {}
    for each in reviews:
        if each.rating is not None and each.day is not None:
            months.setdefault(each.day[:7], []).append(each.rating)
    found = [
        MonthRating(month, round(sum(rated) / len(rated), 2), len(rated))
        for month, rated in sorted(months.items())
    ]
    return found[-MOST_MONTHS:]


def plain(findings: Findings, **more: Any) -> dict[str, Any]:
    """Return findings as plain data, with more fields."""
    return {**msgspec.to_builtins(findings), **more}
