"""The links of a page. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from headrace_spots.crawling.urls import is_below, lane_of, linked

MOST_LINKS = 2000


@dataclass(frozen=True, slots=True)
class Links:
    """Where a page leads: `following` are its next pages, `others` those of the shop."""

    following: Sequence[str] = ()
    others: Sequence[str] = ()


def links_of(text: str, url: str, start: str, follow: Sequence[str] = ()) -> Links:
    """Return the pages of the shop that begins at `start` to which a page links, each once.

    Pages of the same host that are elsewhere are followed if they are named as the next page, or
    by a selector of the site (`follow`).
    """
    tree = LexborHTMLParser(text)
    if "nofollow" in robots_of(tree):
        return Links()
    base = url
    node = tree.css_first("base[href]")
    if node is not None:
        base = linked(url, node.attributes.get("href") or "") or url
    following: dict[str, None] = {}
    others: dict[str, None] = {}
    chosen = _chosen(tree, follow)
    for node in tree.css("a[href], link[rel=next][href]")[:MOST_LINKS]:
        marks = (node.attributes.get("rel") or "").lower().split()
        found = linked(base, node.attributes.get("href") or "")
        if found is None or "nofollow" in marks or lane_of(found) != lane_of(start):
            continue
        if "next" in marks:
            following[found] = None
        elif is_below(found, start) or node.mem_id in chosen:
            others[found] = None
    return Links(list(following), [each for each in others if each not in following])


def robots_of(tree: LexborHTMLParser) -> set[str]:
    """Return what the page itself says to crawlers: `noindex`, `nofollow`."""
    words: set[str] = set()
    for node in tree.css("meta[name=robots i][content]"):
        words |= {
            each.strip() for each in (node.attributes.get("content") or "").lower().split(",")
        }
    return words | ({"noindex", "nofollow"} if "none" in words else set())


def _chosen(tree: LexborHTMLParser, selectors: Sequence[str]) -> set[int]:
    found: set[int] = set()
    for selector in selectors:
        try:
            found |= {node.mem_id for node in tree.css(selector)}
        except (ValueError, SelectolaxError):
            continue
    return found
