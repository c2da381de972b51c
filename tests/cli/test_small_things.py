"""Beginnings of ids, completion, zones of times, and words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import msgspec
import pytest

from headrace.cli.formatting import attempt_of
from headrace.cli.ids import pick_id
from headrace.cli.main import COMMANDS, build
from headrace.cli.up.feed import sentence
from headrace.errors import InvalidInput
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry
from headrace.model.status import State
from headrace.monitor.timeline import outcome_words
from tests.cli.conftest import HEADRACE, Cli

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def a_run(**fields: object) -> Job:
    given = {"state": State.SCHEDULED, "run_at": NOW + timedelta(days=30), "max_attempts": 1001}
    return Job(
        **({"id": "x", "task": "headrace.workflow", "queue": "q", "args_json": b"{}"} | given),  # type: ignore[arg-type]
        created_at=NOW,
        awaits=(AwaitedChildren(group=None, left=0),),
        **fields,  # type: ignore[arg-type]
    )


def test_a_beginning_is_enough_if_it_is_the_only_one(cli: Cli) -> None:
    first, second = cli.enqueue("slow"), cli.enqueue("slow")
    for beginning in (first[:20], first[:20].upper(), first):
        assert cli("jobs", "show", beginning, "--json").json["job_id"] == first
    assert cli("jobs", "why", second[:23], "--json").json["job_id"] == second
    shared = first[:4]
    ran = cli("jobs", "show", shared, code=2)
    assert f"{shared!r} is the beginning of several ids: {second}, {first}; write more" in ran.err
    assert "no job has an id that begins with 'abcd'" in cli("jobs", "show", "abcd", code=1).err
    assert "is not a UUID" in cli("jobs", "show", "abc", code=2).err
    done = cli("jobs", "cancel", first[:20], second[:23], "--json").json["jobs"]
    assert [each["job_id"] for each in done] == [first, second]
    assert cli("artifacts", "list", first[:20], "--json").json == {"artifacts": []}
    assert cli("jobs", "list", "--parent", first[:20], "--json").json["jobs"] == []


def test_other_ids_can_be_shortened_too() -> None:
    assert pick_id("abcd", ["abcdef", "xyz"]) == "abcdef"
    assert pick_id("abc", ["abcdef"]) == "abc", "too short to be meant"
    assert pick_id("nothing", ["abcdef"]) == "nothing"
    with pytest.raises(InvalidInput, match=r"abcd1, abcd2, abcd3 …; write more"):
        pick_id("abcd", ["abcd1", "abcd2", "abcd3", "abcd4"])


def test_help_lists_commands_with_whole_sentences() -> None:
    root = build()
    context = click.Context(root, info_name="headrace")
    for name in COMMANDS:
        command = root.get_command(context, name)
        if isinstance(command, click.Group):
            inner = click.Context(command, parent=context, info_name=name, terminal_width=80)
            listed = command.get_help(inner).partition("Commands:")[2]
            assert listed.strip()
            assert "..." not in listed, name
            assert max(map(len, listed.splitlines())) <= 80


def test_shells_complete_commands_options_and_statuses(cli: Cli) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_HEADRACE_COMPLETE" in cli("completion", shell).out
    assert "is not one of 'bash', 'zsh', 'fish'" in cli("completion", "csh", code=2).err

    def complete(*words: str) -> list[str]:
        ran = cli(
            _HEADRACE_COMPLETE="bash_complete",
            COMP_WORDS=" ".join([HEADRACE, *words]),
            COMP_CWORD=str(len(words)),
        )
        return [line.removeprefix("plain,") for line in ran.out.splitlines()]

    assert complete("sched") == ["schedules"]
    assert complete("jobs", "ca") == ["cancel"]
    assert complete("jobs", "list", "--cur") == ["--cursor"]
    assert complete("jobs", "list", "--status", "c") == ["completed", "cancelled"]


def test_times_are_in_utc_unless_local_ones_are_asked_for(cli: Cli) -> None:
    job_id = cli.enqueue("slow")

    def created_at(*flags: str) -> str:
        shown = cli("jobs", "show", job_id, *flags, TZ="XXX-5:30").out
        [line] = [line for line in shown.splitlines() if line.startswith("Created")]
        return line.removeprefix("Created").partition("(")[0].strip()

    created, local = created_at(), created_at("--local-time")
    form = "%Y-%m-%d %H:%M:%S"
    assert created.endswith(" UTC")
    assert local.endswith(" XXX")
    apart = datetime.strptime(local[:19], form) - datetime.strptime(created[:19], form)
    assert apart == timedelta(hours=5, minutes=30)
    assert local in cli("--local-time", "jobs", "show", job_id, TZ="XXX-5:30").out
    assert created[:10] in cli("jobs", "show", job_id, "--json", "--local-time").json["created_at"]


def test_a_run_that_waits_for_its_steps_is_told_so() -> None:
    run = a_run(attempt=1)
    assert attempt_of(run, "/") == "1"
    assert attempt_of(msgspec.structs.replace(run, max_attempts=4)) == "1 of 4"
    assert sentence(run, NOW) == "waits for its children"
    assert sentence(msgspec.structs.replace(run, awaits=(), attempt=0), NOW) == "is due in 30 d"
    entry = AttemptEntry(attempt=1, token=1, outcome="snoozed", ended_at=NOW, worker="w")
    assert outcome_words(run, entry) == "waited"
    assert outcome_words(msgspec.structs.replace(run, task="mine"), entry) == "snoozed"
