"""Bad input: a clear line on stderr, the right exit code, nothing changed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headrace.cli.main import COMMANDS, build, run
from tests.cli.conftest import HEADRACE, Cli
from tests.cli.conftest import SHOP as CONTENT
from tests.support.servers import free_port

SHOP = ("--app", "shop")
# Fixed, so that every process of a run gives its tests the same names.
NOBODY = "01900000-0000-7000-8000-000000000000"

REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    # usage
    (("job", "list"), 2, "Did you mean 'jobs'? See: headrace --help"),
    (("jobs", "lits"), 2, "Did you mean 'list'"),
    (("jobs", "list", "--nonsense"), 2, "headrace jobs list --help"),
    (("jobs", "list", "--limit", "many"), 2, "many"),
    (("jobs", "list", "--limit", "0"), 2, "--limit must be at least 1, got 0"),
    (("jobs", "list", "--status", "faild"), 2, 'did you mean "failed"'),
    (("jobs", "list", "--source", "clii"), 2, 'did you mean "cli"'),
    (("jobs", "list", "--since", "yesterday"), 2, "--since 'yesterday'"),
    (("jobs", "list", "--queue", "no good"), 2, "queue name 'no good'"),
    (("jobs", "list", "--cursor", "7"), 2, "'7' is not a UUID"),
    (("jobs", "show", "7"), 2, "'7' is not a UUID"),
    (("jobs", "show"), 2, "ID"),
    (("jobs", "show", NOBODY), 1, f"no job has the id {NOBODY}"),
    (("jobs", "watch", NOBODY), 1, NOBODY),
    (("jobs", "why", NOBODY), 1, NOBODY),
    (("jobs", "cancel"), 2, "which jobs? give ids, a filter"),
    (("jobs", "retry"), 2, "which jobs?"),
    (("jobs", "cancel", NOBODY), 1, NOBODY),
    (("jobs", "retry", NOBODY, "--all"), 2, "give ids or a filter, not both"),
    (("jobs", "cancel", "--queue", "default"), 2, "would cancel 1 job; add --yes"),
    (("queues", "pause", "no good"), 2, "queue name 'no good'"),
    (("lanes", "--limit", "0"), 2, "--limit"),
    (("prune", "--older-than", "soon"), 2, "--older-than 'soon'"),
    (("prune", "--older-than", "9" * 30), 2, "is more than 100 years; use a shorter span"),
    (("prune", "--older-than", "9" * 400, "--dry-run"), 2, "is more than 100 years"),
    (("prune", "--keep", "-1"), 2, "--keep must be 0 or more, got -1"),
    # enqueue
    (("enqueue", "invoice.send", "customer_id=1"), 2, "which App?"),
    (("enqueue", "invoice.sned", *SHOP), 2, 'Unknown task "invoice.sned". Registered: "invoice.s'),
    (("enqueue", "invoice.send", "customer_id=x", *SHOP), 2, "Expected `int`, got `str`"),
    (("enqueue", "invoice.send", "customer_id=1", "more=1", *SHOP), 2, "`more`"),
    (
        ("enqueue", "invoice.send", "customer_id=1", "--at", "9999-12-31T23:59:59.999999Z", *SHOP),
        2,
        "run_at must lie in the years from 1970 to 9998 (UTC), got 9999-12-31T23:59:59.999999",
    ),
    (
        ("enqueue", "invoice.send", "customer_id=1", "--at", "0001-01-01T00:00:00+05:00", *SHOP),
        2,
        "run_at must lie in the years from 1970 to 9998 (UTC)",
    ),
    (
        ("enqueue", "invoice.send", "customer_id=1", "--delay", "9" * 400, *SHOP),
        2,
        "delay must be between 0 and 315360000 seconds, got inf",
    ),
    (("enqueue", "invoice.send", "customer_id", *SHOP), 2, "'customer_id' is not an argument"),
    (("enqueue", "invoice.send", "customer_id=1", "note=7", *SHOP), 2, """name='"7"'"""),
    (("enqueue", "invoice.send", "--args", "[1]", *SHOP), 2, "has to be an object"),
    (("enqueue", "invoice.send", "--args", "{1}", *SHOP), 2, "--args is not JSON"),
    (("enqueue", "invoice.send", "--args", "@gone.json", *SHOP), 2, "'gone.json': No such file"),
    (("enqueue", "invoice.send", "--args", "@big.json", *SHOP), 2, "the limit is 1,048,576"),
    (("enqueue", "invoice.send", "--lines", "gone.jsonl", *SHOP), 2, "No such file"),
    (("enqueue", "invoice.send", "--lines", "bad.jsonl", *SHOP), 2, "bad.jsonl line 3"),
    (("enqueue", "invoice.send", "--lines", "bad.jsonl", "--key", "k", *SHOP), 2, "one job of all"),
    (("enqueue", "invoice.send", "--lines", "x", "customer_id=1", *SHOP), 2, "--lines brings"),
    (("enqueue", "invoice.send", "customer_id=1", "--queue", "ä", *SHOP), 2, "queue name '\\xe4'"),
    (("enqueue", "invoice.send", "customer_id=1", "--priority", "9999", *SHOP), 2, "got 9999"),
    (("enqueue", "invoice.send", "customer_id=1", "--delay", "soon", *SHOP), 2, "--delay 'soon'"),
    (("enqueue", "invoice.send", "customer_id=1", "--at", "2030-01-01", *SHOP), 2, "no time zone"),
    (
        ("enqueue", "slow", "--delay", "1s", "--at", "2030-01-01T00:00:00Z", *SHOP),
        2,
        "delay or run_at, not both",
    ),
    (("enqueue", "slow", "--count", "0", *SHOP), 2, "--count must be at least 1, got 0"),
    (("enqueue", "slow", "--count", "2", "--wait", *SHOP), 2, "--wait is for one job"),
    (("enqueue", "slow", "--count", "2", "--key", "k", *SHOP), 2, "leave out --count"),
    (("enqueue", "slow", "--wait", "--timeout", "x", *SHOP), 2, "--timeout 'x'"),
    # the App
    (("enqueue", "slow", "--app", "shpo"), 2, 'did you mean "shop"'),
    (("enqueue", "slow", "--app", "shop:not_an_app"), 2, "is a int, not a headrace.App"),
    (("worker",), 2, "which App?"),
    (("worker", "--app", "shpo"), 2, 'did you mean "shop"'),
    (("worker", "--max-workers", "0", *SHOP), 2, "max_workers must be at least 1, got 0"),
    (("worker", "--queues", "no good", *SHOP), 2, "queue name 'no good'"),
    (("worker", "--lease", "0.5", *SHOP), 2, "lease_seconds must be at least 1, got 0.5"),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """One folder and one store with one job, which nothing here may change."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "shop.py").write_text(CONTENT, encoding="utf-8")
    (folder / "big.json").write_text(f'{{"customer_id": 1, "note": "{"x" * 1_100_000}"}}')
    (folder / "bad.jsonl").write_text('{"customer_id": 1}\n\n{"customer_id": "x"}\n')
    cli = Cli(folder, f"sqlite:///{folder}/jobs.db")
    cli.enqueue("invoice.send", "customer_id=1")
    return cli


