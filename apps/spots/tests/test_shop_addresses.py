"""URLs and addresses: what may be crawled, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from spots_support.names import Names
from spots_support.places import Spots, open_spots

from headrace.bundles import is_public
from headrace_spots.crawling.hosts import check_named, resolve
from headrace_spots.crawling.urls import clean_url, is_below, lane_of, linked
from headrace_spots.errors import InvalidAddress
from headrace_spots.mock_shop.plans import ShopPlan
from headrace_spots.mock_shop.server import MockShop

SMALL = ShopPlan(slug="small", name="Small", pages=1, per_page=2)


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ("HTTP://Shop.Example:80", "http://shop.example/"),
        ("https://shop.example:443/a#b", "https://shop.example/a"),
        ("https://shop.example/a?utm_source=x&page=2", "https://shop.example/a?page=2"),
        ("https://가게.example/메뉴", "https://xn--o39akk.example/%EB%A9%94%EB%89%B4"),
        ("http://[2001:4860::1]:8080/x", "http://[2001:4860::1]:8080/x"),
        ("  https://shop.example/a%20b ", "https://shop.example/a%20b"),
    ],
)
def test_a_url_has_one_form(given: str, cleaned: str) -> None:
    assert clean_url(given) == cleaned
    assert clean_url(cleaned) == cleaned


@pytest.mark.parametrize(
    "given",
    [
        "",
        "shop.example",
        "ftp://shop.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "http:///x",
        "http://user:secret@shop.example/",
        "http://shop.example:99999/",
        "http://shop.example/a\r\nHost: b",
        "http://" + "a" * 3000,
        "http://a..b/",
    ],
)
async def test_what_is_no_url_of_a_shop_is_refused(spots: Spots, given: str) -> None:
    with pytest.raises(InvalidAddress):
        clean_url(given)
    answer = await spots.client.post("/spots/jobs", json={"url": given})
    assert answer.status_code == 422, answer.text
    assert "secret" not in answer.text
    assert (await spots.service.repository.runs())[0] == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:53aa:64c::1",
    ],
)
def test_an_address_that_is_not_of_the_internet_is_private(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(InvalidAddress):
        check_named(address)


def test_addresses_of_the_internet_are_public() -> None:
    assert is_public("93.184.215.14")
    assert is_public("2606:2800:21f:cb07:6820:80da:af6b:8b2c")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost:8080/",
        "http://shop.localhost/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:10.0.0.1]/",
    ],
)
async def test_a_private_address_is_refused_at_once(url: str, tmp_path: Any) -> None:
    async with open_spots(f"sqlite:///{tmp_path}/jobs.db", allow_private=False) as spots:
        answer = await spots.client.post("/spots/jobs", json={"url": url})
        assert answer.status_code == 422
        assert "HEADRACE_SPOTS_ALLOW_PRIVATE" in answer.json()["detail"]


async def test_a_name_that_leads_to_a_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Also if another of its addresses is public."""
    Names(monkeypatch, inside_example=["127.0.0.1"], both_example=["93.184.215.14", "10.0.0.1"])
    for name in ("inside.example", "both.example"):
        with pytest.raises(InvalidAddress):
            await resolve(name, 80, allow_private=False)
    monkeypatch.setenv("HEADRACE_ARTIFACTS", str(tmp_path / "files"))
    async with (
        MockShop([SMALL]) as shop,
        open_spots(f"sqlite:///{tmp_path}/jobs.db", allow_private=False) as spots,
    ):
        shown = await spots.run(f"http://inside.example:{shop.port}/small/")
        assert shown["status"] == "failed"
        assert "private address" in shown["error"]
        assert shown["job"]["attempt"] == 1, "a retry would not help"
        assert shop.visits.requests == []


async def test_a_redirect_to_a_private_address_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("HEADRACE_ARTIFACTS", str(tmp_path / "files"))
    async with (
        MockShop([SMALL]) as inside,
        MockShop([SMALL], redirects={"/small/": inside.url("/small/")}) as shop,
        open_spots(f"sqlite:///{tmp_path}/jobs.db", allow_private=False) as spots,
    ):
        # As if it were a public one: only its own port may be asked.
        spots.service.own_origins.add(shop.url("").rstrip("/"))
        shown = await spots.run(shop.url("/small/"))
        assert shown["status"] == "failed"
        assert "private address" in shown["error"]
        assert inside.visits.requests == []


async def test_a_redirect_to_another_host_is_told_and_not_followed(spots: Spots) -> None:
    async with MockShop([SMALL], redirects={"/small/": "http://127.0.0.2:9/x"}) as shop:
        shown = await spots.run(shop.url("/small/"))
    assert shown["status"] == "failed"
    assert "another host; add that one" in shown["error"]


async def test_the_connection_goes_to_the_address_that_was_checked(
    spots: Spots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is answered differently the next time gains nothing."""
    names = Names(monkeypatch, shop_example=["127.0.0.1"])
    async with MockShop([SMALL]) as shop:
        shown = await spots.run(f"http://shop.example:{shop.port}/small/")
        assert shown["status"] == "completed", shown["error"]
        assert len(names.asked) == len(shop.visits.requests)


def test_a_shop_is_its_path_and_what_is_below() -> None:
    start = "https://shop.example/kim"
    assert is_below("https://shop.example/kim?page=2", start)
    assert is_below("https://www.shop.example/kim/reviews", start)
    assert not is_below("https://shop.example/kimchi", start)
    assert not is_below("https://other.example/kim/reviews", start)
    assert lane_of("https://www.shop.example:8443/") == "shop.example"
    assert linked(start, "mailto:a@b.example") is None
    assert linked(start, "/a/logo.PNG?v=2") is None
    assert linked(start, "?page=3#top") == "https://shop.example/kim?page=3"
