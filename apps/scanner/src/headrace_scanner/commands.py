"""The commands `headrace scanner …`. They work on the store, or by the server of API_URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace import InvalidInput
from headrace.bundles import Session
from headrace_scanner.imports import LARGEST_FILE, read_file
from headrace_scanner.platforms import NAMES, SHOPS
from headrace_scanner.remote import RemoteScanner
from headrace_scanner.scanner import Scanner
from headrace_scanner.scanning.extract import TYPES
from headrace_scanner.service import ScannerService
from headrace_scanner.store.records import shown_price
from headrace_scanner.views import Begun, RunState, ScanView

PLATFORM = click.Choice(NAMES)
SHOP = click.Choice(SHOPS)


def commands() -> click.Group:
    """Return the group."""
    group = click.Group("scanner", help="Products: import, scan, extract, what changed.")
    for make in (_import, _scan, _extract, _platforms, _scans, _changes, _products, _sets):
        group.add_command(make())
    return group


def _import() -> click.Command:
    @click.command("import")
    @click.argument("file", metavar="FILE")
    @click.option("--set", "set_name", help="The set (default: the name of the file).")
    @click.option("--replace", is_flag=True, help="The set has these products only.")
    async def import_(session: Session, file: str, set_name: str | None, *, replace: bool) -> None:
        """Import products from CSV or JSON: platform, product, url, name, price, sale_status."""
        path = Path(file)
        rows = read_file(path.name, await asyncio.to_thread(_content, path))
        async with _opened(session) as scanner:
            done = await scanner.add(rows, set_name or path.stem, replace=replace)
        if session.json:
            session.print_json(msgspec.to_builtins(done))
        else:
            session.print_line(f"Set {done.set}: {done.new} new products, {done.known} known.")

    return import_


def _scan() -> click.Command:
    @click.command("scan")
    @click.argument("platforms", nargs=-1, required=True, type=SHOP, metavar="PLATFORM...")
    @click.option("--set", "set_name", default="", help="The products of a set (default: all).")
    @click.option("--product", "products", multiple=True, help="Only this one (id or URL).")
    @click.option("--priority", type=int, help="Higher runs first (default 0).")
    async def scan(
        session: Session,
        platforms: tuple[str, ...],
        set_name: str,
        products: tuple[str, ...],
        priority: int | None,
    ) -> None:
        """Begin a run on each of these platforms. A worker with the bundle does it."""
        async with _opened(session) as scanner:
            begun = [
                await scanner.scan(each, set_name=set_name, products=products, priority=priority)
                for each in platforms
            ]
        _print_begun(session, begun)

    return scan


def _extract() -> click.Command:
    @click.command("extract")
    @click.argument("kind", type=click.Choice(TYPES), metavar="TYPE")
    @click.argument("values", nargs=-1, required=True, metavar="URL | PLATFORM=PRODUCT...")
    @click.option("--set", "set_name", default="", help="Keep the product in this set.")
    @click.option("--priority", type=int, help="Higher runs first (default 0).")
    async def extract(
        session: Session, kind: str, values: tuple[str, ...], set_name: str, priority: int | None
    ) -> None:
        """Read single products: url_extraction URL, single_product PLATFORM=PRODUCT, or
        multi_platform PLATFORM=PRODUCT...
        """
        params = _extraction(kind, values, set_name)
        async with _opened(session) as scanner:
            begun = await scanner.extract(kind, params, priority=priority)
        _print_begun(session, [begun])

    return extract


def _extraction(kind: str, values: Sequence[str], set_name: str) -> dict[str, Any]:
    if kind != "multi_platform" and len(values) != 1:
        raise InvalidInput(f"{kind} takes one value, got {len(values)}")
    if kind == "url_extraction":
        return {"url": values[0], "set": set_name}
    pairs = [each.partition("=")[::2] for each in values]
    wrong = next((each for each, pair in zip(values, pairs, strict=True) if not pair[1]), None)
    if wrong is not None:
        raise InvalidInput(f'got "{wrong}"; write PLATFORM=PRODUCT, such as kurly=5012')
    if kind == "single_product":
        return {"platform": pairs[0][0], "product": pairs[0][1]}
    return {"products": dict(pairs)}


def _platforms() -> click.Command:
    @click.command("platforms")
    async def platforms(session: Session) -> None:
        """Show the eight platforms: who runs, who waits."""
        async with _opened(session) as scanner:
            found = await scanner.platforms()
        if session.json:
            session.print_json({"platforms": msgspec.to_builtins(found)})
            return
        session.print_table(
            ["PLATFORM", "READER", "PRODUCTS", "RUNNING", "STEP", "DONE", "WAITING", "LAST"],
            [
                (
                    each.platform,
                    each.reader,
                    each.products,
                    "" if each.running is None else each.running.job_id,
                    "" if each.running is None else each.running.step or "",
                    _done(each.running),
                    each.waiting_count,
                    "" if each.last is None else _summary(each.last),
                )
                for each in found
            ],
        )

    return platforms


def _scans() -> click.Command:
    @click.command("scans")
    @click.option("--platform", type=SHOP)
    @click.option("--limit", default=20, help="At most so many (default 20).")
    async def scans(session: Session, platform: str | None, limit: int) -> None:
        """List scans, the newest first."""
        async with _opened(session) as scanner:
            found, following = await scanner.scans(platform=platform, limit=_checked(limit))
        if session.json:
            session.print_json({"scans": msgspec.to_builtins(found), "next": following})
            return
        session.print_table(
            ["SCAN", "PLATFORM", "SET", "STATUS", "DONE", "CHANGED", "BLOCKED", "FAILED", "ERROR"],
            [
                (
                    each.scan_id,
                    each.platform,
                    each.set,
                    each.status,
                    f"{each.done}/{each.products}",
                    each.changed,
                    each.blocked,
                    each.failed,
                    each.error or "",
                )
                for each in found
            ],
        )

    return scans


def _changes() -> click.Command:
    @click.command("changes")
    @click.option("--platform", type=SHOP)
    @click.option("--scan", "scan_id", help="Only those of this scan (its id).")
    @click.option("--limit", default=50, help="At most so many (default 50).")
    async def changes(
        session: Session, platform: str | None, scan_id: str | None, limit: int
    ) -> None:
        """List what changed, the newest first."""
        async with _opened(session) as scanner:
            found = await scanner.changes(platform=platform, scan_id=scan_id, limit=_checked(limit))
        if session.json:
            session.print_json({"changes": msgspec.to_builtins(found)})
            return
        session.print_table(
            ["AT", "PLATFORM", "PRODUCT", "NAME", "FIELD", "BEFORE", "AFTER"],
            [
                (
                    f"{each.at:%Y-%m-%d %H:%M}",
                    each.platform,
                    each.external_id,
                    each.name or "",
                    each.field,
                    each.before,
                    each.after,
                )
                for each in found
            ],
        )

    return changes


def _products() -> click.Command:
    @click.command("products")
    @click.option("--platform", type=SHOP)
    @click.option("--set", "set_name", help="Only those of this set.")
    @click.option("--limit", default=50, help="At most so many (default 50).")
    async def products(
        session: Session, platform: str | None, set_name: str | None, limit: int
    ) -> None:
        """List products as they were last seen."""
        async with _opened(session) as scanner:
            found, following = await scanner.products(
                platform=platform, set_name=set_name, limit=_checked(limit)
            )
        if session.json:
            session.print_json({"products": msgspec.to_builtins(found), "next": following})
            return
        session.print_table(
            ["PLATFORM", "PRODUCT", "NAME", "PRICE", "STATUS"],
            [
                (
                    each.platform,
                    each.external_id,
                    each.name or "",
                    shown_price(each.price) or "",
                    each.sale_status or "",
                )
                for each in found
            ],
        )

    return products


def _sets() -> click.Command:
    @click.command("sets")
    async def sets(session: Session) -> None:
        """List product sets."""
        async with _opened(session) as scanner:
            found = await scanner.sets()
        if session.json:
            session.print_json({"sets": msgspec.to_builtins(found)})
            return
        rows = [
            (each.name, ", ".join(f"{name} {count}" for name, count in each.platforms.items()))
            for each in found
        ]
        session.print_table(["SET", "PRODUCTS"], rows)

    return sets


@asynccontextmanager
async def _opened(session: Session) -> AsyncIterator[Scanner | RemoteScanner]:
    if session.remote:
        async with session.client() as client:
            yield RemoteScanner(client)
    else:
        async with session.setup() as setup:
            yield Scanner(ScannerService.of(setup))


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte more says that it is too large.
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None


def _print_begun(session: Session, begun: Sequence[Begun]) -> None:
    if session.json:
        session.print_json({"runs": msgspec.to_builtins(begun)})
    else:
        for each in begun:
            session.print_line(each.job_id)


def _checked(limit: int) -> int:
    if not 1 <= limit <= 500:
        raise InvalidInput(f"--limit is {limit}; give 1 to 500")
    return limit


def _done(run: RunState | None) -> str:
    return "" if run is None else f"{run.done}/{run.products}"


def _summary(scan: ScanView) -> str:
    return f"{scan.status}, {scan.changed} changed"
