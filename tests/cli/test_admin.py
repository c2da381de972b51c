"""Queues, lanes, workers, what runs, pruning, and the doctor."""

from __future__ import annotations

import json
import time

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.engine.sqlite.connection import migrate as sqlite_migrate
from headrace.model.outcome import Reserved
from headrace.monitor.series.records import MINUTE, Counts, label
from tests.cli.conftest import Cli, wait_for
from tests.support.verbs import a_worker, claim, settle


def test_queues_pause_and_resume(cli: Cli) -> None:
    job_id = cli.enqueue("invoice.send", "customer_id=1")
    assert cli("queues", "pause", "default").out == "Queue default is paused.\n"
    cli.drain()
    assert cli.status(job_id) == "pending"
    [queue] = cli("queues", "list", "--json").json["queues"]
    assert (queue["name"], queue["paused"], queue["ready"]) == ("default", True, 1)
    assert "paused" in cli("queues", "list").out
    assert cli("queues", "resume", "default", "--json").json["paused"] is False
    cli.drain()
    assert cli.status(job_id) == "completed"


def test_pausing_a_queue_that_nobody_uses_is_told(cli: Cli) -> None:
    cli.enqueue("slow")
    ran = cli("queues", "pause", "defualt")
    assert 'queue "defualt" is not known; it is once a job is put in it; known: default' in ran.err


def test_lanes_show_who_holds_and_who_waits(cli: Cli) -> None:
    first = cli.enqueue("invoice.send", "customer_id=1")
    cli("enqueue", "invoice.send", "customer_id=1", "--count", "2", "--app", "shop")
    [lane] = cli("lanes", "--json").json["lanes"]
    assert (lane["lane"], lane["used"], lane["waiting"]) == ("customer:1", 1, 2)
    assert first in cli("lanes", "--queue", "default", "--lane", "customer:1").out
    assert cli("lanes", "--queue", "other", "--json").json["lanes"] == []


def test_what_runs_and_who_works(cli: Cli) -> None:
    worker = cli.start("worker", "--app", "shop", "--name", "w1", "--max-workers", "1")
    job_id = cli.enqueue("slow")
    waiting = cli.enqueue("slow", "--queue", "other")
    wait_for(lambda: cli.status(job_id) == "running")
    data = cli("running", "--json").json
    assert data["success"] is True
    [running] = data["data"]["running"]
    assert set(running) == {
        "platform",
        "job_id",
        "workflow_id",
        "started_at",
        "elapsed_seconds",
    }
    assert (running["platform"], running["job_id"]) == ("default", job_id)
    assert type(running["elapsed_seconds"]) is int
    assert data["data"]["queued"]["other"] == 1
    assert data["data"]["summary"] == {"running_count": 1, "queued_count": 1}
    told = cli("running").out
    assert job_id in told
    assert "1 job running, 1 queued" in told
    [shown] = cli("workers", "--json").json["workers"]
    assert (shown["name"], shown["alive"], shown["slots"]) == ("w1", True, 1)
    assert "w1" in cli("workers").out
    cli("jobs", "cancel", job_id)
    wait_for(lambda: cli.status(job_id) == "cancelled")
    cli("jobs", "cancel", waiting, code=0)
    worker.terminate()
    assert worker.wait(20) == 0


def test_prune_deletes_the_oldest(cli: Cli) -> None:
    cli("enqueue", "invoice.send", "customer_id=1", "--count", "5", "--app", "shop")
    cli.drain()
    assert cli("prune", "--json").json["pruned"] == 0
    assert cli("prune", "--keep", "2", "--dry-run").out == (
        "Would delete 3 jobs (beyond the newest 2).\n"
    )
    assert cli("prune", "--keep", "2").out == "Deleted 3 jobs (beyond the newest 2).\n"
    assert len(cli("jobs", "list", "--json").json["jobs"]) == 2
    assert cli("prune", "--older-than", "1h", "--json").json["pruned"] == 0
    assert cli("prune", "--older-than", "0s", "--dry-run", "--json").json["pruned"] == 2
    assert cli("prune", "--older-than", "0s", "--json").json["pruned"] == 2


def test_the_doctor_says_what_to_do(cli: Cli) -> None:
    healthy = cli("doctor")
    assert "no worker is alive" in healthy.out
    assert healthy.out.endswith("Nothing is broken; 1 warning: see above.\n")
    assert "headrace worker --app shop\n" in cli("doctor", "--app", "shop").out
    cli.enqueue("slow", "--queue", "lonely")
    ran = cli("doctor", code=1)
    assert "queue 'lonely' has 1 pending job, but no worker serves it" in ran.out
    assert "headrace worker --queues lonely" in ran.out
    found = cli("doctor", "--json", code=1).json
    assert found["healthy"] is False
    assert found["engine"]["engine"] == "sqlite"
    assert found["settings"]["lease_seconds"] == 30.0


