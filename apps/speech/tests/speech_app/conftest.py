"""The bundle on each engine: SQLite alone; PostgreSQL with a real S3 server; Redis with both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from speech_support.making import Made, made
from speech_support.places import Place, a_place
from speech_support.speech_server import SpeechServer, a_speech_server
from tests.support.stores import ENGINES, Stores

Make = Callable[..., AbstractAsyncContextManager[Made]]


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    started = Stores()
    yield started
    started.stop()


@pytest.fixture
def server() -> Iterator[SpeechServer]:
    with a_speech_server() as started:
        yield started


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(engine: str, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Where jobs, rows and files live."""
    found = a_place(stores, engine, tmp_path)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def make(place: Place, server: SpeechServer) -> Make:
    """Opens an App with the bundle; every call is another one on the same store."""

    def open_one(**more: Any) -> AbstractAsyncContextManager[Made]:
        given = {"openai_url": server.url, "openai_key": "k"} | more
        return made(place.url, place.tables, place.artifacts, **given)

    return open_one
