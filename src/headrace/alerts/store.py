"""The records of alerts: rules, states and silences. A change is made under the version read."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from headrace.alerts.state import AlertState
from headrace.engine.bounded_reads import records_of
from headrace.engine.record_changes import change_record
from headrace.errors import InvalidSetting, RecordConflict, UnknownAlertRule
from headrace.model.alerts.rule import AlertRule
from headrace.model.names import check_name
from headrace.model.views import Record
from headrace.suggest import similar_or_first
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.alerts")

RULE, STATE, SILENCE = "alert-rule", "alert", "alert-silence"
PAGE = 1_000
EVERYTHING = "*"

T = TypeVar("T")


class KeptRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is stored. `declared` is what a file or code has said last: what people change
    by hand stays until that changes. `owner` is the name of the service that declares it.
    """

    rule: AlertRule
    origin: str = ""
    declared: AlertRule | None = None
    owner: str | None = None
    created_at: datetime
    changed_at: datetime


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is told of a rule until a time: about one subject, or about all (None)."""

    rule: str
    subject: str | None = None
    until: datetime
    at: datetime
    by: str | None = None
    reason: str | None = None


class Versioned(msgspec.Struct, Generic[T], frozen=True):
    """A record, read, with the version that guards a change."""

    value: T
    version: int


_rule = msgspec.json.Decoder(KeptRule)
_state = msgspec.json.Decoder(AlertState)
_silence = msgspec.json.Decoder(Silence)


class AlertRecords:
    """The records of one store."""

    def __init__(self, host: AppLike) -> None:
        self._host = host

    # -- rules -------------------------------------------------------------------------------------

    async def rules(self) -> tuple[list[KeptRule], dict[str, str]]:
        """Return every rule that can be read, by name, and what is wrong with the others."""
        found: list[KeptRule] = []
        broken: dict[str, str] = {}
        for record in await self._all(RULE):
            try:
                found.append(_read_rule(record))
            except InvalidSetting as error:
                broken[record.key] = str(error)
        return found, broken

    async def rule(self, name: str) -> Versioned[KeptRule] | None:
        """Return one rule, if it exists."""
        await self._host.open()
        record = await self._host.engine.record_get(RULE, check_name("rule", name))
        return None if record is None else Versioned(_read_rule(record), record.version)

    async def existing(self, name: str) -> KeptRule:
        """Return one rule. Raises `UnknownAlertRule`, which names the nearest ones."""
        found = await self.rule(name)
        if found is None:
            raise await self._unknown(name)
        return found.value

    async def change(self, name: str, change: Callable[[KeptRule | None], KeptRule]) -> KeptRule:
        """Write what `change` makes of the present rule; again if somebody else was first."""
        check_name("rule", name)
        await self._host.open()

        def changed(record: Record | None) -> tuple[KeptRule, bytes | None]:
            try:
                before = None if record is None else _read_rule(record)
            except InvalidSetting:
                before = None  # one that cannot be read is replaced
            after = change(before)
            return after, None if after == before else msgspec.json.encode(after)

        busy = f'rule "{name}" is being changed by others; try again'
        return await change_record(self._host.engine, RULE, name, changed, busy=busy)

    async def remove(self, name: str) -> None:
        """Delete a rule, also one that cannot be read. Raises `UnknownAlertRule`."""
        await self._host.open()
        if not await self._host.engine.record_delete(RULE, check_name("rule", name)):
            raise await self._unknown(name)

    async def _unknown(self, name: str) -> UnknownAlertRule:
        known = [each.key for each in await self._all(RULE)]
        return UnknownAlertRule(
            f'no alert rule is called "{name}"; there are: {similar_or_first(name, known)}'
        )

    # -- states ------------------------------------------------------------------------------------

    async def states(self) -> dict[str, Versioned[AlertState]]:
        """Return the state of every alert, by the key of its record."""
        found = {}
        for record in await self._all(STATE):
            try:
                found[record.key] = Versioned(_state.decode(record.body), record.version)
            except msgspec.DecodeError as error:
                log.error("Alert %s cannot be read, and begins anew: %s", record.key, error)  # noqa: TRY400
                state = AlertState(rule=record.key.partition("/")[0], kind="", subject="")
                found[record.key] = Versioned(state, record.version)
        return found

    async def any_state(self) -> bool:
        """Return whether there is any."""
        return bool(await self._host.engine.record_list(STATE, limit=1))

    # -- silences ----------------------------------------------------------------------------------

    async def silences(self) -> list[Silence]:
        """Return all silences, also those that are over."""
        found = []
        for record in await self._all(SILENCE):
            try:
                found.append(_silence.decode(record.body))
            except msgspec.DecodeError as error:
                log.error("Silence %s cannot be read, and is left out: %s", record.key, error)  # noqa: TRY400
        return found

    async def silence(self, silence: Silence) -> None:
        """Store a silence, in place of the one for the same."""
        key = key_of(silence.rule, silence.subject)
        await self._host.engine.record_put(SILENCE, key, msgspec.json.encode(silence))

    async def unsilence(self, rule: str, subject: str | None) -> bool:
        """End a silence; return False if there was none."""
        return await self._host.engine.record_delete(SILENCE, key_of(rule, subject))

    async def forget_silences(self, limit: datetime) -> None:
        """Delete the silences that were over before a time."""
        for record in await self._all(SILENCE):
            with contextlib.suppress(RecordConflict, msgspec.DecodeError):
                if _silence.decode(record.body).until < limit:
                    await self._host.engine.record_delete(
                        SILENCE, record.key, version=record.version
                    )

    async def _all(self, kind: str) -> list[Record]:
        await self._host.open()
        return await records_of(self._host.engine, kind, page=PAGE)


def key_of(rule: str, subject: str | None) -> str:
    """Return the key of the record of a rule and a subject, which may be any text."""
    if subject is None:
        return f"{rule}/{EVERYTHING}"
    return f"{rule}/{hashlib.sha256(subject.encode()).hexdigest()[:32]}"


def _read_rule(record: Record) -> KeptRule:
    try:
        kept = _rule.decode(record.body)
        kept.rule.checked()
    except (msgspec.DecodeError, InvalidSetting) as error:
        raise InvalidSetting(f'alert rule "{record.key}" cannot be read: {error}') from None
    return kept
