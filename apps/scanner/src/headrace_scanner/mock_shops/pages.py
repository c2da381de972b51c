"""What the shops that do not exist answer: HTML whose scripts render the price, JSON, JSON-LD. No
I/O.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any
from urllib.parse import quote

from headrace_scanner.mock_shops.goods import Goods

_WORDS = {
    "hwahae": {"on_sale": "SALE", "sold_out": "SOLD_OUT", "stopped": "STOP"},
    "zigzag": {"on_sale": "ON_SALE", "sold_out": "SOLD_OUT", "stopped": "SUSPENDED"},
    "musinsa": {"on_sale": "SALE", "sold_out": "SOLDOUT", "stopped": "STOP"},
    "oliveyoung": {"on_sale": "", "sold_out": "일시품절", "stopped": "판매종료"},
    "ably": {"on_sale": "", "sold_out": "품절", "stopped": "판매중지"},
    "kurly": {"on_sale": "", "sold_out": "품절", "stopped": "판매종료"},
}
_AVAILABLE = {"on_sale": "InStock", "sold_out": "OutOfStock", "stopped": "Discontinued"}
BROWSER_SHOPS = ("oliveyoung", "ably", "kurly")
# What the scripts make of the shop's data.
_MARKUP = {
    "oliveyoung": (
        "<p class=prd_name>${name}</p><p class=prd_price><strong>${price}</strong>원</p>"
        "<p class=prd_state>${state}</p>${state === '일시품절' ? '<button class=btn_soldout>품절"
        "</button>' : ''}"
    ),
    "ably": (
        "<h2 data-testid=name>${name}</h2><span data-testid=price>${price}원</span>"
        "<em data-testid=state>${state}</em>"
    ),
    "kurly": (
        "<div class=goods-name><h1>${name}</h1></div><div class=goods-price><b>${price}</b>원"
        "</div><div class=goods-state>${state}</div>"
    ),
}


def json_of(shop: str, goods: Goods) -> bytes:
    """Return what the API of a shop answers."""
    state = _WORDS[shop][goods.status]
    body: dict[str, Any]
    if shop == "hwahae":
        product = {"name": goods.name, "sale_price": goods.price, "status": state}
        body = {"code": 0, "data": {"product": product}}
    elif shop == "zigzag":
        price = {"original": goods.price + 5000, "discount": f"{goods.price:,}"}
        body = {"catalog": {"title": goods.name, "price": price, "sales_status": state}}
    else:
        price = {"normalPrice": goods.price + 3000, "salePrice": goods.price}
        sold = {"goodsNm": goods.name, "goodsPrice": price, "goodsSaleType": state}
        body = {"meta": {"result": "SUCCESS"}, "data": sold}
    if goods.behaviour == "no_price":
        body = {"code": 0, "data": {}}
    return json.dumps(body, ensure_ascii=False).encode()


def script_data(shop: str, goods: Goods) -> bytes:
    """Return what the script of a page asks for."""
    state = _WORDS[shop][goods.status]
    body = {"name": goods.name, "price": f"{goods.price:,}", "state": state}
    return json.dumps(body, ensure_ascii=False).encode()


def script_page(shop: str, product: str) -> bytes:
    """Return a page without a price: its script asks for it and renders it."""
    return (
        "<!doctype html><html lang=ko><meta charset=utf-8><title>…</title><main>Loading …</main>"
        "<script>setTimeout(async () => {"
        f"const answer = await fetch('/{shop}/data/{quote(product, safe='')}');"
        "const {name, price, state} = await answer.json();"
        "if (price === null) return;"
        f"document.querySelector('main').innerHTML = `{_MARKUP[shop]}`;"
        "}, 20)</script>"
    ).encode()


def hungry_page() -> bytes:
    """Return a page whose script takes more and more memory, 20 MB at a time."""
    return (
        b"<!doctype html><meta charset=utf-8><main>Loading ...</main><script>const taken = [];"
        b"const take = () => { taken.push(new Uint8Array(2e7).fill(7)); setTimeout(take, 20); };"
        b"take();</script>"
    )


def blocked_page() -> bytes:
    """Return the page of a shop that takes us for a robot."""
    return b"<!doctype html><meta charset=utf-8><div id=challenge>Are you a robot?</div>"


def linked_data_page(goods: Goods) -> bytes:
    """Return a page that says in JSON-LD what it sells."""
    offer = {
        "@type": "Offer",
        "price": f"{goods.price}.00",
        "priceCurrency": "KRW",
        "availability": f"https://schema.org/{_AVAILABLE[goods.status]}",
    }
    product = {"@type": "Product", "name": goods.name, "offers": offer}
    if goods.behaviour == "no_price":
        product.pop("offers")
    data = json.dumps({"@context": "https://schema.org", "@graph": [product]}, ensure_ascii=False)
    data = data.replace("</", "<\\/")
    return (
        f"<!doctype html><meta charset=utf-8><title>{escape(goods.name)}</title>"
        f'<script type="application/ld+json">{data}</script>'
        f"<h1>{escape(goods.name)}</h1>"
    ).encode()
