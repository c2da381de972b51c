"""How long leases last."""

from __future__ import annotations

import pytest

from headrace.loops.loop import around
from headrace.model.lease import renewal_seconds, sweep_pause


@pytest.mark.parametrize("lease_seconds", [1.0, 3.0, 20.0, 30.0, 600.0])
def test_a_sweep_sees_within_the_lease_that_a_worker_is_gone(lease_seconds: float) -> None:
    longest = max(around(sweep_pause(lease_seconds)) for _ in range(1_000))
    assert renewal_seconds(lease_seconds) + longest <= lease_seconds


@pytest.mark.parametrize("lease_seconds", [1.0, 3.0, 20.0, 30.0, 600.0])
def test_a_renewal_lasts_for_most_of_the_lease(lease_seconds: float) -> None:
    assert 0.69 * lease_seconds <= renewal_seconds(lease_seconds) < lease_seconds
