"""`headrace top`: everything at a glance, live or once, on any terminal."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import struct
import subprocess
import termios
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from headrace.cli.formatting import width
from headrace.cli.top.layout import screen
from headrace.cli.top.snapshot import Picture, throughput
from headrace.model.job import Job
from headrace.model.status import State
from headrace.model.views import Finding, LaneView, QueueView
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


def lines_of(
    columns: int, rows: int, where: str = "w", note: str = "", **changes: Any
) -> list[str]:
    """The screen as a terminal of this size shows it."""
    out = io.StringIO()
    console = Console(file=out, width=columns, height=rows, color_system=None)
    console.print(screen(a_picture(**changes), None, console=console, where=where, note=note))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("columns", [20, 48, 80, 120, 300])
@pytest.mark.parametrize("rows", [24, 60])
def test_every_line_fits_into_the_terminal(columns: int, rows: int) -> None:
    lines = lines_of(columns, rows, where="x" * 200, note="n" * 200)
    assert len(lines) < rows, "there is a line left for the keys"
    assert max(width(line) for line in lines) <= columns
    assert not any("\x1b" in line for line in lines)


def test_what_matters_stays_where_room_is_short() -> None:
    wide = "\n".join(lines_of(160, 50))
    assert "01980000-0000-7000-8000-000000000029" in wide
    assert "worker-with-a-long-name-29" in wide
    assert "Running (36, the first" in wide
    usual = "\n".join(lines_of(80, 24))
    # Each section keeps its first rows, however little room there is.
    for word in ("queue-1", "invoice.send", "스캔", "platform:musinsa", "lost"):
        assert word in usual
    narrow = "\n".join(lines_of(48, 50))
    for word in ("TASK", "FOR", "PROGRESS", "QUEUE", "BUSY", "LANE"):
        assert word in narrow
    assert "worker-with" not in narrow


def test_what_is_wrong_is_said_in_whole_sentences() -> None:
    assert "All is well." in lines_of(80, 24)
    assert "All is well." not in lines_of(80, 24, note="the engine does not answer")
    long = "lane 'user:7' of queue 'books' is held by job 01980000-0000-7000-8000-000000000001 of "
    long += "task 'post', which has been running for 5 min; 900 jobs wait for it"
    told = [Finding("error", "lanes", long)]
    shown = lines_of(80, 24, findings=told)
    assert f"error: {long}" in " ".join(" ".join(shown).split())
    # Where there is no room for all, whole ones are left out, and counted.
    told += [Finding("warning", "lanes", f"{number} {long}") for number in range(9)]
    for columns in (80, 120):
        shown = lines_of(columns, 24, findings=told)
        assert len(shown) < 24
        assert max(map(width, shown)) <= columns
        text = " ".join(" ".join(shown).split())
        assert f"error: {long} warning: 0 {long} " in text
        number = int(text.partition(" more: headrace status")[0].rpartition("and ")[2])
        assert text.count(long) == len(told) - number
        assert "queue-1" in text


def test_columns_stay_in_line_also_with_wide_characters() -> None:
    rows = [line for line in lines_of(80, 50) if "crawling" in line]
    assert any("스캔" in row for row in rows)
    assert any("invoice" in row for row in rows)
    assert len({width(row.partition("crawling")[0]) for row in rows}) == 1


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
