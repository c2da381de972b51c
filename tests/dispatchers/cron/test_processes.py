"""Real dispatchers in processes of their own, one of them killed; and the command line."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.model.job import Job
from tests.conftest import ENGINES, Servers, store_url
from tests.dispatchers.cron.conftest import jobs_of
from tests.support.processes import HEADRACE, LIMIT, ROOT, Process, Processes, until

PROGRAM = "tests.dispatchers.cron.program"
EVERY_SECOND = "dispatcher:\n  min_cron_interval_seconds: 1\n"


async def test_a_dispatcher_that_is_killed_is_replaced_by_the_other(
    servers: Servers, tmp_path: Path
) -> None:
    (tmp_path / "d.yaml").write_text(EVERY_SECOND)
    urls = [store_url(family, servers, tmp_path) for family in ENGINES]
    # Most of it is waiting for seconds to pass, which all engines can do at the same time.
    await asyncio.gather(*(killed_and_replaced(url, tmp_path) for url in urls))


async def killed_and_replaced(url: str, tmp_path: Path) -> None:
    async with headrace.App(url) as app:

        async def beats(count: int) -> list[Job]:
            async def there() -> list[Job]:
                found = await jobs_of(app, "beat")
                return found if len(found) >= count else []

            return await until(there, f"{count} beats")

        with Processes(tmp_path) as processes:

            def start() -> Process:
                return processes.headrace(
                    *("dispatcher", "cron", "--app", PROGRAM, "--config", "d.yaml"),
                    HEADRACE_URL=url,
                )

            first, second = start(), start()
            await beats(2)
            first.kill()
            third = start()

            async def reported() -> bool:
                return third.pid in {each.pid for each in await app.dispatchers()}

            # Before that it may not have its signal handlers yet.
            await until(reported, "the third dispatcher")
            await beats(len(await jobs_of(app, "beat")) + 3)
            for each in (second, third):
                each.terminate()
            for each in (second, third):
                assert await each.ended() == 0, each.said
        times = [job.run_at for job in await jobs_of(app, "beat")]
        apart = {later - earlier for earlier, later in itertools.pairwise(times)}
        assert apart == {timedelta(seconds=1)}  # none missing, none twice


class Cli:
    """The command line in a folder, on one store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEADRACE_", "WORKER_", "API_"))
        }
        self.environment = kept | {
            "HEADRACE_URL": f"sqlite:///{folder}/jobs.db",
            "HEADRACE_APP": PROGRAM,
            "PYTHONPATH": str(ROOT),
        }

    def __call__(self, *arguments: str, code: int = 0, program: tuple[str, ...] = ()) -> str:
        done = subprocess.run(
            [*(program or (str(HEADRACE),)), *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr if code else done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_schedules_from_the_command_line(cli: Cli) -> None:
    added = cli.json(
        *("schedules", "add", "nightly", "0 3 * * *", "report", "days=7"),
        *("--tz", "Asia/Seoul", "--no-overlap", "--missed", "all"),
    )
    assert added["words"] == "at 03:00 every day"
    assert added["params"] == {"days": 7}
    assert len(added["next"]) == 5
    assert added["next"][0]["local"].endswith("T03:00:00+09:00")
    assert added["next"][0]["utc"].endswith("T18:00:00Z")
    assert "exists already" in cli("schedules", "add", "nightly", "0 4 * * *", "report", code=2)
    job_id = cli("schedules", "trigger", "nightly").strip()
    assert "allows no overlap" in cli("schedules", "trigger", "nightly", code=1)
    cli("schedules", "disable", "nightly")
    [listed] = [each for each in cli.json("schedules", "list")["schedules"] if each["stored"]]
    assert (listed["enabled"], listed["next"]) == (False, [])
    shown = cli("schedules", "show", "nightly")
    assert "at 03:00 every day, Asia/Seoul" in shown
    assert job_id in shown
    assert "pending" in shown
    assert cli("schedules", "remove", "nightly") == "Schedule nightly is removed.\n"
    assert "no schedule is called" in cli("schedules", "show", "nightly", code=2)


async def test_a_running_dispatcher_is_listed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(EVERY_SECOND)
    cli("schedules", "add", "nightly", "0 3 * * *", "report", "days=7")
    assert cli.json("dispatcher", "list")["dispatchers"] == []
    with Processes(tmp_path) as processes:
        dispatcher = processes.headrace(
            *("dispatcher", "cron", "--config", "d.yaml"),
            HEADRACE_URL=cli.environment["HEADRACE_URL"],
            HEADRACE_APP=PROGRAM,
        )

        def listed() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = cli.json("dispatcher", "list")["dispatchers"]
            return [each for each in found if each["stored"]]

        [found] = await until(listed, "a dispatcher that has made a job")
        assert (found["type"], found["adapter"], found["pid"]) == ("cron", "cron", dispatcher.pid)
        assert (found["schedules"], found["healthy"], found["silent"]) == (3, True, False)
        assert found["late_seconds"] < LIMIT
        assert " cron " in cli("dispatcher", "list")
        dispatcher.terminate()
        assert await dispatcher.ended() == 0
    assert cli.json("dispatcher", "list")["dispatchers"] == []


def test_bad_schedules_are_refused_by_the_command_line(cli: Cli) -> None:
    add = ("schedules", "add", "s")
    assert "it takes: days" in cli(*add, "@daily", "report", "shop=3", code=2)
    assert "fires 1 s apart" in cli(*add, "* * * * * *", "beat", code=2)
    assert not any(each["stored"] for each in cli.json("schedules", "list")["schedules"])


def test_the_next_times_of_an_expression_can_be_tried(cli: Cli) -> None:
    found = cli.json("schedules", "next", "*/5 * * * *", "-n", "3", "--tz", "Asia/Seoul")
    assert (found["words"], len(found["next"])) == ("every 5 minutes", 3)


def test_a_bad_file_stops_the_dispatcher(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "dispatcher.yaml").write_text("dispatcher:\n\n  poll_interval_seconds: 0\n")
    message = (
        "error: dispatcher.poll_interval_seconds must be at least 1, got 0 "
        "(config/dispatcher.yaml line 3)\n"
    )
    assert cli("dispatcher", "cron", code=2) == message
    module = (sys.executable, "-m", "headrace.dispatchers.cron")
    assert cli(code=2, program=module) == message
    (folder / "dispatcher.yaml").unlink()
    assert "fires 1 s apart" in cli("dispatcher", "cron", code=2)  # declared in code
