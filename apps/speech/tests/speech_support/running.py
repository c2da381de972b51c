"""The bundle as people run it: a server and a worker in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[4]
SOURCES = [ROOT / "src", ROOT / "apps" / "speech" / "src"]
HEADRACE = str(Path(sys.executable).parent / "headrace")
LIMIT = 120.0


class Running:
    """A server, and workers on the same store."""

    def __init__(
        self, folder: Path, url: str, port: int, settings: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.settings = settings or {}
        self.url = url
        self.address = f"http://127.0.0.1:{port}"
        self.port = port
        self.processes: list[subprocess.Popen[bytes]] = []
        self.client = httpx.Client(base_url=f"{self.address}/speech", timeout=LIMIT)
        _install(folder / "site")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command that stays."""
        with (self.folder / f"{arguments[0]}.log").open("ab") as log:
            process = subprocess.Popen(
                [HEADRACE, *arguments, "--bundle", "speech"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self.environment(),
            )
        self.processes.append(process)
        return process

    def start_server(self) -> None:
        """Start the server and wait until it answers."""
        self.start("server", "--port", str(self.port))
        wait_for(self._answers, "the server", lambda: self.log("server"))

    def run(
        self, *arguments: str, code: int = 0, remote: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the bundle to its end. `remote`: it knows the server alone."""
        given = self.environment() | environment
        if remote:
            given |= {"HEADRACE_URL": "sqlite:////nowhere/jobs.db", "API_URL": self.address}
        done = subprocess.run(
            [HEADRACE, "speech", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=self.folder,
            env=given,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

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

    def get(self, job_id: str) -> dict[str, Any]:
        """Return a job."""
        answer = self.client.get(f"/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def _answers(self) -> bool:
        try:
            return self.client.get("/providers").status_code == 200
        except httpx.TransportError:
            return False


def wait_for(
    condition: Callable[[], bool], what: str, details: Callable[[], str], limit: float = LIMIT
) -> None:
    """Wait until something is so."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"{what} was not there in time: {details()}"
        time.sleep(0.05)


def _install(folder: Path) -> None:
    """Write the metadata that an installer would."""
    info = folder / "headrace_speech-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: headrace-speech\nVersion: 0.1.0\nSummary: Dialogues\n"
    )
    (info / "entry_points.txt").write_text(
        "[headrace.bundles]\nspeech = headrace_speech.bundle:bundle\n"
    )
