"""The crawler keeps the rules of its hosts, and never asks twice for what it has."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest
from spots_support.places import Spots, open_spots

from headrace import RateLimited
from headrace_spots.crawling import fetch
from headrace_spots.crawling.charset import decode
from headrace_spots.crawling.crawl import Crawl, Crawled
from headrace_spots.crawling.fetch import Fetcher, Manners
from headrace_spots.crawling.pages import Fetched, Inflater, TooLarge, retry_after
from headrace_spots.errors import CrawlFailed, RobotsRefused
from headrace_spots.mock_shop.plans import ShopPlan
from headrace_spots.mock_shop.server import MockShop

SHOP = ShopPlan(slug="shop", name="The Shop", pages=6, per_page=2)


class MemoryPages:
    """Kept pages, without a job."""

    def __init__(self) -> None:
        self.kept: dict[str, Fetched] = {}

    async def get(self, url: str) -> Fetched | None:
        return self.kept.get(url)

    async def put(self, fetched: Fetched, **_: Any) -> None:
        assert fetched.url not in self.kept
        self.kept[fetched.url] = fetched

    async def pages(self) -> AsyncIterator[Fetched]:
        for each in self.kept.values():
            yield each


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are tried again soon."""
    monkeypatch.setattr(fetch, "FIRST_BACKOFF", 0.001)


def manners(**changes: Any) -> Manners:
    settings: dict[str, Any] = {
        "user_agent": "HeadraceSpots/test",
        "delay": 0.0,
        "page_seconds": 10.0,
        "patience": 5.0,
        "largest_page": 1 << 20,
        "allow_private": lambda url: True,
    }
    return Manners(**{**settings, **changes})


async def crawl(
    url: str, pages: MemoryPages | None = None, *, most_pages: int = 100, **changes: Any
) -> Crawled:
    async with Fetcher(manners(**changes)) as fetcher:
        kept: Any = pages or MemoryPages()
        return await Crawl(fetcher, kept, most_pages=most_pages).run(url)


async def test_all_pages_of_a_shop_are_fetched_once_and_no_others() -> None:
    async with MockShop([SHOP]) as shop:
        pages = MemoryPages()
        found = await crawl(shop.url("/shop/"), pages)
        assert (found.pages, found.failed, found.left) == (8, 0, 0)
        assert found.refused == 1, "the cart; what is elsewhere is not even looked at"
        assert set(shop.visits.counts.values()) == {1}
        assert not [each for each in shop.visits.requests if "cart" in each or "private" in each]
        before = len(shop.visits.requests)
        again = await crawl(shop.url("/shop/"), pages)
        assert (again.pages, len(shop.visits.requests)) == (8, before), "nothing is fetched again"


async def test_a_crawl_that_was_cut_off_goes_on_where_it_was() -> None:
    async with MockShop([SHOP]) as shop:
        pages = MemoryPages()
        put = pages.put

        async def dies(fetched: Fetched, **options: Any) -> None:
            await put(fetched, **options)
            if len(pages.kept) == 5:
                raise KeyboardInterrupt

        pages.put = dies  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            await crawl(shop.url("/shop/"), pages)
        pages.put = put  # type: ignore[method-assign]
        assert (await crawl(shop.url("/shop/"), pages)).pages == 8
        assert set(shop.visits.counts.values()) == {1}


async def test_the_first_page_has_to_be_allowed() -> None:
    async with MockShop([SHOP], robots="User-agent: *\nDisallow: /shop\n") as shop:
        with pytest.raises(RobotsRefused):
            await crawl(shop.url("/shop/"))
        assert shop.visits.requests == ["/robots.txt"]


async def test_rules_for_this_crawler_count_before_those_for_all() -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: HeadraceSpots\nDisallow: /shop/reviews\n"
    async with MockShop([SHOP], robots=rules) as shop:
        found = await crawl(shop.url("/shop/"))
        assert found.refused == 1
        assert not [each for each in shop.visits.requests if "reviews" in each]


async def test_a_host_that_cannot_say_its_rules_is_not_crawled() -> None:
    async with MockShop([SHOP], broken=["/robots.txt"] * 9) as shop:
        # Three tries of one answer: it is broken for good.
        shop._answer = lambda target, host: _broken(shop, target)  # type: ignore[assignment]
        with pytest.raises(CrawlFailed):
            await crawl(shop.url("/shop/"))
        assert set(shop.visits.requests) == {"/robots.txt"}


def _broken(shop: MockShop, target: str) -> Any:
    from headrace_spots.mock_shop.server import _Answer

    shop.visits.requests.append(target)
    return _Answer(500)


async def test_a_delay_in_the_rules_is_kept() -> None:
    rules = "User-agent: *\nCrawl-delay: 0.02\n"
    async with MockShop([SHOP], robots=rules) as shop, Fetcher(manners()) as fetcher:
        pages: Any = MemoryPages()
        await Crawl(fetcher, pages, most_pages=3).run(shop.url("/shop/"))
        assert fetcher.delay == pytest.approx(0.02)


