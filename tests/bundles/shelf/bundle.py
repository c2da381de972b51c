"""A small bundle: books are put on a shelf, counted by a task, listed by a route."""

from __future__ import annotations

import msgspec

import headrace
import headrace.bundles


class ShelfSettings(msgspec.Struct, frozen=True):
    """What can be set: HEADRACE_SHELF_…"""

    greeting: str = "hello"
    room: int = 100
    tags: tuple[str, ...] = ()
    api_key: str = ""

    def __post_init__(self) -> None:
        if self.room < 1:
            raise ValueError("room must be at least 1")


bundle = headrace.Bundle(
    "shelf",
    summary="Books on a shelf",
    settings=ShelfSettings,
    register="headrace_shelf.work:register",
    routes="headrace_shelf.routes:routes",
    commands="headrace_shelf.commands:commands",
    tables=headrace.bundles.Tables("headrace_shelf.migrations"),
    page=headrace.bundles.Page("headrace_shelf.page", title="Books"),
    demo="headrace_shelf.work:demo",
)
