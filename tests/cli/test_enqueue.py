"""Handing in jobs."""

from __future__ import annotations

import json

from tests.cli.conftest import Cli


def shown(cli: Cli, job_id: str) -> dict[str, object]:
    found: dict[str, object] = cli("jobs", "show", job_id, "--json").json
    return found


def test_values_are_json_if_they_parse_else_text(cli: Cli) -> None:
    job_id = cli.enqueue("invoice.send", "customer_id=42", "note=안녕 세상")
    job = shown(cli, job_id)
    assert job["args"] == {"customer_id": 42, "note": "안녕 세상"}
    assert (job["status"], job["source"], job["lane"]) == ("pending", "cli", "customer:42")


def test_options_reach_the_job(cli: Cli) -> None:
    ran = cli(
        *("enqueue", "invoice.send", "customer_id=1", "--app", "shop", "--queue", "mail"),
        *("--priority", "5", "--delay", "10m", "--key", "only-once", "--json"),
        *("--lane", "customer:{customer_id}", "--retries", "1", "--time-limit", "2m"),
        *("--meta", '{"trace": "abc"}'),
    )
    job = ran.json
    assert (job["lane"], job["max_attempts"], job["timeout"]) == ("customer:1", 2, 120)
    assert job["meta"] == {"trace": "abc"}
    unlimited = cli("enqueue", "slow", "--app", "shop", "--time-limit", "none", "--json")
    assert unlimited.json["timeout"] is None
    bad = cli("enqueue", "slow", "--app", "shop", "--meta", "[1]", code=2)
    assert "--meta is not a JSON object" in bad.err
    assert (job["status"], job["queue"], job["priority"]) == ("scheduled", "mail", 5)
    assert job["key"] == "only-once"
    assert job["created"] is True
    again = cli(
        "enqueue", "invoice.send", "customer_id=2", "--app", "shop", "--key", "only-once", "--json"
    )
    assert again.json["job_id"] == job["job_id"]
    assert again.json["created"] is False
    assert "already" in again.err


def test_a_job_can_wait_for_its_time(cli: Cli) -> None:
    job_id = cli.enqueue("slow", "--at", "2099-01-31T09:00:00+09:00")
    job = shown(cli, job_id)
    assert job["status"] == "scheduled"
    assert job["run_at"] == "2099-01-31T00:00:00Z"


def test_arguments_from_json_a_file_and_stdin(cli: Cli) -> None:
    (cli.folder / "args.json").write_text('{"customer_id": 1, "note": "file"}')
    arguments = ("enqueue", "invoice.send", "--app", "shop", "--json")
    assert cli(*arguments, "--args", '{"customer_id": 2}').json["args"] == {"customer_id": 2}
    assert cli(*arguments, "--args", "@args.json").json["args"]["note"] == "file"
    # A single value wins over the file.
    mixed = cli(*arguments, "--args", "-", "note=line", stdin='{"customer_id": 3, "note": "in"}')
    assert mixed.json["args"] == {"customer_id": 3, "note": "line"}


def test_many_jobs_from_lines(cli: Cli) -> None:
    lines = "".join(f'{{"customer_id": {number}}}\n\n' for number in range(2_500))
    (cli.folder / "customers.jsonl").write_text("\ufeff" + lines)
    arguments = ("enqueue", "invoice.send", "--app", "shop", "--key", "run7:{customer_id}")
    ran = cli(*arguments, "--lines", "customers.jsonl", "--json")
    assert (ran.json["created"], ran.json["existing"]) == (2_500, 0)
    # Repeating it after a crash stores nothing twice.
    again = cli(*arguments, "--lines", "-", stdin=lines)
    assert again.out == "Enqueued 0 jobs; 2,500 were there already, by key.\n"
    assert cli("running", "--json").json["data"]["summary"]["queued_count"] == 2_500


def test_one_bad_line_stores_nothing(cli: Cli) -> None:
    lines = '{"customer_id": 1}\n' * 1_500 + '{"customer": 1}\n'
    ran = cli("enqueue", "invoice.send", "--app", "shop", "--lines", "-", stdin=lines, code=2)
    assert "stdin line 1501; nothing was stored" in ran.err
    assert cli("jobs", "list", "--json").json["jobs"] == []


def test_several_at_once(cli: Cli) -> None:
    assert (
        cli("enqueue", "slow", "--count", "1200", "--app", "shop").out == "Enqueued 1,200 jobs.\n"
    )
    assert cli("queues", "list", "--json").json["queues"][0]["ready"] == 1_200


def test_waiting_for_the_result(cli: Cli) -> None:
    worker = cli.start("worker", "--app", "shop")
    arguments = ("--app", "shop", "--wait", "--timeout", "20s")
    ran = cli("enqueue", "invoice.send", "customer_id=7", *arguments)
    assert json.loads(ran.out) == {"sent": 7}
    failed = cli("enqueue", "invoice.break", "reason=broken glass", *arguments, code=1)
    assert "failed: broken glass" in failed.err
    late = cli("enqueue", "slow", "--app", "shop", "--wait", "--timeout", "100ms", code=1)
    assert "it goes on" in late.err
    worker.terminate()


def test_waiting_without_a_worker_says_so(cli: Cli) -> None:
    ran = cli("enqueue", "tour.hello", "name=Ada", "--wait", "--timeout", "100ms", code=1)
    assert "no worker serves queue 'tour'" in ran.err
