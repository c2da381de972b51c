"""All parsers over one page. No I/O."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from headrace_spots.crawling.links import robots_of
from headrace_spots.parsing.found import LONGEST_NAME, ParsedPage, ShopFacts, clean_text
from headrace_spots.parsing.json_ld import parse_json_ld
from headrace_spots.parsing.microdata import parse_microdata
from headrace_spots.parsing.selectors import Site, parse_by_selectors


def parse_page(text: str, url: str, site: Site | None = None) -> ParsedPage:
    """Return the reviews of a page, each once, and what it says about the shop.

    The selectors of its site count first, then JSON-LD, then microdata: the first that finds
    reviews is believed, because pages say the same in several forms.
    """
    tree = LexborHTMLParser(text)
    if "noindex" in robots_of(tree):
        return ParsedPage()
    found = [] if site is None else [parse_by_selectors(tree, url, site)]
    found += [parse_json_ld(tree, url), parse_microdata(tree, url)]
    shop = ShopFacts()
    for each in found:
        shop = shop.or_else(each.shop)
    titled = tree.css_first("title")
    if titled is not None:
        shop = shop.or_else(ShopFacts(name=clean_text(titled.text(), LONGEST_NAME) or None))
    reviews = next((each.reviews for each in found if each.reviews), ())
    return ParsedPage(shop=shop, reviews=list({each.review_id: each for each in reviews}.values()))
