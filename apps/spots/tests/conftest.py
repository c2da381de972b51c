"""Fixtures for the tests of `spots`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

HERE = Path(__file__).parent
# The bundle need not be installed to be tested.
for folder in (HERE, HERE.parent / "src", HERE.parents[2]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from spots_support.places import Place, Places, Spots, open_spots  # noqa: E402


@pytest.fixture(scope="session")
def places() -> Iterator[Places]:
    made = Places()
    yield made
    made.destroy()


@pytest.fixture
def place(
    request: pytest.FixtureRequest,
    places: Places,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    """Where jobs, rows and files live: SQLite alone, unless a test asks for others."""
    made = places.make(getattr(request, "param", "sqlite"), tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return made


@pytest_asyncio.fixture
async def spots(place: Place) -> AsyncIterator[Spots]:
    """An App with the bundle, which may crawl this machine."""
    async with open_spots(place.url) as opened:
        yield opened
