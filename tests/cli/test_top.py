"""`headrace top`: everything at a glance, live or once, on any terminal."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
from datetime import UTC, datetime, timedelta

import pytest

from headrace.cli.formatting import width
from headrace.cli.top.layout import cut, screen
from headrace.cli.top.snapshot import Picture, throughput
from headrace.model.job import Job
from headrace.model.status import State
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.running import RunningJobs
from tests.cli.conftest import HEADRACE, Cli, wait_for

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_picture(jobs: int = 30, **changes: object) -> Picture:
    running = [
        Job(
            id=f"01980000-0000-7000-8000-{number:012}",
            task="스캔.한국가게" if number % 2 else "invoice.send",
            queue="scans",
            state=State.RUNNING,
            args_json=b"{}",
            created_at=NOW,
            run_at=NOW,
            started_at=NOW - timedelta(seconds=number),
            stage="crawling",
            progress=40.0,
            message="page\x1b[31m 7",
            worker=f"worker-with-a-long-name-{number}",
        )
        for number in range(jobs)
    ]
    queues = [QueueView(name=f"queue-{n}", paused=n == 2, running=n, ready=n) for n in range(9)]
    fields = {
        "at": NOW,
        "running": RunningJobs.of(running, queues, NOW.timestamp()),
        "queues": queues,
        "lanes": [
            LaneView(queue="scans", lane="platform:musinsa", width=1, used=1, waiting=9, holders=())
        ],
        "workers": [
            Worker(
                id="w",
                name="one",
                host="h",
                pid=1,
                version="1",
                queues=(),
                slots=10,
                running=3,
                healthy=True,
                alive=alive,
                memory_bytes=50_000_000,
                cpu_percent=12.0,
                started_at=NOW,
                heartbeat_at=NOW,
                lease_until=NOW,
            )
            for alive in (True, False)
        ],
        "outcomes": {"one": {"completed": 100, "failed": 10}},
    }
    return Picture(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [20, 48, 80, 120, 300])
@pytest.mark.parametrize("rows", [5, 24, 60])
def test_every_line_fits_into_the_terminal(columns: int, rows: int) -> None:
    lines = screen(a_picture(), None, columns=columns, rows=rows, where="x" * 200, note="n" * 200)
    assert len(lines) <= rows
    assert max(width(line.text) for line in lines) <= columns
    assert not any("\x1b" in line.text for line in lines)
    assert lines[-1].text == "q quits"


def test_what_matters_stays_where_room_is_short() -> None:
    def text(columns: int, rows: int = 50) -> str:
        lines = screen(a_picture(), None, columns=columns, rows=rows, where="w", note="")
        return "\n".join(line.text for line in lines)

    wide = text(160)
    assert "01980000-0000-7000-8000-000000000029" in wide
    assert "Running (36, the first" in wide
    narrow = text(48)
    for word in ("TASK", "FOR", "PROGRESS", "QUEUE", "BUSY", "LANE"):
        assert word in narrow
    assert "WORKER-WITH" not in narrow
    # Each section keeps its first rows, however little room there is.
    assert "platform:musinsa" in text(80, rows=24)


def test_throughput_counts_what_happened_between_two_looks() -> None:
    before = a_picture(outcomes={"one": {"completed": 100, "failed": 1}, "gone": {"completed": 7}})
    after = a_picture(
        at=NOW + timedelta(seconds=2),
        outcomes={"one": {"completed": 140, "failed": 2, "retry": 1}, "new": {"completed": 10}},
    )
    speed = throughput(before, after)
    assert speed is not None
    assert (speed.completed_per_second, speed.failed_per_second, speed.seconds) == (25.0, 1.0, 2.0)
    assert throughput(after, after) is None


def test_korean_takes_two_columns() -> None:
    assert cut("한국가게", 5) == "한국…"
    assert cut("abc", 3) == "abc"


def test_once_and_as_json(cli: Cli) -> None:
    cli.enqueue("slow", "seconds=60")
    worker = cli.start("worker", "--app", "shop")
    try:

        def running() -> bool:
            found = cli("top", "--json", "--interval", "100ms").json
            return bool(found["running"]) and found["running"][0]["task"] == "slow"

        wait_for(running)
        found = cli("top", "--json", "--interval", "100ms").json
        assert found["workers"][0]["alive"]
        assert found["queues"][0]["running"] == 1
        assert found["throughput"]["completed_per_second"] >= 0
        # In a pipe it is one picture, whole and without colours.
        told = cli("top", "--interval", "100ms").out
        assert found["running"][0]["job_id"] in told
        assert "Workers (1)" in told
        assert "\x1b" not in told
        assert "q quits" not in told
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
    assert "--interval" in cli("top", "--interval", "0", code=2).err


def test_it_is_live_until_q_is_pressed(cli: Cli) -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [HEADRACE, "top", "--interval", "100ms"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cli.folder,
        env=cli.environment(TERM="xterm-256color"),
    )
    seen = b""
    try:
        while seen.count(b"headrace top") < 3:  # it draws again and again, in place
            seen += os.read(ours, 65_536)
        os.write(ours, b"xq")
        while b"\x1b[?1049l" not in seen:  # and leaves the screen as it was
            seen += os.read(ours, 65_536)
        assert process.wait(20) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait(10)
        os.close(ours)
        os.close(theirs)
    assert b"\x1b[?1049h" in seen
