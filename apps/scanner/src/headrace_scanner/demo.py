"""The demo of `headrace up --bundle scanner`: eight shops that do not exist, in this process.

Their server listens on this machine alone, and costs nothing while nobody asks it.
"""

from __future__ import annotations

from headrace import App
from headrace.bundles import Setup
from headrace_scanner.imports import ProductRow
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.platforms import SHOPS
from headrace_scanner.scanner import Scanner
from headrace_scanner.service import ScannerService

PRODUCTS = 14
FIRST = 5001
SLOW_SECONDS = 0.25
SET = "spring"


async def demo(app: App, setup: Setup) -> None:
    """Import a set of products, and scan all platforms; some of it waits."""
    service = ScannerService.of(setup)
    shops = MockShops(slow_seconds=SLOW_SECONDS, drift=True)
    await shops.start()
    service.use_shops(shops.url)
    service.guests.append(shops)
    scanner = Scanner(service)
    await scanner.add(demo_products(shops), SET)
    for platform in SHOPS:
        await scanner.scan(platform, set_name=SET)
    # These wait for the first ones; the one of the higher priority is first.
    few = [shops.page("kurly", str(FIRST + each)) for each in range(3)]
    await scanner.scan("kurly", set_name=SET)
    await scanner.scan("kurly", products=few, priority=5)
    await scanner.scan("musinsa", set_name=SET)
    offers = {name: shops.page(name, str(FIRST)) for name in ("ably", "hwahae", "musinsa")}
    await scanner.extract("multi_platform", {"products": offers})
    await scanner.extract("url_extraction", {"url": shops.page("extract", "77"), "set": SET})


def demo_products(shops: MockShops) -> list[ProductRow]:
    """Return products as somebody wrote them down last week: some are not so any more."""
    rows = []
    for place, shop in enumerate(SHOPS):
        for number in range(PRODUCTS):
            product = str(FIRST + number)
            goods = shops.look(shop, product)
            row = ProductRow(
                platform=shop,
                url=shops.page(shop, product),
                name=goods.name,
                price=float(goods.price),
                sale_status=goods.status,
            )
            match (number + place) % 14:
                case 2:
                    row.price = round(goods.price * 1.25, -2)
                case 5:
                    shops.put(shop, product, status="sold_out")
                case 7:
                    row.price = round(goods.price * 0.8, -2)
                case 9:
                    row.name = f"{goods.name} (old)"
                case 11:
                    shops.put(shop, product, behaviour="blocked")
                case 12:
                    shops.put(shop, product, behaviour="gone")
            rows.append(row)
    return rows
