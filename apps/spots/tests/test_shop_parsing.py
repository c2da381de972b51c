"""Reviews are found in JSON-LD, in microdata, and by selectors."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from headrace import InvalidSetting
from headrace_spots.crawling.links import links_of
from headrace_spots.mock_shop.html import first_page, review_page
from headrace_spots.mock_shop.plans import ShopPlan, review_at
from headrace_spots.parsing.found import day_of, make_review, scaled
from headrace_spots.parsing.parse import parse_page
from headrace_spots.parsing.selectors import load_sites, read_site, site_of

TODAY = date(2026, 11, 17)
URL = "https://plain.example/shop/reviews?page=1"


@pytest.mark.parametrize("form", ["json-ld", "microdata", "plain"])
def test_every_form_says_the_same(form: Any) -> None:
    plan = ShopPlan(slug="shop", name='A "B" & <C>', form=form, languages=("ko", "en"), pages=2)
    wanted = [review_at(plan, each, TODAY) for each in range(plan.per_page)]
    site = site_of(load_sites(None), URL)
    found = parse_page(review_page(plan, 1, TODAY), URL, site).reviews
    assert [each.text for each in found] == [each.text for each in wanted]
    assert [each.rating for each in found] == [each.rating for each in wanted]
    assert [each.day for each in found] == [each.day for each in wanted]
    assert not [each for each in found if each.text in {other.author for other in wanted}]


@pytest.mark.parametrize("form", ["json-ld", "microdata"])
def test_the_shop_is_named(form: Any) -> None:
    plan = ShopPlan(slug="shop", name="달빛 & Co", form=form, address="서울시 어딘가 1")
    shop = parse_page(first_page(plan, TODAY), "https://x.example/shop/").shop
    assert (shop.name, shop.address) == ("달빛 & Co", "서울시 어딘가 1")
    assert shop.rating is not None
    assert shop.reviews == 120


def ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


REVIEW = (
    '{"@type": "Review", "reviewBody": "Fine.", '
    '"reviewRating": {"ratingValue": "8", "bestRating": 10}}'
)


@pytest.mark.parametrize(
    "text",
    [
        REVIEW,
        f"[{REVIEW}]",
        f'{{"@graph": [{REVIEW}]}}',
        f'{{"@type": "Restaurant", "name": "R", "review": {REVIEW}}}',
        f'{{"@type": ["Store", "Thing"], "reviews": [{REVIEW}, {REVIEW}]}}',
        REVIEW.replace("Review", "http://schema.org/Review", 1),
        REVIEW.replace("Fine.", "Fine\n."),
        f"{REVIEW};",
    ],
)
def test_json_ld_is_read_as_pages_write_it(text: str) -> None:
    (review,) = parse_page(ld(text), URL).reviews
    assert review.rating == 4
    assert review.text.startswith("Fine")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[" * 100_000,
        '{"@type": "Review"}',
        '{"@type": "Review", "reviewBody": {"a": 1}}',
        '{"@type": {}, "review": 3}',
        '{"@type": "Review", "reviewBody": "   "}',
    ],
)
def test_what_is_no_review_is_passed_over(text: str) -> None:
    assert parse_page(ld(text) + ld(REVIEW), URL).reviews[0].text == "Fine."
    assert len(parse_page(ld(text) + ld(REVIEW), URL).reviews) == 1


def test_a_page_that_does_not_want_to_be_indexed_is_not_read() -> None:
    page = f'<meta name="Robots" content="NOINDEX, nofollow">{ld(REVIEW)}<a href="/shop/x">x</a>'
    assert parse_page(page, URL).reviews == ()
    found = links_of(page, "https://a.example/shop/", "https://a.example/shop/")
    assert (found.following, found.others) == ((), ())


def test_links_are_those_of_the_shop_and_its_next_pages() -> None:
    page = """<base href="/shop/"><a href="a">A</a><a href="a#b">A</a><a href="/else">no</a>
    <a href="/list?page=2" rel="next">next</a><a href="https://o.example/shop/x">no</a>
    <a href="b" rel="nofollow">no</a><a class=more href="/elsewhere">more</a>
    <a href="c.jpg">no</a>"""
    start = "https://a.example/shop/"
    found = links_of(page, start, start, ["a.more"])
    assert found.following == ["https://a.example/list?page=2"]
    assert found.others == ["https://a.example/shop/a", "https://a.example/elsewhere"]


@pytest.mark.parametrize(
    ("value", "best", "wanted"),
    [
        ("4,5", None, 4.5),
        (90, 100, 4.5),
        ("7/10", "10", 3.5),
        (6, 5, None),
        (-1, 5, None),
        (True, 5, None),
        ("none", 5, None),
        (3, 0, 3.0),
        (float("nan"), 5, None),
    ],
)
def test_ratings_are_of_five(value: Any, best: Any, wanted: float | None) -> None:
    assert scaled(value, best) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("2026-03-04T10:00:00+09:00", "2026-03-04"),
        ("2026. 3. 4.", "2026-03-04"),
        ("2026년 3월 4일", "2026-03-04"),
        ("2026/03/04", "2026-03-04"),
        ("20260304", "2026-03-04"),
        ("2099-01-01", None),
        ("2026-02-31", None),
        ("yesterday", None),
        (5, None),
    ],
)
def test_days_are_read_as_pages_write_them(value: Any, wanted: str | None) -> None:
    assert day_of(value, TODAY) == wanted


def test_a_review_is_the_same_wherever_it_stands() -> None:
    one = make_review("<b>Good</b>\n coffee\u202e", url="a", author="Kim", title="Good coffee")
    two = make_review("Good coffee", url="b", author="Kim ")
    assert one is not None
    assert two is not None
    assert (one.text, one.review_id) == ("Good coffee", two.review_id)
    other = make_review("Good coffee", url="b", author="Lee")
    assert other is not None
    assert other.review_id != one.review_id


def test_a_selector_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    for text in ("host: a\nreviews: {}", "- a", "host: a\nfollow: ['a[']", "host: ["):
        with pytest.raises(InvalidSetting, match=r"a\.yaml"):
            read_site(text, "a.yaml")
    (tmp_path / "mine.yaml").write_text("host: www.Mine.example\nfollow: [a]\n")
    sites = load_sites(str(tmp_path))
    found = site_of(sites, "https://m.mine.example/x")
    assert found is not None
    assert found.host == "mine.example"
    assert site_of(sites, "https://yours.example/") is None
    with pytest.raises(InvalidSetting, match="not a folder"):
        load_sites(str(tmp_path / "nowhere"))
