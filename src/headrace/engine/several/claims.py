"""How many jobs to claim in each store: fair shares, and none is wasted on one without jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.engine.several.store.member import Member


class Share(msgspec.Struct, frozen=True):
    """What to ask one store for: up to `limit` jobs, at most `free` of them with a rate."""

    limit: int
    free: int | None


def fair_shares(
    members: Sequence[Member], limit: int, free: int | None, *, turn: int, now: float
) -> dict[Member, Share]:
    """Divide a claim evenly among the stores that may have jobs; who gets one more takes turns.
    Those that had fewer than they were asked for are left out for a while, unless all had.

    What the shares add up to is `limit` if there is a store, and their `free` never more than that.
    """
    if not members:
        return {}
    order = [members[(turn + at) % len(members)] for at in range(len(members))]
    order = [each for each in order if each.may_have_jobs(now)] or order
    counts = [limit // len(order) + (at < limit % len(order)) for at in range(len(order))]
    shares: dict[Member, Share] = {}
    for member, count in zip(order, counts, strict=True):
        own = None
        if free is not None:
            own = min(free - sum(each.free or 0 for each in shares.values()), count)
        shares[member] = Share(count, own)
    return shares
