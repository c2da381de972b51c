"""Plots as SVG, by hand: bars and lines, readable on any background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH = 760
ROW = 26
LEFT = 210
RIGHT = 110
TOP = 44
OURS, THEIRS, LIMIT = "#1f77b4", "#b8c4ce", "#7f8c8d"
LINES = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#e08214")
TEXT = 'font-family="sans-serif" font-size="13" fill="#24292f"'


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Horizontal bars: name, value, colour."""
    height = TOP + ROW * len(rows) + 12
    most = max(value for _, value, _ in rows)
    parts = [_title(title)]
    for number, (name, value, colour) in enumerate(rows):
        top = TOP + number * ROW
        length = (WIDTH - LEFT - RIGHT) * value / most
        parts += [
            f'<text x="{LEFT - 8}" y="{top + 16}" text-anchor="end" {TEXT}>{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top + 3}" width="{max(length, 1):.1f}" height="{ROW - 8}"'
            f' fill="{colour}"/>',
            f'<text x="{LEFT + length + 6:.1f}" y="{top + 16}" {TEXT}>{value:,.0f}</text>',
        ]
    return _svg(height, parts)


def lines(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    across: str,
    up: str,
) -> str:
    """Lines over one axis that begins at zero, each with its name."""
    height, left, bottom = 320, 80, 270
    points = [point for each in series.values() for point in each]
    most_x = max(x for x, _ in points) or 1
    most_y = max(y for _, y in points) * 1.1 or 1
    room_x, room_y = WIDTH - left - 30, bottom - TOP

    def place(x: float, y: float) -> str:
        return f"{left + room_x * x / most_x:.1f},{bottom - room_y * y / most_y:.1f}"

    parts = [_title(title)]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - room_y * share
        x = left + room_x * share
        parts += [
            f'<line x1="{left}" y1="{y:.1f}" x2="{WIDTH - 30}" y2="{y:.1f}" stroke="#d0d7de"/>',
            f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" {TEXT}>'
            f"{most_y * share:,.0f}</text>",
            f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle" {TEXT}>'
            f"{most_x * share:,.0f}</text>",
        ]
    for number, (name, found) in enumerate(series.items()):
        colour = LINES[number % len(LINES)]
        path = " ".join(place(x, y) for x, y in found)
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{left + 12 + 130 * number}" y="{TOP + 2}" {TEXT}>'
            f'<tspan fill="{colour}">■</tspan> {escape(name)}</text>',
        ]
    parts.append(
        f'<text x="{WIDTH / 2}" y="{height - 8}" text-anchor="middle" {TEXT}>'
        f"{escape(across)}; upwards: {escape(up)}</text>"
    )
    return _svg(height, parts)


def _title(title: str) -> str:
    return f'<text x="12" y="24" {TEXT} font-weight="bold">{escape(title)}</text>'


def _svg(height: int, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )
