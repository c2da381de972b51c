"""The command line with API_URL: a real process that asks a real server, and opens no engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.admin.keys import create_key
from headrace.model.ids import new_id
from tests.cli.conftest import Cli, Ran
from tests.client.conftest import Served

NOWHERE = "sqlite:////nowhere/at/all.db"


class RemoteCli:
    """Runs `headrace` where neither the engine nor the App can be reached."""

    def __init__(self, folder: Path, served: Served) -> None:
        self._cli = Cli(folder, NOWHERE)
        self._remote = {"API_URL": served.url, "HEADRACE_APP": "nothing"}

    def __call__(self, *arguments: str, code: int = 0, **changes: str) -> Ran:
        return self._cli(*arguments, code=code, **self._remote | changes)


@pytest.fixture
def cli(one_server: Served, tmp_path: Path) -> RemoteCli:
    return RemoteCli(tmp_path, one_server)


def test_the_way_of_a_job_over_each_engine(served: Served, tmp_path: Path) -> None:
    cli = RemoteCli(tmp_path, served)
    assert cli("enqueue", "add", "a=2", "b=3", "--wait", "--timeout", "20s").out == "5\n"
    job_id = cli("enqueue", "mine", "user=7", "--queue", "elsewhere").out.strip()
    cli("jobs", "cancel", job_id, "--reason", "enough")
    shown = cli("jobs", "show", job_id[:23], "--json").json  # its beginning, on each engine
    assert (shown["job_id"], shown["status"]) == (job_id, "cancelled")
    assert shown["error_message"] == "enough"
    assert cli("running", "--json").json == {
        "success": True,
        "data": {
            "running": [],
            "queued": {"default": 0, "elsewhere": 0},
            "summary": {"running_count": 0, "queued_count": 0},
        },
    }


def test_looking_and_steering(cli: RemoteCli, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text("".join(f'{{"user": {n % 3}}}\n' for n in range(1_001)))
    lines = ("--lines", "lines.jsonl", "--queue", "elsewhere")
    assert "Enqueued 1,001 jobs." in cli("enqueue", "mine", *lines).out
    (tmp_path / "keyed.jsonl").write_text('{"reason": "a"}\n{"reason": "b"}\n{"reason": "a"}\n')
    keyed = ("--lines", "keyed.jsonl", "--delay", "1h", "--key", "k:{reason}")
    told = cli("enqueue", "broken", *keyed).out
    assert told == "Enqueued 2 jobs; 1 were there already, by key.\n"
    [first, *_] = cli("lanes", "--queue", "elsewhere", "--json").json["lanes"]
    assert (first["width"], first["used"]) == (2, 2)
    assert cli("queues", "pause", "elsewhere").out == "Queue elsewhere is paused.\n"
    [_, queue] = cli("queues", "list", "--json").json["queues"]
    assert (queue["paused"], queue["ready"] + queue["waiting"]) == (True, 1_001)
    assert "ok" in cli("workers").out
    shown = cli("top", "--json", "--interval", "100ms").json
    assert [queue["name"] for queue in shown["queues"]] == ["elsewhere", "default"]
    assert shown["workers"][0]["alive"]
    assert "No worker serves queue" in cli("jobs", "why", first["holders"][0]).out
    done = cli("jobs", "cancel", "--queue", "elsewhere", "--reason", "all", "--yes")
    assert "1,001 jobs of 1,001" in done.out
    [job] = cli("jobs", "list", "--queue", "elsewhere", "-n", "1", "--json").json["jobs"]
    assert (job["status"], job["error_message"]) == ("cancelled", "all")
    shown = cli("jobs", "show", job["job_id"]).out
    assert "user:1" in shown
    assert "width 2" in shown
    assert "will run again" in cli("jobs", "retry", job["job_id"]).out
    assert "0 jobs running, 1 queued" in cli("running").out


def test_a_job_is_watched_to_its_end(cli: RemoteCli) -> None:
    job_id = cli("enqueue", "staged", "--key", "once").out.strip()
    assert "completed" in cli("jobs", "watch", job_id, "--timeout", "20s").out.splitlines()[-1]
    [stage] = cli("jobs", "show", job_id, "--json").json["stages"]
    assert (stage["name"], stage["result"]) == ("counting", 7)
    again = cli("enqueue", "staged", "--key", "once", "--json")
    assert (again.json["job_id"], again.json["created"]) == (job_id, False)
    assert "already" in again.err
    assert "no ink" in cli("enqueue", "broken", "reason=no ink", "--wait", code=1).err


def test_mistakes_are_told_as_without_a_server(
    one_server: Served, cli: RemoteCli, tmp_path: Path
) -> None:
    assert 'Unknown task "ad"' in cli("enqueue", "ad", code=2).err
    assert """name='"7"'""" in cli("enqueue", "broken", "reason=7", code=2).err
    assert "no job has the id" in cli("jobs", "show", new_id(), code=1).err
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n[2]\n')
    assert "line 2" in cli("enqueue", "add", "--lines", "bad.jsonl", code=2).err
    (tmp_path / "unfit.jsonl").write_text('{"a": 1}\n{"a": "x"}\n')
    assert "jobs[1]" in cli("enqueue", "add", "--lines", "unfit.jsonl", code=2).err
    assert one_server.call(one_server.app.list()).jobs == []


def test_what_is_typed_wins_and_engine_commands_say_so(cli: RemoteCli, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/own.db"
    (tmp_path / "own.py").write_text(
        f"import headrace\napp = headrace.App({store!r})\n"
        "@app.task\nasync def mail() -> None: ...\n"
    )
    job_id = cli("enqueue", "mail", "--app", "own").out.strip()
    assert job_id in cli("jobs", "list", "--url", store).out
    told = cli("doctor", code=1, HEADRACE_APP="own", HEADRACE_API_KEY="hidden")
    assert "works on the engine itself" in told.err
    assert "hidden" not in told.out + told.err


def test_keys_are_asked_for_and_shown_to_nobody(one_server: Served, cli: RemoteCli) -> None:
    _, secret = one_server.call(create_key(one_server.app, name="reader", scope="read"))
    denied = cli("enqueue", "add", "a=1", code=1, HEADRACE_API_KEY=secret)
    assert "scope write" in denied.err
    assert secret not in denied.err + denied.out
    assert cli("jobs", "list", "--json", HEADRACE_API_KEY=secret).json["jobs"] == []
    assert "HEADRACE_API_KEY" in cli("running", code=1).err


def test_a_server_that_is_away_and_a_url_that_is_none(cli: RemoteCli) -> None:
    assert "http://127.0.0.1:1" in cli("jobs", "list", code=3, API_URL="http://127.0.0.1:1").err
    assert "API_URL" in cli("jobs", "list", code=2, API_URL="127.0.0.1:3989").err
