"""Versions of PostgreSQL between oldest and newest, in few tests. The conformance suite runs
on them with HEADRACE_TEST_VERSIONS=all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.engine.open import open_engine
from tests.conftest import Servers, store_url
from tests.engine.postgres.all_verbs import use_all_verbs, use_an_app
from tests.support.servers import more_postgres_binaries


@pytest.mark.parametrize("name", list(more_postgres_binaries()))
async def test_everything_works_on_versions_in_between(
    name: str, servers: Servers, tmp_path: Path
) -> None:
    url = store_url(name, servers, tmp_path, new=True)
    engine = open_engine(url)
    await engine.open()
    major = name.removeprefix("postgres")
    assert (await engine.report()).server_version.startswith(major)
    await engine.close()
    await use_an_app(url)
    await use_all_verbs(url)
