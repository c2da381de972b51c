"""`headrace keys`: who may use the HTTP API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headrace.api_types.responses import KeyView, NewKey
from headrace.cli.command import command, group
from headrace.cli.errors import tell
from headrace.cli.filters import parts
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.session import Session
from headrace.errors import InvalidInput
from headrace.server.auth.keys import create_key, list_keys, revoke_key

commands = group("Keys for the HTTP API.")


@command(commands, "create")
async def create(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Whose it is.")] = "unnamed",
    scope: Annotated[str, typer.Option(metavar="SCOPE", help="read, write or admin.")] = "read",
    user: Annotated[
        str | None, typer.Option(metavar="USER", help="Acts for this user only.")
    ] = None,
    queues: Annotated[
        str | None, typer.Option(metavar="A,B", help="For these queues only; default all.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="N", help="Requests a second; default 2000.")
    ] = None,
) -> None:
    """Make a key. It is shown this once; only a hash of it is kept.

    From the first key on the API answers nobody without one. With API_URL that server makes it, for
    whom HEADRACE_API_KEY is a key of scope admin.

    \b
    Examples:
      headrace keys create ci --scope write
      headrace keys create ada --scope write --user ada --queues mail,scans
    """
    wanted: dict[str, Any] = {
        "name": name,
        "scope": scope,
        "user": user,
        "queues": parts([queues]) if queues else (),
        "rate": None if rate is None else _number(rate),
    }
    if session.remote:
        async with session.client() as client:
            key: NewKey = await client.create_key(**wanted)
    else:
        async with session.store() as app:
            made, secret = await create_key(app, **wanted)
        key = made.new_view(secret)
    if session.json:
        print_json(key)
        return
    print_line(key.secret)
    tell(f"Key {key.id} ({key.name}, {key.scope}). Keep it now: it cannot be shown again.")


@command(commands, "list")
async def show(session: Session) -> None:
    """Show all keys, also revoked ones; never their secrets.

    \b
    Example:
      headrace keys list
    """
    keys: Sequence[KeyView]
    if session.remote:
        async with session.client() as client:
            keys = await client.keys()
    else:
        async with session.store() as app:
            keys = [key.view() for key in await list_keys(app)]
    if session.json:
        print_json({"keys": keys})
    elif not keys:
        print_line("No keys: the API is open to this machine, and closed to all others.")
    else:
        print_table(
            ("ID", "SCOPE", "CREATED", "STATE", "USER", "QUEUES", "NAME"),
            [
                (
                    key.id,
                    key.scope,
                    f"{key.created_at:%Y-%m-%d %H:%M}",
                    "revoked" if key.revoked_at else "valid",
                    key.user or "-",
                    ",".join(key.queues) or "all",
                    key.name,
                )
                for key in keys
            ],
        )


@command(commands, "revoke")
async def revoke(
    session: Session, *, key_id: Annotated[str, typer.Argument(metavar="ID", help="Its id.")]
) -> None:
    """Let a key be refused from now on, by running servers within two seconds.

    \b
    Example:
      headrace keys revoke 0123456789abcdef
    """
    if session.remote:
        async with session.client() as client:
            key = await client.revoke_key(key_id)
    else:
        async with session.store() as app:
            key = (await revoke_key(app, key_id)).view()
    if session.json:
        print_json(key)
    else:
        print_line(f"Key {key.id} ({key.name}) is revoked.")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"--rate must be a number, got {text!r}") from None
