"""How a form's route is declared. Every one needs a scope, the visitor's token and this origin."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request

from headrace.api_types.requests import Scope
from headrace.server.dashboard.page import Shown, import_all
from headrace.server.dashboard.visit import Visit
from headrace.server.http.body import media_type, read_body, unsupported

FORM = "application/x-www-form-urlencoded"
# Part of every form, read by the shell.
OWN_FIELDS = ("token", "back", "once")
MOST_FIELDS = 10_000


class Act(Visit):
    """A form that was sent, by somebody who may."""

    form: ImmutableMultiDict[str, str]

    def check(self, scope: Scope) -> None:
        """Refuse a caller who lacks the scope, or who acts for one user where all are concerned."""
        super().check(scope)
        if scope == "admin":
            self.caller.check_for_all("this")

    async def changed(self, action: str, target: str, **detail: Any) -> None:
        """Write to the audit log what this caller has changed."""
        await self.service.audit.changed(self.caller, action, target, **detail)


class Done:
    """What was done, in words. `to` is where to go: a link of `url()`, or back to the page."""

    def __init__(self, said: str, *, to: str | None = None) -> None:
        self.said = said
        self.to = to


Handle = Callable[[Act], Awaitable[Done | Shown]]


class DashboardAction(msgspec.Struct, frozen=True, kw_only=True):
    """A route that a form is sent to."""

    path: str
    scope: Scope
    handle: Handle


ACTIONS: dict[str, DashboardAction] = {}


def action(path: str, *, scope: Scope) -> Callable[[Handle], Handle]:
    """Return a decorator that makes a route for forms of an `async def handle(act) -> Done`.

    One that returns `Shown` is a page of its own, for what is shown once.
    """

    def add(handle: Handle) -> Handle:
        if path in ACTIONS:
            raise ValueError(f"action {path} is there already")
        ACTIONS[path] = DashboardAction(path=path, scope=scope, handle=handle)
        return handle

    return add


@functools.cache
def all_actions() -> tuple[DashboardAction, ...]:
    """Import every module of `actions`, and return what they declare: fixed paths first."""
    from headrace.server.dashboard import actions  # noqa: PLC0415 - actions import this module

    import_all(actions)
    return tuple(sorted(ACTIONS.values(), key=lambda each: ("{" in each.path, each.path)))


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form; refuse other media types, and what is too large."""
    kind = request.headers.get("content-type", "")
    if media_type(kind) != FORM:
        raise unsupported(kind, FORM)
    body = await read_body(request)
    pairs = parse_qsl(
        body.decode(errors="replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS
    )
    return ImmutableMultiDict(pairs)
