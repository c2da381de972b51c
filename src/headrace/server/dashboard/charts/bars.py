"""How values are distributed, and a row of outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from headrace.server.dashboard.charts.svg import element, picture

# Outcomes differ by shape, not by colour alone.
SHAPES = {
    "completed": "M5 9.5 2 6.5l1.2-1.2L5 7.1l3.8-3.8L10 4.5Z",
    "failed": "M3.2 2 6 4.8 8.8 2 10 3.2 7.2 6 10 8.8 8.8 10 6 7.2 3.2 10 2 8.8 4.8 6 2 3.2Z",
    "timeout": "M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9Zm.8 5H3.5V5h1.8V2.8h1.5Z",
    "cancelled": "M2 5.2h8v1.6H2Z",
    "running": "M3.5 2 10 6l-6.5 4Z",
}
OTHER = "M6 3.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5Z"
MARK = Markup('<g transform="translate({} 0)"><title>{}</title><path d="{}" class="mark {}"/></g>')
# As large as its place, so that a link is easy to hit.
PLACE = Markup('<rect class="place" width="13" height="16" x="{}" y="-2"/>')


def distribution(title: str, counts: Sequence[tuple[str, int]], *, kind: str = "") -> Markup:
    """Return upright bars with a label below each, such as the buckets of a histogram."""
    width, height, floor = 640.0, 140.0, 118.0
    most = max((count for _, count in counts), default=0) or 1
    step = width / max(1, len(counts))
    parts = []
    for index, (label, count) in enumerate(counts):
        tall = (floor - 14) * count / most
        x = index * step
        # What is there at all is seen.
        tall = max(tall, 1.5) if count else 0.0
        parts.append(
            element("rect", element("title", f"{label}: {count:,}"), class_=f"bar {kind}",
                    x=x + 2, y=floor - tall, width=max(step - 4, 1.0), height=tall)
        )  # fmt: skip
        parts.append(
            element("text", label, class_="tick", x=x + step / 2, y=height - 8,
                    text_anchor="middle")
        )  # fmt: skip
    return picture(title, width, height, *parts, kind="distribution")


def dots(
    title: str, outcomes: Sequence[tuple[str, str]], links: Sequence[str] | None = None
) -> Markup:
    """Return one small mark for each outcome, the oldest first, each with a text of its own and, if
    `links` are given, one of these.
    """
    # Lists have a thousand of them: each is one piece of text.
    parts = [
        MARK.format(index * 13, text, SHAPES.get(outcome, OTHER), outcome)
        for index, (outcome, text) in enumerate(outcomes)
    ]
    if links is not None:
        parts = [
            element("a", part, PLACE.format(index * 13), href=link, aria_label=text)
            for index, (part, link, (_, text)) in enumerate(
                zip(parts, links, outcomes, strict=True)
            )
        ]
    width = max(13.0 * len(outcomes), 13.0)
    return picture(title, width, 12.0, *parts, kind="dots", small=True, linked=links is not None)
