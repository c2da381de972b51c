"""Plots as SVG text. No I/O. Every text goes through `escape`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from headrace_spots.findings import FoundAspect, MonthRating

WIDTH = 640
LEFT = 42
RIGHT = 12
ROW = 26
NAMES = 150
COLOURS = {"positive": "good", "negative": "bad", "neutral": "plain"}


def rating_plot(months: Sequence[MonthRating], height: int = 220) -> str:
    """Return the mean rating of each month as a line, with how many reviews it is of."""
    if not months:
        return ""
    top, bottom = 14, height - 30
    span = WIDTH - LEFT - RIGHT
    step = span / max(len(months) - 1, 1)
    most = max(each.reviews for each in months)

    def x(place: int) -> float:
        return LEFT + (span / 2 if len(months) == 1 else place * step)

    def y(rating: float) -> float:
        return bottom - (rating / 5.0) * (bottom - top)

    parts = [
        f'<path class="grid" d="M{LEFT} {y(each):.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 8}" y="{y(each) + 4:.1f}" text-anchor="end">{each}</text>'
        for each in range(6)
    ]
    wide = max(min(step * 0.6, 18.0), 2.0)
    for place, each in enumerate(months):
        tall = each.reviews / most * (bottom - top) * 0.3
        parts.append(
            f'<rect class="count" x="{x(place) - wide / 2:.1f}" y="{bottom - tall:.1f}" '
            f'width="{wide:.1f}" height="{tall:.1f}"/>'
        )
    points = " ".join(f"{x(place):.1f},{y(each.rating):.1f}" for place, each in enumerate(months))
    parts.append(f'<polyline class="line" points="{points}"/>')
    every = -(-len(months) // 7)
    for place, each in enumerate(months):
        told = f"{each.month}: {each.rating:.2f} of 5, {each.reviews} reviews"
        parts.append(
            f'<circle class="dot" cx="{x(place):.1f}" cy="{y(each.rating):.1f}" r="3">'
            f"<title>{escape(told)}</title></circle>"
        )
        if place % every == 0:
            parts.append(
                f'<text x="{x(place):.1f}" y="{height - 8}" text-anchor="middle">'
                f"{escape(each.month)}</text>"
            )
    return _svg(height, "Rating by month, of 5", parts)


def sentiment_plot(sentiment: Mapping[str, int]) -> str:
    """Return how many reviews are of each opinion, as one bar."""
    total = sum(sentiment.values())
    if not total:
        return ""
    parts, at = [], 0.0
    for label, colour in COLOURS.items():
        count = sentiment.get(label, 0)
        wide = count / total * WIDTH
        if not count:
            continue
        parts.append(
            f'<rect class="{colour}" x="{at:.1f}" y="0" width="{wide:.1f}" height="28">'
            f"<title>{escape(label)}: {count}</title></rect>"
        )
        if wide > 90:
            parts.append(
                f'<text class="on" x="{at + 8:.1f}" y="19">{escape(label)} {count / total:.0%}'
                "</text>"
            )
        at += wide
    return _svg(28, "Opinions", parts)


def stars_plot(stars: Mapping[str, int]) -> str:
    """Return how many reviews have so many stars."""
    most = max(stars.values(), default=0)
    if not most:
        return ""
    parts = []
    for place, number in enumerate(range(5, 0, -1)):
        count = stars.get(str(number), 0)
        wide = count / most * (WIDTH - LEFT - 60)
        top = place * ROW
        parts.append(
            f'<text x="{LEFT - 8}" y="{top + 17}" text-anchor="end">{number} ★</text>'
            f'<rect class="line-fill" x="{LEFT}" y="{top + 4}" width="{wide:.1f}" height="18"/>'
            f'<text x="{LEFT + wide + 8:.1f}" y="{top + 17}">{count}</text>'
        )
    return _svg(5 * ROW, "Reviews by stars", parts)


def aspects_plot(aspects: Sequence[FoundAspect]) -> str:
    """Return what is talked about: how often, and how."""
    if not aspects:
        return ""
    most = max(each.mentions for each in aspects)
    parts = []
    for place, each in enumerate(aspects):
        top, at = place * ROW, float(NAMES)
        parts.append(
            f'<text x="{NAMES - 8}" y="{top + 17}" text-anchor="end">{escape(each.name)}</text>'
        )
        rest = max(each.mentions - each.positive - each.negative, 0)
        counts = (("good", each.positive), ("bad", each.negative), ("plain", rest))
        for colour, count in counts:
            wide = count / most * (WIDTH - NAMES - 60)
            parts.append(
                f'<rect class="{colour}" x="{at:.1f}" y="{top + 4}" width="{wide:.1f}" '
                'height="18"/>'
            )
            at += wide
        parts.append(f'<text x="{at + 8:.1f}" y="{top + 17}">{each.mentions}</text>')
    return _svg(len(aspects) * ROW, "Aspects: positive, negative, other mentions", parts)


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
