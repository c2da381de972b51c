"""`headrace keys`: who may use the HTTP API."""

from __future__ import annotations

from typing import Any

from headrace.api_types.responses import KeyView
from headrace.cli.command import argument, group, option
from headrace.cli.errors import notice
from headrace.cli.filters import parts
from headrace.cli.formatting import shown_time
from headrace.cli.ids import pick_id
from headrace.cli.output import Columns, print_json, print_line
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput

commands = group("Create, list and revoke keys for the HTTP API.")


@commands.command("create")
@argument("name", "[NAME]", "A name for the key (default unnamed).", default="unnamed")
@option("--scope", "SCOPE", "read, write or admin.", default="read")
@option("--user", "USER", "Act only for this user.")
@option("--queues", "A,B", "Allow only these queues (default all).")
@option("--rate", "N", "Requests per second (default 2000).")
async def create(
    session: CliSession,
    *,
    name: str,
    scope: str,
    user: str | None,
    queues: str | None,
    rate: str | None,
) -> None:
    """Create a key. It is shown only once; only a hash of it is stored.

    From the first key on the API refuses requests without one. With API_URL that server creates it;
    HEADRACE_API_KEY must then be a key of scope admin.

      headrace keys create ci --scope write
      headrace keys create ada --scope write --user ada --queues mail,scans
    """
    wanted: dict[str, Any] = {
        "user": user,
        "queues": parts([queues]) if queues else (),
        "rate": None if rate is None else _number(rate),
    }
    async with session.backend() as backend:
        key = await backend.create_key(name, scope, **wanted)  # type: ignore[arg-type]
    if session.json:
        print_json(key)
        return
    print_line(key.secret)
    notice(f"Key {key.id} ({key.name}, {key.scope}). Keep it now: it cannot be shown again.")


@commands.command("list")
async def show(session: CliSession) -> None:
    """List all keys, also revoked ones; never their secrets.

    headrace keys list
    """
    async with session.backend() as backend:
        keys = await backend.keys()
    columns: Columns[KeyView] = {
        "ID": lambda key: key.id,
        "SCOPE": lambda key: key.scope,
        "CREATED": lambda key: shown_time(key.created_at),
        "STATE": lambda key: "revoked" if key.revoked_at else "valid",
        "USER": lambda key: key.user or "-",
        "QUEUES": lambda key: ",".join(key.queues) or "all",
        "NAME": lambda key: key.name,
    }
    if keys or session.json:
        session.show_list("keys", keys, columns)
    else:
        print_line("No keys: the API is open to this machine, and closed to all others.")


@commands.command("revoke")
@argument("key_id", "ID", "The id of the key, or its beginning.")
async def revoke(session: CliSession, *, key_id: str) -> None:
    """Revoke a key. Running servers refuse it within two seconds.

    headrace keys revoke 0123456789abcdef
    """
    async with session.backend() as backend:
        whole = pick_id(key_id, [key.id for key in await backend.keys()])
        key = await backend.revoke_key(whole)
    session.show(key, f"Key {key.id} ({key.name}) is revoked.")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"--rate must be a number, got {text!r}") from None
