"""Shops that do not exist, and their reviews: the same for the same seed. No I/O."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from headrace_spots.mock_shop.sentences import AUTHORS, ENGLISH, KOREAN, OPENINGS

Form = Literal["json-ld", "microdata", "plain"]
DAYS = 720
UNRATED = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopPlan:
    """A shop. `pages` are those with reviews, beside its first page."""

    slug: str
    name: str
    address: str = "1 Nowhere Street, Exampleton"
    kind: str = "CafeOrCoffeeShop"
    form: Form = "json-ld"
    charset: str = "utf-8"
    languages: tuple[str, ...] = ("en",)
    pages: int = 12
    per_page: int = 10
    seed: int = 1
    trend: float = 0.0
    """How much better (or worse) it has become: from -1 to 1."""
    padding: int = 0
    """So many more bytes has each page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpReview:
    """A review that nobody wrote."""

    author: str
    text: str
    rating: int | None
    day: str


DEMO = (
    ShopPlan(
        slug="blue-door",
        name="Blue Door Coffee",
        address="7 Harbour Lane, Exampleton",
        languages=("en", "en", "ko"),
        pages=26,
        seed=11,
        trend=0.5,
    ),
    ShopPlan(
        slug="moonlight",
        name="달빛 식당",
        address="서울시 없는구 달빛로 12",
        kind="Restaurant",
        form="microdata",
        charset="euc-kr",
        languages=("ko",),
        pages=22,
        seed=23,
        trend=-0.45,
    ),
    ShopPlan(
        slug="paper-boat",
        name="Paper Boat Bakery & Books",
        address="3 Mill Yard, Exampleton",
        kind="Bakery",
        languages=("en",),
        pages=18,
        seed=5,
        trend=0.1,
    ),
)


def review_at(plan: ShopPlan, number: int, today: date) -> MadeUpReview:
    """Return the review of a number, from 0: the newest."""
    chance = random.Random(f"{plan.seed}/{plan.slug}/{number}")  # noqa: S311 - only to vary
    total = max(plan.pages * plan.per_page, 1)
    age = number / total
    mood = chance.gauss(0.4 + plan.trend * (1 - 2 * age), 0.7)
    language = chance.choice(plan.languages)
    tone = "good" if mood > 0.25 else "bad" if mood < -0.25 else "mixed"
    text = _text(chance, language, tone)
    stars = min(max(round(3 + 1.6 * mood + chance.gauss(0, 0.35)), 1), 5)
    day = today - timedelta(days=int(age * DAYS) + chance.randrange(3))
    return MadeUpReview(
        author=f"{chance.choice(AUTHORS[language])}{chance.randrange(10, 99)}",
        text=text,
        rating=None if chance.random() < UNRATED else stars,
        day=day.isoformat(),
    )


def _text(chance: random.Random, language: str, tone: str) -> str:
    topics = KOREAN if language == "ko" else ENGLISH
    chosen = chance.sample(sorted(topics), chance.randint(1, 3))
    said = []
    for place, topic in enumerate(chosen):
        good, bad = topics[topic]
        happy = tone == "good" or (tone == "mixed" and place % 2 == 0)
        said.append(chance.choice(good if happy else bad))
    return " ".join(each for each in [chance.choice(OPENINGS[language][tone]), *said] if each)


@functools.lru_cache(maxsize=64)
def mean_of(plan: ShopPlan, today: date) -> float:
    """Return the mean rating of a shop."""
    found = [review_at(plan, each, today).rating for each in range(plan.pages * plan.per_page)]
    rated = [each for each in found if each is not None]
    return round(sum(rated) / len(rated), 2) if rated else 0.0
