"""Reviews in JSON-LD, as schema.org names things. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from headrace_spots.parsing.found import (
    LONGEST_NAME,
    ParsedPage,
    Review,
    ShopFacts,
    clean_text,
    day_of,
    make_review,
    number_of,
    scaled,
)

LARGEST = 2 << 20
DEEPEST = 24
REVIEWS = {"review", "userreview", "criticreview", "employerreview"}


def parse_json_ld(tree: LexborHTMLParser, url: str) -> ParsedPage:
    """Return what the scripts of a page say. Scripts that are no JSON are passed over."""
    shop, reviews = ShopFacts(), []
    for node in tree.css('script[type="application/ld+json" i]'):
        for item in _items(_read(node.text()), 0):
            kinds = _kinds(item)
            if kinds & REVIEWS:
                review = _review(item, url)
                if review is not None:
                    reviews.append(review)
                subject = item.get("itemReviewed")
                if isinstance(subject, dict):
                    shop = shop.or_else(_facts(subject, described=False))
            elif "aggregateRating" in item or "review" in item or "reviews" in item:
                shop = shop.or_else(_facts(item, described=True))
    return ParsedPage(shop=shop, reviews=reviews)


def _read(text: str) -> Any:
    if len(text) > LARGEST:
        return None
    try:
        # Not strict: pages have line breaks within texts.
        return json.loads(text.strip().removesuffix(";"), strict=False)
    except (ValueError, RecursionError):
        return None


def _items(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the objects of a document, from outside to inside."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        for each in value:
            yield from _items(each, depth + 1)
    elif isinstance(value, dict):
        if _kinds(value):
            yield value
        for name, each in value.items():
            if name != "itemReviewed" and isinstance(each, dict | list):
                yield from _items(each, depth + 1)


def _kinds(item: dict[str, Any]) -> set[str]:
    found = item.get("@type")
    names = found if isinstance(found, list) else [found]
    return {each.rpartition("/")[2].lower() for each in names if isinstance(each, str)}


def _review(item: dict[str, Any], url: str) -> Review | None:
    rating = item.get("reviewRating")
    stars = None
    if isinstance(rating, dict):
        stars = scaled(
            rating.get("ratingValue"), rating.get("bestRating"), rating.get("worstRating")
        )
    elif rating is not None:
        stars = scaled(rating)
    return make_review(
        item.get("reviewBody") or item.get("description") or item.get("text"),
        url=url,
        rating=stars,
        day=day_of(item.get("datePublished") or item.get("dateCreated")),
        author=_name(item.get("author")),
        title=_name(item.get("name") or item.get("headline")),
    )


def _facts(item: dict[str, Any], *, described: bool) -> ShopFacts:
    total = item.get("aggregateRating") if described else None
    rating, count = None, None
    if isinstance(total, dict):
        rating = scaled(total.get("ratingValue"), total.get("bestRating"))
        counted = number_of(total.get("reviewCount") or total.get("ratingCount"))
        count = None if counted is None or counted < 0 else int(counted)
    return ShopFacts(
        name=_name(item.get("name")) or None,
        kind=next(iter(sorted(_kinds(item))), None),
        address=_address(item.get("address")),
        rating=rating,
        reviews=count,
    )


def _name(value: Any) -> str:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("name")
    return clean_text(value, LONGEST_NAME)


def _address(value: Any) -> str | None:
    if isinstance(value, dict):
        names = ("streetAddress", "addressLocality", "addressRegion", "addressCountry")
        value = ", ".join(each for name in names if (each := _name(value.get(name))))
    return clean_text(value, LONGEST_NAME) or None
