"""Signals and retries from a stage on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ORDERS = """
import headrace

app = headrace.App()


async def reserve() -> str:
    return "reserved"


@app.task
async def order(ctx: headrace.Context) -> dict:
    await ctx.stage("reserving", reserve)
    return await ctx.wait("approved")
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    (tmp_path / "orders.py").write_text(ORDERS, encoding="utf-8")
    return Cli(tmp_path, f"sqlite:///{tmp_path}/jobs.db")


def test_an_order_is_approved_and_done_again(cli: Cli) -> None:
    job_id = cli("enqueue", "order", "--app", "orders").out.strip()
    cli("worker", "--app", "orders", "--exit-when-idle")
    assert "waits for event 'approved'" in cli("jobs", "list").out
    told = cli("jobs", "show", job_id).out
    assert "event 'approved'" in told
    assert "reserving" in told
    assert "It waits for event 'approved'" in cli("jobs", "why", job_id).out
    wrong = cli("jobs", "signal", job_id, "approved", "{by: Ana}", code=2)
    assert "is not JSON" in wrong.err
    value = '{"by": "Ana"}'
    assert "delivered" in cli("jobs", "signal", job_id, "approved", value).out
    again = cli("jobs", "signal", job_id, "approved", "--json").json
    assert again == {"job_id": job_id, "event": "approved", "delivery": "already"}
    cli("worker", "--app", "orders", "--exit-when-idle")
    shown = cli("jobs", "show", job_id, "--json").json
    assert (shown["status"], shown["result"]) == ("completed", {"by": "Ana"})
    assert "it has: 'reserving'" in cli("jobs", "retry", job_id, "--from", "shipping", code=2).err
    assert "by id" in cli("jobs", "retry", "--all", "--from", "reserving", "--yes", code=2).err
    cli("jobs", "retry", job_id, "--from", "reserving")
    assert cli("jobs", "show", job_id, "--json").json["stages"] == []
