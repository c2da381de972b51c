"""Lanes: a key within a queue whose jobs start in order, at most `width` at once."""

from __future__ import annotations

import functools
import string
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from headrace.errors import InvalidArguments, InvalidSetting
from headrace.model.insert_policy import WhenFull, check_when_full
from headrace.model.limits.breaker import Breaker, as_breaker
from headrace.model.limits.rate import Rate, as_rate, check_cost
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

    `rate` says how many jobs of each lane may start in a time, e.g. "10/m", and `burst` how many of
    them at once. A job counts for `cost` starts: a number, or the name of an argument. Retries
    count as starts, unless `count_retries` is False.

    `breaker` says after how many failures of a lane nothing more of it is started for a while.
    """

    template: str
    width: int = 1
    on_retry: OnRetry | None = None
    when_full: WhenFull = "wait"
    rate: str | Rate | None = None
    burst: int | None = None
    cost: float | str = 1.0
    count_retries: bool = True
    breaker: Breaker | None = None

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
        self._check_rate()
        as_breaker(self.breaker, f"lane {self.template!r}")

    def _check_rate(self) -> None:
        if not isinstance(self.count_retries, bool):
            raise InvalidSetting(
                f"lane count_retries must be True or False, got {self.count_retries!r}"
            )
        if not isinstance(self.cost, str):
            check_cost(self.cost, "lane cost")
        elif not self.cost.isidentifier():
            raise InvalidSetting(
                f"lane cost must be a number or the name of an argument, got {self.cost!r}"
            )
        if self.rate is not None:
            as_rate(self.rate, self.burst)
        elif self.burst is not None or self.cost != 1 or not self.count_retries:
            raise InvalidSetting(
                f"lane {self.template!r}: burst, cost and count_retries are about a rate; give "
                'rate= as well, such as rate="10/m"'
            )

    @property
    def starts(self) -> Rate | None:
        """The rate at which its jobs may start; None: as soon as there is a place."""
        return None if self.rate is None else as_rate(self.rate, self.burst)

    @property
    def hold(self) -> bool:
        """Whether a job keeps its place while it waits for a retry."""
        return self.width == 1 if self.on_retry is None else self.on_retry == "hold"

    def fields(self) -> frozenset[str]:
        """The arguments that the template reads."""
        return _fields(self.template)

    def cost_fields(self) -> frozenset[str]:
        """The argument that is the cost of a job, if one is."""
        return frozenset([self.cost]) if isinstance(self.cost, str) else frozenset()

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