async def test_a_host_that_asks_to_wait_is_not_asked_before() -> None:
    async with MockShop([SHOP], busy_every=5, busy_seconds=1) as shop:
        found = await crawl(shop.url("/shop/"))
        assert (found.pages, found.failed) == (8, 0)
        assert shop.visits.too_early == []
        assert len(shop.visits.requests) == 11, "9 pages and rules, 2 of them asked for twice"


async def test_a_host_that_asks_for_more_patience_is_left_to_a_later_attempt(
    spots: Spots,
) -> None:
    async with MockShop([SHOP], busy_every=4, busy_seconds=900) as shop:
        with pytest.raises(RateLimited) as raised:
            await crawl(shop.url("/shop/"))
        assert (raised.value.delay, raised.value.key) == (900, True)
        job_id = (await spots.post(shop.url("/shop/")))["job_id"]
        await spots.work()
        shown = await spots.get(job_id)
        assert (shown["status"], shown["error"]) == ("crawling", None)
        assert shown["job"]["status"] == "scheduled", "without a slot"
        asked = len(shop.visits.requests)
        second = (await spots.post(shop.url("/shop/")))["job_id"]
        await spots.work()
        assert len(shop.visits.requests) == asked, "its host is not asked for others either"
        # Neither if the run that was told so is gone.
        await spots.app.cancel(job_id)
        await spots.work()
        assert len(shop.visits.requests) == asked
        [held] = await spots.app.rates()
        assert held.held_until is not None
        assert "is held until" in " ".join(await spots.app.why(second))


async def test_an_error_of_the_host_is_tried_again() -> None:
    broken = ["/shop/", "/shop/reviews?page=2", "/robots.txt"]
    async with MockShop([SHOP], broken=broken) as shop:
        found = await crawl(shop.url("/shop/"))
        assert (found.pages, found.failed) == (8, 0)


async def test_pages_beyond_the_limits_are_passed_over() -> None:
    large = ShopPlan(slug="shop", name="Large", pages=3, per_page=1, padding=200_000)
    async with MockShop([large]) as shop:
        with pytest.raises(Exception, match="has more than 100,000 bytes"):
            await crawl(shop.url("/shop/"), largest_page=100_000)
    async with MockShop([SHOP]) as shop:
        found = await crawl(shop.url("/shop/"), most_pages=3)
        assert found.pages == 3
        assert found.left > 0
        assert len(shop.visits.requests) == 4


async def test_a_host_that_is_not_there_is_worth_a_retry() -> None:
    with pytest.raises(CrawlFailed):
        await crawl("http://127.0.0.1:9/")


def test_a_small_answer_may_not_become_a_large_page() -> None:
    packed = gzip.compress(bytes(64 << 20))
    inflater = Inflater("gzip", 1 << 20)
    with pytest.raises(TooLarge):
        inflater.add(packed)
    assert len(inflater.content()) == 1 << 20


def test_a_pause_is_read_in_seconds_and_as_a_date() -> None:
    assert retry_after({"retry-after": "120"}) == 120
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    ("content", "header", "text"),
    [
        ("<meta charset=euc-kr>똠방각하".encode("cp949"), "", "똠방각하"),
        ("<meta charset='EUC-KR'>햇살".encode("cp949"), "text/html; charset=utf-8", "햇살"),
        (
            '<meta http-equiv="Content-Type" content="text/html; charset=ks_c_5601-1987">펲'.encode(
                "cp949"
            ),
            "",
            "펲",
        ),
        ("햇살".encode("cp949"), "", "햇살"),
        ("<meta charset=euc-kr>햇살".encode(), "", "햇살"),
        ("햇살".encode(), "text/html", "햇살"),
        ("\ufeff햇살".encode(), "", "햇살"),
        ("<meta charset=rot13>햇살".encode(), "", "햇살"),
        ("<meta charset=nonsense>café".encode("latin-1"), "text/html; charset=latin-1", "café"),
        (b"\xff\xfe\xff", "", ""),
    ],
)
def test_a_page_is_decoded_by_what_it_says_and_what_fits(
    content: bytes, header: str, text: str
) -> None:
    assert text in decode(content, header)


async def test_a_language_model_is_asked_where_one_is_set(tmp_path: Any, monkeypatch: Any) -> None:
    """And without an answer sentences are chosen: a shop is not failed by that."""
    monkeypatch.setenv("HEADRACE_ARTIFACTS", str(tmp_path / "files"))
    url = f"sqlite:///{tmp_path}/jobs.db"
    nowhere = "http://127.0.0.1:9/v1"
    async with MockShop([SHOP]) as shop, open_spots(url, summary_url=nowhere) as spots:
        shown = await spots.run(shop.url("/shop/"))
        assert shown["status"] == "completed"
        body = await spots.service.repository.body(shown["run_id"])
        assert body is not None
        assert (body["summary_by"], len(body["summary"])) == ("chosen", 3)
