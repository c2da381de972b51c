"""One group of servers of each kind for all tests of a process that may harm it and mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engine.redis.conftest import REDISES
from tests.engine.redis.production.groups import ClusterGroup, SentinelGroup
from tests.engine.redis.production.nodes import started
from tests.support.servers import redis_binaries


@pytest.fixture(scope="module", params=REDISES)
def sentinels(request: pytest.FixtureRequest) -> Iterator[SentinelGroup]:
    """A master, a replica and three sentinels, all of them at work."""
    yield from _group(lambda: SentinelGroup(redis_binaries()[request.param]))


@pytest.fixture(scope="module", params=REDISES)
def cluster(request: pytest.FixtureRequest) -> Iterator[ClusterGroup]:
    """Three masters, one of which has a replica."""
    yield from _group(lambda: ClusterGroup(redis_binaries()[request.param]))


def _group(make: Callable[[], Any]) -> Iterator[Any]:
    group = started(make)
    yield group
    group.destroy()
