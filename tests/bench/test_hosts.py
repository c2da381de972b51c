"""Producer, worker and store on three hosts, over a slow and lossy line: nothing is lost, and
nothing runs twice. `make hosts` measures more of it.
"""

from __future__ import annotations

import pytest
from bench.hosts.__main__ import run
from bench.hosts.network import Hosts, HostsMissing


def test_nothing_is_lost_or_run_twice_over_a_slow_and_lossy_line() -> None:
    try:
        with Hosts(("other",)):
            pass
    except HostsMissing as error:
        pytest.skip(f"no network namespaces for tests: {error}")
    found = run("redis", 40, 0.01, 5.0)
    assert (found.acknowledged, found.lost, found.twice) == (40, 0, 0)
    # The line is slow: each job waits for a round trip to be stored and one to be claimed.
    assert found.rate < 2_000
