"""Packages of npm for tests, installed once beside the project where Node is found."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / ".tools"
PACKAGES = (
    "openapi-typescript@7.13.0",
    "openapi-fetch@0.15.0",
    "typescript@5.9.3",
    "@types/node@20.19.0",
    "@stoplight/spectral-cli@6.16.3",
)
INSTALL_SECONDS = 240.0


def npm_packages() -> Path:
    """Return the folder `node_modules`. Skips the test where there is no Node, or no registry."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("there is no Node here; install node and npm to test generated clients")
    name = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:12]
    folder = FOLDER / f"npm-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # Several tests may want it at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "installed"
        if not done.exists():
            _install(npm, folder)
            done.touch()
    return folder / "node_modules"


def _install(npm: str, folder: Path) -> None:
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier")
    command = [npm, "install", "--prefix", str(folder), *quiet, *PACKAGES]
    try:
        told = subprocess.run(
            command,
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("no package registry of npm answers in time")
    if told.returncode != 0:
        pytest.skip(f"no package registry can be reached by npm: {told.stderr[-300:]}")
