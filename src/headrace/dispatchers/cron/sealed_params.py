"""The arguments of schedules of encrypted tasks, which are sealed in the store and in views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import MissingEncryptionKey, SealedValue
from headrace.model.schedules.schedule import KeptSchedule, Schedule
from headrace.model.sealed import is_sealed, read_document, shown_document
from headrace.task.codec import encode_exact

if TYPE_CHECKING:
    from headrace.task.app_like import AppLike

SEALED = "$sealed"


class SealedParams:
    """Seals and opens the arguments of schedules, as their tasks say."""

    def __init__(self, host: AppLike) -> None:
        self._host = host

    def sealed(self, kept: KeptSchedule) -> KeptSchedule:
        """Return a schedule as it is stored. Raises `MissingEncryptionKey` without keys."""
        return _each(kept, self._sealed)

    def opened(self, kept: KeptSchedule) -> KeptSchedule:
        """Return a schedule as it was declared, as far as its keys are here."""

        def opened(schedule: Schedule) -> Schedule:
            try:
                params = msgspec.json.decode(self.json(schedule), type=dict[str, Any])
            except SealedValue:
                return schedule
            return msgspec.structs.replace(schedule, params=params)

        return _each(kept, opened)

    def json(self, schedule: Schedule) -> bytes:
        """Return the arguments for a job of a schedule. Raises `SealedValue` if they cannot be
        opened.
        """
        encoded = encode_exact(schedule.params)
        if not is_sealed(encoded):
            return encoded
        sealing = self._host.sealing
        if sealing is None:
            found = read_document(encoded)
            key = None if found is None else found.key
            raise MissingEncryptionKey(
                f'schedule "{schedule.name}": its params are sealed with key "{key}", and this '
                "process has no encryption keys; give it some: HEADRACE_ENCRYPTION_KEYS or "
                "HEADRACE_ENCRYPTION_KEY_FILE",
                key=key,
            )
        return sealing.open_params(schedule.name, encoded)

    def shown(self, schedule: Schedule) -> dict[str, Any]:
        """Return the arguments as people see them."""
        encoded = encode_exact(schedule.params)
        if is_sealed(encoded):
            shown: dict[str, Any] = msgspec.json.decode(shown_document(encoded))
            return shown
        # Declared in this program, and not stored yet.
        return {SEALED: {"key": None}} if self._seals(schedule) else schedule.params

    def _seals(self, schedule: Schedule) -> bool:
        task = self._host.tasks.get(schedule.task)
        return task is not None and task.encrypted and bool(schedule.params)

    def _sealed(self, schedule: Schedule) -> Schedule:
        encoded = encode_exact(schedule.params)
        if is_sealed(encoded) or not self._seals(schedule):
            return schedule
        sealing = self._host.sealing
        if sealing is None:
            raise MissingEncryptionKey(
                f'schedule "{schedule.name}": task "{schedule.task}" is encrypted, but this '
                "process has no encryption keys to seal its params; give it some: "
                "HEADRACE_ENCRYPTION_KEYS or HEADRACE_ENCRYPTION_KEY_FILE"
            )
        params = msgspec.json.decode(sealing.params(schedule.name, encoded))
        return msgspec.structs.replace(schedule, params=params)


def _each(kept: KeptSchedule, change: Any) -> KeptSchedule:
    declared = None if kept.declared is None else change(kept.declared)
    return msgspec.structs.replace(kept, schedule=change(kept.schedule), declared=declared)
