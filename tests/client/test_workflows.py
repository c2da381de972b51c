"""Workflows through a Client, and on the command line with API_URL."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.client import sync
from headrace.errors import InvalidArguments, UnknownWorkflow
from tests.client.conftest import Served
from tests.client.test_remote_cli import RemoteCli


@pytest.fixture
def served(one_server: Served) -> Served:
    """A server that knows a workflow."""
    app = one_server.app
    if "sums" not in {each.id for each in app.workflows.all()}:
        flow = headrace.App("sqlite:///:memory:").workflow("sums", params={"a": int})
        first = flow.step("first", "add", {"a": flow.params.a, "b": 1})
        flow.step("second", "add", {"a": first.output, "b": 1})
        app.workflows.add(flow.build())
    return one_server


def test_a_run_through_a_client(served: Served) -> None:
    with sync.Client(served.url) as client:
        assert [each.id for each in client.workflows()] == ["sums"]
        assert [step.id for step in client.workflow("sums").steps] == ["first", "second"]
        begun = client.run_workflow("sums", {"a": 1}, key="once")
        assert client.run_workflow("sums", {"a": 1}, key="once").job_id == begun.job_id
        assert client.result(begun.job_id, 20) == {"second": 3}
        view = client.follow_run(begun.job_id)
        assert (view.status, view.result) == ("completed", {"second": 3})
        assert client.retry_run(begun.job_id, "second") == ["second"]
        assert client.result(begun.job_id, 20) == {"second": 3}
        with pytest.raises(UnknownWorkflow):
            client.workflow("none")
        with pytest.raises(InvalidArguments, match="needs the parameter 'a'"):
            client.run_workflow("sums")


def test_a_run_on_the_command_line(served: Served, tmp_path: Path) -> None:
    cli = RemoteCli(tmp_path, served)
    assert "sums" in cli("workflows", "list").out
    assert "first" in cli("workflows", "show", "sums").out
    assert cli("workflows", "run", "sums", "a=1", "--wait").json == {"second": 3}
    run = cli("workflows", "run", "sums", "a=1", "--key", "again", "--wait", "--json").json[
        "job_id"
    ]
    shown = cli("workflows", "status", run).out
    assert "completed" in shown
    assert "second" in cli("workflows", "retry", run, "--from", "second").out
