"""`headrace keys`: who may use the HTTP API; and the keys that values are sealed with."""

from __future__ import annotations

from typing import Any

from headrace.admin.encryption_keys import KeyInUse, rotate_encryption
from headrace.api_types.responses import KeyView
from headrace.cli.command import argument, group, option
from headrace.cli.errors import FAILED, OK, notice
from headrace.cli.filters import parts
from headrace.cli.formatting import plural, shown_time
from headrace.cli.ids import pick_id
from headrace.cli.output import Columns, print_json, print_line, print_table, progress
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput

commands = group("Create and revoke keys of the API; rotate encryption keys.")


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


@commands.command("rotate-encryption")
async def rotate(session: CliSession) -> int:
    """Show which encryption keys stored values still need, and seal records with the first one.

    New values are sealed with the first key that this command is given, and all keys open. A stored
    job keeps its key until it is pruned, so an older key can be dropped when nothing needs it any
    more: the exit code is 0 then, and 1 before. Jobs are only read: it may run beside workers, be
    interrupted, and be repeated.

      headrace keys rotate-encryption
      headrace keys rotate-encryption --json
    """
    if session.remote:
        raise InvalidInput(
            "rotate-encryption works on an engine, with the keys in hand; name the engine with "
            "--url, or unset API_URL"
        )
    async with session.store() as app:
        with progress("Look at jobs", quiet=session.json) as advance:
            found = await rotate_encryption(app, on_progress=advance)
    if session.json:
        print_json(found)
        return OK if found.complete else FAILED
    columns: Columns[KeyInUse] = {
        "KEY": lambda each: each.key,
        "STATE": lambda each: "seals" if each.seals else "opens" if each.known else "missing",
        "UNFINISHED": lambda each: each.unfinished,
        "FINISHED": lambda each: each.finished,
        "RECORDS": lambda each: each.records,
        "DROP": _when_to_drop,
    }
    print_table(columns, found.keys)
    notice(
        f"Looked at {plural(found.jobs, 'job')}; sealed {plural(found.resealed, 'record')} anew."
    )
    return OK if found.complete else FAILED


def _when_to_drop(each: KeyInUse) -> str:
    if each.seals:
        return "-"
    if not each.used:
        return "now"
    if each.until is None:
        return "when its unfinished jobs are pruned" if each.unfinished else "run this again"
    return f"after {shown_time(each.until)}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"--rate must be a number, got {text!r}") from None
