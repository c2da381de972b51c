"""The report of a scan: one HTML file without scripts. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from headrace_scanner.store.records import Observation, Outcome, Product, Scan

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ccc;padding:.3rem;"
    "text-align:left;overflow-wrap:anywhere}"
)


def make_report(
    scan: Scan,
    title: str,
    changes: Sequence[dict[str, Any]],
    seen: Sequence[tuple[Product, Observation]],
) -> str:
    """Return the report."""
    made = datetime.fromtimestamp(scan.updated_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    about = (
        f"{scan.products} products, {scan.seen} seen, {scan.changed} changed, "
        f"{scan.blocked} blocked, {scan.failed} failed"
    )
    changed = _table(
        ("Product", "Field", "Before", "After"),
        [
            (each["name"] or each["external_id"], each["field"], each["before"], each["after"])
            for each in changes
        ],
    )
    missing = _table(
        ("Product", "Outcome", "Why"),
        [
            (product.name or product.external_id, each.outcome, each.error or "")
            for product, each in seen
            if each.outcome is not Outcome.SEEN
        ],
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<style>{STYLE}</style><h1>{escape(title)}</h1><p>{made}"
        f"{', set ' + escape(scan.set_name) if scan.set_name else ''}. {about}.</p>"
        f"<h2>What changed</h2>{changed}<h2>What could not be seen</h2>{missing}"
    )


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return "<p>Nothing.</p>"
    head = "".join(f"<th>{escape(each)}</th>" for each in headers)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(each))}</td>' for each in row)}</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