def content(cli: Cli) -> list[str]:
    """Everything in the store, as SQL."""
    with sqlite3.connect(cli.folder / "jobs.db") as connection:
        dump = list(connection.iterdump())
    connection.close()
    return dump


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: " ".join(case[0]))
def test_bad_input_is_refused_and_changes_nothing(
    shop: Cli,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: tuple[tuple[str, ...], int, str],
) -> None:
    arguments, code, message = case
    # In this process: starting Python for each of them would take a minute.
    monkeypatch.chdir(shop.folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("HEADRACE_URL", shop.url)
    before = content(shop)
    assert run(list(arguments)) == code
    told = capsys.readouterr()
    assert told.out == ""
    [*_, last] = told.err.splitlines()
    assert last.startswith("error: ")
    assert message in last
    assert content(shop) == before


def test_a_setting_that_is_unknown_is_told_with_the_nearest(cli: Cli) -> None:
    ran = cli("jobs", "list", code=2, HEADRACE_LEASE_SECOND="3")
    assert 'unknown environment variable "HEADRACE_LEASE_SECOND"' in ran.err
    assert 'did you mean "HEADRACE_LEASE_SECONDS"?' in ran.err
    assert not (cli.folder / "jobs.db").exists()


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("mysql://x/y", 2, "sqlite:///path.db, postgresql://"),
        ("sqlite:////nowhere/at/all.db", 3, "does not exist"),
        ("postgresql://me:hidden@127.0.0.1:{port}/x", 3, "127.0.0.1:{port}"),
        ("redis://:hidden@127.0.0.1:{port}/0", 3, "127.0.0.1:{port}"),
    ],
)
def test_a_store_that_cannot_be_reached_is_named(
    cli: Cli, url: str, code: int, message: str
) -> None:
    port = free_port()
    ran = cli("jobs", "list", "--url", url.format(port=port), code=code)
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert message.format(port=port) in ran.err
    assert "hidden" not in ran.err


