"""Extract jobs: single products, by address, by id, or the same one on many platforms. Each asks
the platforms by runs of their workflows, which wait for their turn there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headrace import Context, FailedChild
from headrace_scanner.errors import InvalidProduct
from headrace_scanner.platforms import SHOPS
from headrace_scanner.reading.addresses import check_url, shown
from headrace_scanner.service import ScannerService

TYPES = ("url_extraction", "single_product", "multi_platform")


class Extracted(msgspec.Struct, kw_only=True):
    """What was found of one product. `error` says why nothing was."""

    platform: str
    product: str
    scan_id: str | None = None
    url: str | None = None
    outcome: str = "failed"
    name: str | None = None
    price: float | None = None
    sale_status: str | None = None
    error: str | None = None


class Offers(msgspec.Struct, kw_only=True):
    """The same product on many platforms; `cheapest` is the platform where it can be bought for
    least.
    """

    offers: list[Extracted]
    cheapest: str | None


def check_type(given: str) -> str:
    """Return a type of extract job, or refuse what is none."""
    if given not in TYPES:
        raise InvalidProduct(f"type is {shown(given)}; use one of {', '.join(TYPES)}")
    return given


@dataclass
class Extraction:
    """One attempt at one extract job."""

    service: ScannerService
    ctx: Context

    async def url(self, url: str, set_name: str) -> Extracted:
        """Read the product at an address, and keep it as a product of its platform."""
        check_url(url)
        platform = self.service.platform_of(url)
        return (await self._read({platform: url}, set_name))[0]

    async def product(self, platform: str, product: str) -> Extracted:
        """Read one product of a platform."""
        return (await self._read({platform: product}, ""))[0]

    async def everywhere(self, products: dict[str, str]) -> Offers:
        """Read a product on many platforms at once."""
        if not products:
            raise InvalidProduct('products is empty; give some, such as {"kurly": "5012"}')
        found = await self._read(products, "")
        buyable = [each for each in found if each.sale_status == "on_sale" and each.price]
        cheapest = min(buyable, key=lambda each: each.price or 0.0, default=None)
        return Offers(offers=found, cheapest=None if cheapest is None else cheapest.platform)

    async def _read(self, products: dict[str, str], set_name: str) -> list[Extracted]:
        for name, product in products.items():
            if name not in SHOPS:
                raise InvalidProduct(f"platform is {shown(name)}; use one of {', '.join(SHOPS)}")
            self.service.product(name, product)
        workflows = self.service.app.workflows
        runs = [
            workflows.job(
                self.service.platform(name).workflow, {"set": set_name, "products": [product]}
            )
            for name, product in products.items()
        ]
        ended = await self.ctx.gather(runs, group="runs", on_failure="collect")
        pairs = zip(products.items(), ended, strict=True)
        return [_extracted(name, product, end) for (name, product), end in pairs]


def _extracted(platform: str, product: str, end: Any) -> Extracted:
    if isinstance(end, FailedChild):
        return Extracted(platform=platform, product=product, error=end.error)
    items = end["items"] if isinstance(end, dict) else []
    if not items:
        return Extracted(platform=platform, product=product, error="the run has found nothing")
    item = items[0]
    return Extracted(
        platform=platform,
        product=item["external_id"],
        scan_id=end["scan_id"],
        url=item["url"],
        outcome=item["outcome"],
        name=item["name"],
        price=item["price"],
        sale_status=item["sale_status"],
        error=item["error"],
    )
