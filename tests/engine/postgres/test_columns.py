"""Jobs that are sent as one row of shared values are alike in all that is not sent for each."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.engine.postgres.columns import alike
from headrace.model.insert_policy import InsertPolicy
from headrace.model.job import NewJob
from headrace.model.limits.rate import Rate

# Sent for each job of a batch.
OWN = {"id": "b", "args": b"[]", "meta": b"{}"}
# Of another field below, or stored one by one.
IMPLIED = {"group": "g", "cost": 2.0, "count_retries": False, "policy": InsertPolicy()}
SHARED: dict[str, Any] = {
    "task": "other",
    "queue": "other",
    "priority": 1,
    "delay": 1.0,
    "run_at": 1.0,
    "key": "k",
    "lane": "l",
    "width": 2,
    "hold": False,
    "max_attempts": 1,
    "timeout": None,
    "on_crash": "fail",
    "source": "api",
    "parent": "p",
    "expires_in": 1.0,
    "expires_at": 1.0,
    "rate": Rate(1, 1.0, 1),
}


def a_job(**values: Any) -> NewJob:
    return NewJob(**{"id": "a", "task": "task"} | values)


def test_every_field_is_looked_at_or_left_to_each_job() -> None:
    assert OWN.keys() | IMPLIED.keys() | SHARED.keys() == set(NewJob.__struct_fields__)


@pytest.mark.parametrize("field", SHARED)
def test_jobs_that_differ_are_not_alike(field: str) -> None:
    other = a_job(**{field: SHARED[field]})
    assert alike([a_job(), a_job(), other]) is None
    assert alike([other, a_job()]) is None


def test_jobs_that_differ_in_what_is_sent_for_each_are_alike() -> None:
    common = alike([a_job(), a_job(**OWN)])
    assert common is not None
    assert common == alike([a_job()])


@pytest.mark.parametrize(
    "field", ["key", "priority", "delay", "run_at", "width", "hold", "timeout", "on_crash"]
)
def test_equal_values_are_alike(field: str) -> None:
    assert alike([a_job(**{field: SHARED[field]}) for _ in range(3)]) is not None


@pytest.mark.parametrize("field", ["lane", "parent", "expires_in", "expires_at", "rate"])
def test_values_that_need_tables_of_their_own_are_not_shared(field: str) -> None:
    assert alike([a_job(**{field: SHARED[field]}) for _ in range(3)]) is None
