"""What `headrace schedules` asks for: of an engine, or of a server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from headrace.app import App
from headrace.cli.session import Session
from headrace.client import Client
from headrace.errors import InvalidInput, InvalidSetting, UnknownSchedule
from headrace.model.job import Job

RUNS = 10


class ScheduleVerbs(Protocol):
    """Schedules, wherever they are, in the shape that `--json` prints."""

    def now(self) -> datetime:
        """The time that ages are counted from."""

    async def views(self) -> list[dict[str, Any]]:
        """All of them."""

    async def view(self, name: str) -> dict[str, Any]:
        """One of them."""

    async def add(self, name: str, *, replace: bool, **fields: Any) -> dict[str, Any]:
        """Add one, or change it."""

    async def remove(self, name: str) -> str | None:
        """Forget one. Answers where it is declared, and will come back from."""

    async def enable(self, name: str, enabled: bool) -> object:
        """Let it fire, or not."""

    async def next_times(self, name: str, count: int) -> dict[str, Any]:
        """When it fires next."""

    async def trigger(self, name: str, *, force: bool) -> Job:
        """Make a job of it now."""


class DirectSchedules:
    """The verbs on an engine."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._schedules = app.schedules  # tells how to install what is missing
        self.enable = self._schedules.enable

    def now(self) -> datetime:
        return self._app.clock.utcnow()

    async def views(self) -> list[dict[str, Any]]:
        from headrace.dispatchers.cron.views import views  # noqa: PLC0415 - an extra

        return [_plain(each) for each in await views(self._schedules, self.now())]

    async def view(self, name: str) -> dict[str, Any]:
        from headrace.dispatchers.cron.views import view  # noqa: PLC0415 - an extra

        return _plain(await view(self._schedules, name, self.now(), runs=RUNS))

    async def add(self, name: str, *, replace: bool, **fields: Any) -> dict[str, Any]:
        from headrace.dispatchers.cron.config import read_file  # noqa: PLC0415 - an extra
        from headrace.model.schedule import Schedule  # noqa: PLC0415

        config = fields.pop("config")
        if file := read_file(None if config is None else Path(config)):
            self._schedules.least_interval = file.settings.min_cron_interval_seconds
        schedule = Schedule(name=name, **fields)
        await self._schedules.add(schedule, origin="cli", replace=replace)
        return await self.view(name)

    async def remove(self, name: str) -> str | None:
        kept = await self._schedules.remove(name)
        return None if kept.declared is None else kept.origin

    async def next_times(self, name: str, count: int) -> dict[str, Any]:
        return shown_times((await self._schedules.get(name)).schedule, self.now(), count)

    async def trigger(self, name: str, *, force: bool) -> Job:
        return await self._schedules.trigger(name, source="cli", force=force)


class RemoteSchedules:
    """The verbs on a server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.enable = client.enable_schedule
        self.trigger = client.trigger_schedule

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def views(self) -> list[dict[str, Any]]:
        return [_plain(each) for each in await self._client.schedules()]

    async def view(self, name: str) -> dict[str, Any]:
        return _plain(await self._client.schedule(name))

    async def add(self, name: str, *, replace: bool, **fields: Any) -> dict[str, Any]:
        if fields.pop("config") is not None:
            raise InvalidInput("--config is for an engine; the server of API_URL has its own")
        if not replace:
            try:
                await self._client.schedule(name)
            except UnknownSchedule:
                pass
            else:
                raise InvalidSetting(
                    f'a schedule "{name}" exists already; choose another name, or replace it '
                    "(--replace)"
                )
        return _plain(await self._client.put_schedule(name, **fields))

    async def remove(self, name: str) -> str | None:
        origin = (await self._client.schedule(name)).origin
        await self._client.remove_schedule(name)
        return origin if origin.startswith(("code", "file")) else None

    async def next_times(self, name: str, count: int) -> dict[str, Any]:
        return _plain(await self._client.next_times(name, count))


@asynccontextmanager
async def schedule_verbs(
    session: Session, *, needs_app: bool = False, task: str | None = None
) -> AsyncIterator[ScheduleVerbs]:
    """On the server of API_URL, or on the engine; there some verbs need the tasks of the App."""
    if session.remote:
        async with session.client() as client:
            yield RemoteSchedules(client)
    elif needs_app:
        async with session.load_app(task) as app:
            yield DirectSchedules(app)
    else:
        async with session.store() as app:
            yield DirectSchedules(app)


def shown_times(schedule: Any, now: datetime, count: int) -> dict[str, Any]:
    """The next times of a schedule as `--json` shows them."""
    from headrace.dispatchers.cron.views import next_times  # noqa: PLC0415 - an extra

    return {
        "expression": schedule.expression,
        "words": schedule.cron.words,
        "tz": schedule.tz,
        "next": next_times(schedule, now, count),
    }


def _plain(found: Any) -> dict[str, Any]:
    """A struct as a dictionary, with times that can be counted with."""
    plain: dict[str, Any] = msgspec.to_builtins(found, builtin_types=(datetime,))
    return plain
