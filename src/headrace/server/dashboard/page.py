"""How a page is declared: a function that looks, and a template that shows what it found."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import Scope
from headrace.server.dashboard.visit import Visit

# The order of the navigation. A page that is not here can be reached by links only.
ORDER = (
    "Now",
    "Jobs",
    "Errors",
    "Alerts",
    "Queues",
    "Lanes",
    "Tasks",
    "Workers",
    "Schedules",
    "Workflows",
    "Intake",
    "Activity",
    "Keys",
    "System",
)


class Shown:
    """What a page shows: a template and its variables. Its blocks `live_…` are kept up to date."""

    def __init__(
        self, template: str, *, title: str | None = None, status: int = 200, **variables: Any
    ) -> None:
        self.template = template
        self.title = title
        self.status = status
        self.variables = variables


Look = Callable[[Visit], Awaitable[Shown]]


class DashboardPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page. `path` is below the dashboard, with parameters as in `/jobs/{job_id}`."""

    path: str
    title: str
    look: Look
    key: str | None = None
    scope: Scope = "read"
    query: frozenset[str] = frozenset()
    personal: bool = False

    @property
    def in_navigation(self) -> bool:
        """Return whether the page is one of the navigation."""
        return self.title in ORDER and "{" not in self.path


PAGES: dict[str, DashboardPage] = {}


def page(
    path: str,
    *,
    title: str,
    key: str | None = None,
    scope: Scope = "read",
    query: tuple[str, ...] = (),
    personal: bool = False,
) -> Callable[[Look], Look]:
    """Return a decorator that makes a page of an `async def look(visit) -> Shown`.

    `key` goes there after `g`. `query` names every parameter that the page knows; others are
    refused. `personal`: it depends on who looks, not only on what the caller may see.
    """

    def add(look: Look) -> Look:
        made = DashboardPage(
            path=path,
            title=title,
            look=look,
            key=key,
            scope=scope,
            query=frozenset(query),
            personal=personal,
        )
        for other in PAGES.values():
            if other.path == path or (key is not None and other.key == key):
                raise ValueError(f"page {path}: {other.path} has the same path or key")
        PAGES[path] = made
        return look

    return add


Send = Callable[[Visit, Request], Awaitable[Response]]


class DashboardFile(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a page links and a browser saves."""

    path: str
    send: Send


FILES: dict[str, DashboardFile] = {}


def download(path: str) -> Callable[[Send], Send]:
    """Return a decorator that makes a download of an `async def send(visit, request)`, for all who
    may read. Its response has to be an attachment.
    """

    def add(send: Send) -> Send:
        FILES[path] = DashboardFile(path=path, send=send)
        return send

    return add


def all_files() -> tuple[DashboardFile, ...]:
    """Return the downloads of all pages."""
    all_pages()
    return tuple(FILES.values())


@functools.cache
def all_pages() -> tuple[DashboardPage, ...]:
    """Import every module of `pages`, and return what they declare: fixed paths first."""
    from headrace.server.dashboard import pages  # noqa: PLC0415 - pages import this module

    import_all(pages)
    return tuple(sorted(PAGES.values(), key=lambda each: ("{" in each.path, each.path)))


def import_all(package: ModuleType) -> None:
    """Import every module of a package, so that each can register what it has."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)


def navigation() -> list[DashboardPage]:
    """Return the pages of the navigation, in order."""
    found = [each for each in all_pages() if each.in_navigation]
    return sorted(found, key=lambda each: ORDER.index(each.title))
