"""The same commands on a server: PostgreSQL and Redis."""

from __future__ import annotations

import json
import signal

import psutil  # type: ignore[import-untyped]

from tests.cli.conftest import Cli, wait_for


def test_the_whole_way_on_a_server(server_cli: Cli) -> None:
    cli = server_cli
    failed = cli.enqueue("invoice.break", "reason=on purpose")
    cli("enqueue", "invoice.send", "customer_id=1", "--count", "3", "--app", "shop")
    [lane] = cli("lanes", "--json").json["lanes"]
    assert (lane["used"], lane["waiting"]) == (1, 2)
    worker = cli.start("worker", "--app", "shop", "--max-workers", "100")
    ran = cli("enqueue", "invoice.send", "customer_id=1", "--app", "shop", "--wait")
    assert json.loads(ran.out) == {"sent": 1}
    assert psutil.Process(worker.pid).memory_info().rss < 60 * 1_048_576
    assert cli("jobs", "watch", failed, code=1).out.rstrip().endswith("RuntimeError: on purpose")
    slow = cli.enqueue("slow")
    wait_for(lambda: cli.status(slow) == "running")
    assert cli("running", "--json").json["data"]["running"][0]["job_id"] == slow
    cli("jobs", "cancel", slow)
    wait_for(lambda: cli.status(slow) == "cancelled")
    # The PostgreSQL of the tests does not sync to disk, which the doctor does not let pass.
    durable = not cli.url.startswith("postgres")
    found = cli("doctor", "--json", code=0 if durable else 1).json["findings"]
    errors = {finding["subject"] for finding in found if finding["level"] == "error"}
    assert errors == (set() if durable else {"fsync", "full_page_writes"})
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert cli("jobs", "retry", "--task", "invoice.break", "--yes", "--json").json["changed"] == 1
    assert "No worker serves queue 'default'" in cli("jobs", "why", failed).out
    assert cli("prune", "--older-than", "0s", "--json").json["pruned"] == 5
    assert [job["job_id"] for job in cli("jobs", "list", "--json").json["jobs"]] == [failed]


def test_the_tour_on_a_server(server_cli: Cli) -> None:
    ran = server_cli("up", "--exit-when-idle")
    assert "The tour is over: 7 completed, 1 failed, as it should be." in ran.out
