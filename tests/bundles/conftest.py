"""A small bundle that is installed: a folder with a package and its metadata, on the path."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

import headrace
import headrace.server
from headrace import installed_bundles
from tests.support.processes import ROOT

SOURCE = Path(__file__).parent / "shelf"
APPLICATIONS = {folder.name for folder in (ROOT / "apps").iterdir()}


def install(
    folder: Path, name: str, value: str, *, version: str = "1.2", package: str | None = None
) -> None:
    """Write the metadata that an installer would."""
    package = package or f"headrace-{name}"
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nSummary: A shelf\n"
    )
    (info / "entry_points.txt").write_text(f"[headrace.bundles]\n{name} = {value}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for packages, which this process and those that it starts find."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    own = [each for each in sys.path if each and Path(each).exists()]
    monkeypatch.setenv("PYTHONPATH", ":".join(own))
    yield folder
    _forget()


@pytest.fixture
def shelf(site: Path) -> Path:
    """The bundle `shelf`, installed."""
    shutil.copytree(SOURCE, site / "headrace_shelf", ignore=shutil.ignore_patterns("__pycache__"))
    install(site, "shelf", "headrace_shelf.bundle:bundle")
    _forget()
    return site / "headrace_shelf"


def _forget() -> None:
    """Forget the bundles of a test. The applications of this repository stay: other tests have
    imported them, and a module that is imported twice is two modules.
    """
    importlib.invalidate_caches()
    installed_bundles.installed.cache_clear()
    installed_bundles.made.intersection_update(APPLICATIONS)
    own = {f"headrace_{name}" for name in APPLICATIONS}
    for name in list(sys.modules):
        package = name.split(".")[0]
        if package.startswith("headrace_") and package not in own:
            del sys.modules[name]


@pytest.fixture
def forget() -> Iterator[None]:
    """For tests that make bundles themselves: leave none behind."""
    yield
    _forget()


@pytest.fixture
async def app(shelf: Path, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on SQLite with the bundle."""
    app = headrace.App(
        f"sqlite:///{tmp_path}/jobs.db", artifacts=str(tmp_path / "files"), bundles=["shelf"]
    )
    async with app:
        yield app


@asynccontextmanager
async def client_of(app: headrace.App, key: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API over an App."""
    transport = httpx.ASGITransport(headrace.server.create(app), raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as client:
        yield client
