"""Reviews in microdata (`itemscope`, `itemprop`). No I/O."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

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

REVIEW = '[itemscope][itemtype$="schema.org/Review" i]'
AGGREGATE = '[itemscope][itemtype$="schema.org/AggregateRating" i]'
# Attributes that hold a value, before the text of the element.
_HOLDERS = ("content", "datetime", "value", "title")


def parse_microdata(tree: LexborHTMLParser, url: str) -> ParsedPage:
    """Return what the elements of a page say."""
    reviews = [found for node in tree.css(REVIEW) if (found := _review(node, url)) is not None]
    return ParsedPage(shop=_facts(tree), reviews=reviews)


def _review(node: LexborNode, url: str) -> Review | None:
    return make_review(
        _value(node, "reviewBody", text_first=True) or _value(node, "description", text_first=True),
        url=url,
        rating=scaled(
            _value(node, "ratingValue"), _value(node, "bestRating"), _value(node, "worstRating")
        ),
        day=day_of(_value(node, "datePublished")),
        author=_value(node, "author"),
        title=_value(node, "headline"),
    )


def _facts(tree: LexborHTMLParser) -> ShopFacts:
    total = tree.css_first(AGGREGATE)
    if total is None:
        return ShopFacts()
    owner = total.parent
    while owner is not None and "itemscope" not in owner.attributes:
        owner = owner.parent
    counted = number_of(_value(total, "reviewCount") or _value(total, "ratingCount"))
    facts = ShopFacts(
        rating=scaled(_value(total, "ratingValue"), _value(total, "bestRating")),
        reviews=None if counted is None else int(counted),
    )
    if owner is None:
        return facts
    kind = (owner.attributes.get("itemtype") or "").rpartition("/")[2].lower()
    named = ShopFacts(
        name=_own(owner, "name") or None,
        kind=kind or None,
        address=clean_text(_value(owner, "address"), LONGEST_NAME) or None,
    )
    return named.or_else(facts)


def _own(owner: LexborNode, name: str) -> str:
    """Return a property of an item that does not belong to an item within it."""
    for node in owner.css(f'[itemprop~="{name}"]'):
        parent = node.parent
        while parent is not None and "itemscope" not in parent.attributes:
            parent = parent.parent
        if parent is not None and parent.mem_id == owner.mem_id:
            return clean_text(node.text(separator=" "), LONGEST_NAME)
    return ""


def _value(node: LexborNode, name: str, *, text_first: bool = False) -> str:
    found = node.css_first(f'[itemprop~="{name}"]')
    if found is None:
        return ""
    text = str(found.text(separator=" ")).strip()
    if text_first and text:
        return text
    for holder in _HOLDERS:
        value = found.attributes.get(holder)
        if value:
            return value
    return text
