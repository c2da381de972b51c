"""What is private stays so: modes of files, passwords in URLs, text of handlers in logs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.cli.output import JsonList, print_json, print_json_line
from headrace.cli.services.logs import _Format
from headrace.engine.stored_text import one_line, redacted
from headrace.errors import InvalidSetting
from headrace.workflows.conditions import BadCondition, Condition


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


async def test_files_are_not_for_everybody(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "store"
    folder.mkdir(0o755)
    async with headrace.App(
        f"sqlite:///{folder}/jobs.db", artifacts=str(folder / "files" / "here")
    ) as app:

        @app.task
        async def work(ctx: headrace.Context) -> None:
            await ctx.artifacts.put("deep/page.html", b"secret", layer="bronze")

        await work.enqueue()
        await headrace.JobOrchestrator(app).run_until_idle()
        found = list(folder.rglob("*"))
        names = {path.name for path in found}
        assert {"jobs.db", "jobs.db-wal", "jobs.db-shm", "files", "here", "page.html"} <= names
        for path in found:
            wanted = (0o770 if path.is_dir() else 0o660) & ~umask
            assert path.stat().st_mode & 0o777 == wanted, path


async def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.touch(0o644)
    file.chmod(0o644)
    async with headrace.App(f"sqlite:///{file}") as app:
        await app.queues()
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter@host/jobs",
        "ada:hunter@host/jobs",
        "ada:hunter@host:5432/jobs?sslmode=require",
        "//ada:hunter@host/jobs",
        "postgresql:/ada:hunter@host/jobs",
        "postgresql:ada:hunter@host/jobs",
        "postgresql://ada:hunter@ter@host/jobs",
        "postgresql://host/jobs?user=ada&password=hunter",
        "postgresql://host/jobs?sslpassword=hunter&x=1",
        "redis://:hunter@host",
        "sqlite://ada:hunter@host/x.db",
        "hunter@host",
    ],
)
def test_a_url_shows_no_password(url: str) -> None:
    assert "hunter" not in redacted(url)
    assert "host" in redacted(url)
    if not url.startswith(("postgresql://", "redis://")):
        with pytest.raises(InvalidSetting) as refused:
            headrace.App(url).engine  # noqa: B018
        assert "hunter" not in str(refused.value)


def test_a_url_without_password_is_shown_as_it_is() -> None:
    for url in (
        "sqlite:///jobs.db",
        "sqlite:///a@b.db",
        "postgresql://ada@host/jobs?sslmode=require",
        "redis://h:1/0",
    ):
        assert redacted(url) == url


RAW = "\x1b[2J bell\x07 c1\x9b31m\nJob 1 (x): completed\u202e"


def test_json_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": RAW})
    print_json_line({"text": RAW})
    items = JsonList("jobs")
    items.add([{"text": RAW}])
    items.end(cursor=RAW)
    said = capsys.readouterr().out
    assert not [each for each in said if not each.isprintable() and each != "\n"]
    first = json.loads(said[: said.index("}") + 1])
    assert first == {"text": RAW}


async def test_errors_of_handlers_are_logged_on_one_line_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db") as app:

        @app.task(retries=0)
        async def work(password: str) -> None:
            raise ValueError(f"{RAW} cannot log in with {password}")

        await work.enqueue("hunter-22")
        with caplog.at_level(logging.INFO, "headrace"):
            await headrace.JobOrchestrator(app).run_until_idle()
    [line] = [record.getMessage() for record in caplog.records if "cannot log" in str(record.args)]
    assert line.isprintable()
    assert "\\x1b[2J" in line
    assert "hunter" not in line
    assert "[redacted]" in line


def test_the_log_of_a_program_has_no_control_characters() -> None:
    formatter, error = _Format(), ValueError(RAW)
    told = (ValueError, error, None)
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "it said %s", (RAW,), told)
    first, *rest = formatter.format(record).split("\n")
    assert first.isprintable()
    assert all(line.isprintable() for line in rest)
    assert any("ValueError" in line for line in rest)


def test_text_on_one_line() -> None:
    assert one_line("plain é 한") == "plain é 한"
    assert one_line("a\nb\x9b") == "a\\nb\\x9b"


def test_a_condition_is_not_nested_too_deeply() -> None:
    for text in ("-" * 1_900 + "1", "not " * 450 + "1", "(" * 900 + "1" + ")" * 900, "[" * 190):
        with pytest.raises(BadCondition):
            Condition(text)
    assert Condition("not not (-1 < 0 and [1, [2]] == [1, [2]])").holds({})
