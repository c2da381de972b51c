"""Headrace at work, out of the box."""

from __future__ import annotations

import json
import signal
import socket
from collections import Counter

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from tests.cli.conftest import SHOP, Cli, wait_for


def test_the_tour_shows_how_every_kind_of_job_ends(cli: Cli) -> None:
    ran = cli("up", "--exit-when-idle")
    assert "\x1b" not in ran.out
    assert "hello      completed in" in ran.out
    assert "attempt 1 failed, again in" in ran.out
    assert "completed on attempt 3" in ran.out
    assert "doomed     failed: NotRetryable: this input can never work" in ran.out
    assert "The tour is over: 7 completed, 1 failed, as it should be." in ran.out
    order = [line.split()[2] for line in ran.out.splitlines() if "order" in line and "done" in line]
    assert order == ["1", "2", "3", "4"]
    jobs = cli("jobs", "list", "--json").json["jobs"]
    assert Counter(job["status"] for job in jobs) == {"completed": 7, "failed": 1}


def test_the_tour_in_json(cli: Cli) -> None:
    events = [json.loads(line) for line in cli("up", "--exit-when-idle", "--json").out.splitlines()]
    assert (events[0]["event"], events[-1]) == ("up", {"event": "stopped", "code": 0})
    assert {"event": "tour", "jobs": {"completed": 7, "failed": 1}} in events
    final = {event["job"]["job_id"]: event["job"]["status"] for event in events if "job" in event}
    assert Counter(final.values()) == {"completed": 7, "failed": 1}


def test_several_processes_with_an_app_of_ones_own(cli: Cli) -> None:
    up = cli.start("up", "--app", "shop", "--workers", "3")
    wait_for(lambda: cli.workers() == 3)
    children = psutil.Process(up.pid).children()
    assert len(children) == 2
    job_id = cli.enqueue("invoice.send", "customer_id=1")
    wait_for(lambda: cli.status(job_id) == "completed")
    slow = cli.enqueue("slow", "seconds=1.5")
    wait_for(lambda: cli.status(slow) == "running")
    up.send_signal(signal.SIGINT)
    assert up.wait(30) == 0
    assert up.stdout is not None
    told = up.stdout.read()
    assert f"{job_id} invoice.send  completed" in told
    assert f"{slow} slow  completed" in told  # after it was told to stop
    assert cli.status(slow) == "completed"
    assert not [child for child in children if child.is_running()]


def test_no_worker_process_outlives_its_parent(cli: Cli) -> None:
    up = cli.start("up", "--app", "shop", "--workers", "2")
    wait_for(lambda: cli.workers() == 2)
    [child] = psutil.Process(up.pid).children()
    up.send_signal(signal.SIGKILL)
    up.wait(10)
    assert psutil.wait_procs([child], timeout=20)[1] == []


def test_the_tour_leaves_the_jobs_of_others_alone(cli: Cli) -> None:
    job_id = cli.enqueue("invoice.send", "customer_id=1")
    cli("up", "--exit-when-idle", "--json")
    assert cli.status(job_id) == "pending"


def test_up_serves_the_api(cli: Cli) -> None:
    first = cli.start("up", "--app", "shop", "--json", HEADRACE_PORT="0")
    assert first.stdout is not None
    api = json.loads(first.stdout.readline())["api"]
    made = cli("enqueue", "invoice.send", "customer_id=1", "--json", API_URL=api).json
    wait_for(lambda: cli.status(made["job_id"]) == "completed")
    assert cli("running", "--json", API_URL=api).json["success"] is True
    first.send_signal(signal.SIGINT)
    assert first.wait(30) == 0


def test_the_tour_is_on_the_dashboard(cli: Cli) -> None:
    up = cli.start("up", "--json", HEADRACE_PORT="0")
    assert up.stdout is not None
    base = json.loads(up.stdout.readline())["api"]

    def shows_finished_jobs() -> bool:
        page = httpx.get(f"{base}/", headers={"Accept": "text/html"}, follow_redirects=True)
        assert page.url.path == "/ui/"
        return " data-row" in httpx.get(f"{base}/ui/jobs?status=completed").text

    wait_for(shows_finished_jobs)
    up.send_signal(signal.SIGINT)
    assert up.wait(30) == 0


