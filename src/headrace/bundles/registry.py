"""The bundles of an App: loaded, opened and closed with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.bundles.bundle import Bundle
from headrace.bundles.discover import find_bundle, version_of
from headrace.bundles.imports import resolve, told
from headrace.bundles.settings import load_settings
from headrace.bundles.setup import Setup
from headrace.errors import HeadraceError, InvalidSetting

if TYPE_CHECKING:
    from headrace.app import App

log = logging.getLogger("headrace.bundles")


@dataclass(slots=True)
class LoadedBundle:
    """A bundle in an App. `failure` says why it is of no use since, if it is."""

    bundle: Bundle
    setup: Setup
    tasks: tuple[str, ...] = ()
    version: str | None = None
    named: bool = False
    """Whether it was asked for by name: then its failure does not stop the rest."""
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class BundleFailure:
    """A bundle that could not be loaded, and why."""

    name: str
    reason: str


@dataclass(slots=True)
class _Before:
    """What an App had before a bundle was registered."""

    tasks: dict[str, Any]
    schedules: dict[str, Any] = field(default_factory=dict)


class BundleRegistry:
    """Loads bundles into one App. Iterates over those that are loaded and well."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._loaded: dict[str, LoadedBundle] = {}
        self._failures: dict[str, str] = {}
        self._preparing: asyncio.Task[None] | None = None
        self.prepared = True

    def __iter__(self) -> Iterator[LoadedBundle]:
        return iter([each for each in self._loaded.values() if each.failure is None])

    def __contains__(self, name: object) -> bool:
        return name in self._loaded

    def find(self, name: str) -> LoadedBundle | None:
        """Return a bundle that was loaded, also one that has failed since."""
        return self._loaded.get(name)

    @property
    def failures(self) -> list[BundleFailure]:
        """Return the bundles that could not be loaded, and those that have failed since."""
        found = dict(self._failures)
        found |= {name: each.failure for name, each in self._loaded.items() if each.failure}
        return [BundleFailure(name, reason) for name, reason in found.items()]

    def load(
        self, bundle: Bundle, given: Mapping[str, Any], *, named: bool = False
    ) -> LoadedBundle:
        """Load a bundle, or leave the App as it was and raise."""
        other = self._loaded.get(bundle.name)
        if other is not None:
            same = "it is loaded already" if other.bundle is bundle else "there is another of it"
            raise InvalidSetting(
                f'two bundles are called "{bundle.name}": {same}; load it once, or rename one'
            )
        settings, url = load_settings(bundle, given)
        setup = Setup(bundle, self._app, settings, url)
        loaded = LoadedBundle(bundle, setup, version=version_of(bundle.name), named=named)
        before = _Before(dict(self._app.tasks), dict(self._declared()))
        try:
            _ = setup.tables_address  # a bad URL is a bad setting
            register = resolve(bundle.name, "register", bundle.register)
            if register is not None:
                register(self._app, setup)
        except BaseException as error:
            self._put_back(before)
            if isinstance(error, HeadraceError):
                raise type(error)(_within(bundle.name, str(error))) from error
            raise
        loaded.tasks = tuple(name for name in self._app.tasks if name not in before.tasks)
        self._loaded[bundle.name] = loaded
        self._failures.pop(bundle.name, None)
        self.prepared = self.prepared and bundle.tables is None
        return loaded

    def load_named(self, name: str) -> None:
        """Load an installed bundle. A name that nobody knows raises; a bundle that cannot be loaded
        is reported, and kept in `failures`.
        """
        if name in self._loaded or name in self._failures:
            return
        point = find_bundle(name)
        try:
            bundle = point.load()
            if not isinstance(bundle, Bundle):
                raise InvalidSetting(  # noqa: TRY301 - reported like any other failure to load
                    f"{point.value} is a {type(bundle).__name__}, not a headrace.Bundle"
                )
            if bundle.name != name:
                raise InvalidSetting(  # noqa: TRY301
                    f'{point.value} is called "{bundle.name}"; its entry point has to be, too'
                )
            self.load(bundle, {}, named=True)
        except (Exception, SystemExit) as error:
            self._failures[name] = told(error)
            log.error('Bundle "%s" was not loaded: %s', name, told(error))  # noqa: TRY400
            log.debug('Bundle "%s"', name, exc_info=error)

    def fail(self, loaded: LoadedBundle, error: BaseException) -> None:
        """Take a bundle out of service, with its tasks, and report why."""
        loaded.failure = told(error)
        for name in loaded.tasks:
            self._app.tasks.pop(name, None)
        log.error('Bundle "%s" is out of service: %s', loaded.bundle.name, loaded.failure)
        log.debug('Bundle "%s"', loaded.bundle.name, exc_info=error)

    async def prepare(self) -> None:
        """Bring the tables of all bundles up to date, once, before the App is used."""
        if self._preparing is None or self._preparing.done():
            self._preparing = asyncio.ensure_future(self._prepare())
        # One that is cancelled here must not take along the others who wait for the same.
        await asyncio.shield(self._preparing)

    async def close(self) -> None:
        """Close the connections of all bundles."""
        preparing, self._preparing = self._preparing, None
        if preparing is not None and not preparing.done():
            preparing.cancel()
            await asyncio.gather(preparing, return_exceptions=True)
        for loaded in self._loaded.values():
            await loaded.setup.close()
        self.prepared = not any(each.bundle.tables is not None for each in self)

    async def _prepare(self) -> None:
        may = self._app.settings.migrate == "auto"
        for loaded in self:
            setup, tables = loaded.setup, loaded.bundle.tables
            if tables is None:
                continue
            try:
                if may:
                    await setup.migrate()
                else:
                    from headrace.bundles.migrations import check  # noqa: PLC0415 - the extra

                    await check(setup.engine(), setup.tables_address, tables, loaded.bundle.name)
            except Exception as error:
                self.fail(loaded, error)
        self.prepared = True

    def _declared(self) -> dict[str, Any]:
        schedules = vars(self._app).get("schedules")  # a cached property, made when it is used
        return {} if schedules is None else schedules.declared

    def _put_back(self, before: _Before) -> None:
        for now, then in ((self._app.tasks, before.tasks), (self._declared(), before.schedules)):
            for name in set(now) - set(then):
                del now[name]


def _within(name: str, text: str) -> str:
    start = f'bundle "{name}"'
    return text if text.startswith(start) else f"{start}: {text}"
