"""From what a shop answers to name, price and sale status. No I/O."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser

from headrace_scanner.errors import Unreached
from headrace_scanner.platforms import Platform
from headrace_scanner.store.records import SaleStatus, Seen

LONGEST_NAME = 300
HIGHEST_PRICE = 1e12
_NUMBER = re.compile(r"\d[\d,.\s]*")
_AVAILABILITY = {
    "instock": SaleStatus.ON_SALE,
    "limitedavailability": SaleStatus.ON_SALE,
    "onlineonly": SaleStatus.ON_SALE,
    "preorder": SaleStatus.ON_SALE,
    "outofstock": SaleStatus.SOLD_OUT,
    "soldout": SaleStatus.SOLD_OUT,
    "backorder": SaleStatus.SOLD_OUT,
    "discontinued": SaleStatus.STOPPED,
}
DEEPEST = 20


def read_price(value: Any) -> float:
    """Return a price from a number or a text such as "12,900원"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Unreached(f"the price is {str(value)[:60]!r}, which is no number")
    if isinstance(value, str):
        found = _NUMBER.search(value)
        if found is None:
            raise Unreached(f"the price is {value[:60]!r}, which has no number")
        text = re.sub(r"\s", "", found.group()).rstrip(".,")
        # "12,900" and "1.234.567" group by thousands; "12.50" has a fraction.
        if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
            text = text.replace(",", "")
        elif re.fullmatch(r"\d{1,3}(\.\d{3})+(,\d+)?", text) and text.count(".") > 1:
            text = text.replace(".", "").replace(",", ".")
        else:
            text = text.replace(",", "")
        try:
            value = float(text)
        except ValueError:
            raise Unreached(f"the price is {value[:60]!r}, which is no number") from None
    price = round(float(value), 2)
    if not 0 <= price <= HIGHEST_PRICE:
        raise Unreached(f"the price is {price}, which cannot be")
    return price


def read_name(value: Any) -> str:
    """Return a name in one line."""
    name = " ".join(html.unescape(str(value or "")).split())
    if not name:
        raise Unreached("the product has no name")
    return name[:LONGEST_NAME]


def read_json(platform: Platform, content: bytes) -> Seen:
    """Return what an API says."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        raise Unreached("the shop answered with something that is not JSON") from None
    status = SaleStatus.ON_SALE
    if platform.status is not None:
        status = read_status(platform, _at(document, platform.status))
    return Seen(
        name=read_name(_at(document, platform.name)),
        price=read_price(_at(document, platform.price)),
        sale_status=status,
    )


def read_status(platform: Platform, value: Any) -> SaleStatus:
    """Return our word for a shop's."""
    return SaleStatus(platform.statuses.get(str(value).strip(), SaleStatus.ON_SALE))


def _at(document: Any, pointer: str) -> Any:
    found = document
    for part in pointer.strip("/").split("/"):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise Unreached(f"the answer has no {pointer}")
    return found


def read_page(content: bytes) -> Seen:
    """Return what the JSON-LD of a page says about its product."""
    page = LexborHTMLParser(content)
    for script in page.css('script[type="application/ld+json"]'):
        try:
            document = msgspec.json.decode(script.text().encode())
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        for product in _products(document):
            offer = _offer(product.get("offers"))
            if offer is not None:
                word = str(offer.get("availability", "")).rpartition("/")[2].lower()
                return Seen(
                    name=read_name(product.get("name")),
                    price=read_price(offer.get("price", offer.get("lowPrice"))),
                    sale_status=_AVAILABILITY.get(word, SaleStatus.ON_SALE),
                )
    raise Unreached("the page says nothing about a product (JSON-LD with an offer)")


def _products(found: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if depth > DEEPEST:
        return
    if isinstance(found, list):
        for each in found:
            yield from _products(each, depth + 1)
    elif isinstance(found, dict):
        kinds = found.get("@type")
        if "Product" in (kinds if isinstance(kinds, list) else [kinds]):
            yield found
        for name in ("@graph", "mainEntity"):
            if name in found:
                yield from _products(found[name], depth + 1)


def _offer(found: Any) -> dict[str, Any] | None:
    if isinstance(found, list):
        found = next((each for each in found if isinstance(each, dict)), None)
    return found if isinstance(found, dict) else None
