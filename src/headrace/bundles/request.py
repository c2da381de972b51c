"""What a route of a bundle is given. Needs the extra `server`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import MissingDriver

try:
    from starlette.requests import Request
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'routes of bundles need {error.name}; install it: pip install "headrace[server]"'
    ) from error

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.bundles.setup import Setup

# Where the server puts what it knows about a request.
SETUP = "headrace.bundle.setup"
CALLER = "headrace.caller"
NOTES = "headrace.bundle.audit"
MOST_FILES = 1_000
MOST_FIELDS = 1_000


class BundleRequest(Request):
    """A request to a route of a bundle: that of Starlette, with the App, the setup and the user.

    Bodies and forms are read up to the limit of the route; files of a form go to disk while they
    come in. Past the limit the request is refused with 413.
    """

    @property
    def setup(self) -> Setup:
        """Return the bundle's setup."""
        setup: Setup = self.scope[SETUP]
        return setup

    @property
    def app(self) -> App:
        """Return the headrace.App that serves it."""
        return self.setup.app

    @property
    def user(self) -> str | None:
        """Return the user of the caller's key, if it has one."""
        user: str | None = self.scope[CALLER].user
        return user

    @property
    def caller(self) -> str:
        """Return the name of the caller's key; `local` where there are no keys."""
        name: str = self.scope[CALLER].name
        return name

    def note(self, target: str | None = None, **detail: Any) -> None:
        """Say what the audit log shall hold of this request beside its route: what was changed, and
        further details. Nothing secret.
        """
        notes = self.scope.setdefault(NOTES, {"target": None, "detail": {}})
        notes["target"] = target or notes["target"]
        notes["detail"] |= detail
