"""What each installed bundle brings. Nothing is connected, and one that is broken says so."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import click
import msgspec

from headrace.app import App
from headrace.bundles import Bundle, Setup
from headrace.bundles.discover import package_of, summary_of, version_of
from headrace.bundles.imports import resolve, told
from headrace.bundles.settings import shown_fields
from headrace.config import Settings
from headrace.errors import InvalidSetting
from headrace.installed_bundles import installed


class RouteView(msgspec.Struct):
    """One route, with the scope that it needs."""

    method: str
    path: str
    scope: str | None


class BundleView(msgspec.Struct, kw_only=True):
    """An installed bundle. `loaded` if the settings name it; `failure` says why it is of no use."""

    name: str
    package: str
    version: str | None
    summary: str
    loaded: bool
    failure: str | None = None
    tasks: list[str] = []
    routes: list[RouteView] = []
    commands: list[str] = []
    settings: dict[str, Any] = {}
    """Environment variables with their defaults; null for those without."""
    tables: str | None = None
    page: str | None = None


def describe_all(settings: Settings) -> list[BundleView]:
    """Return every bundle that is installed."""
    found = []
    for name, points in installed().items():
        view = BundleView(
            name=name,
            package=" and ".join(package_of(point) for point in points),
            version=version_of(name),
            summary=summary_of(name),
            loaded=name in settings.bundles,
        )
        if len(points) > 1:
            view.failure = f'two bundles are called "{name}"; uninstall one of them'
        else:
            try:
                _fill(view, points[0], settings)
            except (Exception, SystemExit) as error:
                view.failure = told(error)
        view.loaded = view.loaded and view.failure is None
        found.append(view)
    return found


def _fill(view: BundleView, point: EntryPoint, settings: Settings) -> None:
    bundle = point.load()
    if not isinstance(bundle, Bundle):
        raise InvalidSetting(f"{point.value} is no headrace.Bundle")
    view.summary = bundle.summary
    view.settings = shown_fields(bundle)
    view.page = None if bundle.page is None else f"{bundle.prefix}/"
    # An App that is never opened: registering needs no engine.
    app = App(settings=msgspec.structs.replace(settings, bundles=()))
    setup = app.load_bundle(bundle)
    loaded = app.bundles.find(bundle.name)
    view.tasks = [] if loaded is None else list(loaded.tasks)
    view.tables = None if bundle.tables is None else str(setup.tables_address)
    view.routes = _routes(bundle, setup)
    make = resolve(bundle.name, "commands", bundle.commands)
    view.commands = [] if make is None else _commands(make(), bundle.name)


def _routes(bundle: Bundle, setup: Setup) -> list[RouteView]:
    make = resolve(bundle.name, "routes", bundle.routes)
    if make is None:
        return []
    return [
        RouteView(route.method, bundle.prefix + route.path, route.scope)
        for route in make(setup).routes
    ]


def _commands(command: click.Command, path: str) -> list[str]:
    if not isinstance(command, click.Group):
        return [f"headrace {path}"]
    return [
        name
        for verb, each in command.commands.items()
        for name in _commands(each, f"{path} {verb}")
    ]
