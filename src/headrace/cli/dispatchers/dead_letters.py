"""`headrace dead-letters`: messages that made no job, why, and another try."""

from __future__ import annotations

import base64
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.api_types.responses import DeadLetterView, Replayed
from headrace.cli.backend import time_now
from headrace.cli.command import argument, flag, group, option, together
from headrace.cli.confirm import YES, change_each, confirm
from headrace.cli.errors import notice
from headrace.cli.formatting import ago, bytes_of, shown_time
from headrace.cli.output import (
    Columns,
    JsonList,
    Table,
    is_terminal,
    print_fields,
    print_json,
    print_line,
)
from headrace.cli.session import CliSession
from headrace.client.errors import NotFound
from headrace.dispatchers.events.dead_letters import DeadLetterNotFound
from headrace.errors import InvalidInput, JobConflict

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

PAGE = 200

TOPIC = option("--topic", "NAME", "Only this topic.")
_which = together(
    argument("ids", "[ID]...", "Ids of messages.", nargs=-1),
    flag("everything --all", "All messages."),
    TOPIC,
    YES,
)

commands = group("List, show, replay and remove messages that made no job.")


@commands.command("list")
@TOPIC
@option("--limit -n", "N", "Show at most this many.", type=int, default=100)
async def list_letters(session: CliSession, *, topic: str | None, limit: int) -> None:
    """List messages that made no job, by id.

    headrace dead-letters list --topic orders
    """
    if limit < 1:
        raise InvalidInput(f"--limit must be at least 1, got {limit}")
    document = JsonList("dead_letters") if session.json else None
    shown = 0
    async with session.backend() as backend:
        now = time_now(backend)
        columns: Columns[DeadLetterView] = {
            "ID": lambda letter: letter.id,
            "TOPIC": lambda letter: letter.topic,
            ">SIZE": lambda letter: bytes_of(letter.size),
            "SET ASIDE": lambda letter: ago(letter.set_aside_at, now),
            "REASON": lambda letter: letter.reason,
        }
        table = Table(columns)
        async for letter in _letters(backend, topic):
            if shown == limit:
                notice(f"note: there are more; ask with --limit {limit * 10}")
                break
            shown += 1
            if document is not None:
                document.add([_fields(letter)])
            else:
                table.add([letter])
    if document is not None:
        document.end()
    elif not shown and is_terminal():
        print_line("No message was set aside.")


@commands.command("show")
@argument("letter_id", "ID", "The id of the message.")
@flag("--raw", "Print only the message, unchanged.")
async def show(session: CliSession, *, letter_id: str, raw: bool) -> None:
    """Show one message with all that is known about it.

    headrace dead-letters show kafka:orders:3:1042
    headrace dead-letters show kafka:orders:3:1042 --raw > message.json
    """
    async with session.backend() as backend:
        letter, now = await backend.dead_letter(letter_id), time_now(backend)
    if raw:
        sys.stdout.buffer.write(letter.raw)
        sys.stdout.buffer.flush()
    elif session.json:
        print_json(_fields(letter) | {"raw": base64.b64encode(letter.raw).decode()})
    else:
        set_aside = f"{shown_time(letter.set_aside_at)}, {ago(letter.set_aside_at, now)}"
        in_part = ", kept in part" if letter.kept_bytes < letter.size else ""
        print_fields(
            [
                ("id", letter.id),
                ("adapter", letter.adapter),
                ("topic", letter.topic),
                ("partition", "-" if letter.partition is None else letter.partition),
                ("offset", "-" if letter.offset is None else letter.offset),
                ("set aside", set_aside),
                ("error", letter.error),
                ("reason", letter.reason),
                ("size", bytes_of(letter.size) + in_part),
                ("message", letter.raw.decode("utf-8", "backslashreplace")),
            ]
        )


@commands.command("replay")
@_which
async def replay(session: CliSession, **which: Any) -> int:
    """Try messages again, for example after the missing task was added.

    A message that makes a job now is removed from the list; the others stay, with the reason.

      headrace dead-letters replay kafka:orders:3:1042 --app shop.jobs
      headrace dead-letters replay --all --yes --app shop.jobs
    """
    async with session.backend(needs_app=True) as backend:
        wanted = await _wanted(backend, "replay", **which)
        return await _each(session, wanted, backend.replay_dead_letter)


@commands.command("remove")
@_which
async def remove(session: CliSession, **which: Any) -> int:
    """Delete messages for good.

    headrace dead-letters remove kafka:orders:3:1042
    headrace dead-letters remove --topic orders --yes
    """
    async with session.backend() as backend:
        wanted = await _wanted(backend, "remove", **which)
        return await _each(session, wanted, backend.remove_dead_letter)


async def _each(
    session: CliSession, wanted: list[str], act: Callable[[str], Awaitable[Replayed | None]]
) -> int:
    """Replay or remove one message after the other."""
    if not wanted and not session.json and is_terminal():
        print_line("No message was set aside.")

    async def change(letter_id: str) -> tuple[dict[str, Any], str]:
        replayed = await act(letter_id)
        if replayed is None:
            return {"removed": True}, "removed"
        return msgspec.structs.asdict(replayed), f"job {replayed.job_id}"

    refusals = (InvalidInput, JobConflict, DeadLetterNotFound, NotFound)
    return await change_each(
        session, wanted, change, refusals=refusals, name="dead_letters", key="id"
    )


async def _wanted(
    backend: Backend,
    verb: str,
    *,
    ids: Sequence[str],
    everything: bool,
    topic: str | None,
    yes: bool,
) -> list[str]:
    if ids and (everything or topic):
        raise InvalidInput("give ids, or --all or --topic, not both")
    if ids:
        return list(ids)
    if not everything and topic is None:
        raise InvalidInput("which messages? give ids, --topic or --all")
    found = [letter.id async for letter in _letters(backend, topic)]
    if found and not yes:
        confirm(verb, len(found), "message")
    return found


async def _letters(backend: Backend, topic: str | None) -> AsyncIterator[DeadLetterView]:
    """Yield all of them, or those of a topic, without the messages."""
    cursor = None
    while True:
        page = await backend.dead_letters(topic=topic, cursor=cursor, limit=PAGE)
        for letter in page.dead_letters:
            yield letter
        cursor = page.cursor
        if cursor is None:
            return


def _fields(letter: DeadLetterView) -> dict[str, Any]:
    """What `--json` says about a letter, without the message itself."""
    fields: dict[str, Any] = msgspec.structs.asdict(letter)
    del fields["raw"]
    return fields
