"""The verbs of an App for the bundles that it loads."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from headrace.app_lifecycle import AppLifecycle

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.bundles.bundle import Bundle
    from headrace.bundles.registry import BundleRegistry
    from headrace.bundles.setup import Setup
    from headrace.clock import Clock
    from headrace.config import Settings


class BundleVerbs(AppLifecycle):
    """Bundles are loaded before the App is opened, and closed with it."""

    @functools.cached_property
    def bundles(self) -> BundleRegistry:
        """The bundles that are loaded here, and those that failed."""
        from headrace.bundles.registry import BundleRegistry  # noqa: PLC0415 - many have none

        return BundleRegistry(cast("App", self))  # nothing but an App has these verbs

    def load_bundle(self, bundle: Bundle, **settings: Any) -> Setup:
        """Add a bundle's tasks, schedules and routes to this App, before it is opened or served.
        `settings` override the environment and the file. Raises if it cannot be loaded.
        """
        return self.bundles.load(bundle, settings).setup

    def reconfigure(self, settings: Settings, *, clock: Clock | None = None) -> None:
        """Use other settings from now on, with a new engine. Close the App first if it is open.
        Bundles that the settings name are loaded; those that are loaded stay.
        """
        super().reconfigure(settings, clock=clock)
        for name in settings.bundles:
            self.bundles.load_named(name)

    async def close(self) -> None:
        """Close every connection. The App can be opened again. Those who wait for a result, or for
        the App to be opened, are told so by an error.
        """
        if "bundles" in vars(self):
            await self.bundles.close()
        await super().close()

    async def _prepare_bundles(self) -> None:
        if not self.bundles.prepared and not self._isolated:
            await self.bundles.prepare()
