"""`headrace destinations`: where published events go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace.api_types.publishing import RETRIES, DestinationView
from headrace.app import App
from headrace.cli.backend import from_cli
from headrace.cli.command import argument, group
from headrace.cli.errors import notice
from headrace.cli.filters import parts
from headrace.cli.output import Columns, print_fields, print_json, print_line
from headrace.cli.session import CliSession
from headrace.dispatchers.events.config import QueueConfig, fill_variables
from headrace.errors import InvalidInput
from headrace.publishing.destinations import convert_options

NAME = "The name of the destination."

commands = group("Add, list, show, test and remove destinations of events.")


@commands.command("add")
@argument("name", metavar="NAME", help=NAME)
@argument("kind", metavar="KIND", help="webhook, kafka, rabbitmq, nats, redis_streams or sqs.")
@argument("options", metavar="[OPTION=VALUE]...", nargs=-1, help="Options of the kind.")
@click.option("--types", metavar="A,B", help="Only these event types, such as document.* (all).")
@click.option("--secret-env", metavar="NAME", help="Take the webhook's secret from a variable.")
@click.option("--retries", metavar="N", type=int, default=RETRIES, help="Tries after the first.")
@click.option("--replace", is_flag=True, help="Change it if it exists.")
async def add(
    session: CliSession,
    *,
    name: str,
    kind: str,
    options: tuple[str, ...],
    types: str | None,
    secret_env: str | None,
    retries: int,
    replace: bool,
) -> None:
    """Add a destination. The secret of a webhook is shown only once.

    ${NAME} in an option stands for a variable of the environment, so that no password has to be
    typed.

    headrace destinations add crm webhook url=https://crm.example.com/hooks
    headrace destinations add log kafka topic=events bootstrap_servers=kafka:9092
    headrace destinations add audit redis_streams stream=audit --types document.*
    """
    given = msgspec.to_builtins(convert_options(kind, _options(options), strict=False))
    wanted: dict[str, Any] = {
        "types": parts([types]) if types else ("*",),
        "secret": None if secret_env is None else _variable(secret_env),
        "retries": retries,
    }
    async with session.backend() as backend:
        if isinstance(backend, App):
            made = await backend.put_destination(
                name, kind, given, **wanted, replace=replace, **from_cli(backend)
            )
        else:
            if not replace and name in {each.name for each in await backend.destinations()}:
                raise InvalidInput(f"a destination {name!r} exists already; use --replace")
            made = await backend.put_destination(name, kind, given, **wanted)
    _show_new(session, made, secret_env is None)


@commands.command("list")
async def list_destinations(session: CliSession) -> None:
    """List destinations; never their secrets.

    headrace destinations list
    """
    async with session.backend() as backend:
        found = await backend.destinations()
    columns: Columns[DestinationView] = {
        "NAME": lambda each: each.name,
        "KIND": lambda each: each.kind,
        "STATE": _state,
        "TYPES": lambda each: ",".join(each.types),
        "TO": _to,
    }
    none = "No destinations: published events go nowhere. See: headrace destinations add"
    session.show_list("destinations", found, columns, empty=none)


@commands.command("show")
@argument("name", metavar="NAME", help=NAME)
async def show(session: CliSession, *, name: str) -> None:
    """Show one destination without its secrets.

    headrace destinations show crm
    """
    async with session.backend() as backend:
        _show(session, await backend.destination(name))


@commands.command("remove")
@argument("name", metavar="NAME", help=NAME)
async def remove(session: CliSession, *, name: str) -> None:
    """Remove a destination. What was not delivered there yet is dropped.

    headrace destinations remove crm
    """
    async with session.backend() as backend:
        await backend.remove_destination(name)
    if session.json:
        print_json({"name": name})
    else:
        print_line(f"Destination {name} is removed.")


@commands.command("enable")
@argument("name", metavar="NAME", help=NAME)
async def enable(session: CliSession, *, name: str) -> None:
    """Let events go to a destination again.

    headrace destinations enable crm
    """
    async with session.backend() as backend:
        _show(session, await backend.enable_destination(name, True))


@commands.command("disable")
@argument("name", metavar="NAME", help=NAME)
async def disable(session: CliSession, *, name: str) -> None:
    """Send no events to a destination. Deliveries that wait fail, and can be retried.

    headrace destinations disable crm
    """
    async with session.backend() as backend:
        _show(session, await backend.enable_destination(name, False))


@commands.command("rotate")
@argument("name", metavar="NAME", help=NAME)
@click.option("--finish", is_flag=True, help="Sign with the newest secret only.")
async def rotate(session: CliSession, *, name: str, finish: bool) -> None:
    """Give a webhook a second secret. Both sign until the rotation is finished.

    headrace destinations rotate crm
    headrace destinations rotate crm --finish
    """
    async with session.backend() as backend:
        made = await backend.rotate_destination(name, finish=finish)
    _show_new(session, made, True)


@commands.command("test")
@argument("name", metavar="NAME", help=NAME)
async def test(session: CliSession, *, name: str) -> None:
    """Send a test event to a destination and print the id of the job that delivers it.

    headrace destinations test crm
    """
    async with session.backend() as backend:
        job = await backend.test_destination(name)
    session.show(job.to_dict(), job.id)
    if not session.json:
        notice(f"A worker delivers it; see: headrace jobs show {job.id}")


@commands.command("apply")
@click.option(
    "--config", metavar="FILE", default="config/destinations.yaml", help="The destinations."
)
async def apply(session: CliSession, *, config: str) -> None:
    """Store the destinations of a file, and remove those that it no longer has.

    headrace destinations apply --config config/destinations.yaml
    """
    async with session.store() as app:
        changed = await app.apply_destinations(Path(config))
    if session.json:
        print_json({"changed": changed})
    else:
        print_line(f"Changed: {', '.join(changed)}." if changed else "Nothing has changed.")


def _options(pairs: tuple[str, ...]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    where = QueueConfig(adapter="", path="the command line")
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput("an option is name=value, such as topic=events")
        given[name] = fill_variables(text, name, where, os.environ)
    return given


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise InvalidInput(f"the environment variable {name} is not set")
    return value


def _show_new(session: CliSession, made: Any, shown: bool) -> None:
    if session.json:
        print_json(made)
        return
    if made.secret is not None and shown:
        print_line(made.secret)
        notice("This is the secret of the webhook. Keep it now: it cannot be shown again.")
    notice(f"Destination {made.name} ({made.kind}), {_state(made)}.")


def _show(session: CliSession, view: DestinationView) -> None:
    if session.json:
        print_json(view)
        return
    print_fields(
        [
            ("name", view.name),
            ("kind", view.kind),
            ("state", _state(view)),
            *([("reason", view.reason)] if view.reason else []),
            ("types", ", ".join(view.types)),
            ("retries", str(view.retries)),
            *([("secrets", str(view.secrets))] if view.kind == "webhook" else []),
            *((f"option {name}", str(value)) for name, value in view.options.items()),
        ]
    )


def _state(view: DestinationView) -> str:
    return "enabled" if view.enabled else "disabled"


def _to(view: DestinationView) -> str:
    names = ("url", "topic", "subject", "stream", "queue_url", "routing_key")
    return str(next((view.options[each] for each in names if view.options.get(each)), "-"))
