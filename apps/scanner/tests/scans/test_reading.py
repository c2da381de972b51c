"""What shops answer, and what is made of it. No servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace import InvalidSetting
from headrace_scanner.errors import InvalidProduct, Unreached
from headrace_scanner.imports import read_file
from headrace_scanner.platforms import NAMES, load_platforms
from headrace_scanner.reading.addresses import check_url, resolve
from headrace_scanner.reading.answers import read_json, read_name, read_page, read_price
from headrace_scanner.store.records import (
    Observation,
    Outcome,
    Product,
    SaleStatus,
    compare,
)


@pytest.mark.parametrize(
    ("given", "price"),
    [
        (12900, 12900),
        ("12,900원", 12900),
        ("₩ 1,234,567", 1234567),
        ("12.50", 12.5),
        ("1,299.99 USD", 1299.99),
        ("1.234.567", 1234567),
        ("0", 0),
    ],
)
def test_prices_are_read_as_shops_write_them(given: object, price: float) -> None:
    assert read_price(given) == price


@pytest.mark.parametrize("given", [None, True, [], "", "free", -5, 1e300, float("inf")])
def test_what_is_no_price_is_told(given: object) -> None:
    with pytest.raises(Unreached, match="the price is"):
        read_price(given)


def test_answers_that_cannot_be_read_are_told() -> None:
    platform = load_platforms()["hwahae"]
    for content in (
        b"[" * 100_000,
        b"<html>",
        b"[]",
        b'{"data": null}',
        b'{"data": {"product": {"name": "x"}}}',
    ):
        with pytest.raises(Unreached):
            read_json(platform, content)
    for content in (b"", b"<p>hello", b'<script type="application/ld+json">{</script>'):
        with pytest.raises(Unreached, match="nothing about a product"):
            read_page(content)
    assert read_name(" a\n&amp;  b ") == "a & b"
    with pytest.raises(Unreached):
        read_name("  ")


def test_json_ld_is_found_where_shops_put_it() -> None:
    offers = [{"price": "7.5", "availability": "http://schema.org/OutOfStock"}]
    product = {"@type": ["Thing", "Product"], "name": "Tea", "offers": offers}
    page = [{"@type": "WebPage"}, {"@graph": [{"mainEntity": product}]}]
    html = f'<script type="application/ld+json">{json.dumps(page)}</script>'
    seen = read_page(html.encode())
    assert (seen.name, seen.price, seen.sale_status) == ("Tea", 7.5, SaleStatus.SOLD_OUT)


def test_only_what_was_known_can_change() -> None:
    product = Product(
        product_id="p",
        platform="kurly",
        external_id="1",
        url="",
        name="Tea",
        price=1000.0,
        sale_status=None,
        scan_id=None,
        seen_at=None,
        created_at=0.0,
        updated_at=0.0,
    )
    seen = Observation(
        product_id="p",
        outcome=Outcome.SEEN,
        name="Tea",
        price=900.5,
        sale_status=SaleStatus.ON_SALE,
    )
    found = [(each.field, each.before, each.after) for each in compare(product, seen)]
    assert found == [("price", "1000", "900.50")]
    blocked = Observation(product_id="p", outcome=Outcome.BLOCKED)
    assert compare(product, blocked) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "kurly.com/1",
        "ftp://a/b",
        "http://",
        "http://u:p@a/",
        "http://a b/",
        "http://[::1",
        "x" * 3000,
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidProduct, match="url"):
        check_url(url)


async def test_private_addresses_are_refused() -> None:
    for host in ("127.0.0.1", "[::1]", "10.0.0.1", "[::ffff:127.0.0.1]", "169.254.169.254"):
        with pytest.raises(InvalidProduct, match="private address"):
            await resolve(f"http://{host}/", allow_private=False)
    assert await resolve("http://127.0.0.1/", allow_private=True) == ["127.0.0.1"]
    assert await resolve("http://8.8.8.8/", allow_private=False) == ["8.8.8.8"]


def test_platforms_know_their_addresses() -> None:
    platforms = load_platforms()
    assert tuple(platforms) == NAMES
    for platform in platforms.values():
        if platform.base is not None:
            strange = platform.url_of(platform.base, "A&1 b")
            assert platform.id_in(platform.base, f"{strange}#top") == "A&1 b"
            plain = platform.url_of(platform.base, "5012")
            assert platform.id_in(platform.base, f"{plain}") == "5012"
            assert platform.id_in(platform.base, "https://elsewhere.example/5012") is None


def test_platform_files_are_checked(tmp_path: Path) -> None:
    folder = tmp_path
    with pytest.raises(InvalidSetting, match="not a folder"):
        load_platforms(str(folder / "none"))
    for content, said in (
        ("{", "kurly.json"),
        ('{"platform": "amazon", "title": "A", "reader": "page"}', "use one of hwahae"),
        ('{"platform": "kurly", "title": "K", "reader": "page"}', "is made for 'browser'"),
        ('{"platform": "kurly", "title": "K", "reader": "browser"}', "give both"),
    ):
        (folder / "kurly.json").write_text(content)
        with pytest.raises(InvalidSetting, match=said):
            load_platforms(str(folder))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no column platform"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"PK\x00\x03", "not a text file"),
        (b"name,price\na,1", "no column platform"),
        (b"platform,weight\nkurly,1", 'unknown column "weight"'),
        (b"platform,product,price\nkurly,1,cheap", 'line 2: price is "cheap"'),
        (b"platform,product\nkurly,1,2", "line 2: there are more values"),
        (b"platform,product\n,1", "line 2: platform is empty"),
        (b"platform,product\n", "has no products"),
        (b"[]", "has no products"),
        (b'[{"platform": "kurly", "size": 3}]', "size"),
        (b'{"products": [{"platform": 3}]}', "Expected `str`"),
        (b"[" * 100_000, "set.csv"),
    ],
)
def test_files_that_cannot_be_imported_are_refused(content: bytes, said: str) -> None:
    with pytest.raises(InvalidProduct, match=said):
        read_file("set.csv", content)
