"""The commands `headrace spots …`. They work on the store, or by the server of API_URL."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click
import msgspec

from headrace import InvalidInput
from headrace.bundles import Session
from headrace_spots.remote import RemoteShops
from headrace_spots.service import SpotsService
from headrace_spots.shops import Shops
from headrace_spots.store.records import FINAL, RunStatus
from headrace_spots.views import RunView, StoreDetail

POLL_SECONDS = 0.5


def commands() -> click.Group:
    """Return the group."""
    group = click.Group("spots", help="Shops: analyse, show, find, report.")
    for command in (_add(), _show(), _list(), _search(), _report(), _schedule(), _remove()):
        group.add_command(command)
    return group


def _add() -> click.Command:
    @click.command("add")
    @click.argument("urls", nargs=-1, required=True, metavar="URL...")
    @click.option("--wait/--no-wait", default=True, help="Wait until all are analysed.")
    async def add(session: Session, urls: tuple[str, ...], *, wait: bool) -> int:
        """Have shops analysed. A worker with the bundle does it."""
        async with _opened(session) as shops:
            accepted = [await shops.add(url) for url in urls]
            ids = [each.job_id for each in accepted]
            runs = await _ended(session, shops, ids) if wait else []
        if session.json:
            session.print_json({"jobs": msgspec.to_builtins(runs or accepted)})
        elif runs:
            _print_runs(session, runs)
        else:
            for job_id in ids:
                session.print_line(job_id)
        return 1 if any(each.status == RunStatus.FAILED for each in runs) else 0

    return add


def _show() -> click.Command:
    @click.command("show")
    @click.argument("shop_or_run", metavar="ID")
    async def show(session: Session, shop_or_run: str) -> None:
        """Show a shop, or a run of it."""
        async with _opened(session) as shops:
            found: StoreDetail | RunView | None
            if "-" in shop_or_run:
                found = await shops.get(shop_or_run)
            else:
                found = await shops.store(shop_or_run)
        if found is None:
            raise InvalidInput(f"there is no shop and no run {shop_or_run}")
        if session.json:
            session.print_json(msgspec.to_builtins(found))
        elif isinstance(found, RunView):
            session.print_table(["FIELD", "VALUE"], list(msgspec.to_builtins(found).items()))
        else:
            _print_shop(session, found)

    return show


def _list() -> click.Command:
    @click.command("list")
    @click.option("--runs", is_flag=True, help="Runs instead of shops.")
    @click.option("--status", type=click.Choice([each.value for each in RunStatus]))
    @click.option("--limit", default=50, help="At most so many (default 50).")
    async def list_shops(session: Session, *, runs: bool, status: str | None, limit: int) -> None:
        """List shops, or their runs, the newest first."""
        if not 1 <= limit <= 500:
            raise InvalidInput(f"--limit is {limit}; give 1 to 500")
        async with _opened(session) as shops:
            if runs or status:
                wanted = None if status is None else RunStatus(status)
                found, following = await shops.runs(status=wanted, limit=limit)
                if session.json:
                    body = {"jobs": msgspec.to_builtins(found), "next": following}
                    session.print_json(body)
                else:
                    _print_runs(session, found)
                return
            stores, following = await shops.stores(limit=limit)
        if session.json:
            session.print_json({"stores": msgspec.to_builtins(stores), "next": following})
            return
        session.print_table(
            ["SHOP", "NAME", "RATING", "REVIEWS", "STATUS", "URL"],
            [
                (
                    each.store_id,
                    each.name or "",
                    _stars(each.rating),
                    each.reviews,
                    "" if each.last is None else each.last.status,
                    each.url,
                )
                for each in stores
            ],
        )

    return list_shops


def _search() -> click.Command:
    @click.command("search")
    @click.argument("question")
    @click.option("--shop", help="Only reviews of this shop (its id).")
    @click.option("-k", default=5, help="So many results (default 5).")
    async def search(session: Session, question: str, shop: str | None, k: int) -> None:
        """Find reviews that answer a question."""
        async with _opened(session) as shops:
            hits = await shops.search(question, shop, k)
        if session.json:
            session.print_json({"hits": msgspec.to_builtins(hits)})
            return
        for hit in hits:
            about = " · ".join(
                each for each in (hit.shop, hit.day, _stars(hit.rating), hit.label) if each
            )
            session.print_line(f"{hit.score:.2f}  {about}")
            session.print_line(f"      {hit.text[:300]}")
        if not hits:
            session.print_line("Nothing was found.")

    return search


def _report() -> click.Command:
    @click.command("report")
    @click.argument("shop_or_run", metavar="ID")
    @click.option("-o", "--output", default="report.html", help="Where to; - is stdout.")
    async def report(session: Session, shop_or_run: str, output: str) -> None:
        """Save the report of a shop, or of a run of it (HTML)."""
        async with _opened(session) as shops:
            run_id: str | None = shop_or_run
            if "-" not in shop_or_run:
                found = await shops.store(shop_or_run)
                if found is None:
                    raise InvalidInput(f"there is no shop {shop_or_run}")
                run_id = found.run_id
            if run_id is None:
                raise InvalidInput(f"shop {shop_or_run} has no completed run yet")
            content = await shops.report(run_id)
        if output == "-":
            sys.stdout.buffer.write(content)
            return
        await asyncio.to_thread(Path(output).write_bytes, content)
        if session.json:
            session.print_json({"run_id": run_id, "file": output, "bytes": len(content)})
        else:
            session.print_line(f"{output}: {len(content):,} bytes")

    return report


def _schedule() -> click.Command:
    @click.command("schedule")
    @click.argument("shop")
    @click.argument("cron", required=False)
    @click.option("--tz", default="UTC", help="Time zone (default UTC).")
    @click.option("--remove", is_flag=True, help="Do not analyse it again by the clock.")
    async def schedule(
        session: Session, shop: str, cron: str | None, tz: str, *, remove: bool
    ) -> None:
        """Have a shop analysed again by the clock, such as "0 6 * * 1"."""
        if remove == (cron is not None):
            raise InvalidInput('give a cron expression such as "0 6 * * 1", or --remove')
        async with _opened(session) as shops:
            if cron is not None:
                found = await shops.schedule(shop, cron, tz)
            elif await shops.unschedule(shop):
                found = {"removed": shop}
            else:
                raise InvalidInput(f"shop {shop} has no schedule")
        if session.json:
            session.print_json(msgspec.to_builtins(found))
        else:
            session.print_line(found.get("words") or "Removed.")

    return schedule


def _remove() -> click.Command:
    @click.command("remove")
    @click.argument("shops_given", nargs=-1, required=True, metavar="SHOP...")
    async def remove(session: Session, shops_given: tuple[str, ...]) -> int:
        """Delete shops with everything that was found about them."""
        async with _opened(session) as shops:
            gone = [each for each in shops_given if await shops.remove(each)]
        missing = [each for each in shops_given if each not in gone]
        if session.json:
            session.print_json({"removed": gone, "missing": missing})
        else:
            session.print_line(f"{len(gone)} removed.")
        for each in missing:
            session.notice(f"there is no shop {each}")
        return 1 if missing else 0

    return remove


@asynccontextmanager
async def _opened(session: Session) -> AsyncIterator[Shops | RemoteShops]:
    if session.remote:
        settings = session.settings
        async with RemoteShops.connected(str(settings.api_url), settings.api_key) as remote:
            yield remote
    else:
        async with session.setup() as setup:
            yield Shops(SpotsService.of(setup))


async def _ended(session: Session, shops: Shops | RemoteShops, ids: Sequence[str]) -> list[RunView]:
    """Wait until runs have ended; show how far they are."""
    with session.progress("analysed", 100 * len(ids)) as show:
        while True:
            found = [await shops.get(each) for each in ids]
            runs = [each for each in found if each is not None]
            show(sum(100 if each.status in FINAL else each.progress for each in runs))
            if all(each.status in FINAL for each in runs):
                return runs
            await asyncio.sleep(POLL_SECONDS)


def _print_runs(session: Session, runs: Sequence[RunView]) -> None:
    session.print_table(
        ["RUN", "SHOP", "STATUS", "PROGRESS", "REVIEWS", "RATING", "ERROR"],
        [
            (
                each.run_id,
                each.store.name or each.url,
                each.status,
                f"{each.progress}%",
                each.reviews,
                _stars(each.rating),
                each.error or "",
            )
            for each in runs
        ],
    )


def _print_shop(session: Session, shop: StoreDetail) -> None:
    session.print_line(shop.name or shop.url)
    session.print_line(f"  {shop.url}")
    total = sum(shop.sentiment.values()) or 1
    shares = ", ".join(f"{count / total:.0%} {name}" for name, count in shop.sentiment.items())
    session.print_line(f"  {_stars(shop.rating) or 'no rating'}, {shop.reviews} reviews, {shares}")
    if shop.last is not None:
        session.print_line(f"  last run {shop.last.run_id}: {shop.last.status}")
    if shop.schedule is not None:
        session.print_line(f"  again: {shop.schedule['words']}")
    found = shop.analysis or {}
    for sentence in found.get("summary", []):
        session.print_line(f"  “{sentence}”")
    rows = [
        (each["name"], each["mentions"], each["positive"], each["negative"])
        for each in found.get("aspects", [])
    ]
    if rows:
        session.print_table(["ASPECT", "MENTIONS", "POSITIVE", "NEGATIVE"], rows)


def _stars(rating: float | None) -> str:
    return "" if rating is None else f"{rating:.2f} of 5"