async def test_the_doctor_tells_of_tasks_that_no_worker_knows(cli: Cli) -> None:
    cli.enqueue("slow", "--queue", "shared")
    engine = open_engine(cli.url, clock=Clock())
    await engine.open()
    try:
        stranger = await a_worker(engine, "stranger", tasks=("other",))
        [job] = await claim(engine, stranger)
        await settle(engine, job, Reserved())
        ran = cli("doctor", code=1)
        assert "queue 'shared' has 1 pending job of task 'slow', which no worker knows" in ran.out
        assert "headrace jobs cancel --queue shared --task slow" in ran.out
        await a_worker(engine, "knows", tasks=("slow",))
        assert "which no worker knows" not in cli("doctor").out
    finally:
        await engine.close()


async def test_the_doctor_names_workers_that_are_left_to_upgrade(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("doctor")
    engine = open_engine(cli.url, clock=Clock())
    await engine.open()
    try:
        await a_worker(engine, "newer")
        assert "knows schema" not in cli("doctor").out
        with monkeypatch.context() as older:
            older.setattr(sqlite_migrate, "NEWEST", 2)
            await a_worker(engine, "older")
        ran = cli("doctor")
        told = f"worker 'older' knows schema 2, the store has {sqlite_migrate.NEWEST}"
        assert told in ran.out
        assert "worker 'newer' knows" not in ran.out
        assert "a later migration may refuse it" in ran.out
    finally:
        await engine.close()


def test_the_doctor_keeps_secrets_and_names_what_is_away(cli: Cli) -> None:
    ran = cli(
        *("doctor", "--json", "--app", "shpo"),
        *("--url", "postgresql://me:hidden@127.0.0.1:1/x"),
        code=3,
        API_URL="http://u:hidden@127.0.0.1:1",
        HEADRACE_API_KEY="hidden",
    )
    assert ran.json["settings"]["api_key"] == "***"
    assert ran.json["settings"]["api_url"] == "http://u:***@127.0.0.1:1"
    assert "hidden" not in ran.out + ran.err
    findings = {(finding["level"], finding["subject"]) for finding in ran.json["findings"]}
    assert findings == {("error", "engine"), ("error", "app")}


def test_a_new_store_is_told(cli: Cli) -> None:
    assert "is new and empty" in cli("jobs", "list").err
    assert cli("jobs", "list").err == ""


def test_jobs_are_looked_for_where_the_app_keeps_them(cli: Cli) -> None:
    (cli.folder / "elsewhere.py").write_text(
        f"import headrace\napp = headrace.App('sqlite:///{cli.folder}/else.db')\n"
        "@app.task\nasync def work() -> None: ...\n"
    )
    job_id = cli("enqueue", "work", "--app", "elsewhere").out.strip()
    assert job_id in cli("jobs", "list", HEADRACE_APP="elsewhere").out
    assert job_id not in cli("jobs", "list", "--app", "elsewhere", "--url", cli.url).out
    found = cli("doctor", "--json", "--app", "elsewhere", code=1).json
    assert found["settings"]["url"].endswith("/else.db")
    moved = cli("enqueue", "work", "--app", "elsewhere", "--url", cli.url).out.strip()
    assert moved in cli("jobs", "list").out


def test_settings_come_from_a_file_too(cli: Cli) -> None:
    (cli.folder / "headrace.toml").write_text('app = "shop"\nmax_workers = 3\n')
    cli("enqueue", "invoice.send", "customer_id=1")
    assert cli("doctor", "--json", code=1).json["settings"]["max_workers"] == 3


def test_versions(cli: Cli) -> None:
    assert cli("--version").out.startswith("headrace ")
    assert set(cli("version", "--json").json) == {"headrace", "python", "sqlite"}
    assert json.loads(cli("version", "--json").out)


def test_series_are_lines_of_bars_that_fit_on_a_screen(cli: Cli) -> None:
    assert "completed" in cli("series").out

    async def write(engine: Engine) -> None:
        for minutes in range(5, 50):
            counts = Counts()
            counters = counts.attempts.of("invoice.send", "default")
            counters.completed = minutes
            counters.run.observe(0.3)
            counters.count("failed")
            counters.count_error(("ValueError", "0123456789abcdef"))
            key = f"{label(time.time() - 60 * minutes)}/one~1"
            await engine.record_put(MINUTE.kind, key, counts.encode())

    cli.read(write)
    shown = cli("series").out
    assert "█" in shown
    assert "45 x ValueError in invoice.send (0123456789abcdef)" in shown
    assert max(map(len, shown.splitlines())) <= 80
    page = cli("series", "--step", "day", "--queue", "default", "--since", "2d", "--json").json
    done = sum(point["outcomes"].get("completed", 0) for point in page["points"])
    assert done == sum(range(5, 50))
    refused = cli("series", "--step", "week", code=2)
    assert "--step must be one of minute, hour, day, got 'week'" in refused.err
