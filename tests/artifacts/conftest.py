"""A store of each kind: a folder, and a bucket of a real S3 server with authentication."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headrace.artifacts import ArtifactStore, open_store
from tests.support.objects import S3Server

STORES = ["local", "s3"]


class Objects:
    """The S3 server, started when the first test asks for it."""

    def __init__(self) -> None:
        self.server: S3Server | None = None

    def get(self) -> S3Server:
        if self.server is None:
            self.server = S3Server()
            self.server.start()
        return self.server


@pytest.fixture(scope="session")
def objects() -> Iterator[Objects]:
    started = Objects()
    yield started
    if started.server is not None:
        started.server.destroy()


def sign_in(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the server's credentials where programs look for them."""
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=STORES)
def setting(
    request: pytest.FixtureRequest,
    objects: Objects,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """The setting `artifacts` for a store of each kind that nobody else uses."""
    if request.param == "local":
        return str(tmp_path / "artifacts")
    server = objects.get()
    sign_in(server, monkeypatch)
    return server.artifacts(f"t{uuid4().hex[:12]}/run")


@pytest.fixture
def store(setting: str) -> ArtifactStore:
    return open_store(setting)


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    """A stream that can be read once."""
    for part in parts:
        yield part
