"""`headrace migrate`: what it says, what it changes, and how it ends."""

from __future__ import annotations

import sqlite3

import pytest

from tests.cli.conftest import LIMIT, Cli


def test_a_check_tells_what_is_missing_and_makes_nothing(cli: Cli) -> None:
    ran = cli("migrate", "--check", code=1)
    assert "Missing: migration 0001_initial" in ran.out
    assert not (cli.folder / "jobs.db").exists()
    assert "Applied: migration 0001_initial" in cli("migrate").out
    assert "Nothing is missing." in cli("migrate", "--check").out


def test_the_answer_in_json_says_what_was_done(cli: Cli) -> None:
    missing = cli("migrate", "--check", "--json", code=1).json
    assert (missing["version"], missing["refused"], missing["done"]) == (0, False, [])
    done = cli("migrate", "--json").json
    assert (done["version"], done["pending"]) == (done["known"], [])
    assert done["done"] == missing["pending"]
    assert cli("migrate", "--json").json["done"] == []


def test_the_script_makes_a_store_that_programs_use_as_it_is(cli: Cli) -> None:
    script = cli("migrate", "--sql").out
    with sqlite3.connect(cli.folder / "jobs.db") as connection:
        connection.executescript(script)
    connection.close()
    cli("migrate", "--check")
    assert cli("jobs", "list", "--json", HEADRACE_MIGRATE="never").json["jobs"] == []
    assert "Nothing to run" in cli("migrate", "--sql").out


def test_a_program_that_must_not_migrate_says_what_to_do(cli: Cli) -> None:
    ran = cli("jobs", "list", code=3, HEADRACE_MIGRATE="never")
    assert "headrace migrate" in ran.err
    assert not (cli.folder / "jobs.db").exists()
    cli("migrate", HEADRACE_MIGRATE="never")
    cli("jobs", "list", HEADRACE_MIGRATE="never")


def test_waiting_ends_when_somebody_else_has_migrated(cli: Cli) -> None:
    waiting = cli.start("migrate", "--wait")
    assert waiting.stderr is not None
    assert "waiting for migration 0001_initial" in waiting.stderr.readline()
    cli("migrate")
    assert waiting.wait(LIMIT) == 0


def test_a_store_for_newer_programs_is_told_from_one_that_lacks_something(cli: Cli) -> None:
    cli("migrate")
    with sqlite3.connect(cli.folder / "jobs.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert "Upgrade Headrace" in cli("migrate", "--check", code=1).out
    for options in ((), ("--sql",), ("--wait",)):
        assert "know version 999" in cli("migrate", *options, code=3).err


def test_the_store_of_a_server_is_migrated_and_waited_for(server_cli: Cli) -> None:
    assert server_cli("migrate", "--check", "--json", code=1).json["version"] == 0
    server_cli("migrate")
    server_cli("migrate", "--check")
    server_cli("migrate", "--wait")
    assert server_cli("jobs", "list", "--json", HEADRACE_MIGRATE="never").json["jobs"] == []


@pytest.mark.parametrize("options", [("--check", "--sql"), ("--sql", "--wait")])
def test_options_that_exclude_each_other_are_refused(cli: Cli, options: tuple[str, ...]) -> None:
    assert "use one of them" in cli("migrate", *options, code=2).err