def test_up_prints_the_address_of_the_dashboard(cli: Cli) -> None:
    up = cli.start("up", "--app", "shop", HEADRACE_PORT="0")
    assert up.stdout is not None
    said = ""
    for line in up.stdout:
        if line.startswith("  dashboard "):
            said = line.removeprefix("  dashboard ").strip()
        if line.startswith("  to stop "):
            break
    assert said.startswith("http://127.0.0.1:")
    page = httpx.get(said, headers={"Accept": "text/html"}, follow_redirects=True)
    assert (page.status_code, str(page.url)) == (200, f"{said}ui/")
    assert "<title>Now · Headrace</title>" in page.text
    up.send_signal(signal.SIGINT)
    assert up.wait(30) == 0


def test_up_without_a_store_says_so(cli: Cli) -> None:
    ran = cli("up", "--url", "redis://127.0.0.1:1/0", code=3)
    assert ran.err.startswith("error: ")
    assert cli("up", "--workers", "0", code=2).err.startswith("error: --workers must be between")


def test_up_serves_on_the_port_that_it_is_told(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = cli("up", "--app", "shop", "--port", port, code=2)
        assert f"cannot listen on 127.0.0.1:{port}" in ran.err
        assert "choose another with --port" in ran.err
    up = cli.start("up", "--app", "shop", "--json", "--port", port)
    assert up.stdout is not None
    assert json.loads(up.stdout.readline())["api"] == f"http://127.0.0.1:{port}"
    wait_for(lambda: cli.workers() == 1)
    up.send_signal(signal.SIGINT)
    assert up.wait(30) == 0


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["text", "json"])
def test_up_says_what_it_leaves_out_without_an_extra(cli: Cli, json: tuple[str, ...]) -> None:
    # As if neither was installed: what is found first says so.
    hidden = cli.folder / "hidden"
    for name in ("uvicorn", "cronsim"):
        (hidden / name).mkdir(parents=True)
        (hidden / name / "__init__.py").write_text(
            f"raise ModuleNotFoundError('No module named {name}', name={name!r})"
        )
    up = cli.start("up", "--app", "shop", *json, PYTHONPATH=str(hidden))
    assert up.stderr is not None
    told = [up.stderr.readline().strip() for _ in range(2)]
    assert told == [
        'note: no schedules without cronsim; install it: pip install "headrace[cron]"',
        "note: no dashboard and no HTTP API without uvicorn; install them: "
        'pip install "headrace[server]"',
    ]
    wait_for(lambda: cli.workers() == 1)
    up.send_signal(signal.SIGINT)
    assert up.wait(30) == 0


def test_declared_schedules_are_told_by_every_command(cli: Cli) -> None:
    program = SHOP + '\n\n@app.schedule("@daily", name="nightly")\n@app.task\ndef tidy(): ...\n'
    (cli.folder / "timed.py").write_text(program)
    told = cli("worker", "--app", "timed", "--exit-when-idle").err
    assert (
        "1 schedule declared (nightly); they fire while a cron dispatcher runs: "
        "headrace dispatcher cron --app timed" in told
    )
    ran = cli("schedules", "list", "--app", "timed")
    assert "nightly  declared  tidy" in ran.out
    assert "note: 1 schedule declared in code and not stored yet" in ran.err
    shown = cli("schedules", "show", "nightly", "--app", "timed").out
    assert "it fires once a dispatcher has stored it" in shown
    assert "1 schedule declared in code and never stored: nightly" in (
        cli("doctor", "--app", "timed").out
    )
    told = cli("up", "--app", "timed", "--exit-when-idle").out
    assert "  schedules     nightly\n" in told
    assert "nightly  enabled" in cli("schedules", "list", "--app", "timed").out
    assert "never stored" not in cli("doctor", "--app", "timed").out