def test_a_store_of_a_newer_version_is_left_alone(cli: Cli) -> None:
    cli("jobs", "list")
    with sqlite3.connect(cli.folder / "jobs.db") as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_master")]
        [[version]] = connection.execute("pragma user_version")
        connection.execute("pragma user_version = 9999")
    connection.close()
    assert version > 0, tables
    ran = cli("jobs", "list", code=3)
    assert "newer" in ran.err


def test_a_file_that_is_no_store_is_refused(cli: Cli) -> None:
    path = Path(cli.folder / "jobs.db")
    path.write_text("this is not a database, but it is long enough to look like one" * 20)
    ran = cli("jobs", "list", code=3)
    assert "jobs.db" in ran.err
    assert path.read_text().startswith("this is not")


def test_a_remote_server_that_is_away_is_named_without_secrets(cli: Cli) -> None:
    ran = cli("running", code=3, API_URL="http://me:hidden@127.0.0.1:1", HEADRACE_API_KEY="hidden")
    assert "http://127.0.0.1:1" in ran.err
    assert "API_URL" in ran.err
    assert "hidden" not in ran.err
    cli("running", "--url", cli.url, API_URL="http://127.0.0.1:1")


def test_the_traceback_comes_only_when_asked_for(cli: Cli) -> None:
    (cli.folder / "broken.py").write_text("1 / 0\n")
    cli("enqueue", "x", "--app", "broken", code=2)
    done = subprocess.run(
        [HEADRACE, "enqueue", "x", "--app", "broken", "--debug"],
        capture_output=True,
        text=True,
        cwd=cli.folder,
        env=cli.environment(),
        check=False,
    )
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_a_noun_alone_shows_its_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs"]) == 2
    assert "watch" in capsys.readouterr().err
    assert run([]) == 0
    assert "headrace up" in capsys.readouterr().out


def verbs_of(noun: str) -> list[str]:
    """The verbs of a noun, or one empty verb if it has none."""
    root = build()
    found = root.get_command(click.Context(root), noun)
    return list(getattr(found, "commands", {"": None}))


@pytest.mark.parametrize("noun", COMMANDS)
def test_every_command_helps_with_an_example(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in verbs_of(noun):
        words = [noun, verb] if verb else [noun]
        assert run([*words, "--help"]) == 0
        told = capsys.readouterr().out
        assert "Example" in told, words
        assert f"headrace {' '.join(words)}" in told
        assert "--json" in told, words


@pytest.mark.parametrize("noun", COMMANDS)
def test_the_summary_of_a_command_is_the_first_line_of_its_help(noun: str) -> None:
    root = build()
    found = root.get_command(click.Context(root), noun)
    assert found is not None
    assert COMMANDS[noun][1] == (found.help or "").partition("\n")[0]
    assert len(COMMANDS[noun][1]) <= 80 - len("  dead-letters  "), "it is cut at 80 columns"
