"""The worker as a process: signals, exit codes, memory."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil  # type: ignore[import-untyped]

from tests.cli.conftest import Cli, wait_for
from tests.support.servers import free_port


def line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def told(process: subprocess.Popen[str], text: str) -> str:
    """What it says, up to the line with this text."""
    words = ""
    while text not in words:
        more = line(process)
        assert more, words
        words += more
    return words


def started(process: subprocess.Popen[str]) -> str:
    """The worker's first words, up to the line that says that it is ready."""
    return told(process, "serves")


def test_a_worker_finishes_its_job_when_it_is_told_to_stop(cli: Cli) -> None:
    worker = cli.start("worker", "--app", "shop", "--name", "w1", "--queues", "default,mail")
    words = started(worker)
    assert f"on {cli.url}, 4 tasks: deaf, invoice.break, invoice.send, slow" in words
    assert "Worker w1 serves default, mail with 10 slots" in words
    job_id = cli.enqueue("slow")
    wait_for(lambda: cli.status(job_id) == "running")
    worker.send_signal(signal.SIGTERM)
    words += told(worker, "finishing running jobs")
    cli.wake()
    assert worker.wait(20) == 0
    assert cli.status(job_id) == "completed"
    assert worker.stderr is not None
    rest = worker.stderr.read()
    assert "has stopped" in rest
    assert job_id not in words + rest


def test_a_second_signal_stops_at_once(cli: Cli) -> None:
    worker = cli.start("worker", "--app", "shop")
    started(worker)
    job_id = cli.enqueue("slow")
    wait_for(lambda: cli.status(job_id) == "running")
    worker.send_signal(signal.SIGINT)
    told(worker, "send it again")
    worker.send_signal(signal.SIGINT)
    assert worker.wait(20) == 128 + signal.SIGINT
    assert cli.status(job_id) == "pending"


def test_a_thread_that_does_not_listen_holds_nobody_up(cli: Cli) -> None:
    worker = cli.start("worker", "--app", "shop", "--grace", "100ms")
    started(worker)
    job_id = cli.enqueue("deaf")
    wait_for(lambda: cli.status(job_id) == "running")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def test_a_worker_can_run_what_there_is_and_leave(cli: Cli) -> None:
    ids = [cli.enqueue("invoice.send", f"customer_id={number}") for number in range(2)]
    other = cli.enqueue("invoice.send", "customer_id=9", "--queue", "other")
    ran = cli("worker", "--app", "shop", "--exit-when-idle", "-v", WORKER_PLATFORMS="default")
    assert [cli.status(job_id) for job_id in ids] == ["completed", "completed"]
    assert cli.status(other) == "pending"
    assert f"Job {ids[0]} (invoice.send, attempt 1) returned after" in ran.err
    assert "serves default" in ran.err
    quiet = cli("worker", "--app", "shop", "--exit-when-idle", "-q", "--json")
    assert quiet.err == ""
    assert quiet.json["event"] == "stopped"
    assert cli.status(other) == "completed"


def test_a_worker_gives_up_on_its_engine_if_it_is_told_to(cli: Cli) -> None:
    url = f"postgresql://me:hidden@127.0.0.1:{free_port()}/x"
    ran = cli("worker", "--app", "shop", "--url", url, "--connection-retries", "0", code=3)
    assert "connection_retries is 0" in ran.err
    assert "hidden" not in ran.err


def test_a_worker_waits_for_its_engine(cli: Cli) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    worker = cli.start("worker", "--app", "shop", "--url", url)
    while "trying again" not in line(worker):
        assert worker.poll() is None
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def test_a_worker_stays_small(cli: Cli) -> None:
    worker = cli.start("worker", "--app", "shop", "--max-workers", "100")
    started(worker)
    process = psutil.Process(worker.pid)
    loaded = {mapped.path for mapped in process.memory_maps()}
    assert not [path for path in loaded if "pydantic" in path]
    assert process.memory_info().rss < 50 * 1_048_576
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0


def test_a_command_imports_neither_rich_nor_pydantic(cli: Cli) -> None:
    script = (
        "import sys; from headrace.cli.main import run; "
        "code = run(['jobs', 'list', '-n', '3', '--status', 'failed']); "
        "print(code, [name for name in ('rich', 'pydantic', 'asyncpg', 'redis') "
        "if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=cli.folder,
        env=cli.environment(),
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "0 []"
