"""Commands that change many things: asked before, and one after the other."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click

from headrace.cli.command import flag
from headrace.cli.errors import FAILED, OK, notice
from headrace.cli.formatting import plural
from headrace.cli.output import print_json, print_line
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput

YES = flag("--yes -y", "Do not ask before a bulk change.")


def confirm(verb: str, count: int, noun: str, *, hint: str = "") -> None:
    """Ask whoever is at the terminal; without one, refuse and name the option."""
    if not sys.stdin.isatty():
        raise InvalidInput(f"this would {verb} {plural(count, noun)}; add --yes to do it{hint}")
    click.confirm(f"{verb.capitalize()} {plural(count, noun)}?", abort=True, err=True)


async def change_each(
    session: CliSession,
    ids: Sequence[str],
    change: Callable[[str], Awaitable[tuple[dict[str, Any], str]]],
    *,
    refusals: tuple[type[Exception], ...],
    name: str,
    key: str,
    named: bool = False,
) -> int:
    """Change one after the other and return the exit code. One that is refused stops no other.

    `change` returns what JSON and what people are told. JSON has all under `name`, each with its
    id as `key`. `named` if errors say what they are about.
    """
    answers: list[dict[str, Any]] = []
    for each in ids:
        try:
            facts, text = await change(each)
        except refusals as error:
            notice(f"error: {error}" if named else f"error: {each}: {error}")
            answers.append({key: each, "done": False, "error": str(error)})
            continue
        answers.append({key: each, "done": True, **facts})
        if not session.json:
            print_line(f"{each}  {text}")
    if session.json:
        print_json({name: answers})
    return OK if all(answer["done"] for answer in answers) else FAILED
