"""Runs one contender at a time and measures it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from tests.support.servers import PostgresServer, RedisServer, postgres_binaries, redis_binaries

from bench.contenders import Contender
from bench.environments import python_for
from bench.recorder import Recorder

ROOT = Path(__file__).parent.parent
LIMIT_SECONDS = 120


@dataclass
class Figures:
    """What was measured of one contender; None where it does not apply."""

    name: str
    engine: str
    enqueue_one: float | None = None
    enqueue_hundred: float | None = None
    enqueue_many: float | None = None
    drain_one: float | None = None
    drain_two: float | None = None
    latency_p50: float | None = None
    latency_p99: float | None = None
    memory_mb: float | None = None
    connections: int | None = None
    note: str = ""

    def better(self, other: Figures) -> Figures:
        """The best of two runs, figure by figure."""
        merged = asdict(self)
        for key, value in asdict(other).items():
            if isinstance(value, (int, float)) and isinstance(merged[key], (int, float)):
                low = key.startswith(("latency", "memory", "connections"))
                merged[key] = (min if low else max)(merged[key], value)
            elif merged[key] is None:
                merged[key] = value
        return Figures(**merged)


class Bench:
    """A server of one engine, and what is measured on it."""

    def __init__(self, engine: str, *, quick: bool = False) -> None:
        self.engine = engine
        self.scale = 10 if quick else 1
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
        self.server: PostgresServer | RedisServer | None = None

    def measure(self, contender: Contender) -> Figures:
        """All figures of one contender."""
        figures = Figures(contender.name, contender.engine)
        bare = contender.name == "bare limit"
        steps = [("enqueue_many", 20_000)]
        if not bare:
            steps = [("enqueue_one", 2_000), ("enqueue_hundred", 10_000), *steps]
        for step, count in steps:
            with self.fresh():
                setattr(figures, step, self._enqueue(contender, step.replace("_", "-"), count))
        with self.fresh():
            figures.drain_one = self._drain(contender, 1, figures)
        if not bare:
            with self.fresh():
                figures.drain_two = self._drain(contender, 2, figures)
            with self.fresh():
                self._latency(contender, figures)
        return figures

    # -- steps ---------------------------------------------------------------------------------

    def _enqueue(self, contender: Contender, command: str, count: int) -> float:
        count //= self.scale
        self._call(contender, "setup")
        answer = self._call(contender, command, count)
        return float(answer["rate"])

    def _drain(self, contender: Contender, workers: int, figures: Figures) -> float:
        count = contender.drain // self.scale
        record = Recorder(self.folder / "record", count)
        self._call(contender, "setup")
        self._call(contender, "enqueue-many", count)
        with contextlib.ExitStack() as stack:
            started = [stack.enter_context(self._worker(contender)) for _ in range(workers)]
            limit = time.monotonic() + LIMIT_SECONDS
            while not record.all_started():
                if time.monotonic() > limit or any(p.poll() is not None for p in started):
                    raise RuntimeError(
                        f"{contender.name}: {record.progress()} of {count} jobs started"
                    )
                if workers == 1 and record.progress() > count // 2:
                    self._observe(started[0], figures)
                time.sleep(0.005)
        return count / record.seconds()

    def _latency(self, contender: Contender, figures: Figures) -> None:
        count = 300 // min(self.scale, 3)
        record = Recorder(self.folder / "record", count)
        self._call(contender, "setup")
        with self._worker(contender):
            time.sleep(2)  # the worker is up and idle
            self._call(contender, "latency", count)
        latencies = record.latencies()
        figures.latency_p50 = latencies[len(latencies) // 2]
        figures.latency_p99 = latencies[int(len(latencies) * 0.99)]

    def _observe(self, worker: subprocess.Popen[bytes], figures: Figures) -> None:
        if figures.memory_mb is not None:
            return
        processes = [psutil.Process(worker.pid)]
        processes += processes[0].children(recursive=True)
        figures.memory_mb = sum(p.memory_info().rss for p in processes) / 1e6
        if self.server is not None:
            figures.connections = sum(
                1
                for process in processes
                for connection in process.net_connections("tcp")
                if connection.raddr and connection.raddr.port == self.server.port
            )

    # -- processes -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """An empty store on a newly started server."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        if self.engine == "postgres":
            self.server = PostgresServer(postgres_binaries()["postgres"], durable=True)
        elif self.engine == "redis":
            self.server = RedisServer(redis_binaries()["redis"])
        if self.server is not None:
            self.server.start()
        try:
            yield
        finally:
            if self.server is not None:
                self.server.destroy()
                self.server = None

    @property
    def url(self) -> str:
        return self.server.url if self.server else f"sqlite:///{self.folder}/bench.db"

    def _environment(self, contender: Contender) -> dict[str, str]:
        return {
            **os.environ,
            **contender.environment,
            "BENCH_URL": self.url,
            "BENCH_RECORD": str(self.folder / "record"),
            "PYTHONPATH": str(ROOT),
        }

    def _call(self, contender: Contender, command: str, count: int = 0) -> dict[str, float]:
        if not (self.folder / "record").exists():
            Recorder(self.folder / "record", max(count, 1))
        done = subprocess.run(
            [str(python_for(contender)), "-m", contender.program, command, "--count", str(count)],
            cwd=self.folder,
            env=self._environment(contender),
            capture_output=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{contender.name} {command}: {done.stderr.decode()[-1500:]}")
        answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return answer

    @contextlib.contextmanager
    def _worker(self, contender: Contender) -> Iterator[subprocess.Popen[bytes]]:
        log = (self.folder / "worker.log").open("ab")
        process = subprocess.Popen(
            [str(python_for(contender)), "-m", contender.program, "worker"],
            cwd=self.folder,
            env=self._environment(contender),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            log.close()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
