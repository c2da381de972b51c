"""Templates: whole pages, and the parts of them that are kept up to date."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from jinja2.runtime import Context

from headrace.api_types.responses import ProblemDetails
from headrace.server.dashboard import words
from headrace.server.dashboard.assets import asset, style_sheet
from headrace.server.dashboard.page import Shown, navigation
from headrace.server.dashboard.visit import Visit
from headrace.version import __version__

T = TypeVar("T")

LIVE = "live_"
# Says what is wrong. It is on every page.
BANNER = "live-banner"
# Rendering that takes longer than this leaves the event loop, which others share.
LONGEST_ON_LOOP = 0.005
# Stands for the form token of whoever reads it: what is rendered is shared by many.
TOKEN = f"token-{secrets.token_hex(16)}"

_visit: ContextVar[Visit] = ContextVar("headrace dashboard visit")
_slow: set[str] = set()


class Rendered(msgspec.Struct, frozen=True):
    """A page as HTML, and its live parts by the id of their element."""

    html: str
    parts: dict[str, str]

    @property
    def state(self) -> str:
        """Return a digest of the live parts."""
        return digest(self.parts)


def digest(parts: dict[str, str]) -> str:
    """Return what tells two states of a page apart."""
    found = hashlib.blake2b(digest_size=12)
    for name, html in sorted(parts.items()):
        found.update(f"{name}\0{html}\0".encode())
    return found.hexdigest()


async def render(shown: Shown, visit: Visit, **chrome: Any) -> Rendered:
    """Return a whole page. `chrome` is what only the frame around it needs."""
    return await _timed(shown.template, lambda: _whole(shown, visit, chrome))


async def render_parts(shown: Shown, visit: Visit) -> dict[str, str]:
    """Return the live parts only."""
    return await _timed(shown.template, lambda: _parts(_context(shown, visit, {})[1]))


async def _timed(name: str, work: Callable[[], T]) -> T:
    def measured() -> tuple[T, float]:
        began = time.perf_counter()
        return work(), time.perf_counter() - began

    result, took = await asyncio.to_thread(measured) if name in _slow else measured()
    (_slow.add if took > LONGEST_ON_LOOP else _slow.discard)(name)
    return result


def _whole(shown: Shown, visit: Visit, chrome: dict[str, Any]) -> Rendered:
    template, context = _context(shown, visit, chrome)
    parts = _parts(context)
    # What was rendered stands in for its block, so that nothing is rendered twice.
    for name, html in parts.items():
        context.blocks[name.replace("-", "_")] = [_fixed(html)]
    context.vars["state"] = digest(parts)
    # Without live parts but the banner there is nothing to follow, except for what is away.
    context.vars["live"] = chrome["live"] and (len(parts) > 1 or shown.status == 503)
    token = _visit.set(visit)
    try:
        html = "".join(template.root_render_func(context))
        return Rendered(words.counted(html, visit.now), parts)
    finally:
        _visit.reset(token)


def _parts(context: Context) -> dict[str, str]:
    token = _visit.set(context["visit"])
    try:
        return {
            name.replace("_", "-"): "".join(block[0](context)).strip()
            for name, block in sorted(context.blocks.items())
            if name.startswith(LIVE)
        } | {BANNER: banner()}
    finally:
        _visit.reset(token)


def _fixed(html: str) -> Callable[[Context], Iterator[str]]:
    def block(_: Context) -> Iterator[str]:
        yield html

    return block


def _context(shown: Shown, visit: Visit, chrome: dict[str, Any]) -> tuple[Template, Context]:
    template = environment().get_template(shown.template)
    variables = {"visit": visit, "title": shown.title, **chrome, **shown.variables}
    return template, template.new_context(variables)


@functools.cache
def environment() -> Environment:
    """Return the templates. Everything is escaped; an unknown variable is an error."""
    made = Environment(
        loader=PackageLoader("headrace.server.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(words.FILTERS)
    made.globals.update(
        url=lambda *given, **query: _visit.get().url(*given, **query),
        api=lambda *given, **query: _visit.get().api(*given, **query),
        again=lambda **changes: _visit.get().again(**changes),
        may=lambda scope: _visit.get().may(scope),
        here=lambda: _visit.get().here,
        static=lambda name: _visit.get().root + asset(name),
        style_sheet=style_sheet,
        token=lambda: TOKEN,
        navigation=navigation,
        version=__version__,
    )
    # After the rest: macros use it.
    made.globals["ui"] = made.get_template("macros.html").module
    return made


def with_token(html: str, token: str) -> str:
    """Put the form token of a reader where it belongs."""
    return html.replace(TOKEN, token)


def banner(problem: ProblemDetails | None = None) -> str:
    """Return the part that says what is wrong, if something is."""
    return str(environment().get_template("macros.html").module.banner(problem))  # type: ignore[attr-defined]
