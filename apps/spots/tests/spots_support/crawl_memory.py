"""A worker that analyses one shop, in a process of its own; prints how much memory it took.

Run as `python -m spots_support.crawl_memory URL SHOP PAGES`. Printed are the bytes at most: before
the shop, and in the end.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys

from headrace_spots import analysis
from spots_support.places import open_spots


def most() -> int:
    """Return the most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def main() -> None:
    """Analyse one shop."""
    url, shop, pages = sys.argv[1], sys.argv[2], int(sys.argv[3])
    texts = ["warm coffee", "커피가 좋아요"]
    analysis.aspects(texts, analysis.Sentiment.load().of(texts))
    async with open_spots(url, most_pages=pages) as spots:
        job_id = (await spots.post(shop))["job_id"]
        before = most()
        await spots.work()
        shown = await spots.get(job_id)
    found = {"before": before, "most": most(), "run": shown}
    print(json.dumps(found))


asyncio.run(main())
