"""Lanes: a key within a queue whose jobs start in order, at most `width` at once."""

from __future__ import annotations

import functools
import string
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from headrace.errors import InvalidArguments, InvalidSetting
from headrace.model.insert_policy import WhenFull, check_when_full
from headrace.model.names import check_text

OnRetry = Literal["hold", "yield"]
WIDTH_LIMIT = 10_000


class Lane(msgspec.Struct, frozen=True):
    """A template over a task's arguments, e.g. `Lane("user:{user_id}", width=3)`.

    `on_retry` says what happens to the place while a job waits for a retry: "hold" keeps it (the
    default at width 1, so that order is strict), "yield" lets others pass (the default above).

    `when_full` says what happens to a job that is enqueued while no place is free: "wait" for its
    turn; "refuse" raises `LaneFull`; "replace" cancels those that wait, "cancel_running" also those
    that hold a place, and stops those that run.
    """

    template: str
    width: int = 1
    on_retry: OnRetry | None = None
    when_full: WhenFull = "wait"

    def __post_init__(self) -> None:
        if not isinstance(self.template, str):
            raise InvalidSetting(f"a lane's template must be text, got {self.template!r}")
        if not isinstance(self.width, int) or not 1 <= self.width <= WIDTH_LIMIT:
            raise InvalidSetting(
                f"lane width must be between 1 and {WIDTH_LIMIT}, got {self.width!r}"
            )
        if self.on_retry not in (None, "hold", "yield"):
            raise InvalidSetting(f'lane on_retry must be "hold" or "yield", got {self.on_retry!r}')
        check_when_full(self.when_full)
        self.fields()

    @property
    def hold(self) -> bool:
        """Whether a job keeps its place while it waits for a retry."""
        return self.width == 1 if self.on_retry is None else self.on_retry == "hold"

    def fields(self) -> frozenset[str]:
        """The arguments that the template reads."""
        return _fields(self.template)

    def place(self, arguments: Mapping[str, Any]) -> str:
        """The lane of a job with these arguments."""
        values = {}
        for field in self.fields():
            value = arguments.get(field)
            if value is None or isinstance(value, (dict, list, float)):
                raise InvalidArguments(
                    f"lane {self.template!r} needs {field!r} to be text, a whole number or a "
                    f"boolean, got {value!r}"
                )
            values[field] = value
        return check_text("lane", self.template.format_map(values))


def as_lane(lane: str | Lane | None) -> Lane | None:
    """Return a lane for a template, and a lane as it is."""
    if isinstance(lane, str):
        return Lane(lane)
    if lane is not None and not isinstance(lane, Lane):
        raise InvalidSetting(
            f'lane must be a template such as "user:{{user_id}}", or a headrace.Lane, got {lane!r}'
        )
    return lane


@functools.lru_cache(maxsize=1_024)
def _fields(template: str) -> frozenset[str]:
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InvalidSetting(f"lane template {template!r}: {error}") from None
    fields = set()
    for _, field, spec, conversion in parts:
        if field is None:
            continue
        if not field.isidentifier() or spec or conversion:
            raise InvalidSetting(
                f"lane template {template!r}: {{{field}}} must be the plain name of an argument"
            )
        fields.add(field)
    return frozenset(fields)
