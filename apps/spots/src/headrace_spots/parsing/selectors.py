"""Reviews by the selectors of a site: a YAML file for each site that says nothing in a form that
programs read.

    host: shop.example            # and www.shop.example
    follow: ["a.more-reviews"]    # further links to follow
    shop: {name: "h1.title"}
    review:
      each: "li.review"           # one element for each review
      text: "p.body"
      rating: ".stars@data-score" # an attribute after @
      best: 10
      day: "time@datetime"
      author: ".writer"
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from headrace import InvalidSetting
from headrace_spots.crawling.urls import lane_of
from headrace_spots.parsing.found import (
    LONGEST_NAME,
    ParsedPage,
    Review,
    ShopFacts,
    clean_text,
    day_of,
    make_review,
    scaled,
)

ENDINGS = (".yaml", ".yml")


class ReviewSelectors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the parts of a review are, within the element of each."""

    each: str
    text: str
    rating: str | None = None
    best: float = 5.0
    day: str | None = None
    author: str | None = None
    title: str | None = None


class ShopSelectors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a page names the shop."""

    name: str | None = None
    address: str | None = None
    rating: str | None = None
    best: float = 5.0


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The selector file of one site."""

    host: str
    follow: list[str] = []
    shop: ShopSelectors = msgspec.field(default_factory=ShopSelectors)
    review: ReviewSelectors | None = None

    def selectors(self) -> list[str]:
        """Return all selectors, without attributes."""
        parts: list[Any] = [self.shop.name, self.shop.address, self.shop.rating, *self.follow]
        if self.review is not None:
            own = self.review
            parts += [own.each, own.text, own.rating, own.day, own.author, own.title]
        return [each.partition("@")[0] for each in parts if each]


def load_sites(folder: str | None) -> Mapping[str, Site]:
    """Return the sites of the package and of a folder, which counts first, by host. Raises
    `InvalidSetting`, which names the file.
    """
    sites: dict[str, Site] = dict(_own_sites())
    if folder is not None:
        if not Path(folder).is_dir():
            raise InvalidSetting(f"HEADRACE_SPOTS_SITES is {folder}, which is not a folder")
        for path in sorted(Path(folder).iterdir()):
            if path.suffix in ENDINGS:
                site = read_site(path.read_text(encoding="utf-8"), str(path))
                sites[site.host] = site
    return sites


def site_of(sites: Mapping[str, Site], url: str) -> Site | None:
    """Return the site of a page: that of its host, else of the domain that it is in."""
    host = lane_of(url)
    while host:
        if host in sites:
            return sites[host]
        host = host.partition(".")[2]
    return None


def read_site(text: str, name: str) -> Site:
    """Return the site that a file describes. Raises `InvalidSetting`."""
    try:
        site = msgspec.convert(YAML(typ="safe", pure=True).load(text), Site)
    except (YAMLError, msgspec.ValidationError) as error:
        raise InvalidSetting(f"{name} is no selector file: {error}") from None
    page = LexborHTMLParser("<p>")
    for selector in site.selectors():
        try:
            page.css_first(selector)
        except (ValueError, SelectolaxError):
            raise InvalidSetting(f"{name}: {selector!r} is not a CSS selector") from None
    return msgspec.structs.replace(site, host=site.host.lower().removeprefix("www."))


def parse_by_selectors(tree: LexborHTMLParser, url: str, site: Site) -> ParsedPage:
    """Return what the selectors of a site find on a page."""
    root = tree.root
    if root is None:
        return ParsedPage()
    shop = site.shop
    facts = ShopFacts(
        name=clean_text(_first(root, shop.name), LONGEST_NAME) or None,
        address=clean_text(_first(root, shop.address), LONGEST_NAME) or None,
        rating=scaled(_first(root, shop.rating), shop.best),
    )
    reviews: Sequence[Review] = ()
    own = site.review
    if own is not None:
        found = (
            make_review(
                _first(node, own.text),
                url=url,
                rating=scaled(_first(node, own.rating), own.best),
                day=day_of(_first(node, own.day)),
                author=_first(node, own.author),
                title=_first(node, own.title),
            )
            for node in tree.css(own.each)
        )
        reviews = [each for each in found if each is not None]
    return ParsedPage(shop=facts, reviews=reviews)


def _first(node: LexborNode, selector: str | None) -> str:
    if selector is None:
        return ""
    css, _, attribute = selector.partition("@")
    found = node.css_first(css) if css else node
    if found is None:
        return ""
    return (found.attributes.get(attribute) or "") if attribute else str(found.text(separator=" "))


@functools.cache
def _own_sites() -> Mapping[str, Site]:
    found = {}
    for file in files("headrace_spots.parsing.sites").iterdir():
        if file.name.endswith(ENDINGS):
            site = read_site(file.read_text(encoding="utf-8"), file.name)
            found[site.host] = site
    return found
