"""`headrace bundles`: what is installed, and what each bundle brings."""

from __future__ import annotations

import click

from headrace.cli.bundles.describe import BundleView, describe_all
from headrace.cli.command import Command, argument
from headrace.cli.errors import FAILED, OK
from headrace.cli.output import Columns, print_fields, print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.suggest import unknown


@click.command("bundles", cls=Command)
@argument("name", metavar="[NAME]", help="Show all about this one.", required=False)
async def bundles(session: CliSession, *, name: str | None) -> int:
    """List installed bundles and what they bring.

    Bundles are applications that can be added to Headrace. The exit code is 1 if one that is
    chosen cannot be loaded.

    headrace bundles
    headrace bundles ingest
    """
    found = describe_all(session.settings)
    chosen = set(session.settings.bundles)
    if name is not None:
        known = {view.name: view for view in found}
        if name not in known:
            raise InvalidInput(unknown("bundle", name, known))
        found = [known[name]]
    missing = sorted(chosen - {view.name for view in found}) if name is None else []
    if session.json:
        print_json({"bundles": found, "missing": missing})
    elif name is not None:
        _print_one(found[0])
    else:
        _print_all(found, missing)
    failed = any(view.failure and view.name in chosen for view in found)
    return FAILED if failed or missing else OK


def _print_all(found: list[BundleView], missing: list[str]) -> None:
    if not found and not missing:
        print_line("No bundles are installed.")
        return
    print_table(_COLUMNS, found)
    if missing:
        print_line()
        print_line(f"Chosen, but not installed here: {', '.join(missing)}")
    for view in found:
        if view.failure:
            print_line()
            print_line(f"{view.name} cannot be loaded: {view.failure}")


def _state(view: BundleView) -> str:
    if view.failure:
        return "failed"
    return "loaded" if view.loaded else "installed"


_COLUMNS: Columns[BundleView] = {
    "NAME": lambda view: view.name,
    "VERSION": lambda view: view.version or "-",
    "STATE": _state,
    "SUMMARY": lambda view: view.summary,
}


def _print_one(view: BundleView) -> None:
    settings = [f"{name} = {_default(value)}" for name, value in view.settings.items()]
    routes = [f"{each.method:<6} {each.path}  ({each.scope})" for each in view.routes]
    print_fields(
        [
            ("name", view.name),
            ("package", f"{view.package} {view.version or ''}"),
            ("summary", view.summary),
            ("state", _state(view)),
            *([("failure", view.failure)] if view.failure else []),
            ("tasks", "\n".join(view.tasks) or "none"),
            ("routes", "\n".join(routes) or "none"),
            ("page", view.page or "none"),
            ("commands", "\n".join(view.commands) or "none"),
            ("settings", "\n".join(settings) or "none"),
            ("tables", view.tables or "none"),
        ]
    )


def _default(value: object) -> str:
    return "" if value is None else str(value)
