"""Breakers that somebody opens or closes by hand."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

from headrace.breakers import store
from headrace.breakers.store import Key
from headrace.engine.base import Engine
from headrace.errors import InvalidSetting, RecordConflict
from headrace.model.limits.breaker import (
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    Breaker,
    BreakerView,
)
from headrace.model.limits.lane import Lane
from headrace.model.times import is_number, moment_of

TRIES = 20


def breaker_for(lanes: Iterable[Lane], lane: str) -> Breaker | None:
    """Return the breaker that the jobs of a lane have, by the lanes that tasks say."""
    for each in lanes:
        if each.breaker is not None and _pattern(each.template).fullmatch(lane):
            return each.breaker
    return None


def _pattern(template: str) -> re.Pattern[str]:
    parts = string.Formatter().parse(template)
    text = "".join(
        re.escape(literal) + ("" if field is None else ".+") for literal, field, _, _ in parts
    )
    return re.compile(text, re.DOTALL)


def check_pause(pause: float) -> float:
    """The pause of a breaker is within bounds."""
    if not is_number(pause) or not SHORTEST_PAUSE <= pause <= LONGEST_PAUSE:
        raise InvalidSetting(
            f"pause must be between {SHORTEST_PAUSE:g} and {LONGEST_PAUSE:,.0f} seconds, got "
            f"{pause!r}"
        )
    return float(pause)


async def open_by_hand(
    engine: Engine, key: Key, pause: float | None, *, by: str | None, reason: str | None
) -> BreakerView | None:
    """Start nothing of a lane for `pause` seconds, from now on, and then try one. None: as long as
    it says itself, if it is open; if it is not, nothing is done and None is returned.
    """
    for _ in range(TRIES):
        current = await store.open_breaker(engine, key)
        if current is None and pause is None:
            return None
        now = await engine.now()
        seconds = current.view.pause if pause is None and current is not None else pause or 0.0
        view = BreakerView(
            queue=key[0],
            lane=key[1],
            since=moment_of(now),
            until=moment_of(now + seconds),
            pause=seconds,
            by=by,
            reason=reason,
        )
        try:
            opened = await store.put(engine, view, 0 if current is None else current.version)
        except RecordConflict:
            continue
        await store.hold(engine, opened, now, before=current)
        return view
    raise RecordConflict(f"the breaker of {store.name_of(key)} is changed all the time; try again")


async def close_by_hand(engine: Engine, key: Key) -> bool:
    """Start the jobs of a lane again; return False if its breaker is not open."""
    for _ in range(TRIES):
        current = await store.open_breaker(engine, key)
        if current is None:
            return False
        try:
            await store.close(engine, current)
        except RecordConflict:
            continue
        return True
    raise RecordConflict(f"the breaker of {store.name_of(key)} is changed all the time; try again")
