"""The products of shops that do not exist: the same for the same id. No I/O."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

Behaviour = Literal["", "blocked", "busy", "slow", "broken", "gone", "no_price", "hungry"]

KINDS = (
    ("Green Tea", ("Toner", "Cleansing Oil", "Night Cream", "Sheet Mask", "Sun Stick")),
    ("Linen", ("Shirt", "Wide Trousers", "Tote Bag", "Summer Dress", "Apron")),
    ("Oat", ("Granola", "Milk 1 L", "Cookies", "Porridge", "Bread")),
)
MAKERS = ("Dalbit", "Harbour", "Paper Boat", "Miru", "Soban", "Blue Door", "Nuri", "Hanok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goods:
    """A product as its shop shows it. `status` is one of ours."""

    name: str
    price: int
    status: str = "on_sale"
    behaviour: Behaviour = ""


def goods_of(shop: str, product: str) -> Goods:
    """Return what a shop says about a product at first."""
    chance = random.Random(f"{shop}/{product}")  # noqa: S311 - only to vary
    kind, things = chance.choice(KINDS)
    name = f"{chance.choice(MAKERS)} {kind} {chance.choice(things)} {chance.randint(1, 9) * 50}"
    return Goods(name=name, price=chance.randint(40, 600) * 100)


def drifted(goods: Goods, shop: str, product: str, visits: int) -> Goods:
    """Return a product as it is after so many visits: now and then something changes."""
    chance = random.Random(f"{shop}/{product}/{visits}")  # noqa: S311 - only to vary
    if visits == 0 or chance.random() > 0.3:
        return goods
    if chance.random() < 0.7:
        factor = chance.choice((0.7, 0.8, 0.9, 1.1, 1.2))
        return replace(goods, price=max(int(goods.price * factor) // 100, 1) * 100)
    return replace(goods, status="sold_out" if goods.status == "on_sale" else "on_sale")
