"""Two installations of Headrace: one from before the last change of the schema, one of this tree.

Both are wheels that are built here and installed into a folder each. Everything else that they need
is in the environment of the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.processes import LIMIT, ROOT

# The last commit before migrations 0004 and 0005 on SQLite, 0014 on PostgreSQL and layout 3 on
# Redis. A later migration comes with the commit before it here.
OLD_COMMIT = "8d81cfde3d1dcaa64fcba8bfe5505991ec45d131"
OLD_COMMIT_MISSING = "this clone lacks the commit of the older Headrace"
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")


@dataclass(frozen=True)
class Ran:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Installation:
    """A folder that Headrace is installed in."""

    side: str
    folder: Path

    @property
    def headrace(self) -> str:
        """The command line of this installation."""
        return str(self.folder / "bin" / "headrace")

    def environment(self, **changes: str) -> dict[str, str]:
        """Ours without any setting that a developer may have, and with this Headrace first."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEADRACE_", "WORKER_")) and name != "API_URL"
        }
        return kept | {"PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)])} | changes

    def run(self, *arguments: str, **changes: str) -> Ran:
        """Run a command of this installation to its end."""
        done = subprocess.run(
            [self.headrace, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment(**changes),
            timeout=LIMIT,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def changed(self, folder: Path, *edits: tuple[str, str, str]) -> Installation:
        """A copy with other text in some files; each edit is a file, what is in it, and instead."""
        shutil.copytree(self.folder, folder)
        for name, before, after in edits:
            path = folder / "headrace" / name
            text = path.read_text()
            assert text.count(before) == 1, f"{name} does not have {before!r} once"
            path.write_text(text.replace(before, after))
        return Installation(self.side, folder)


def install_old(folder: Path) -> Installation:
    """Install what the older commit has."""
    archive = subprocess.run(
        ["git", "archive", OLD_COMMIT, *SOURCES], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"{OLD_COMMIT_MISSING}: {OLD_COMMIT}")
    sources = folder / "sources"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(sources, filter="data")
    return _install("old", sources, folder)


def install_new(folder: Path) -> Installation:
    """Install what this tree has."""
    return _install("new", ROOT, folder)


def _install(side: str, sources: Path, folder: Path) -> Installation:
    python = sys.executable
    build = [python, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    _run(build, sources)
    [wheel] = folder.glob("*.whl")
    target = folder / "installed"
    uv = str(Path(python).parent / "uv")
    options = ["--offline", "--no-deps", "--no-cache", "--target", str(target), "--python", python]
    _run([uv, "pip", "install", *options, str(wheel)], folder)
    return Installation(side, target)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
