"""The bundle as people run it: a server and a worker in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[4]
SOURCES = [ROOT / "src", ROOT / "apps" / "ingest" / "src"]
HEADRACE = str(Path(sys.executable).parent / "headrace")
LIMIT = 100.0

File = tuple[str, bytes]


class Running:
    """A server, and workers on the same store."""

    def __init__(self, folder: Path, url: str, port: int, **settings: str) -> None:
        self.folder = folder
        self.settings = {f"HEADRACE_{name.upper()}": value for name, value in settings.items()}
        self.url = url
        self.address = f"http://127.0.0.1:{port}"
        self.port = port
        self.processes: list[subprocess.Popen[bytes]] = []
        self.client = httpx.Client(base_url=f"{self.address}/ingest", timeout=LIMIT)
        _install(folder / "site")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command that stays."""
        with (self.folder / f"{arguments[0]}.log").open("ab") as log:
            process = subprocess.Popen(
                [HEADRACE, *arguments, "--bundle", "ingest"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self.environment(),
            )
        self.processes.append(process)
        return process

    def start_server(self) -> subprocess.Popen[bytes]:
        """Start the server and wait until it answers."""
        server = self.start("server", "--port", str(self.port))
        wait_for(self._answers, "the server", lambda: self.log("server"))
        return server

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker, whose jobs are soon taken over if it is killed."""
        return self.start("worker", "--lease", "8s", "--verbose")

    def run(self, *arguments: str, code: int = 0, remote: bool = False) -> str:
        """Run a command of the bundle to its end and return what it printed. `remote`: it knows the
        server alone.
        """
        environment = self.environment()
        if remote:
            environment["HEADRACE_URL"] = "sqlite:////nowhere/jobs.db"
            environment["API_URL"] = self.address
        done = subprocess.run(
            [HEADRACE, "ingest", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=self.folder,
            env=environment,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Ours without settings, with the store and the bundle."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEADRACE_", "WORKER_")) and name != "API_URL"
        }
        path = os.pathsep.join(str(each) for each in [*SOURCES, self.folder / "site"])
        return kept | {
            "HEADRACE_URL": self.url,
            "HEADRACE_ARTIFACTS": str(self.folder / "artifacts"),
            "PYTHONPATH": path,
            **self.settings,
        }

    def stop(self) -> None:
        """End all processes."""
        self.client.close()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def log(self, name: str) -> str:
        """Return what a command has logged."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    # -- documents ---------------------------------------------------------------------------

    def add(self, *files: File, path: str = "/", metadata: str = "{}") -> list[dict[str, Any]]:
        """Hand in files and return what was accepted."""
        answer = self.post(*files, path=path, metadata=metadata)
        assert answer.status_code == 202, answer.text
        accepted: list[dict[str, Any]] = answer.json()["documents"]
        return accepted

    def post(self, *files: File, path: str = "/", metadata: str = "{}") -> httpx.Response:
        """Hand in files, whatever the answer."""
        parts = [("files", (name, content)) for name, content in files]
        return self.client.post(
            "/documents", files=parts, data={"path": path, "metadata": metadata}
        )

    def get(self, document_id: str) -> dict[str, Any]:
        """Return a document."""
        answer = self.client.get(f"/documents/{document_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def job(self, document_id: str) -> dict[str, Any]:
        """Return the job of a document."""
        found: dict[str, Any] = httpx.get(f"{self.address}/jobs/{document_id}").json()
        return found

    def finished(self, document_id: str) -> dict[str, Any]:
        """Wait until a document is completed or failed, and return it."""
        wait_for(
            lambda: self.get(document_id)["status"] != "processing",
            f"document {document_id}",
            lambda: f"{self.get(document_id)}\n{self.log('worker')[-3000:]}",
        )
        return self.get(document_id)

    def done(self, *files: File, path: str = "/") -> list[dict[str, Any]]:
        """Hand in files and return them when they are finished."""
        return [self.finished(each["document_id"]) for each in self.add(*files, path=path)]

    def search(self, q: str, **more: object) -> list[dict[str, Any]]:
        """Return the hits of a question."""
        answer = self.client.get("/search", params={"q": q, **more})  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        hits: list[dict[str, Any]] = answer.json()["hits"]
        return hits

    def _answers(self) -> bool:
        try:
            return self.client.get("/info").status_code == 200
        except httpx.TransportError:
            return False


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, as a failing machine does."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def wait_for(
    condition: Callable[[], bool],
    what: str,
    details: Callable[[], str],
    limit: float = LIMIT,
    pause: float = 0.05,
) -> None:
    """Wait until something is so. `pause` is the time between two looks."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"{what} was not there in time: {details()}"
        time.sleep(pause)


def files_with(value: bytes, folders: Iterable[Path]) -> list[str]:
    """Return the files below these folders in which the bytes are."""
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in paths if value in path.read_bytes()]


def _install(folder: Path) -> None:
    """Write the metadata that an installer would."""
    info = folder / "headrace_ingest-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: headrace-ingest\nVersion: 0.1.0\nSummary: Documents\n"
    )
    (info / "entry_points.txt").write_text(
        "[headrace.bundles]\ningest = headrace_ingest.bundle:bundle\n"
    )
