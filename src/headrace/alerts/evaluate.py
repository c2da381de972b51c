"""One round of evaluation: read the rules, the states and then the facts, and move the alerts.

Any number of servers may do this at once. See `headrace.alerts.state` for what holds.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec

from headrace.alerts.conditions import FROM_SERIES, PARTS, Seen, conditions
from headrace.alerts.state import AlertCondition, AlertState, AlertStep, over, step
from headrace.alerts.store import STATE, AlertRecords, Silence, Versioned, key_of
from headrace.errors import RecordConflict
from headrace.model.alerts.notice import ALERT_TYPE, AlertNotice
from headrace.model.alerts.rule import AlertRule
from headrace.model.job import NewJob
from headrace.model.times import moment_of
from headrace.model.views import RecordChange
from headrace.monitor.findings.dead_letters import MOST as MOST_LETTERS
from headrace.monitor.findings.read import FactsReader
from headrace.monitor.series.read import SeriesReader
from headrace.monitor.snapshot import Snapshots
from headrace.publishing.destinations import Destination
from headrace.publishing.events import PublishedEvent
from headrace.publishing.tasks import Publishing
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.alerts")

# So many alerts of one rule are told apart: a rule for all of thousands of queues is no alert.
MOST_SUBJECTS = 100
# What is over is shown for so long, and a silence that is over is forgotten.
KEPT = timedelta(days=1)
REMOVED = "its rule was removed, disabled or changed to another kind"


class Evaluator:
    """Evaluates the rules of one store, for one event loop."""

    def __init__(self, host: AppLike, publishing: Publishing) -> None:
        self._host = host
        self._publishing = publishing
        self.records = AlertRecords(host)
        self._snapshots = Snapshots(host)
        self._facts = FactsReader(host)
        self._series = SeriesReader(host)
        # What is wrong with rules, by their names.
        self.problems: dict[str, str] = {}

    async def round(self) -> int:
        """Evaluate every rule once; return how many there are. Without rules, and without alerts
        of rules that are gone, nothing else is read.
        """
        kept, broken = await self.records.rules()
        problems = dict(broken)
        if kept or await self.records.any_state():
            rules = {each.rule.name: each.rule for each in kept if each.rule.enabled}
            await self._evaluate(rules, broken, problems)
        for name, problem in problems.items():
            if self.problems.get(name) != problem:
                log.error("Alert rule %s: %s", name, problem)
        self.problems = problems
        return len(kept) + len(broken)

    async def _evaluate(
        self, rules: Mapping[str, AlertRule], broken: Mapping[str, str], problems: dict[str, str]
    ) -> None:
        # The facts are read after the states, so that they are at least as new.
        states = await self.records.states()
        silences = await self.records.silences()
        receivers = {each.name: each for each in await self._publishing.records.all()}
        now = await self._host.engine.now()
        seen, written = await self._look(rules.values(), now)
        read_by = await self._host.engine.now()
        for rule in rules.values():
            if missing := [each for each in rule.to if each not in receivers]:
                problems[rule.name] = no_receiver(missing)
            try:
                found = conditions(rule, seen)
            except Exception as error:  # one rule that is broken does not hold up the others
                problems[rule.name] = str(error)
                continue
            # A series is the same for everybody who reads it up to the same time.
            of_series = rule.kind in FROM_SERIES
            moving = _Moving(
                rule=rule,
                read_from=seen.facts.read_at.get(
                    PARTS.get(rule.kind, ""), written if of_series else now
                ),
                read_by=written if of_series else read_by,
                now=now,
                silences=[each for each in silences if each.rule == rule.name],
                receivers=receivers,
            )
            if not await self._move(moving, found, states):
                problems[rule.name] = (
                    f"it holds for more than {MOST_SUBJECTS} subjects; the others are not told of"
                )
        await self._leave(rules, broken, states, receivers, now)
        limit = moment_of(now) - KEPT
        if any(each.until < limit for each in silences):
            await self.records.forget_silences(limit)

    async def _look(self, rules: Iterable[AlertRule], now: float) -> tuple[Seen, float]:
        """Read what the rules need, and nothing else."""
        rules = list(rules)
        self._snapshots.forget()
        most = max((each.above or 0.0 for each in rules if each.kind == "dead_letters"), default=0)
        facts = await self._facts.read(
            await self._snapshots.get(),
            parts={PARTS[each.kind] for each in rules if each.kind in PARTS},
            at=now,
            letters=int(min(most, MOST_LETTERS)),
        )
        written = self._series.written(now)
        windows = {
            each.window: await self._series.window(each.window, written)
            for each in rules
            if each.kind in FROM_SERIES
        }
        return Seen(facts=facts, windows=windows), written

    async def _move(
        self,
        moving: _Moving,
        found: Sequence[AlertCondition],
        states: Mapping[str, Versioned[AlertState]],
    ) -> bool:
        """Move the alerts of a rule; return False if there are too many."""
        rule = moving.rule
        holding = {key_of(rule.name, each.subject): each for each in found}
        own = {key: each for key, each in states.items() if each.value.rule == rule.name}
        active = sum(each.value.phase != "ok" for each in own.values())
        for key in dict.fromkeys([*own, *holding]):
            before, condition = own.get(key), holding.get(key)
            going_on = before is not None and before.value.phase != "ok"
            if before is not None and going_on:
                if before.value.kind != rule.kind:
                    continue  # of what the rule was before: it is ended first
                subject = before.value.subject
            elif condition is None:
                continue
            elif active >= MOST_SUBJECTS:
                return False
            else:
                active, subject = active + 1, condition.subject
            moved = step(
                rule,
                None if before is None else before.value,
                condition,
                read_from=moving.read_from,
                read_by=moving.read_by,
                now=moving.now,
                silenced=moving.silenced(subject),
                known=frozenset(moving.receivers),
            )
            if moved is not None:
                version = 0 if before is None else before.version
                await self._store(key, moved, version, moving.receivers, moving.now)
        return True

    async def _leave(
        self,
        rules: Mapping[str, AlertRule],
        broken: Mapping[str, str],
        states: Mapping[str, Versioned[AlertState]],
        receivers: Mapping[str, Destination],
        now: float,
    ) -> None:
        """End the alerts of rules that are gone, and forget what has been over for long."""
        for key, stored in states.items():
            state = stored.value
            if state.rule in broken:
                continue  # nobody can tell
            rule = rules.get(state.rule)
            if state.phase != "ok" and (rule is None or rule.kind != state.kind):
                detail = f"{state.detail}; not evaluated any more, since {REMOVED}"
                ended = msgspec.structs.replace(state, detail=detail)
                await self._store(key, over(ended, now, now), stored.version, receivers, now)
            elif state.phase == "ok" and now - _last(state) > KEPT.total_seconds():
                with contextlib.suppress(RecordConflict):
                    await self._host.engine.record_delete(STATE, key, version=stored.version)

    async def _store(
        self,
        key: str,
        moved: AlertStep,
        version: int,
        receivers: Mapping[str, Destination],
        now: float,
    ) -> None:
        """Write a state in one step with the jobs that tell of it, unless somebody was faster."""
        state, status = moved.state, moved.status
        change = RecordChange(STATE, key, msgspec.json.encode(state), version)
        jobs: list[NewJob] = []
        if status is not None:
            event = event_of(state.event_id(status), state.notice(status), now)
            known = [receivers[each] for each in moved.receivers if each in receivers]
            jobs = [self._publishing.alert_job(each, event) for each in known]
        try:
            await self._host.engine.insert(jobs, record=change)
        except RecordConflict:
            return
        if status is not None:
            log.warning("Alert %s, %s: %s: %s", state.rule, state.subject, status, state.detail)


class _Moving(msgspec.Struct, frozen=True, kw_only=True):
    """What the alerts of a rule are moved by."""

    rule: AlertRule
    read_from: float
    read_by: float
    now: float
    silences: Sequence[Silence]
    receivers: Mapping[str, Destination]

    def silenced(self, subject: str) -> bool:
        """Return whether nothing is to be told of a subject now."""
        return any(
            each.subject in (None, subject) and each.until.timestamp() > self.now
            for each in self.silences
        )


def event_of(event_id: str, notice: AlertNotice, now: float) -> PublishedEvent:
    """Return the event that receivers get. Those of one alert stay in order."""
    return PublishedEvent(
        id=event_id,
        type=ALERT_TYPE,
        time=moment_of(now),
        key=f"{notice.rule}/{notice.subject}",
        data=msgspec.Raw(msgspec.json.encode(notice)),
    )


def no_receiver(missing: Iterable[str]) -> str:
    """Return what is wrong with a rule whose receivers do not exist."""
    names = ", ".join(missing)
    return f"there is no receiver {names}; add it: headrace destinations add {names} KIND …"


def _last(state: AlertState) -> float:
    return max(
        (each.timestamp() for each in (state.resolved_at, state.since) if each is not None),
        default=0.0,
    )
