"""Versions of the layout of a store, and which programs may use it.

The hash `meta` has two numbers: `version`, the newest layout that was applied, and `schema`, the
lowest that a program must know. Programs from before `version` obey `schema`, too. Scripts come
with the program, so each program uses its own; scripts/upkeep/migrate.lua changes what is stored.
"""

from __future__ import annotations

from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.schema import check_program
from headrace.engine.sql_files import Migration
from headrace.model.views import SchemaState

LAYOUTS = (
    Migration(1, "0001_layout", "", min_program=1),
    # `version` beside `schema`. Older programs do not read it.
    Migration(2, "0002_version", ""),
    # `schema_version` in the description of a worker. Older programs skip it.
    Migration(3, "0003_worker_schema", ""),
    # `admitted`. Older programs do not write it, and leave what is there when they prune a job.
    Migration(4, "0004_admitted", ""),
    # `expiry`, and keys that go to a newer job. Older programs may claim a job whose time to start
    # is over, or end one and leave its entry, which `expire` forgets. One that they snooze still
    # expires. When they prune a job whose key went to another, they delete the key.
    Migration(5, "0005_expiry", ""),
    # `rates`, `queue_rates`, `rate_index`, `job_rates`, `rated_jobs`, `parked_jobs` and
    # `parked_lines`. Older programs start jobs without looking at them. One that was parked has its
    # place when they make it ready. What they leave in `rated_jobs`, `parked_jobs` and
    # `parked_lines` is forgotten by claims and `prune`; what they leave in `job_rates` when they
    # prune a job stays.
    Migration(6, "0006_rates", ""),
)


def newest() -> int:
    """Return the newest layout that this program knows."""
    return LAYOUTS[-1].number


def limits() -> list[int]:
    """Return, one after the other, each version that states a lowest program, and that program."""
    return [
        number
        for each in LAYOUTS
        if each.min_program is not None
        for number in (each.number, each.min_program)
    ]


def state_of(version: int | bytes | None, schema: int | bytes | None) -> SchemaState:
    """Return the state of a store with these fields in `meta`."""
    min_program = int(schema or 0)
    found = int(version or min_program)
    return SchemaState(
        version=found,
        min_program=min_program,
        known=newest(),
        pending=tuple(f"layout {each.name}" for each in LAYOUTS if each.number > found),
    )


def check(state: SchemaState, address: RedisAddress, *, allowed: bool) -> None:
    """Raise if this program must not use a store in this state."""
    check_program(
        f"namespace {address.namespace!r} at {address}",
        state,
        allowed=allowed,
        elsewhere="another namespace",
    )
