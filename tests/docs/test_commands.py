"""Every command in the documentation exists, with the options that it is shown with."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import click
import pytest

from headrace.cli.main import build
from tests.docs.pages import ROOT, Command, commands, name_of, pages

COMMANDS = [command for page in pages() for command in commands(page)]
HEADRACE = [command for command in COMMANDS if command.words[0].rpartition("/")[2] == "headrace"]
MAKE = [command for command in COMMANDS if command.words[0] == "make"]


@cache
def root() -> Any:
    """Return the command line, built once: several hundred commands are parsed with it."""
    return build()


def check(command: Any, words: list[str], parent: Any, *, whole: bool) -> None:
    """Parse the words as the command line would, without running anything."""
    name = words[0]
    if {"--help", "-h", "--version"} & set(words):
        return
    if isinstance(command, click.Group):
        rest = words[1:]
        known_verbs = command.list_commands(click.Context(command))
        ahead = next((at for at, word in enumerate(rest) if word in known_verbs), None)
        if ahead is None:
            assert not rest, f"{name} has no command {rest}"
            assert not whole, f"{name} needs a command"
            return
        context = command.make_context(name, rest[: ahead + 1], parent=parent)
        check(command.get_command(context, rest[ahead]), rest[ahead:], context, whole=whole)
    else:
        # In a sentence a command may be named without its arguments, but not with wrong options.
        command.make_context(name, words[1:], parent=parent, resilient_parsing=not whole)
        known = {option for each in command.params for option in each.opts + each.secondary_opts}
        known |= set(command.get_help_option_names(parent))
        for word in words[1:]:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in known, f"{name} has no option {word}"


@pytest.mark.parametrize(
    "command", HEADRACE, ids=lambda command: f"{command.place} {' '.join(command.words)}"
)
def test_every_command_and_its_options_exist(command: Command) -> None:
    check(root(), ["headrace", *command.words[1:]], None, whole=command.whole)


@pytest.mark.parametrize(
    "command", MAKE, ids=lambda command: f"{command.place} {' '.join(command.words)}"
)
def test_every_make_target_exists(command: Command) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    asked = [word for word in command.words[1:] if "=" not in word]
    assert set(asked) <= targets


def test_the_reference_names_every_command_and_option() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    missing = []

    def visit(command: Any, path: str) -> None:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                visit(command.get_command(context, name), f"{path} {name}")
            return
        if path not in page:
            missing.append(path)
        for parameter in command.params:
            longest = max(parameter.opts, key=len)
            shown = longest.startswith("--") and not getattr(parameter, "hidden", False)
            if shown and f"`{longest}" not in page:
                missing.append(f"{path} {longest}")

    visit(root(), "headrace")
    assert missing == []


def test_pages_are_found() -> None:
    assert "docs/tutorial.md" in [name_of(page) for page in pages()]
