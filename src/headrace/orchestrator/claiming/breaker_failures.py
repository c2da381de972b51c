"""Failures that a worker has seen and not counted yet, and what an outcome proves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from headrace.breakers.store import Key, count_failures
from headrace.engine.base import Engine
from headrace.errors import RecordConflict
from headrace.model.limits.breaker import Breaker
from headrace.model.outcome import Completed, Failed, Outcome, Retry, TimedOut
from headrace.orchestrator.running.attempt import monotonic

# So many lanes are remembered, as a help only.
MOST_KEPT = 10_000


class Failures(msgspec.Struct):
    """What has failed in a lane: when, by the monotonic clock, and the last of it."""

    breaker: Breaker
    task: str
    error: str
    times: list[float]


OnEnough = Callable[[Key, Failures, float], Awaitable[None]]


class SeenFailures:
    """Failures by lane. They leave it when the engine has them.

    `suspects` are lanes whose breaker may have to open, as far as is known here: nothing more of
    them is started until that is known.
    """

    def __init__(self) -> None:
        self.by_key: dict[Key, Failures] = {}
        self.suspects: set[Key] = set()
        # How many the engine had when it was told last.
        self._kept: dict[Key, int] = {}

    def add(self, key: Key, breaker: Breaker, task: str, error: str) -> bool:
        """Add one; return whether its lane is a suspect from now on."""
        found = self.by_key.get(key)
        if found is None:
            found = self.by_key[key] = Failures(breaker, task, error, [])
        found.breaker, found.task, found.error = breaker, task, error
        found.times.append(monotonic())
        # More than open it matter to nobody.
        del found.times[: -breaker.failures]
        enough = self._kept.get(key, 0) + len(found.times) >= breaker.failures
        if not enough or key in self.suspects:
            return False
        self.suspects.add(key)
        return True

    async def count(self, engine: Engine, on_enough: OnEnough) -> None:
        """Add all to those that are kept. Call `on_enough` for lanes of which there are enough to
        open a breaker, with the time of the engine.
        """
        if not self.by_key:
            return
        now = await engine.now()
        shift = now - monotonic()
        for key in list(self.by_key):
            failed = self.by_key.pop(key)
            try:
                times = [each + shift for each in failed.times]
                kept = await count_failures(engine, key, failed.breaker, times, now)
            except BaseException as error:
                # They are counted in the next round, with those that have come meanwhile.
                if (later := self.by_key.get(key)) is not None:
                    failed.times += later.times
                self.by_key[key] = failed
                if isinstance(error, RecordConflict):
                    continue  # very many count at once; other lanes do not wait for this one
                raise
            enough = kept >= failed.breaker.failures
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = 0 if enough else kept
            try:
                if enough:
                    await on_enough(key, failed, now)
            finally:
                self.suspects.discard(key)


def proof_of(outcome: Outcome | None) -> bool | None:
    """Return what an outcome says of what the handler calls: True, it works; False, it fails."""
    match outcome:
        case Completed():
            return True
        case Retry(counts=True) | Failed(counts=True) | TimedOut():
            return False
        case _:
            return None


def error_of(outcome: Outcome | None) -> str:
    """Return the type of the error that an outcome tells of; "" for none."""
    return outcome.failure.type if isinstance(outcome, Retry | Failed | TimedOut) else ""
