"""Looking at jobs and steering them."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.cli.conftest import HEADRACE, Cli

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def test_a_list_can_be_filtered_and_paged(cli: Cli) -> None:
    ids = [cli.enqueue("invoice.send", f"customer_id={number}") for number in (1, 2)]
    ids.append(cli.enqueue("slow", "--queue", "later", "--delay", "1h"))
    listed = cli("jobs", "list").out
    assert ID.findall(listed) == ids[::-1]
    assert "\x1b" not in listed

    def found(*flags: str) -> list[str]:
        return [job["job_id"] for job in cli("jobs", "list", "--json", *flags).json["jobs"]]

    assert found("--status", "scheduled,failed") == [ids[2]]
    assert found("--queue", "default", "--task", "invoice.send") == [ids[1], ids[0]]
    assert found("--lane", "customer:2", "--source", "cli", "--since", "1h") == [ids[1]]
    assert found("--until", "1h") == []
    page = cli("jobs", "list", "--json", "-n", "1").json
    assert [job["job_id"] for job in page["jobs"]] == [ids[2]]
    assert found("--cursor", page["cursor"]) == [ids[1], ids[0]]
    assert cli("jobs", "list", "--all", "--json").json["cursor"] is None


def test_everything_about_a_job(cli: Cli) -> None:
    failed = cli.enqueue("invoice.break", "reason=no \x1b[31mink\nleft")
    cli.drain()
    told = cli("jobs", "show", failed).out
    assert "RuntimeError: no \\x1b[31mink" in told
    assert "\x1b" not in told
    assert "Traceback (most recent call last)" in told
    assert "raise RuntimeError(reason)" in told
    shown = cli("jobs", "show", failed, "--json").json
    assert shown["status"] == "failed"
    assert shown["error_message"] == "no \x1b[31mink\nleft"
    assert shown["attempts"][0]["outcome"] == "failed"
    assert shown["completed_at"].endswith("Z")
    listed = cli("jobs", "list", "--status", "failed").out.splitlines()
    assert listed[1].endswith("no \\x1b[31mink")


def test_stages_are_shown(cli: Cli) -> None:
    job_id = cli("enqueue", "tour.stages").out.strip()
    cli("worker", "--app", "headrace.cli.up.tour", "--exit-when-idle")
    shown = cli("jobs", "show", job_id, "--json").json
    assert shown["result"] == {"pages": 3, "words": 15}
    assert [stage["name"] for stage in shown["stages"]] == ["fetching", "counting"]
    assert shown["stages"][1]["result"] == 15
    told = cli("jobs", "show", job_id).out
    assert re.search(r"counting +.* (ms|s) +15\n", told)


def test_watching_tells_the_end(cli: Cli) -> None:
    done = cli.enqueue("invoice.send", "customer_id=1")
    failed = cli.enqueue("invoice.break")
    waiting = cli.enqueue("slow", "--delay", "1h")
    late = cli("jobs", "watch", waiting, "--timeout", "200ms", code=1)
    assert "is still scheduled" in late.err
    watching = cli.start("jobs", "watch", done)
    assert watching.stdout is not None
    assert "pending" in watching.stdout.readline()
    cli.drain()
    assert watching.wait(20) == 0
    assert "completed" in watching.stdout.read()
    ran = cli("jobs", "watch", failed, "--json", code=1)
    assert json.loads(ran.out.splitlines()[-1])["status"] == "failed"


def test_why_it_does_not_run(cli: Cli) -> None:
    job_id = cli.enqueue("invoice.send", "customer_id=1")
    cli("queues", "pause", "default")
    told = cli("jobs", "why", job_id).out
    assert "paused" in told
    assert "No worker serves queue 'default'. Start one with: headrace worker --app … " in told
    named = cli("jobs", "why", job_id, HEADRACE_APP="shop").out
    assert "headrace worker --app shop --queues default" in named, "it can be typed as it is"
    assert len(cli("jobs", "why", job_id, "--json").json["reasons"]) == 2


def test_cancel_and_retry_by_id(cli: Cli) -> None:
    first, second = (cli.enqueue("slow", "--delay", "1h") for _ in range(2))
    cli("jobs", "cancel", first, "--reason", "not needed")
    assert cli("jobs", "show", first, "--json").json["error_message"] == "not needed"
    both = cli("jobs", "cancel", first, second, "--json", code=1)
    assert "cancelled already" in both.err
    assert [job["done"] for job in both.json["jobs"]] == [False, True]
    assert "will run again" in cli("jobs", "retry", first).out
    assert "needs no retry" in cli("jobs", "retry", first, code=1).err
    # One bad id, and nothing happens to the good one.
    cli("jobs", "cancel", first, "7", code=2)
    assert cli.status(first) == "pending"


def test_bulk_changes_need_a_yes(cli: Cli) -> None:
    cli("enqueue", "slow", "--count", "1100", "--queue", "bulk", "--app", "shop")
    kept = cli.enqueue("slow")
    flags = ("jobs", "cancel", "--queue", "bulk")
    assert cli(*flags, "--dry-run").out == "Would cancel 1,100 jobs.\n"
    assert "add --yes" in cli(*flags, code=2).err
    assert cli(*flags, "--yes", "--json").json == {
        "verb": "cancel",
        "matching": 1_100,
        "changed": 1_100,
        "dry_run": False,
    }
    assert cli.status(kept) == "pending"
    # Cancelled jobs are run again only if that is asked for.
    assert cli("jobs", "retry", "--queue", "bulk", "--dry-run", "--json").json["matching"] == 0
    ran = cli("jobs", "retry", "--status", "cancelled", "--queue", "bulk", "--yes")
    assert ran.out == "To run again: 1,100 jobs of 1,100 that matched.\n"


def test_failed_jobs_are_retried_in_bulk(cli: Cli) -> None:
    cli("enqueue", "invoice.break", "--count", "3", "--app", "shop")
    cli.drain()
    assert cli("jobs", "retry", "--all", "-y", "--json").json["changed"] == 3
    assert cli("running", "--json").json["data"]["summary"]["queued_count"] == 3


def test_a_preview_tells_errors_apart_and_one_kind_is_retried(cli: Cli) -> None:
    cli("enqueue", "invoice.break", "--count", "3", "--app", "shop")
    cli.drain()
    counted = cli("jobs", "retry", "--all", "--dry-run", "--json").json
    [error] = counted["by_error"]
    assert (counted["matching"], counted["complete"], error["count"]) == (3, True, 3)
    mark = error["fingerprint"]
    assert mark in cli("jobs", "retry", "--all", "--dry-run").out
    assert len(cli("jobs", "list", "--fingerprint", mark, "--json").json["jobs"]) == 3
    other = ("jobs", "retry", "--fingerprint", "0" * 16, "--yes", "--json")
    assert cli(*other).json["changed"] == 0
    assert "16 digits" in cli("jobs", "list", "--fingerprint", "x", code=2).err
    kind = error["error_type"]
    flags = ("--error-type", kind, "--finished-since", "1h", "--worker", "nobody")
    assert cli("jobs", "list", *flags, "--json").json["jobs"] == []
    assert len(cli("jobs", "list", *flags[:4], "--json").json["jobs"]) == 3
    assert cli("jobs", "retry", "--fingerprint", mark, "--yes", "--json").json["changed"] == 3


def test_jobs_are_found_by_a_search(cli: Cli) -> None:
    job_id = cli.enqueue("slow")
    found = cli("jobs", "list", "--search", job_id[5:], "--json").json["jobs"]
    assert [job["job_id"] for job in found] == [job_id]
    assert cli("jobs", "list", "--search", "args.none=1", "--json").json["jobs"] == []


def test_bulk_changes_in_the_background_are_listed_stopped_and_resumed(cli: Cli) -> None:
    cli.enqueue("slow")
    made = cli("jobs", "cancel", "--all", "--yes", "--background", "--json").json
    assert (made["state"], made["action"], made["who"]) == ("running", "cancel", "cli")
    assert made["id"] in cli("bulk", "list").out
    assert "cancel, stopped" in cli("bulk", "stop", made["id"]).out
    assert cli("bulk", "show", made["id"], "--json").json["state"] == "stopped"
    assert cli("bulk", "resume", made["id"], "--json").json["state"] == "running"
    assert "needs no resume" in cli("bulk", "resume", made["id"], code=1).err
    assert "not for ids" in cli("jobs", "cancel", made["id"], "--background", code=2).err


def test_a_reader_that_leaves_early_is_no_error(cli: Cli) -> None:
    cli("enqueue", "slow", "--count", "3000", "--app", "shop")
    with subprocess.Popen(
        [HEADRACE, "jobs", "list", "--all", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cli.folder,
        env=cli.environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'{"jobs": [\n'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_text_that_the_terminal_cannot_show_stops_nothing(cli: Cli, encoding: str) -> None:
    job_id = cli.enqueue("invoice.send", "customer_id=1", "note=한국어")
    ran = cli("jobs", "show", job_id, PYTHONIOENCODING=encoding)
    assert ("한국어" if encoding == "utf-8" else "\\ud55c") in ran.out
