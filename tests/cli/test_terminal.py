"""What somebody at a terminal sees."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
import termios

import pytest

from tests.cli.conftest import HEADRACE, Cli


def at_terminal(cli: Cli, *arguments: str, columns: int = 100, answer: bytes = b"") -> str:
    """Run a command on a real terminal of so many columns."""
    environment = cli.environment(TERM="xterm-256color")
    # The processes of a parallel run have them, and they would count more than the terminal itself.
    for name in ("COLUMNS", "LINES"):
        environment.pop(name, None)
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [HEADRACE, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cli.folder,
        env=environment,
    )
    os.close(theirs)
    os.write(ours, answer)
    seen = b""
    try:
        while chunk := os.read(ours, 65_536):
            seen += chunk
    except OSError as error:
        if error.errno != errno.EIO:  # how Linux says that the other side has closed
            raise
    finally:
        os.close(ours)
    process.wait(20)
    return seen.decode()


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_an_id_is_never_cut(cli: Cli, columns: int) -> None:
    job_id = cli.enqueue("invoice.break", "reason=" + "long " * 50)
    cli.drain()
    seen = at_terminal(cli, "jobs", "list", columns=columns)
    assert job_id in seen
    assert "\x1b[31mfailed" in seen
    assert "…" in seen


def test_a_bulk_change_asks_first(cli: Cli) -> None:
    job_id = cli.enqueue("slow")
    assert "aborted; nothing was changed" in at_terminal(
        cli, "jobs", "cancel", "--all", answer=b"n\n"
    )
    assert cli.status(job_id) == "pending"
    seen = at_terminal(cli, "jobs", "cancel", "--all", answer=b"y\n")
    assert "Cancel 1 job?" in seen
    assert "Cancelled, or asked to stop: 1 job of 1 that matched." in seen
    assert cli.status(job_id) == "cancelled"


def test_many_jobs_show_their_progress(cli: Cli) -> None:
    seen = at_terminal(cli, "enqueue", "slow", "--count", "3000", "--app", "shop")
    assert "3000/3000" in seen
    assert "Enqueued 3,000 jobs." in seen


def test_nothing_to_show_is_said_in_words(cli: Cli) -> None:
    assert "No jobs match." in at_terminal(cli, "jobs", "list")
    assert "No lane is held" in at_terminal(cli, "lanes")
    assert "No worker yet" in at_terminal(cli, "workers")
