"""`make hosts`: a producer, a worker and a server on three hosts, with slow and lossy lines.

Needs root and iproute2. Says for each line how many jobs were acknowledged, lost and run twice.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers import PostgresServer, RedisServer, postgres_binaries

from bench.arena import redis_server
from bench.hosts.network import NETWORK, Hosts, HostsMissing

SKIPPED = 77
LIMIT = 120.0
LINES = ((0.0, 0.0), (0.01, 0.0), (0.05, 0.0), (0.01, 5.0), (0.05, 5.0))


class HostedPostgres(PostgresServer):
    """PostgreSQL on another host, which lets the others in."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(postgres_binaries()["postgres"], durable=True, name="hosts")
        self._hosts = hosts
        self.settings["listen_addresses"] = "*"
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {NETWORK}.0.0/16 trust\n")

    def command(self) -> list[str]:
        return self._hosts.on("store", ["setpriv", *AS_NOBODY, *super().command()])

    def user(self) -> str | None:
        return None if self.process_starts else super().user()

    def start(self) -> None:
        self.process_starts = True
        super().start()

    process_starts = False

    def ready(self) -> bool:
        check = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(self._hosts.on("store", check), check=False).returncode == 0


AS_NOBODY = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")


class HostedRedis(RedisServer):
    """Redis on another host."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(redis_server(), name="hosts")
        self._hosts = hosts

    def command(self) -> list[str]:
        own = [each for each in super().command() if each not in ("--bind", "127.0.0.1")]
        return self._hosts.on("store", [*own, "--bind", "*", "--protected-mode", "no"])

    def ready(self) -> bool:
        ask = "import socket,sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 1)"
        command = [sys.executable, "-c", ask, str(self.port)]
        return (
            subprocess.run(
                self._hosts.on("store", command), check=False, capture_output=True
            ).returncode
            == 0
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one run."""

    acknowledged: int
    lost: int
    twice: int
    rate: float


def run(engine: str, jobs: int, delay: float, loss: float) -> Outcome:
    """Enqueue on one host and run on another, with the store on a third."""
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(("producer", "worker")))
        server = HostedPostgres(hosts) if engine == "postgres" else HostedRedis(hosts)
        stack.callback(server.destroy)
        server.start()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for host in ("producer", "worker"):
            arguments = (server.port, hosts.address(host), server.port, delay, loss)
            line = [sys.executable, "-m", "bench.hosts.line", *map(str, arguments)]
            stack.enter_context(_started(hosts.on(host, line), {}))
        settings = {"HEADRACE_URL": server.url}
        work = [sys.executable, "-m", "bench.hosts.program", "work"]
        worker = _started(hosts.on("worker", work), settings | {"JOURNAL": str(folder / "run")})
        stack.enter_context(worker)
        produce = [sys.executable, "-m", "bench.hosts.program", "produce", str(jobs)]
        subprocess.run(
            hosts.on("producer", produce),
            env=os.environ | settings | {"JOURNAL": str(folder / "acknowledged")},
            check=True,
            timeout=LIMIT,
        )
        acknowledged = _read(folder / "acknowledged")
        end = time.monotonic() + LIMIT / 4
        while len({number for number, _ in _read(folder / "run")}) < jobs:
            if time.monotonic() > end:
                break
            time.sleep(0.1)
        ran = _read(folder / "run")
    counts = Counter(number for number, _ in ran)
    first = min(at for _, at in acknowledged)
    last = max((at for _, at in ran), default=first)
    return Outcome(
        acknowledged=len(acknowledged),
        lost=sum(counts[number] == 0 for number, _ in acknowledged),
        twice=sum(count > 1 for count in counts.values()),
        rate=len(counts) / max(last - first, 0.001),
    )


class _started:  # noqa: N801 - used like a function
    """A program that runs until the end of the block; it has said that it is ready."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self.__exit__()
            raise RuntimeError(f"{self._process.args!r} did not start")

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _read(journal: Path) -> list[tuple[int, float]]:
    if not journal.exists():
        return []
    lines = journal.read_text().splitlines()
    return [(int(number), float(at)) for number, at in map(str.split, lines)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make hosts", description=__doc__)
    parser.add_argument("--engine", choices=("postgres", "redis"), action="append")
    parser.add_argument("--jobs", type=int, default=2_000)
    options = parser.parse_args()
    print("| engine | delay each way | loss | acknowledged | lost | twice | jobs/s |")
    print("|---|---|---|---|---|---|---|")
    wrong = 0
    try:
        for engine in options.engine or ("postgres", "redis"):
            for delay, loss in LINES:
                found = run(engine, options.jobs, delay, loss)
                wrong += found.lost + found.twice
                print(
                    f"| {engine} | {delay * 1_000:g} ms | {loss:g}% | {found.acknowledged:,} | "
                    f"{found.lost} | {found.twice} | {found.rate:,.0f} |",
                    flush=True,
                )
    except HostsMissing as error:
        print(f"skipped: {error}", file=sys.stderr)
        return SKIPPED
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
