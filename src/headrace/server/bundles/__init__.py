"""Routes and pages of bundles, served below their names."""

from __future__ import annotations

from fastapi import FastAPI

from headrace.app import App
from headrace.bundles.imports import resolve
from headrace.bundles.registry import LoadedBundle
from headrace.bundles.routes import Routes
from headrace.errors import InvalidSetting
from headrace.server.bundles.page import page_routes
from headrace.server.bundles.route import BundleRoute, bundle_route

__all__ = ["add_bundles"]


def add_bundles(api: FastAPI, app: App) -> None:
    """Add the routes and pages of all bundles that are loaded.

    One that declares a wrong route raises if it was loaded in code; one that was asked for by name
    is taken out of service and reported, and the rest is served.
    """
    for loaded in app.bundles if "bundles" in vars(app) else ():
        try:
            routes = _routes(loaded)
        except Exception as error:
            if not loaded.named:
                raise
            app.bundles.fail(loaded, error)
        else:
            api.router.routes.extend(routes)


def _routes(loaded: LoadedBundle) -> list[BundleRoute]:
    bundle = loaded.bundle
    found: list[BundleRoute] = []
    make = resolve(bundle.name, "routes", bundle.routes)
    if make is not None:
        declared = make(loaded.setup)
        if not isinstance(declared, Routes):
            raise InvalidSetting(
                f'bundle "{bundle.name}": routes must return headrace.bundles.Routes, got '
                f"{type(declared).__name__}"
            )
        found = [bundle_route(loaded, route) for route in declared.routes]
    # The page last: it takes every path below the name that is not a route.
    return found + page_routes(loaded)
