"""A host is asked by one run at a time, over all workers and by whichever name."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from spots_support.names import Names
from spots_support.places import EVERYWHERE, Place, Spots, open_spots

from headrace_spots.mock_shop.plans import ShopPlan
from headrace_spots.mock_shop.server import MockShop


@EVERYWHERE
async def test_runs_of_one_host_are_one_after_the_other_over_two_workers(
    spots: Spots, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of `www.`, and of another port: the lane is the host."""
    Names(monkeypatch, shop_example=["127.0.0.1"], www_shop_example=["127.0.0.1"])
    plans = [ShopPlan(slug=f"s{each}", name=f"S{each}", pages=2, per_page=2) for each in range(5)]
    asked: list[str] = []
    async with (
        MockShop(plans, slow_seconds=0.02, on_request=asked.append) as shop,
        MockShop(plans, slow_seconds=0.02, on_request=asked.append) as other,
    ):
        name, www = "shop.example", "www.shop.example"
        urls = [shop.url(f"/s{each}/", (name, www)[each % 2]) for each in range(4)]
        urls.append(other.url("/s4/", name))
        ids = [(await spots.post(each))["job_id"] for each in urls]
        async with open_spots(spots.app.settings.url) as second:
            await asyncio.gather(spots.work(name="one"), second.work(name="two"))
        runs = [await spots.get(each) for each in ids]
        assert [each["status"] for each in runs] == ["completed"] * 5
        assert shop.visits.most_at_once == other.visits.most_at_once == 1
        # The log of the shops: none was asked for while another was not done.
        pages = [each.split("/")[1] for each in asked if each != "/robots.txt"]
        assert [slug for slug, _ in itertools.groupby(pages)] == [each.slug for each in plans]
        jobs = [await spots.app.get(each) for each in ids]
        assert {each.lane for each in jobs} == {"host:shop.example"}
        for before, after in itertools.pairwise(jobs):
            assert before.completed_at is not None
            assert after.started_at is not None
            assert before.completed_at <= after.started_at
