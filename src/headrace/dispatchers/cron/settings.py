"""The settings of the cron dispatcher."""

from __future__ import annotations

import msgspec

from headrace.dispatchers.cron.schedules import LEAST_INTERVAL
from headrace.errors import InvalidSetting


class CronSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a cron dispatcher goes about its work.

    It sleeps until the next time is due, but reads the schedules again every
    `poll_interval_seconds` and never sleeps longer than `max_sleep_seconds`. A time counts as
    missed when it is `missed_after_seconds` late. For missed times of one schedule at most
    `most_at_once` jobs are made before others have their turn.
    """

    poll_interval_seconds: float = 60.0
    max_sleep_seconds: float = 300.0
    min_cron_interval_seconds: float = LEAST_INTERVAL
    missed_after_seconds: float = 60.0
    most_at_once: int = 1_000

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InvalidSetting(f"dispatcher.{field} must be a number, got {value!r}")
            if not value >= 1:
                raise InvalidSetting(f"dispatcher.{field} must be at least 1, got {value!r}")
            if value > LARGEST:
                raise InvalidSetting(f"dispatcher.{field} must be at most {LARGEST}, got {value!r}")


LARGEST = 31 * 86_400
