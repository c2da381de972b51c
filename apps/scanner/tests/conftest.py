"""Fixtures for the tests of `scanner`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.stores import Stores

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "src"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from scanner_support.places import Place, Scanning, a_place, open_scanner  # noqa: E402

from headrace_scanner.mock_shops import MockShops  # noqa: E402


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    made = Stores()
    yield made
    made.stop()


@pytest_asyncio.fixture
async def shops() -> AsyncIterator[MockShops]:
    async with MockShops() as opened:
        yield opened


@pytest.fixture
def place(
    request: pytest.FixtureRequest,
    stores: Stores,
    shops: MockShops,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    """Where jobs, rows and files live: SQLite alone, unless a test asks for others."""
    made = a_place(stores, getattr(request, "param", "sqlite"), tmp_path, shops)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return made


@pytest_asyncio.fixture
async def scanning(place: Place, shops: MockShops) -> AsyncIterator[Scanning]:
    """An App with the bundle, on the mock shops."""
    async with open_scanner(place, shops) as opened:
        yield opened
