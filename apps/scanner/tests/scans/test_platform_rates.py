"""How fast the batches of a platform begin, over all workers."""

from __future__ import annotations

import pytest
from scanner_support.places import Place, open_scanner

from headrace_scanner.mock_shops import MockShops
from headrace_scanner.platforms.model import STEP_LANE
from headrace_scanner.settings import ScannerSettings


def test_the_rate_follows_from_the_delay() -> None:
    assert ScannerSettings().rate == "1.000000000/s"
    assert ScannerSettings(delay_seconds=4).rate == "0.250000000/s"
    assert ScannerSettings(delay_seconds=0).rate is None
    # Shops of ours need not be spared.
    assert ScannerSettings(shops="http://127.0.0.1:1").rate is None


async def test_batches_of_a_platform_begin_at_its_rate(
    place: Place, shops: MockShops, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScannerSettings, "rate", "1/h")
    async with open_scanner(place, shops) as scanning:
        first = await scanning.execute("musinsa-validation-v2", {"products": ["1"]})
        await scanning.work()
        assert (await scanning.get(first))["status"] == "completed"
        second = await scanning.execute("musinsa-validation-v2", {"products": ["2"]})
        other = await scanning.execute("zigzag-validation-v2", {"products": ["2"]})
        await scanning.work()
        # It has loaded, and waits before it asks the shop; another platform does not.
        assert (await scanning.get(second))["status"] != "completed"
        assert (await scanning.get(other))["status"] == "completed"
        [rate] = await scanning.app.rates(queue="musinsa")
        assert (rate.lane, rate.waiting) == (STEP_LANE, 1)
        # What an operator says counts for all steps, now.
        await scanning.app.set_rate("musinsa", "1000/s", lane=STEP_LANE)
        await scanning.work()
        assert (await scanning.get(second))["status"] == "completed"
