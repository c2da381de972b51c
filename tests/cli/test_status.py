"""`headrace status`, `headrace errors`, pauses with a reason, and the timeline of a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.engine.base import Engine
from headrace.model.outcome import Failed, Failure, Settlement
from tests.cli.conftest import Cli
from tests.support.verbs import a_job, a_worker, claim, complete


async def broken_jobs(engine: Engine) -> None:
    """Three failures of one kind, one of another, and a job that waits in a queue of its own."""
    worker = await a_worker(engine)
    await engine.insert([a_job(task="send") for _ in range(4)])
    jobs = await claim(engine, worker, 4)
    failures = [Failure("ConnectionError", f"no answer from 10.0.0.{n}") for n in range(3)]
    outcomes = [*map(Failed, failures), Failed(Failure("KeyError", "'name' " + "x" * 500))]
    pairs = zip(jobs, outcomes, strict=True)
    await engine.exchange([Settlement(job.id, job.token, outcome) for job, outcome in pairs])
    await engine.insert([a_job(queue="mail")])


def test_status_says_what_is_wrong_and_errors_why(cli: Cli) -> None:
    assert cli("status").out.startswith("All is well.\n")
    assert cli("errors").out == "No job has failed.\n"
    cli.read(broken_jobs)
    ran = cli("queues", "pause", "mail", "--reason", "provider is down", "--for", "30m")
    assert ran.out.startswith("Queue mail is paused until ")
    shown = cli("status").out
    assert "warning: queue 'mail' has 1 pending job and is paused by " in shown
    assert ": provider is down.\n" in shown
    assert "headrace queues resume mail" in shown
    assert "is paused by" in cli("doctor").out
    assert "queue 'mail' has 1 pending job" in cli("top", "--once", "--interval", "100ms").out
    [finding] = cli("status", "--json").json["findings"]
    assert finding["kind"] == "queue.paused"
    listed = cli("queues", "list")
    assert "mail is paused by " in listed.out
    [mail] = [each for each in cli("queues", "list", "--json").json["queues"] if each["paused"]]
    end = datetime.fromisoformat(mail["paused_until"])
    assert timedelta(minutes=20) < end - datetime.now(UTC) < timedelta(minutes=31)

    rows = cli("errors").out.splitlines()
    assert [row.split()[0] for row in rows] == ["JOBS", "3", "1"]
    assert "ConnectionError: no answer from 10.0.0.2" in rows[1]
    groups = cli("errors", "--task", "send", "--since", "1h", "--json").json
    assert [group["count"] for group in groups["groups"]] == [3, 1]
    assert groups["complete"]
    assert cli("errors", "--until", "1h").out == "No job has failed.\n"
    cli("queues", "resume", "mail")
    assert "paused" not in cli("status").out


def test_pauses_that_cannot_be_are_refused(cli: Cli) -> None:
    both = ("--for", "1m", "--until", "2090-01-01T00:00:00Z")
    assert "not both" in cli("queues", "pause", "mail", *both, code=2).err
    assert "has passed" in cli("queues", "pause", "mail", "--until", "2020-01-01T00Z", code=2).err
    assert "reason" in cli("queues", "pause", "mail", "--reason", " ", code=2).err
    assert cli("queues", "list", "--json").json == {"queues": []}


async def one_that_completed(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job()])
    [job] = await claim(engine, worker)
    await complete(engine, job)


def test_a_job_is_shown_with_its_timeline(cli: Cli) -> None:
    cli.read(one_that_completed)
    [job] = cli("jobs", "list", "--json").json["jobs"]
    shown = cli("jobs", "show", job["job_id"])
    assert "Timeline (UTC)" in shown.out
    assert "attempt 1 completed on worker 'worker'" in shown.out
    items = cli("jobs", "show", job["job_id"], "--json").json["timeline"]
    assert [item["kind"] for item in items][-2:] == ["attempt", "end"]
