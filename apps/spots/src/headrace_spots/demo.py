"""The demo of `headrace up --bundle spots`: three shops that do not exist, in this process.

Their server listens on this machine alone, and costs nothing while nobody asks it.
"""

from __future__ import annotations

from headrace import App
from headrace.bundles import Setup
from headrace_spots.crawling.urls import origin_of
from headrace_spots.mock_shop.plans import DEMO
from headrace_spots.mock_shop.server import MockShop
from headrace_spots.service import SpotsService
from headrace_spots.shops import Shops


async def demo(app: App, setup: Setup) -> None:
    """Have three shops analysed."""
    service = SpotsService.of(setup)
    shop = MockShop(DEMO, busy_every=30, broken=["/blue-door/reviews?page=4"])
    await shop.start()
    # It is ours and has no firewall before it, so the crawler may come, and need not be slow.
    service.own_origins.add(origin_of(shop.url()))
    service.guests.append(shop)
    shops = Shops(service)
    for plan in DEMO:
        await shops.add(shop.url(f"/{plan.slug}/"))
